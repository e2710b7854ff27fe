"""What the scripts are made of: types with literals for them, ways to partition, expressions."""

SETTINGS = ("SET sql_mode = ''", "SET sql_mode = 'ANSI_QUOTES'", "SET NAMES latin1")
"""What sessions upstream may have set; most have nothing."""
NUMBERS = (
    "0",
    "7",
    "-3",
    "2.5",
    "-2.5",
    "2.5e0",
    "'12'",
    "'3.5'",
    "1e2",
    "x'41'",
    "b'101'",
    "TRUE",
    "0.125",
    "0.375",
    "16777217",
)
TEXTS = ("''", "'a'", "'b  '", "'15'", "1e2", "2.50", "x'4142'", "b'1000001'", "'it''s'", "'é'", "'20240102'")
MOMENTS = (
    "'2024-01-02 03:04:05'", "'2024-01-02 03:04:05.678'", "'20240102030405'", "'2024-1-2 3:4:5'", "'24-01-02'",
    "'2024-01-02'", "'20240102'", "20240102", "20240102030405", "'2024-01-02T03:04:05'", "'2024/01/02 03.04.05'",
    "'2024-01-02 23:59:59.9999999'", "'2024-01-02 23:59:59.6'", "'2024-01-02 03'", "'0000-00-00'",
)  # fmt: skip
TIMES = ("'10:11:12'", "'101112'", "'10:11'", "101112", "'-01:02:03.5'", "'1 02:03:04'", "'10'", "'00:00:01.9999999'")
DEFAULTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "bigint unsigned", "mediumint unsigned"), NUMBERS),
    **dict.fromkeys(("decimal(12,3)", "decimal(30,0)", "float", "double", "float(7,2)", "double(9,3)"), NUMBERS),
    **dict.fromkeys(("varchar(20)", "char(8)", "varbinary(12)", "binary(4)"), TEXTS),
    "year": ("'24'", "24", "'2024'", "2024", "0", "'0'", "'70'", "1999"),
    "bit(9)": ("b'101'", "5", "x'41'", "'a'", "0"),
    "bit(16)": ("'ab'", "x'4142'", "300"),
    "enum('a','b','15')": ("'a'", "'B'", "'15'", "2", "'2'"),
    "set('x','y','z')": ("'x,z'", "'z,x'", "''", "'0'", "'3'", "5", "'X'"),
    **dict.fromkeys(("datetime", "datetime(3)", "datetime(6)", "timestamp", "timestamp(2)", "date"), MOMENTS),
    **dict.fromkeys(("time", "time(3)"), TIMES),
}
"""Types, and literals that may be their defaults and values."""
BARE = ("text", "blob", "json")
"""Types without defaults."""
BOUNDS = (
    ("date", "RANGE COLUMNS (k)", "'20240101'"), ("date", "RANGE COLUMNS (k)", "'2024-1-1'"),
    ("datetime", "RANGE COLUMNS (k)", "'2024-01-01'"), ("datetime", "RANGE COLUMNS (k)", "'20240101'"),
    ("date", "RANGE (TO_DAYS(k))", "TO_DAYS('20240101')"), ("date", "RANGE (TO_DAYS(k))", "TO_DAYS('2024-1-1')"),
    ("date", "RANGE (YEAR(k))", "2024"), ("date", "RANGE (TO_DAYS(k))", "TO_DAYS('24-01-01')"),
    ("timestamp", "RANGE (UNIX_TIMESTAMP(k))", "UNIX_TIMESTAMP('2024-01-01')"),
    ("timestamp", "RANGE (UNIX_TIMESTAMP(k))", "UNIX_TIMESTAMP('20240101000000')"),
    ("int", "RANGE (k)", "5"), ("varchar(9)", "RANGE COLUMNS (k)", "'m'"),
)  # fmt: skip
"""A column's type, how partitions go by it, and a bound."""
KEYS = {
    "int": ("-1", "4", "5", "900"),
    "varchar(9)": ("'a'", "'m'", "'z'", "''"),
    "timestamp": ("'2023-12-31 20:00:00'", "'2024-01-01 00:00:00'", "'2024-01-01 04:00:00'"),
    **dict.fromkeys(("date", "datetime"), ("'2023-12-31'", "'2024-01-01'", "'2024-05-05'", "'1999-01-01'")),
}
"""Values around the bounds."""
METHODS = (
    ("int", "LIST (k)", "PARTITION p0 VALUES IN (-1, 4), PARTITION p1 VALUES IN (5, 900)"),
    ("int", "LIST (k)", "PARTITION p0 VALUES IN (4), PARTITION p1 DEFAULT"),
    ("varchar(9)", "LIST COLUMNS (k)", "PARTITION p0 VALUES IN ('a', 'm'), PARTITION p1 VALUES IN ('z', '')"),
    ("date", "LIST COLUMNS (k)", "PARTITION p0 VALUES IN ('20231231', '2024-1-1'), PARTITION p1 DEFAULT"),
    ("datetime", "LIST COLUMNS (k)", "PARTITION p0 VALUES IN ('2023-12-31', '19990101'), PARTITION p1 DEFAULT"),
    ("int", "HASH (k)", ""), ("int", "HASH (ABS(k))", ""), ("date", "HASH (YEAR(k))", ""),
    ("bigint unsigned", "HASH (k)", ""), ("datetime", "HASH (HOUR(k))", ""), ("date", "HASH (TO_DAYS(k))", ""),
    ("date", "HASH (MONTH(k))", ""),
    ("int", "KEY (k)", ""), ("varchar(9)", "KEY (k)", ""), ("date", "KEY (k)", ""), ("datetime", "KEY (k)", ""),
)  # fmt: skip
"""A column's type, how partitions go by it, and what they are (two of HASH and KEY)."""
EXPRESSIONS = (
    ("int", "a + b"), ("int", "a DIV 2"), ("bigint", "a * b"), ("int", "MOD(a, 7)"), ("double", "a / 3"),
    ("decimal(12,3)", "a / 3"), ("varchar(30)", "CONCAT(a, '-', w)"), ("varchar(30)", "UPPER(w)"),
    ("int", "LENGTH(w)"), ("varchar(30)", "SUBSTRING(w, 1, 2)"), ("int", "IF(a > b, a, b)"), ("int", "COALESCE(a, 0)"),
    ("year", "YEAR(d)"), ("varchar(30)", "DATE_FORMAT(d, '%Y-%m')"), ("date", "DATE(d)"), ("time", "TIME(d)"),
    ("datetime", "DATE_ADD(d, INTERVAL 1 DAY)"), ("varchar(64)", "MD5(w)"), ("decimal(10,1)", "ROUND(f, 1)"),
    ("varchar(30)", "f"), ("int", "f"), ("tinyint", "a > b"),
)  # fmt: skip
"""Types, and expressions over `a INT, b INT, w VARCHAR, d DATETIME(3), f DOUBLE`."""
MOVES = (
    "RENAME TABLE {third} TO {third}x; INSERT INTO {third}x VALUES (3, 3)",
    "CREATE DATABASE {other}; RENAME TABLE {third} TO {other}.u; INSERT INTO {other}.u VALUES (4, 4)",
    "RENAME TABLE {second} TO y, {third} TO {second}; INSERT INTO {second} VALUES (5, 5)",
    "TRUNCATE TABLE {third}; INSERT INTO {third} VALUES (2, 7)",
    "DROP TABLE {third}; CREATE TABLE {third} (v INT PRIMARY KEY, id INT); INSERT INTO {third} VALUES (2, 7)",
    "CREATE DATABASE {other}; CREATE TABLE {other}.u LIKE {third}; DROP DATABASE {other}",
    "{alter} RENAME COLUMN v TO id2; {alter} ADD COLUMN v INT DEFAULT 8; UPDATE {third} SET v = 1 WHERE id = 2",
    "{alter} ADD COLUMN w INT DEFAULT 8; {alter} RENAME COLUMN v TO x; {alter} RENAME COLUMN w TO v",
)
"""What becomes of a table `third (id, v)` with two rows; `second` is another one, `other` a database."""
_CHARACTERS, _BYTES = {"varchar", "char", "text"}, {"varbinary", "binary", "blob"}
_MOMENTS, _MEMBERS = {"datetime", "timestamp", "date"}, {"enum", "set"}
_NOT_MODIFIED: tuple[tuple[set[str], set[str]], ...] = (
    ({"decimal", "float", "double"}, _MEMBERS | _MOMENTS),
    (_CHARACTERS, _BYTES),
    (_BYTES, _CHARACTERS),
    (_CHARACTERS | _BYTES, {"bit"}),
    ({"json", "year", "time"} | _MOMENTS, {"bit"} | _MEMBERS),
    ({"bit"}, _MEMBERS | _MOMENTS | {"time"}),
    (_MEMBERS, _MOMENTS | {"time"}),
    ({"time"}, _MOMENTS | {"year"}),
)


def is_modified(old: str, new: str) -> bool:
    """Whether TiDB's MODIFY COLUMN makes one type another; a TIME becomes a date of the day of its conversion."""
    before, after = (kind.split("(")[0].split(" ")[0] for kind in (old, new))
    return not any(before in froms and after in tos for froms, tos in _NOT_MODIFIED)
