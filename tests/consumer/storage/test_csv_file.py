"""CSV as TiCDC writes it, line by line; schema files and the DDLs that they tell."""

import json
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from consumer.storage.csv_file import CsvLine, CsvRules, CsvTable, lines_of
from consumer.storage.layout import listing_of, table_places
from consumer.storage.schema_file import FileColumn, TableFile, ddls_of, in_turn
from ordering.errors import InputError

RULES = CsvRules()
TABLE = TableFile("t", "d", 5, columns=(FileColumn("id", "INT", "true"), FileColumn("v", "VARCHAR")), total=2)


def rows(text: str, rules: CsvRules = RULES) -> list[Any]:
    reader = CsvTable(TABLE, rules)
    return [json.loads(found) for line in lines_of(text, rules) if (found := reader.canal(line)) is not None]


@pytest.mark.parametrize(
    ("text", "rules", "value"),
    [
        ('"I","t","d",9,1,"a""b\r\nc,d"\r\n', CsvRules(), 'a"b\r\nc,d'),
        ('"I","t","d",9,1,"\\N"\r\n', CsvRules(), "\\N"),
        ('"I","t","d",9,1,\\N\r\n', CsvRules(), None),
        ('"I","t","d",9,1,""\n', CsvRules(), ""),
        ('"I","t","d",9,1,\r\n', CsvRules(null=""), None),
        ("I|;t|;d|;9|;1|;a\\|\\;b\\r\\n\\\\N|\r\n", CsvRules(delimiter="|;", quote=""), "a|;b\r\n\\N|"),
        ("I,t,d,9,1,\\N\r\n", CsvRules(quote=""), None),
        ("'I';'t';'d';9;1;NULL\r\n", CsvRules(delimiter=";", quote="'", null="NULL"), None),
        ("'I';'t';'d';9;1;'NULL'\r\n", CsvRules(delimiter=";", quote="'", null="NULL"), "NULL"),
        ('"I","t","d",9,1,"x"#"I","t","d",9,1,"x"#', CsvRules(terminator="#"), "x"),
        ('"I","t","d",9,false,1,"is-update"\r\n', CsvRules(), "is-update"),
    ],
)
def test_values(text: str, rules: CsvRules, value: str | None) -> None:
    assert rows(text, rules)[0]["data"] == [{"id": "1", "v": value}]


@pytest.mark.parametrize(
    ("kind", "field", "rules"),
    [
        ("VARCHAR", "NULL", CsvRules()),
        ("VARCHAR", "\\N", CsvRules(null="NULL")),
        ("DECIMAL", "", CsvRules()),
        ("BLOB", "NULL", CsvRules()),  # four letters of base64
        ("ENUM", "", CsvRules()),
        ("JSON", "null", CsvRules()),
    ],
)
def test_null_by_another_setting_is_no_value(kind: str, field: str, rules: CsvRules) -> None:
    """Texts stand in quotes: what stands bare, and is not NULL as configured, is NULL by what the changefeed has."""
    table = TableFile("t", "d", 5, columns=(FileColumn("v", kind, members=("a",)),), total=1)
    (line,) = lines_of(f'"I","t","d",9,{field}\r\n', rules)
    with pytest.raises(InputError, match="without quotes") as caught:
        CsvTable(table, rules).canal(line)
    assert "null" in caught.value.hint


@pytest.mark.parametrize(
    ("field", "rules"),
    [
        ("\\N", CsvRules(quote="", null="\\X")),  # NULL, as the changefeed spells it
        ("a\\", CsvRules(quote="")),
        ("\\t", CsvRules(quote="")),
        ("a\r", CsvRules(quote="", terminator="\n")),  # files with CRLF
        ("a\n", CsvRules(quote="", terminator="\r\n")),
    ],
)
def test_without_quotes_what_ticdc_does_not_write_is_refused(field: str, rules: CsvRules) -> None:
    with pytest.raises(InputError, match=r"no CSV as configured|ends within a line"):
        rows(f"I,t,d,9,1,{field}{rules.terminator or chr(10)}", rules)


@pytest.mark.parametrize("updated", ["true", "false"])
def test_without_quotes_is_update_is_not_taken_for_a_column(updated: str) -> None:
    """Of a table with a virtual column, whose lines have a column less than the schema file."""
    table = TableFile("t", "d", 5, columns=(FileColumn("a", "VARCHAR"), FileColumn("b", "VARCHAR")), total=2)
    (line,) = lines_of(f"I,t,d,9,{updated},x\r\n", CsvRules(quote=""))
    with pytest.raises(InputError, match="holds 6 fields") as caught:
        CsvTable(table, CsvRules(quote="")).canal(line)
    assert "output-field-header" in caught.value.hint
    (line,) = lines_of(f'"I","t","d",9,"{updated}","x"\r\n', CsvRules())
    assert updated.encode() in (CsvTable(table, CsvRules()).canal(line) or b"")


def test_a_member_twice_is_no_other_member() -> None:
    table = TableFile("t", "d", 5, columns=(FileColumn("s", "SET", members=("a", "b")),), total=1)
    with pytest.raises(InputError, match="'a' is twice a member"):
        CsvTable(table, RULES).canal(CsvLine(1, ["I", "t", "d", "9", "a,a"]))


