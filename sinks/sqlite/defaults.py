"""What rows show in a column that is added: its default as the column's type spells it, or the type's zero.

Every later row comes whole, so a default matters only for the rows that are there when the column is added; they get no
event of their own. What upstream computes at that moment (the time, a sequence) can't be known here: it is refused.
"""

from decimal import Decimal

from sqlglot import exp

from ordering.errors import TargetError

T = exp.DataType.Type
_INTEGERS = {T.TINYINT, T.SMALLINT, T.MEDIUMINT, T.INT, T.BIGINT, T.UTINYINT, T.USMALLINT, T.UMEDIUMINT, T.UINT}
_INTEGERS |= {T.BOOLEAN, T.YEAR, T.UBIGINT, T.BIT}
_DECIMALS = {T.DECIMAL, T.UDECIMAL}
_REALS = {T.FLOAT, T.DOUBLE, T.UDOUBLE}
_BYTES = {T.BINARY, T.VARBINARY, T.BLOB, T.TINYBLOB, T.MEDIUMBLOB, T.LONGBLOB}
_TIMES = {
    T.DATE: "0000-00-00",
    T.DATETIME: "0000-00-00 00:00:00",
    T.TIMESTAMP: "0000-00-00 00:00:00",
    T.TIMESTAMPTZ: "0000-00-00 00:00:00",
    T.TIME: "00:00:00",
}
_LARGEST = 2**63 - 1
Value = str | bytes


def default_of(column: exp.ColumnDef, *, nullable: bool) -> str | None:
    """The value of rows that are there already, as SQL; None for NULL. Raises TargetError if it can't be known."""
    kinds = [c.args.get("kind") for c in column.args.get("constraints") or []]
    given = next((k.this for k in kinds if isinstance(k, exp.DefaultColumnConstraint)), None)
    if given is None or isinstance(given, exp.Null):
        return None if nullable else _spelled(column, _zero(column))
    return _spelled(column, _value(column, given))


def _value(column: exp.ColumnDef, given: exp.Expression) -> Value:
    """The text or the bytes of a literal."""
    if isinstance(given, exp.Introducer):
        given = given.expression
    if isinstance(given, exp.BitString):
        return str(int(given.this, 2))
    if isinstance(given, exp.HexString):
        return bytes.fromhex(given.this)
    if isinstance(given, exp.Boolean):
        return str(int(given.this))
    if isinstance(given, exp.Neg) and isinstance(given.this, exp.Literal):
        return f"-{given.this.this}"
    if isinstance(given, exp.Literal):
        return str(given.this)
    raise TargetError(
        f"this default can't be executed on SQLite yet: column {column.name!r}, {given.sql(dialect='mysql')}",
        hint="what rows get that are there already is known upstream only: add the column in the target by hand",
    )


def _zero(column: exp.ColumnDef) -> Value:
    kind = column.args["kind"].this
    if kind in _INTEGERS | _DECIMALS | _REALS:
        return "0"
    return _TIMES.get(kind, b"" if kind in _BYTES else "")


def _spelled(column: exp.ColumnDef, value: Value) -> str:
    kind = column.args["kind"].this
    if kind in _BYTES:
        return _bytes(column, value if isinstance(value, bytes) else value.encode())
    text = value if isinstance(value, str) else _text(column, value)
    if kind in _INTEGERS:
        number = int(Decimal(text))
        return str(number) if number <= _LARGEST else f"'{number}'"
    if kind in _REALS:
        return repr(float(text))
    if kind in _DECIMALS:
        text = format(Decimal(text).quantize(Decimal(1).scaleb(-_parameter(column, 1, 0))), "f")
    if kind in _TIMES:
        text = _with_fraction(text, _parameter(column, 0, 0))
    return "'" + text.replace("'", "''") + "'"


def _text(column: exp.ColumnDef, value: bytes) -> str:
    number = column.args["kind"].this in _INTEGERS | _REALS | _DECIMALS
    return str(int.from_bytes(value)) if number else value.decode()


def _bytes(column: exp.ColumnDef, value: bytes) -> str:
    padded = value.ljust(_parameter(column, 0, 1), b"\0") if column.args["kind"].this is T.BINARY else value
    return f"x'{padded.hex()}'"


def _with_fraction(text: str, digits: int) -> str:
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction[:digits]:0<{digits}}" if digits else whole


def _parameter(column: exp.ColumnDef, at: int, otherwise: int) -> int:
    """One of the numbers in brackets behind a type."""
    parameters = column.args["kind"].expressions
    return int(parameters[at].name) if at < len(parameters) else otherwise
