"""TiDB's character sets and collations, as far as they decide what becomes of rows. Pure.

Which texts are equal is known for letters of which TiDB's WEIGHT_STRING was looked at, in each of `_FOLDING`.
"""

import unicodedata

DEFAULTS = {
    "utf8mb4": "utf8mb4_bin",
    "utf8": "utf8_bin",
    "utf8mb3": "utf8_bin",
    "ascii": "ascii_bin",
    "latin1": "latin1_bin",
    "gbk": "gbk_chinese_ci",
    "gb18030": "gb18030_chinese_ci",
    "binary": "binary",
}
"""A character set's collation where none is named (TiDB documentation, "Character Set and Collation")."""

_BY_UTF8 = {
    "", "binary", "utf8mb4_bin", "utf8mb4_0900_bin", "utf8_bin", "utf8mb3_bin", "ascii_bin", "latin1_bin",
}  # fmt: skip
"""Those that compare texts by their bytes in UTF-8. Those of gbk and gb18030 do so by other bytes."""
_UNPADDED = {"binary", "utf8mb4_0900_bin", "utf8mb4_0900_ai_ci"}
_FOLDING = {
    "utf8mb4_general_ci", "utf8_general_ci", "utf8mb3_general_ci", "utf8mb4_unicode_ci", "utf8_unicode_ci",
    "utf8mb3_unicode_ci", "utf8mb4_0900_ai_ci",
}  # fmt: skip
ANY = "utf8mb4_general_ci"
"""Folds what one of the folding collations does."""
_LATIN, _CYRILLIC = range(0xC0, 0x180), range(0x410, 0x450)
_OTHERWISE = "\u0419\u0439"
"""Letters of these ranges that collations don't agree about."""


def of_charset(charset: str) -> str:
    """The collation of a character set; "" for one that is not known, or none."""
    return DEFAULTS.get(charset, "")


def is_by_bytes(collation: str) -> bool:
    """Whether it compares the bytes in UTF-8; one that is not said is taken to."""
    return collation in _BY_UTF8


def is_padded(collation: str) -> bool:
    """Whether spaces at the end are no difference."""
    return collation not in _UNPADDED


def folded(text: str, collation: str) -> str | None:
    """A text that equal ones share under this collation; None if it is not known."""
    text = text.rstrip(" ") if is_padded(collation) else text
    if collation not in _FOLDING:
        return text if is_by_bytes(collation) else None
    letters = [_letter(letter) for letter in text]
    return None if None in letters else "".join(filter(None, letters))


def _letter(letter: str) -> str | None:
    """Without case and accent; None for one of which it is not known."""
    number = ord(letter)
    if letter.isascii():
        return letter.upper() if letter.isprintable() else None
    parts = unicodedata.normalize("NFD", letter)
    if number in _LATIN and len(parts) == len("e\u0301") and parts[0].isascii():
        return parts[0].upper()
    return letter.upper() if number in _CYRILLIC and letter not in _OTHERWISE else None