@pytest.mark.parametrize("text", ["AAAA", "ab cd", "abc"])
def test_base64_is_not_read_as_hexadecimal(text: str) -> None:
    with pytest.raises(InputError, match="not hexadecimal"):
        blobs(CsvRules(binary="hex"), (text, ""))


BLOBS = TableFile("t", "d", 5, columns=(FileColumn("v", "BLOB"), FileColumn("w", "VARBINARY")), total=2)


def blobs(rules: CsvRules, *values: tuple[str, str]) -> list[Any]:
    """What a file of binary values is read as."""
    reader = CsvTable(BLOBS, rules)
    text = "".join(f'"I","t","d",9,"{v}","{w}"\r\n' for v, w in values)
    found = [json.loads(c)["data"][0] for line in lines_of(text, rules) if (c := reader.canal(line)) is not None]
    reader.check_binary()
    return found


@pytest.mark.parametrize("values", [("abcd", ""), ("", "00112233"), ("cafe", "deadbeef")])
def test_hexadecimal_values_are_not_read_as_base64(values: tuple[str, str]) -> None:
    """The default of both sides is base64: whoever changed it upstream only gets other bytes."""
    with pytest.raises(InputError, match="base64 or hexadecimal") as caught:
        blobs(CsvRules(), ("", ""), values)
    assert caught.value.where == "line 2"
    assert "binary-encoding-method" in caught.value.hint
    assert blobs(CsvRules(binary="hex"), values)[0]["v"] == bytes.fromhex(values[0]).decode("latin-1")


@pytest.mark.parametrize("shown", ["AAAA", "YQ==", "abc+", "abcg"])
def test_a_value_that_is_base64_alone_tells_of_its_file(shown: str) -> None:
    assert len(blobs(CsvRules(), ("abcd", ""), ("", shown))) == 2


def test_what_the_config_says_of_binary_values_counts() -> None:
    assert blobs(CsvRules(binary="base64"), ("abcd", ""))[0]["v"] == b"i\xb7\x1d".decode("latin-1")


def test_lines_are_counted_through_texts() -> None:
    text = '"I","t","d",9,1,"a\n\nb"\r\n"I","t","d",9,2,"c"\r\n'
    assert [line.number for line in lines_of(text, CsvRules())] == [1, 4]


def test_headers_name_the_columns_that_are_there() -> None:
    header = "ticdc-meta$operation,ticdc-meta$table,ticdc-meta$schema,ticdc-meta$commit-ts,v\r\n"
    (found,) = rows(header + '"U","t","d",9,"x"\r\n')
    assert (found["type"], found["data"], found["old"]) == ("UPDATE", [{"v": "x"}], [{}])


def test_names_in_a_header_are_neither_quoted_nor_escaped() -> None:
    names = ['a"b', "a", "a,b", "x\\n"]
    table = TableFile("t", "d", 5, columns=tuple(FileColumn(name, "INT") for name in names), total=4)
    reader = CsvTable(table, RULES)
    header = "ticdc-meta$operation,ticdc-meta$table,ticdc-meta$schema,ticdc-meta$commit-ts," + ",".join(names)
    (found,) = [c for line in lines_of(f'{header}\r\n"I","t","d",9,1,2,3,4\r\n', RULES) if (c := reader.canal(line))]
    assert json.loads(found)["data"] == [dict(zip(names, "1234", strict=True))]


def test_a_header_that_can_be_read_in_two_ways_is_refused() -> None:
    columns = tuple(FileColumn(name, "INT") for name in ("a", "a,b", "b"))
    header = "ticdc-meta$operation,ticdc-meta$table,ticdc-meta$schema,ticdc-meta$commit-ts,a,b"
    with pytest.raises(InputError, match="in two ways"):
        CsvTable(TableFile("t", "d", 5, columns=columns, total=3), RULES).canal(CsvLine(1, [header]))


def test_without_a_header_all_columns_have_to_be_there() -> None:
    with pytest.raises(InputError) as caught:
        rows('"I","t","d",9,1\r\n')
    assert "output-field-header" in caught.value.hint


def test_files_without_commit_ts_name_the_setting() -> None:
    with pytest.raises(InputError) as caught:
        CsvTable(TABLE, CsvRules()).canal(CsvLine(1, ["I", "t", "d", "x", "y", "z"]))
    assert "include-commit-ts = true in [sink.csv]" in caught.value.hint


def sent(table: str, query: str, kind: int) -> TableFile:
    return TableFile(table, "d", 5, query, kind)


def test_renames_of_one_version_are_put_together() -> None:
    files = [
        ("d/b/meta/x", sent("b", "RENAME TABLE `d`.`a` TO `d`.`b`", 14)),
        ("d/a/meta/x", sent("a", "RENAME TABLE b TO a", 14)),
        ("d/a/meta/y", sent("a", "", 0)),
    ]
    (found,) = ddls_of(files)
    spare = "`d`.`_ticdc_reconciler_0`"
    assert found.sql == f"RENAME TABLE `d`.`b` TO {spare}, `d`.`a` TO `d`.`b`, {spare} TO `d`.`a`"
    assert found.commit_ts == 5


