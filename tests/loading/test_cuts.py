"""A file that was cut off, at every byte: it is refused, or what is loaded is all of it, or nothing proves it whole."""

import hashlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from consumer.load.checksums import check_sums
from consumer.load.csv_rows import CsvForm
from consumer.load.dump import DataFile, read_dump
from consumer.load.write_file import FileLoad, FileWork, observe_nothing
from ordering.errors import ConfigError, InputError
from ordering.events import RowOp, TableName
from sinks.bookkeeping.load_files import Loaded, Mark
from sinks.ddl.parse.tables import read_table
from sinks.registry import open_target
from sinks.rows.spool import Spool
from sinks.rows.values import ValueRules
from tests.loading.dumping import METADATA, PACKERS, Dumping, _csv, _sql
from tests.service.cells import SqliteCells

ROWS: list[Any] = [(b"a,\r\n'\"\\", b"12", b"\x00\xff"), (None, b"-340", None), (b"", b"5", b""), (b"\\N", None, b"z")]
KINDS, NAMES = ["varchar", "int", "blob"], ["s", "n", "b"]
DDL = "CREATE TABLE `t` (`s` varchar(20), `n` int, `b` blob)"
FORMS = [
    Dumping(), Dumping(statement_size=20), Dumping(escape_backslash=False), Dumping(complete_insert=True),
    Dumping(filetype="csv"), Dumping(filetype="csv", no_header=True), Dumping(filetype="csv", escape_backslash=False),
    Dumping(filetype="csv", separator=b"|+|", null=b"NULL"), Dumping(filetype="csv", delimiter=b"", separator=b"\t"),
]  # fmt: skip
LINE_ENDS = [b"\r\n", b"\n"]


class Collecting:
    """A target that keeps what is written, with the encoder of a real one."""

    def __init__(self, real: Any) -> None:
        self.encoder, self.name, self.loads = real.encoder, "collecting", self
        self.rows: list[bytes] = []
        self.at = Loaded(0, whole=False)

    def reached(self, _: Mark) -> Loaded:
        """As `LoadTable.reached`."""
        return self.at

    def write_loaded(self, _: Mark, before: Loaded, after: Loaded, rows: Spool) -> None:
        assert before == self.at
        self.at = after
        for payload in (one for group in rows.groups(RowOp.WRITE) for one in group.payloads()):
            self.rows += self.encoder.split(payload)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    place = tmp_path_factory.mktemp("cuts")
    SqliteCells(place).run("d", "CREATE TABLE t (s TEXT, n INTEGER, b BLOB)")
    with closing(open_target(f"sqlite:///{place}", ValueRules())) as target:
        yield target, target.catalog().tables[TableName("d", "t")]


def data_of(how: Dumping) -> bytes:
    if how.filetype == "csv":
        return b"".join(_csv(NAMES, KINDS, ROWS, how))
    return b"/*!40101 SET NAMES binary*/;\n" + b"".join(_sql(b"INSERT INTO `t` VALUES\n", KINDS, ROWS, how))


def loaded(table: Any, path: Path, how: Dumping) -> tuple[int, list[bytes]]:
    target, schema = table
    file = DataFile(path, TableName("d", "t"), how.filetype, path.stat().st_size)
    form = CsvForm(
        how.separator.decode(), how.delimiter.decode(), how.null.decode(), not how.no_header, how.escape_backslash
    )
    work, kept = FileWork(file, schema, read_table(DDL).columns, form), Collecting(target)
    assert FileLoad(work, Mark("c", 1, path.name), kept, observe_nothing).run(lambda _: True)  # type: ignore[arg-type]
    assert kept.at.whole
    return kept.at.rows, kept.rows


@pytest.mark.parametrize("end", LINE_ENDS, ids=["crlf", "lf"])
@pytest.mark.parametrize("how", FORMS, ids=str)
@pytest.mark.parametrize("suffix", list(PACKERS))
def test_a_file_that_is_cut_is_refused_wherever_a_cut_can_be_seen(
    table: Any, tmp_path: Path, suffix: str, how: Dumping, end: bytes
) -> None:
    plain = data_of(how)
    if end == b"\n":
        plain = plain.replace(b"\r\n", b"\n")
    whole, path = PACKERS[suffix](plain), tmp_path / f"d.t.0.{how.filetype}{suffix}"
    path.write_bytes(whole)
    count, rows = loaded(table, path, how)
    assert count == len(ROWS)
    unseen = 0
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        try:
            fewer, some = loaded(table, path, how)
        except InputError:
            continue
        if fewer == count:  # only what says nothing is missing: the last statement's newline
            assert some == rows
            continue
        assert not DataFile(path, TableName("d", "t"), "", 0).is_proven
        assert how.filetype == "csv" or how.statement_size
        assert rows[:fewer] == some  # what is there is whole, row by row
        unseen += 1
    assert unseen <= 2 * len(ROWS)


