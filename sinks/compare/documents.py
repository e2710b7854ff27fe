"""JSON documents and numbers as texts that are the same for the same value, whoever spells them."""

import json

import orjson


def decimal_text(text: str) -> str:
    """A number's text, the same for 1, 1.0 and 10e-1: its digits without zeros around, and where the point is."""
    mantissa, _, exponent = text.lower().partition("e")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    kept = digits.rstrip("0")
    sign = "-" if mantissa.startswith("-") else ""
    return f"{sign}{kept}e{int(exponent or 0) - len(fraction) + len(digits) - len(kept)}" if kept else "0"


def document_text(text: str) -> str:
    """By value: numbers as such, an object's keys in order. What is no document, or has a key twice, is its text.

    So is what only a person can have written: more levels than upstream's 100, half a character.
    """
    try:
        found = _DECODER.decode(text)
        return _encoded(found)
    except (ValueError, RecursionError):
        return f"?{text}"


def _encoded(found: object) -> str:
    """A document as JSON. orjson, which is quicker, writes the same, and refuses deep ones and halves of characters.

    Raises RecursionError, and ValueError for half a character, which has no bytes.
    """
    try:
        return orjson.dumps(found).decode()
    except orjson.JSONEncodeError:
        text = _ENCODER.encode(found)
        text.encode()
        return text


def _as_number(text: str) -> dict[str, str]:
    """A number; `_object` makes of each object of the document one whose key is another."""
    return {"#": decimal_text(text)}


def _no_number(text: str) -> dict[str, str]:
    """What Python takes for a number and JSON does not: NaN and the like."""
    return {"#": text}


def _object(pairs: list[tuple[str, object]]) -> dict[str, list[list[object]]]:
    if len({key for key, _ in pairs}) < len(pairs):
        message = "a key comes twice"
        raise ValueError(message)
    return {"{}": [[key, value] for key, value in sorted(pairs, key=lambda pair: pair[0])]}


_DECODER = json.JSONDecoder(
    parse_int=_as_number, parse_float=_as_number, parse_constant=_no_number, object_pairs_hook=_object
)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
