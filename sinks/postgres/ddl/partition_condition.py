"""How PostgreSQL's SQL spells the conditions for a partition's rows."""

from collections.abc import Iterable, Mapping, Sequence

from ordering.errors import TargetError
from sinks.ddl.kept_definitions import Known
from sinks.ddl.model import ColumnDef
from sinks.ddl.rows.partition_condition import STRINGS, Function, Speller
from sinks.postgres.names import literal, quoted
from sinks.postgres.types import value_of
from sinks.rows.values import ValueRules, utc_of

_LARGEST = 2**63 - 1
CRC = "pg_temp.ticdc_reconciler_crc32"
CREATE_CRC = f"""CREATE OR REPLACE FUNCTION {CRC}(bytes bytea) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE crc bigint := 4294967295;
BEGIN
  FOR at IN 0 .. length(bytes) - 1 LOOP
    crc := crc # get_byte(bytes, at);
    FOR bit IN 1 .. 8 LOOP
      crc := CASE WHEN crc & 1 = 1 THEN (crc >> 1) # 3988292384 ELSE crc >> 1 END;
    END LOOP;
  END LOOP;
  RETURN crc # 4294967295;
END $$"""
"""CRC-32 as in zlib; PostgreSQL has one of its own from version 18 on only. It ends with the session."""


def _field(name: str) -> Function:
    return lambda x: f"extract({name} FROM {x})::bigint"


def _days(x: str) -> str:
    return f"(({x})::date - DATE '0001-01-01' + 366)"


_FUNCTIONS: Mapping[str, Function] = {
    "YEAR": _field("year"),
    "MONTH": _field("month"),
    "DAY": _field("day"),
    "DAYOFMONTH": _field("day"),
    "HOUR": lambda x: f"abs(extract(hour FROM {x})::bigint)",
    "MINUTE": lambda x: f"abs(extract(minute FROM {x})::bigint)",
    "SECOND": lambda x: f"abs(trunc(extract(second FROM {x}))::bigint)",
    "QUARTER": _field("quarter"),
    "DAYOFYEAR": _field("doy"),
    "DAYOFWEEK": lambda x: f"(extract(dow FROM {x})::bigint + 1)",
    "WEEKDAY": lambda x: f"(extract(isodow FROM {x})::bigint - 1)",
    "TO_DAYS": _days,
    "TO_SECONDS": lambda x: f"({_days(x)}::bigint * 86400 + floor(extract(epoch FROM ({x})::timestamp::time))::bigint)",
    "UNIX_TIMESTAMP": lambda x: f"floor(extract(epoch FROM ({x})::timestamptz))::bigint",
    "FLOOR": lambda x: f"floor(({x})::numeric)",
    "ABS": lambda x: f"abs({x})",
    "MOD": lambda a, b: f"mod({a}, {b})",
}
_OPERATORS: Mapping[str, Function] = {
    "+": lambda a, b: f"({a} + {b})",
    "-": lambda a, b: f"({a} - {b})",
    "*": lambda a, b: f"({a} * {b})",
    "DIV": lambda a, b: f"div(({a})::numeric, ({b})::numeric)",
    "MOD": lambda a, b: f"mod({a}, {b})",
    "%": lambda a, b: f"mod({a}, {b})",
}


class PostgresSpeller(Speller):
    """For one table."""

    functions = _FUNCTIONS
    operators = _OPERATORS

    def __init__(self, known: Known, columns: Iterable[str], rules: ValueRules) -> None:
        super().__init__(known, columns)
        self._rules = rules

    def name(self, column: str) -> str:
        """See `Speller.name`."""
        return quoted(self.spelled(column))

    def compared(self, column: str) -> str:
        """See `Speller.compared`."""
        if self.kind(column).base not in STRINGS:
            return self.name(column)
        text = f"rtrim({self.name(column)}, ' ')" if self.is_padded(column) else self.name(column)
        return f'{text} COLLATE "C"'

    def bound(self, column: str, text: str) -> str:
        """See `Speller.bound`."""
        if self.kind(column).base in STRINGS:
            return literal(text.rstrip(" ") if self.is_padded(column) else text)
        return value_of(ColumnDef(column, self.kind(column)), text, self._rules)

    def moment(self, text: str) -> str:
        """See `Speller.moment`."""
        return f"{literal(text)}::timestamp"

    def instant(self, text: str) -> str:
        """See `Speller.instant`."""
        return f"{literal(utc_of(self._rules.time_zone)(text) + '+00')}::timestamptz"

    def bucket(self, number: str, count: int) -> str:
        """See `Speller.bucket`."""
        whole = f"({number})::numeric"
        signed = f"CASE WHEN {whole} > {_LARGEST} THEN {whole} - {2 * (_LARGEST + 1)} ELSE {whole} END"
        return f"COALESCE(abs(mod({signed}, {count})), 0)"  # upstream reads large unsigned bits as a signed number's

    def keyed(self, columns: Sequence[str], count: int) -> str:
        """See `Speller.keyed`."""
        return f"mod({CRC}({' || '.join(map(self._bytes, columns))}), {count})"

    def _bytes(self, column: str) -> str:
        kind = self.kind(column)
        name = self.name(column)
        if kind.base == "varbinary":
            found = name
        elif kind.base == "datetime":
            digits = kind.number(0, 0)
            shown = f"to_char({name}, 'YYYY-MM-DD HH24:MI:SS{'.US' if digits else ''}')"
            found = f"convert_to(left({shown}, {19 + digits + bool(digits)}), 'UTF8')"
        elif kind.base in STRINGS:
            found = f"convert_to({self.compared(column)}, 'UTF8')"
        elif kind.base == "date":
            found = f"convert_to(to_char({name}, 'YYYY-MM-DD'), 'UTF8')"
        elif kind.base == "year":
            raise TargetError(f"KEY partitions by a YEAR can't be computed here: column {column!r}")
        else:
            found = f"convert_to({name}::text, 'UTF8')"
        return f"COALESCE({found}, '\\x00'::bytea)"
