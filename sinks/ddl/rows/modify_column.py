"""What MODIFY COLUMN makes of a value: from a text as messages spell it to another one, as TiDB converts.

TIMESTAMPs are spelled in the source's zone, and it is in that zone that they become other values (upstream it was the
session's, which no message names). Upstream had converted every row without an error before it sent the statement, so a
value that no rule can convert says that the target does not hold what upstream held. Rounding: decimals, texts and
fractions of seconds half away from zero, floats half to even (found by recordings of TiDB; MySQL documentation,
"Precision Math").
"""

import json
import re
import struct
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Context, Decimal

from ordering.errors import TargetError
from sinks.ddl.model import TypeDef
from sinks.ddl.rows.default_values import BYTES, INTEGERS, REALS
from sinks.ddl.rows.members import enum_number, set_number
from sinks.ddl.rows.out_of_range import bytes_held, fitting, fitting_year, integer_range, plain, shortest
from sinks.ddl.rows.temporal import date_and_time, time_span
from sinks.rows.plain_values import is_unsigned, is_whole, real
from sinks.rows.values import member_name, set_names

Convert = Callable[[str], str]
TEXTS = {"char", "varchar", "tinytext", "text", "mediumtext", "longtext"}
MOMENTS = {"date", "datetime", "timestamp"}
NUMBERS = INTEGERS | REALS | {"decimal", "bit", "year"}
_MOST_DIGITS = Context(prec=400)
_MOMENT = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?)?", re.ASCII)
_TIME = re.compile(r"(-?)(\d+):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?", re.ASCII)
_ONLY_DATE = re.compile(r"\s*(\d{7,13}|\d+-\d+-\d+)\s*$", re.ASCII)
_NO_SECONDS = re.compile(r"^\s*-?\d*[6-9]\d\s*$", re.ASCII)
_SHORT_DAY_DIGITS = len("260102")
_CHARACTER_BYTES = 4
_MICROSECOND_DIGITS = 6
_CENTURY, _TURN = 100, 70
_ALL_BITS = 1 << 64
_CHARACTERS = {"ascii": "\x7f", "utf8": "\uffff"}
"""The last one of a character set."""
_LEAST_PLAIN, _MOST_PLAIN = 1e-15, 1e15


def converter(old: TypeDef, new: TypeDef) -> Convert:
    """How values of one type become those of another; ValueError for one that can't. Raises TargetError."""
    rule = _rule(old, new)
    if rule is None:
        raise TargetError(
            f"rows can't be converted exactly from {old} to {new}",
            hint="make the change in the target by hand, and leave this DDL out with a filter",
        )
    fit = fitting(new)
    return rule if fit is None else (lambda text: fit(rule(text)))


def loses_characters(old: TypeDef, new: TypeDef) -> bool:
    """Whether texts or bytes may hold characters that the new character set lacks."""
    before, after = _charset(old), _charset(new)
    return after in _CHARACTERS and before not in {after, "ascii"} and old.base in TEXTS | BYTES and new.base in TEXTS


def _charset(kind: TypeDef) -> str:
    found = kind.charset or kind.collation.partition("_")[0]
    return "utf8" if found == "utf8mb3" else found


def number_of(kind: TypeDef, names: str) -> str:
    """An ENUM's or SET's value by its names, as messages spell it: by its number."""
    if kind.base == "enum":
        return str(kind.members.index(names) + 1 if names in kind.members else 0)
    return str(sum(1 << kind.members.index(name) for name in names.split(",")) if names else 0)


def keeps_values(old: TypeDef, new: TypeDef) -> bool:
    """Whether every value of one type is spelled alike in the other, whatever it is."""
    if old.base in TEXTS and new.base in TEXTS - {"char"}:
        return _fits_in_text(old, new)
    if old.base in INTEGERS and new.base in INTEGERS:
        (least, most), (lowest, highest) = integer_range(old), integer_range(new)
        return lowest <= least and most <= highest
    return (old.base, old.numbers, old.members, old.unsigned) == (new.base, new.numbers, new.members, new.unsigned)


def _fits_in_text(old: TypeDef, new: TypeDef) -> bool:
    if loses_characters(old, new):
        return False
    length = old.number(0, 1) if old.base in {"char", "varchar"} else None
    if new.base == "varchar":
        return length is not None and length <= new.number(0, 1)
    size, most = bytes_held(new), bytes_held(old) if length is None else length * _CHARACTER_BYTES
    return size is None or (most is not None and most <= size)


