"""Every file of a dump is understood, or of a kind that is known to hold no rows, or named by `--ignore`."""

from pathlib import Path

import pytest

from consumer.load.dump import read_dump
from ordering.errors import ConfigError, InputError, ReconcilerError
from ordering.events import TableName
from tests.loading.dumping import METADATA

WHOLE = ["d-schema-create.sql", "d.t-schema.sql", "d.t.000000000.sql"]
NO_ROWS = [
    "d.s-schema-sequence.sql", "d.t-schema-triggers.sql", "d.t-schema-post.sql", "p-placement-policy-create.sql",
    "d.t-schema-trigger.sql", "d-schema-post.sql", "d-schema-triggers.sql.gz",
]  # fmt: skip
UNKNOWN = [
    "t-000000000.csv", "d.t.000000001.csv.lz4", "d.t.000000001.csv.xz", "d.t.000000001.csv.lzo", "D.T.000000001.SQL",
    "d.t.000000001.CSV", "d.t.000000001.csv.GZ", "sub/d.t.000000001.sql", "a/b/d.t.000000001.sql.gz",
    "d.t.000000001.sql.bak", "d.t.000000001.sql~", "d.t.000000001.sql.tmp", ".d.t.000000001.sql.AbCdEf",
    "d.t.000000001.sql.part", "d.t.000000001.tsv", "d.t.000000001.txt", "d.t.000000001.dat", "d.t.000000001",
    "d.t.1.2.sql", "d.t.x.sql", "result.000000000.csv.x", "metadata.partial", "metadata.gz", "METADATA",
    "metadata.json",
    "d.t@00001.sql", "d.t-schema.SQL", "dumpling.log", "README", "d.t.٣.sql", "d.t.000000001 (copy).sql.old",
    "sub/metadata", "d.t.000000001.sql.gz.enc", "d.t.000000001.csv.gz.1", "d.t.00001.sql.zip", "d.t.00001.orc",
]  # fmt: skip


def made(place: Path, *names: str) -> Path:
    place.joinpath("metadata").write_text(METADATA.format(tso=5))
    for name in names:
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return place


def refused(place: Path, *names: str) -> str:
    with pytest.raises(ReconcilerError) as caught:
        read_dump(made(place, *names))
    return str(caught.value)


def test_what_dumpling_writes_is_understood(tmp_path: Path) -> None:
    more = [
        "d.t.0000000010000.sql.gz",
        "d%2Ee.t-schema.sql",
        "d%2Ee.t.0.csv.zst",
        "d.v-schema.sql",
        "d.v-schema-view.sql",
    ]
    (tmp_path / "lost+found").mkdir()
    dump = read_dump(made(tmp_path, *WHOLE, *more, *NO_ROWS))
    assert dump.tables.keys() == {TableName("d", "t"), TableName("d.e", "t")}
    assert [(file.name, file.number) for file in dump.files] == [
        ("d%2Ee.t.0.csv.zst", 0), ("d.t.000000000.sql", 0), ("d.t.0000000010000.sql.gz", 10000)
    ]  # fmt: skip
    assert sorted(dump.left) == sorted(NO_ROWS)


@pytest.mark.parametrize("name", UNKNOWN)
def test_other_names_are_refused_and_can_be_named(tmp_path: Path, name: str) -> None:
    place = made(tmp_path, *WHOLE, name)
    with pytest.raises(ConfigError) as caught:
        read_dump(place)
    assert name in str(caught.value)
    assert "--ignore" in caught.value.hint
    dump = read_dump(place, [name.replace("[", "[[]")])
    assert (dump.left, len(dump.files)) == ([name], 1)


def test_links_and_pipes_are_no_files_of_a_dump(tmp_path: Path) -> None:
    made(tmp_path, *WHOLE)
    tmp_path.joinpath("d.t.000000001.sql").symlink_to(tmp_path / "gone")
    assert "d.t.000000001.sql" in refused(tmp_path)
    tmp_path.joinpath("d.t.000000001.sql").unlink()
    tmp_path.joinpath("more").symlink_to(tmp_path.parent)
    assert "'more'" in refused(tmp_path)


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (["d.t.0.sql", "d.t.0.sql.gz"], "same part"),
        (["d.t.0.sql", "d.t.000.sql"], "same part"),
        (["d.t.0.sql", "d.t.sql"], "same part"),
        (["d.t.sql", "d.t.sql.gz"], "same part"),
        (["d.t.0.sql", "d.t.1.csv"], "different forms"),
        (["d.t.0.sql", "d.t-schema.sql.gz"], "define the same"),
        (["d.t.0.sql", "d-schema-create.sql.zst"], "define the same"),
        (["d.t.0.sql", "d.u.0.sql"], "not that of these rows"),
        (["d.t.0.sql", "e.t.0.sql"], "not that of these rows"),
        (["d.t-000000000.csv"], "not that of these rows"),
        (["d.v-schema.sql", "d.v-schema-view.sql", "d.v.0.sql"], "not that of these rows"),
    ],
)
def test_files_that_do_not_fit_together_are_refused(tmp_path: Path, names: list[str], what: str) -> None:
    assert what in refused(tmp_path, *WHOLE[:2], *names)


def test_rows_alone_need_no_definition(tmp_path: Path) -> None:
    assert len(read_dump(made(tmp_path, "d.t.0.sql", "e.t.0.csv")).files) == 2


def test_parquet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Parquet"):
        read_dump(made(tmp_path, *WHOLE, "d.t.1.parquet"))


@pytest.mark.parametrize("name", ["d.t\udcff.000000001.sql", "d\udcff.t-schema.sql", "\udcff-schema-create.sql"])
def test_names_that_are_no_text_are_not_dumplings(tmp_path: Path, name: str) -> None:
    assert "not Dumpling's" in refused(tmp_path, *WHOLE, name)
    assert read_dump(tmp_path, ["*\udcff*"]).left == [name]
