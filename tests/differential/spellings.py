"""Types, names and options in spellings that `literals` does not have: what `evolving` tables are made of."""

from tests.differential.literals import DEFAULTS, MOMENTS, NUMBERS, TEXTS, TIMES

_WIDE = (*TEXTS, "'Ä'", "'ß'", "'日本'", "'😀'", "'a\\nb'", "'null'", "'  '", "'1.50'")
_NARROW = (*TEXTS, "'Ä'", "'ß'")
_JSON = ("'1'", "'[1, 2.50]'", """'{"b": 1, "a": null}'""", """'"x"'""", "'null'", "'1e3'")
KINDS: dict[str, tuple[str, ...]] = {
    **DEFAULTS,
    **dict.fromkeys(("integer", "int(11) unsigned zerofill", "bool", "int4", "middleint"), NUMBERS),
    **dict.fromkeys(("dec(10,2)", "numeric(8)", "fixed(6,1) unsigned", "decimal(65,30)", "decimal"), NUMBERS),
    **dict.fromkeys(("real", "double precision", "float(30)", "float8", "float unsigned"), NUMBERS),
    **dict.fromkeys(("character varying(9)", "nchar(5)", "national varchar(30)", "char", "varchar(300)"), _WIDE),
    **dict.fromkeys(("varchar(9) collate utf8mb4_general_ci", "char(8) character set utf8 collate utf8_bin"), _WIDE),
    **dict.fromkeys(("varchar(20) character set latin1", "char(5) charset ascii", "varchar(9) charset gbk"), _NARROW),
    **dict.fromkeys(("varchar(12) binary", "char byte", "varchar(20) charset binary"), TEXTS),
    **dict.fromkeys(("tinytext", "mediumtext", "longtext", "text collate utf8mb4_unicode_ci"), _WIDE),
    **dict.fromkeys(("tinyblob", "mediumblob", "longblob", "blob", "binary", "varbinary(300)"), TEXTS),
    "text charset latin1": _NARROW,
    "json": _JSON,
    "bit": ("0", "1", "b'1'"),
    "bit(64)": ("x'ffffffffffffffff'", "5", "'abcdefgh'"),
    "year(4)": ("2024", "'70'", "0"),
    "enum('é','ß','a b','','x''y')": ("'é'", "'ß'", "''", "2", "'x''y'"),
    "enum('😀','b','c') charset utf8mb4": ("'😀'", "'b'", "3"),
    "set('é','😀','a b') charset utf8mb4": ("'é,a b'", "''", "'😀'", "7"),
    "enum('A','a ') collate utf8mb4_bin": ("'A'", "2"),
    **dict.fromkeys(("datetime(1)", "timestamp(6)", "timestamp(1)"), MOMENTS),
    "time(6)": TIMES,
}  # fmt: skip
"""Types, and literals that a column may hold."""
NAMES = (
    "select", "a b", "ключ", "Größe", "x.y", "it's", 'q"r', "ti`ck", "名前", "c-1", "CaSe", "_", "1st", "$d", "100%",
    "k",
    "%s", "{x}", "a;b", "--c", "/*d", "KEY", "id2", "\\", "e\\n", "ß", "rowid", "oid", "group",
)  # fmt: skip
"""Names that someone has to quote, or that a target has for itself."""
COMMENTS = ("'c'", "'it''s; -- no'", "'/* x */'", "'Größe 😀'", "'%s'", "''", "'a\\nb\\\\'")
KEYS = (
    "id INT PRIMARY KEY", "id BIGINT PRIMARY KEY", "id INT, PRIMARY KEY (id) NONCLUSTERED", "id INT NOT NULL UNIQUE",
    "id BIGINT UNSIGNED NOT NULL, UNIQUE KEY `u k` (id)", "id INT AUTO_INCREMENT PRIMARY KEY",
    "id BIGINT AUTO_INCREMENT, PRIMARY KEY (id) /*T![clustered_index] CLUSTERED */",
    "id DECIMAL(10,0), id3 VARCHAR(9) DEFAULT 'z', PRIMARY KEY (id, id3)", "id INT NOT NULL KEY COMMENT 'the key'",
)  # fmt: skip
"""A column `id` that takes whole numbers, and the key over it."""
OPTIONS = (
    "", "", "", " COMMENT = 'it''s'", " CHARSET = latin1", " DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    " CHARSET = gbk", " AUTO_INCREMENT = 100", " ENGINE=InnoDB ROW_FORMAT=DYNAMIC", " /*T! SHARD_ROW_ID_BITS = 2 */",
    " /*T![auto_id_cache] AUTO_ID_CACHE = 100 */", " STATS_PERSISTENT=0", " CHARSET = utf8",
    " COLLATE = utf8mb4_unicode_ci",
)  # fmt: skip
PARTITIONS = (
    "RANGE (id) (PARTITION p0 VALUES LESS THAN (3), PARTITION P1 VALUES LESS THAN (6))",
    "RANGE (id) (PARTITION p0 VALUES LESS THAN (3), PARTITION `p 2` VALUES LESS THAN (20))",
    "RANGE COLUMNS (id) (PARTITION p0 VALUES LESS THAN (3) COMMENT = 'x', PARTITION P1 VALUES LESS THAN MAXVALUE)",
    "HASH (id) PARTITIONS 3", "KEY (id) PARTITIONS 3", "HASH (id DIV 2) PARTITIONS 2", "HASH (MOD(id, 5)) PARTITIONS 4",
    "LIST (id) (PARTITION p0 VALUES IN (0, 1, 2), PARTITION P1 VALUES IN (3, 4, 5, 6, 7), PARTITION `p 2` DEFAULT)",
    "LIST COLUMNS (id) (PARTITION p0 VALUES IN (0, 1, 2), PARTITION P1 VALUES IN (3, 4, 5, 6, 7, 8, 9))",
    "RANGE (id * 2) (PARTITION p0 VALUES LESS THAN (5), PARTITION P1 VALUES LESS THAN (MAXVALUE))",
    "RANGE (FLOOR(id / 2)) (PARTITION p0 VALUES LESS THAN (2), PARTITION P1 VALUES LESS THAN (MAXVALUE))",
)  # fmt: skip
"""Over `id`; rows have ids from 0 on."""
PARTITION_CHANGES = (
    "ADD PARTITION (PARTITION p3 VALUES LESS THAN (50))", "ADD PARTITION (PARTITION p3 VALUES IN (50, 51))",
    "ADD PARTITION PARTITIONS 2", "COALESCE PARTITION 1", "REMOVE PARTITIONING", "DROP PARTITION p0",
    "DROP PARTITION p1",
    "TRUNCATE PARTITION p0", "TRUNCATE PARTITION P0, p1", "TRUNCATE PARTITION `p 2`", "DROP PARTITION `P 2`, p0",
    "REORGANIZE PARTITION p0 INTO (PARTITION a VALUES LESS THAN (1), PARTITION p0 VALUES LESS THAN (3))",
    "REORGANIZE PARTITION p0, p1 INTO (PARTITION p0 VALUES LESS THAN (6))",
    "REORGANIZE PARTITION p0 INTO (PARTITION a VALUES IN (0), PARTITION p0 VALUES IN (1, 2))",
    "TRUNCATE PARTITION ALL", "PARTITION BY HASH (id) PARTITIONS 2", "TRUNCATE PARTITION a",
    "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (2), PARTITION p1 VALUES LESS THAN (MAXVALUE))",
)  # fmt: skip