def _rule(old: TypeDef, new: TypeDef) -> Convert | None:
    goal = new.base
    if goal == "json":
        return _to_json(old)
    if goal == "year":
        return _to_year(old)
    rules = (
        ({"enum", "set"}, _to_members),
        (TEXTS, _to_text),
        (BYTES, _to_bytes),
        (MOMENTS | {"time"}, _to_moment),
        (NUMBERS, _to_number),
    )
    found = next((rule for goals, rule in rules if goal in goals), None)
    return found(old, new) if found else (str if old.base == goal else None)


def _numeric(old: TypeDef) -> Callable[[str], Decimal] | None:
    """How a value is read where a number is wanted."""
    if old.base == "float":
        return _single
    if old.base in NUMBERS | {"enum", "set"}:
        return Decimal
    if old.base in TEXTS:
        return _read
    if old.base in MOMENTS | {"time"}:
        return lambda text: Decimal("-" * text.startswith("-") + re.sub(r"[^0-9.]", "", text))
    if old.base in BYTES:
        padding = "\0" if old.base == "binary" else None
        return lambda text: _read(text.encode("latin-1").decode().rstrip(padding))
    return None


def _read(text: str) -> Decimal:
    """The number that a text is. Python's own takes more for one: `1_0`, `NaN`, digits of other scripts."""
    return Decimal(real(text.strip()))


def _single(text: str) -> Decimal:
    """A FLOAT by its 32 bits, as the shortest text of a DOUBLE says them."""
    return Decimal(repr(struct.unpack("f", struct.pack("f", float(text)))[0]))


def _to_number(old: TypeDef, new: TypeDef) -> Convert | None:
    read = _numeric(old)
    if read is None or (new.base == "bit" and old.base in TEXTS | BYTES):
        return None
    if new.base in REALS:
        return _to_real(new, read)
    step = Decimal((0, (1,), -new.number(1, 0))) if new.base == "decimal" else Decimal(1)
    if old.base in {"datetime", "timestamp", "time"} and new.base in INTEGERS and not new.unsigned:
        whole = _to_moment(old, TypeDef(old.base))
        return None if whole is None else (lambda text: plain(read(whole(text))))
    exact = old.base not in REALS or new.base == "decimal"
    rounding = ROUND_HALF_UP if exact else ROUND_HALF_EVEN
    if new.base == "bit":
        wraps = old.base in INTEGERS  # other negative ones become 0
        return lambda text: _bits(int(read(text).quantize(step, rounding, _MOST_DIGITS)), wraps=wraps)
    return lambda text: plain(read(text).quantize(step, rounding, _MOST_DIGITS))


def _bits(number: int, *, wraps: bool) -> str:
    return str(number % _ALL_BITS if wraps else max(number, 0))


def _to_real(new: TypeDef, read: Callable[[str], Decimal]) -> Convert:
    def converted(text: str) -> str:
        number = rounded_real(float(read(text)), new) + 0.0  # TiDB stores no zero with a sign
        return shortest(number) if new.base == "float" else plain(Decimal(repr(number)))

    return converted


def rounded_real(number: float, kind: TypeDef) -> float:
    """As a FLOAT(M,D) or DOUBLE(M,D) holds it: halves of the product go to the even number."""
    return round(number * 10 ** kind.number(1, 0)) / 10 ** kind.number(1, 0) if kind.numbers else number


def _named(old: TypeDef) -> Convert:
    """A value as text: members by their names, bytes as they are read by people."""
    if old.base == "enum":
        return lambda text: member_name(old.members, text)
    if old.base == "set":
        return lambda text: set_names(old.members, text)
    if old.base in BYTES:
        return lambda text: text.encode("latin-1").decode()
    if old.base == "year":
        return lambda text: str(int(text))  # the year 0 too
    if old.base == "json":
        return _respelled_json
    return str


def _respelled_json(text: str) -> str:
    """As TiDB spells it: a MariaDB keeps the text that once became a JSON."""
    return spelled_json(json.loads(text, parse_float=_Number, parse_int=_json_integer, parse_constant=_no_json))


def _to_text(old: TypeDef, new: TypeDef) -> Convert:
    read, longest = _in_charset(old, new), new.number(0, 1)
    return (lambda text: read(text)[:longest].rstrip(" ")) if new.base == "char" else read