def test_statements_of_one_version_stay_apart() -> None:
    files = [
        ("d/a/meta/x", sent("a", "CREATE TABLE a (x INT)", 3)),
        ("d/b/meta/x", sent("b", "CREATE TABLE b (x INT)", 3)),
    ]
    assert [ddl.table for ddl in ddls_of([*files, files[0]])] == ["a", "b"]


def test_renames_are_known_by_both_of_tidbs_numbers() -> None:
    files = [(f"d/{new}/meta/x", sent(new, f"RENAME TABLE `{old}` TO `{new}`", 47)) for old, new in ("ab", "bc")]
    (found,) = ddls_of(files)
    assert found.sql == "RENAME TABLE `d`.`b` TO `d`.`c`, `d`.`a` TO `d`.`b`"


@pytest.mark.parametrize("circle", [1, 2, 3, 5])
def test_renames_end_where_they_lead(circle: int) -> None:
    names = [f"`d`.`t{n}`" for n in range(circle + 1)]
    for pairs in (list(pairwise(names)), list(zip(names, [*names[1:], names[0]], strict=True))):
        there = {name: name for name, _ in pairs}
        for old, new in in_turn(pairs):
            assert new not in there
            there[new] = there.pop(old)
        assert there == {new: old for old, new in pairs}


def test_names_of_all_layouts() -> None:
    paths = [
        "metadata", "s/meta/schema_5_0000000001.json", "s/t/meta/schema_5_0000000001.json", "s/t/5/CDC000001.csv",
        "s/t/5/104/2026-01-01/CDC00000000000000000002.csv", "104/5/2026-01/CDC000001.json", "s/t/5/meta/CDC.index",
        "s/t/5/2026/CDC_6b9d1c8e-2b7a-4d43-9d6a-0a1b2c3d4e5f_000001.json", "s/t/5/CDC1.csv", "s/t/5/CDC000001.txt",
    ]  # fmt: skip
    found = listing_of({"path": path, "size": 1, "last_modified": datetime.now(UTC)} for path in paths)
    assert sorted(found.series) == [
        "104/5/2026-01/CDC", "s/t/5/104/2026-01-01/CDC", "s/t/5/2026/CDC_6b9d1c8e-2b7a-4d43-9d6a-0a1b2c3d4e5f_",
        "s/t/5/CDC",
    ]  # fmt: skip
    assert [(name.directory, name.version) for name in found.schemas] == [("s", 5), ("s/t", 5)]
    assert table_places("104/5/2026-01-01") == [("104", 5)]
    assert table_places("s/t/5/104") == [("s/t", 5), ("s/t/5", 104)]
    assert table_places("s/a/b/5/2026-01-01") == [("s/a/b", 5)]


def test_a_number_twice_is_refused() -> None:
    paths = ["s/t/5/CDC000001.csv", "s/t/5/CDC00000000000000000001.csv"]
    with pytest.raises(InputError, match="two files have the number 1"):
        listing_of({"path": path, "size": 1, "last_modified": datetime.now(UTC)} for path in paths)


def test_an_update_is_one_event() -> None:
    (found,) = rows('"D","t","d",9,true,1,"a"\r\n"I","t","d",9,true,2,"b"\r\n')
    assert (found["type"], found["old"], found["data"]) == ("UPDATE", [{"id": "1", "v": "a"}], [{"id": "2", "v": "b"}])


@pytest.mark.parametrize(
    ("text", "told", "where"),
    [
        ('"D","t","d",9,true,1,"a"\r\n"I","t","d",8,true,1,"b"\r\n', "lacks the one before it", "line 2"),
        ('"D","t","d",9,true,1,"a"\r\n"D","t","d",9,true,1,"b"\r\n', "lacks the one behind it", "line 1"),
        ('"D","t","d",9,true,1,"a"\r\n"I","t","d",9,false,1,"b"\r\n', "lacks the one behind it", "line 1"),
        ('"D","t","d",9,true,1,"a"\r\n', "lacks the one behind it", "line 1"),
        ('"I","t","d",9,true,1,"b"\r\n', "lacks the one before it", "line 1"),
    ],
)
def test_half_an_update_is_refused(text: str, told: str, where: str) -> None:
    reader = CsvTable(TABLE, RULES)
    with pytest.raises(InputError, match=told) as caught:
        [reader.canal(line) for line in lines_of(text, RULES)] and reader.check_ended()
    assert caught.value.where == where


@pytest.mark.parametrize("text", ["1e999999999", "1_0", "nan", "inf", " 1", "1e", "\u0661", "9" * 500])
def test_what_is_no_number_is_refused(text: str) -> None:
    table = TableFile("t", "d", 5, columns=(FileColumn("x", "DOUBLE"), FileColumn("n", "BIGINT")), total=2)
    for fields in ([text, "1"], ["1", text]):
        with pytest.raises(InputError, match="was expected"):
            CsvTable(table, RULES).canal(CsvLine(1, ["I", "t", "d", "9", *fields]))