@pytest.mark.parametrize("suffix", list(PACKERS))
@pytest.mark.parametrize("how", FORMS, ids=str)
def test_a_list_of_checksums_shows_every_cut(tmp_path: Path, suffix: str, how: Dumping) -> None:
    metadata, path, sums = tmp_path / "metadata", tmp_path / f"d.t.0.{how.filetype}{suffix}", tmp_path / "SUMS"
    metadata.write_text(METADATA.format(tso=5))
    whole = PACKERS[suffix](data_of(how))
    path.write_bytes(whole)
    lines = [f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in (metadata, path)]
    sums.write_text("".join(lines))
    check_sums(read_dump(tmp_path, ["SUMS"]), sums)
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError, match="checksum"):
            check_sums(read_dump(tmp_path, ["SUMS"]), sums)
    path.write_bytes(whole)
    sums.write_text(lines[0])
    with pytest.raises(InputError, match="lacks a file"):
        check_sums(read_dump(tmp_path, ["SUMS"]), sums)
    sums.write_text("".join([*lines, lines[1].replace("d.t.0", "d.t.1")]))
    with pytest.raises(InputError, match="not in the dump"):
        check_sums(read_dump(tmp_path, ["SUMS"]), sums)
    sums.write_text("no list")
    with pytest.raises(ConfigError):
        check_sums(read_dump(tmp_path, ["SUMS"]), sums)


@pytest.mark.parametrize(
    ("how", "data", "what"),
    [
        (Dumping(filetype="csv"), b'"s","n"\r\n"a",1\r\n', "lacks the column 'b'"),
        (Dumping(filetype="csv"), b'"s","n","b","n"\r\n"a",1,"",1\r\n', "names a column twice"),
        (Dumping(filetype="csv"), b'"a",1,""\r\n"b",2,""\r\n', "lacks the column 's'"),
        (Dumping(filetype="csv", no_header=True), b'"s","n","b"\r\n"a",1,""\r\n', "first line names its columns"),
        (Dumping(filetype="csv"), b'"s","n","b"\r\nNULL,1,""\r\n', "neither in delimiters nor NULL"),
        (Dumping(filetype="csv", null=b"NULL"), b'"s","n","b"\r\n\\N,1,""\r\n', "neither in delimiters nor NULL"),
        (Dumping(filetype="csv"), b'"s","n","b"\r\n"a",1,abc\r\n', "neither in delimiters nor NULL"),
        (Dumping(), b"INSERT INTO `t` (`s`,`n`) VALUES\n('a',1);\n", "lacks the column 'b'"),
        (Dumping(), b"/*!40101 SET NAMES binary*/;\n", "holds no row"),
        (Dumping(), b"", "holds no row"),
        (Dumping(filetype="csv"), b"", "holds no row"),
        (Dumping(filetype="csv"), b'"s","n","b"\r\n', "holds no row"),
        (Dumping(filetype="csv"), b'"s","n","b"\r\n"a",12,""\r\n"a",3', "is not as Dumpling writes it"),
        (Dumping(filetype="csv"), b'"s","n","b"\r\n"a",12,""\r', "is not as Dumpling writes it"),
        (Dumping(filetype="csv"), b'"s","n","b"\r\n"a\\N",12,""\r\n', "escape-backslash=false"),
        (Dumping(filetype="csv"), b'"s","n","b"\r\n"a""q",12,""\r\n', "escape-backslash=false"),
        (Dumping(), b"INSERT INTO `t` VALUES\n('C:\\doc',1,x'');\n", "escape-backslash=false"),
        (Dumping(), b"/*!40101 x*/;\nINSERT INTO `t` VALUES\n('a',1,x'');\n" * 2, "two files are in one"),
        (Dumping(filetype="csv"), b'"s","n","b"\r\n"a",12,""\r\n' * 2, "two files are in one"),
    ],
)  # fmt: skip
def test_what_would_be_loaded_as_something_else_is_refused(
    table: Any, tmp_path: Path, how: Dumping, data: bytes, what: str
) -> None:
    path = tmp_path / f"d.t.0.{how.filetype}"
    path.write_bytes(data)
    with pytest.raises(InputError, match=what):
        loaded(table, path, how)


@pytest.mark.parametrize("form", [(",", "", "NULL"), ("\t", "", "", True, False), (",", '"', "0"), (",", '"', "1.5e3")])
def test_forms_in_which_null_is_a_value_are_refused(form: Any) -> None:
    with pytest.raises(ConfigError, match="the same"):
        CsvForm(*form)