def _in_charset(old: TypeDef, new: TypeDef) -> Convert:
    """A question mark for each character that the new character set lacks; bytes are read up to the first of these.

    Only a session without strict mode does so, and only to a text. TiDB's latin1 has all characters.
    """
    read = _named(old)
    if not loses_characters(old, new):
        return read
    lacking = re.compile(f"[^\\0-{_CHARACTERS[_charset(new)]}]" + (".*" if old.base in BYTES else ""), re.DOTALL)
    return lambda text: lacking.sub("" if old.base in BYTES else "?", read(text))


def _to_bytes(old: TypeDef, new: TypeDef) -> Convert:
    read = str if old.base in BYTES else (lambda text: _named(old)(text).encode().decode("latin-1"))
    size = new.number(0, 1) if new.base == "binary" else 0
    return lambda text: read(text).ljust(size, "\0")


def _to_members(old: TypeDef, new: TypeDef) -> Convert | None:
    """ENUM and SET are spelled by their numbers; one kind may become the other by its names."""
    if new.base == "enum" and old.base in INTEGERS:
        return lambda text: text if 0 < int(text) <= len(new.members) else "0"
    if old.base not in TEXTS | {"enum", "set"}:
        return None
    read = _named(old)

    def of_enum(text: str) -> str:
        found = read(text)
        return "0" if found == "" and "" not in new.members else str(enum_number(new, found, new.collation))

    return of_enum if new.base == "enum" else (lambda text: str(set_number(new, read(text), new.collation)))


def _to_year(old: TypeDef) -> Convert | None:
    if old.base in MOMENTS:
        return lambda text: str(int(text[:4]))
    if old.base not in NUMBERS | TEXTS:
        return None
    read = _numeric(old)

    def converted(text: str) -> str:
        rounding = ROUND_HALF_EVEN if old.base in REALS else ROUND_HALF_UP
        number = int(read(text).quantize(Decimal(1), rounding, _MOST_DIGITS)) if read else 0
        short = 0 <= number < _CENTURY and (number or (old.base in TEXTS and _is_short_zero(text)))
        return str(number + (2000 if number < _TURN else 1900) if short else fitting_year(number))

    return converted


def _is_short_zero(text: str) -> bool:
    """Whether TiDB takes a text of a zero for two digits of a year: the year 2000. Of four characters it is 0000."""
    text = text.strip()
    return text.startswith("0") and len(text) != len("0000")


def _to_json(old: TypeDef) -> Convert | None:
    """JSON as TiDB prints it: keys in order, a blank behind each comma and colon."""
    if old.base in TEXTS:
        return _respelled_json
    if old.base in REALS | {"decimal"}:
        read = _numeric(old)
        return (lambda text: _json_number(float(read(text)))) if read else None
    if old.base in MOMENTS | {"time"}:
        return lambda text: spelled_json(_to_the_microsecond(text) if old.base != "date" else text)
    if old.base == "year":
        return lambda text: str(int(text))
    return str if old.base == "json" or old.base in INTEGERS else None


def _to_the_microsecond(text: str) -> str:
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction:0<{_MICROSECOND_DIGITS}}"


class _Number(float):
    """A JSON number that is no integer."""


def _json_integer(text: str) -> int | _Number:
    """One of 64 bits, with a sign or without; any other is a DOUBLE to TiDB."""
    number = int(text) if is_whole(text) else 0
    return number if is_whole(text) and -(_ALL_BITS >> 1) <= number < _ALL_BITS else _Number(text)


def _no_json(name: str) -> _Number:
    message = f"{name} is no JSON"
    raise ValueError(message)


def _json_number(number: float) -> str:
    """Never an integer's form; an exponent where MySQL, which TiDB follows, has one."""
    if number and not _LEAST_PLAIN <= abs(number) < _MOST_PLAIN:
        sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
        first, rest = digits[0], "".join(map(str, digits[1:]))
        return f"{'-' * sign}{first}{'.' * bool(rest)}{rest}e{int(exponent) + len(rest)}"
    text = format(Decimal(repr(number)), "f")  # -0.0 too
    return text if "." in text else f"{text}.0"


def spelled_json(value: object) -> str:
    """A JSON value as TiDB spells it."""
    if isinstance(value, dict):
        parts = (f"{spelled_json(key)}: {spelled_json(value[key])}" for key in sorted(value, key=str.encode))
        return "{" + ", ".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(spelled_json, value)) + "]"
    if isinstance(value, _Number):
        return _json_number(float(value))
    return json.dumps(value, ensure_ascii=False)


def _to_moment(old: TypeDef, new: TypeDef) -> Convert | None:
    if new.base == "time":
        return _to_time(old, new)
    if old.base not in MOMENTS | TEXTS | INTEGERS or (old.base in INTEGERS and old.base == "tinyint"):
        return None
    digits = new.number(0, 0)

    def converted(text: str) -> str:
        if text.startswith("0000-00-00"):
            return "0000-00-00" if new.base == "date" else _with_fraction("0000-00-00 00:00:00", 0, digits)
        moment = _rounded(_moment(text), _MICROSECOND_DIGITS if new.base == "date" else digits)
        if new.base == "date":
            return moment.strftime("%Y-%m-%d").zfill(10)
        return _with_fraction(moment.strftime("%Y-%m-%d %H:%M:%S").zfill(19), moment.microsecond, digits)

    return converted


def _moment(text: str) -> datetime:
    text = text.strip()
    if is_unsigned(text) and len(text) < _SHORT_DAY_DIGITS:
        text = f"{'19' if int(text.zfill(_SHORT_DAY_DIGITS)[:2]) >= _TURN else '20'}{text:0>{_SHORT_DAY_DIGITS}}"
    parts = _MOMENT.fullmatch(text) or _MOMENT.fullmatch(date_and_time(text, _MICROSECOND_DIGITS))
    if parts is None:
        message = f"{text[:50]!r} is no date"
        raise ValueError(message)
    year, month, day, hour, minute, second = (int(part or 0) for part in parts.groups()[:6])
    fraction = (parts[7] or "").ljust(_MICROSECOND_DIGITS, "0")
    found = datetime(year, month, day, hour, minute, second, int(fraction[:6]))  # noqa: DTZ001 no zone of its own
    return found + timedelta(microseconds=1) if fraction[6:7] >= "5" else found


def _rounded(moment: datetime, digits: int) -> datetime:
    unit = 10 ** (_MICROSECOND_DIGITS - digits)
    over = moment.microsecond % unit
    return moment + timedelta(microseconds=unit - over if over * 2 >= unit > 1 else -over)


def _with_fraction(whole: str, microseconds: int, digits: int) -> str:
    return f"{whole}.{microseconds:06}"[: len(whole) + 1 + digits] if digits else whole


def _to_time(old: TypeDef, new: TypeDef) -> Convert | None:
    digits = new.number(0, 0)
    if old.base == "date":
        return lambda _: _with_fraction("00:00:00", 0, digits)
    if old.base in {"datetime", "timestamp"}:
        return lambda text: _time(text[len("2026-01-02 ") :], digits)
    if old.base == "time":
        return lambda text: _time(text, digits)
    if old.base in TEXTS:
        return lambda text: _time_of_text(text, digits)
    if old.base in INTEGERS | REALS | {"decimal"}:
        single = old.base == "float"
        return lambda text: _time_of_number(shortest(float(text)) if single else text, digits)
    return None


def _time_of_number(text: str, digits: int) -> str:
    """Of a number such as 101112.5, read as its text, or of one of twelve digits and more: a date with a time."""
    is_dated = len(text.lstrip("-").partition(".")[0]) >= len("240102030405")
    return date_and_time(text, digits)[len("2026-01-02 ") :] if is_dated else time_span(text, digits)


def _time_of_text(text: str, digits: int) -> str:
    """Of a time, rounded half away from zero, or of a date with one."""
    if _ONLY_DATE.match(text) or _NO_SECONDS.search(text):
        message = f"{text[:50]!r} is no time"
        raise ValueError(message)
    try:
        return time_span(text, digits)
    except ValueError:
        return date_and_time(text, digits)[len("2026-01-02 ") :]


def _time(text: str, digits: int) -> str:
    parts = _TIME.fullmatch(text)
    if parts is None:
        message = f"{text[:50]!r} is no time"
        raise ValueError(message)
    sign, hours, minutes, seconds, fraction = parts.groups(default="")
    unit = 10 ** (_MICROSECOND_DIGITS - digits)
    micros = int(fraction[:6].ljust(_MICROSECOND_DIGITS, "0")) + (fraction[6:7] >= "5")
    total = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds or 0)) * 1_000_000 + micros
    halves = (unit - 1) // 2 if sign else unit // 2  # a half of a negative one goes up too
    total = (total + halves) // unit * unit
    whole, rest = divmod(total, 1_000_000)
    text = f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
    return ("-" if sign and total else "") + _with_fraction(text, rest, digits)
