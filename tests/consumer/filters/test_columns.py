"""Rules for columns: which are taken, what masks them, and what of a message is left."""

import hashlib
import hmac
import json
import pickle
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.config.model import config_from
from consumer.config.routes import read_routes
from consumer.config.table_sections import SinkSection
from consumer.ddl.moved_columns import refuse_moved_columns
from consumer.ddl.policy import understood
from consumer.filters.columns import ColumnRules, Mask, name_rules
from consumer.filters.selected_columns import SelectedColumns, selected
from consumer.filters.tables import table_filter
from consumer.formats.canal_json import CANAL_JSON
from consumer.formats.simple.protocol import Simple
from consumer.large_messages.claim_check import Claims
from consumer.large_messages.fetch import Bodies
from consumer.large_messages.reference import reference
from consumer.serve.config.shown import shown
from consumer.tasks.report import RawDdl
from consumer.verify.narrow import Difference
from consumer.verify.plan import planned
from consumer.verify.repair import repair
from consumer.verify.report import TableOutcome, VerifyOutcome
from consumer.verify.rules import rules_of
from ordering.errors import ConfigError, InputError
from ordering.events import Position, TableName
from ordering.rows.net_effect import KeyChange
from sinks.rows.schema import Catalog, Column, Shape, TableSchema
from tests.consumer.ddl.test_routing import LEAST
from tests.service.messages import at, delete, encoded, insert, lz4, update, value_of, watermark

KEY = "0123456789abcdef"
T = TableName("d", "t")


def rules(**sink: list[dict[str, Any]]) -> ColumnRules:
    named = {name.replace("_", "-"): blocks for name, blocks in sink.items()}
    return read_routes(SinkSection.model_validate(named)).columns


def without(*columns: str) -> ColumnRules:
    return rules(column_selectors=[{"matcher": ["d.*"], "columns": list(columns)}])


def masked(columns: list[str], **mask: object) -> ColumnRules:
    return rules(column_masks=[{"matcher": ["d.t"], "columns": columns, **mask}])


def row_of(value: bytes | None) -> dict[str, Any]:
    return dict(json.loads(value or b"{}"))


@pytest.mark.parametrize(
    ("texts", "taken"),
    [
        (["*"], {"id", "ssn", "SSN_old", "odd name"}),
        (["*", "!ssn"], {"id", "SSN_old", "odd name"}),
        (["*", "!SSN*"], {"id", "odd name"}),
        (["!ssn"], {"id", "SSN_old", "odd name"}),
        (["*", "!ssn*", "ssn_old"], {"id", "SSN_old", "odd name"}),
        (["id", "`odd name`"], {"id", "odd name"}),
        (["*", "!`odd name`"], {"id", "ssn", "SSN_old"}),
        (["*", "!/^ss/"], {"id", "odd name"}),
        (["i?"], {"id"}),
    ],
)
def test_the_last_rule_that_matches_decides(texts: list[str], taken: set[str]) -> None:
    found = name_rules(texts, "columns")
    assert {column for column in ("id", "ssn", "SSN_old", "odd name") if found(column)} == taken


@pytest.mark.parametrize(
    ("rule", "column"),
    [
        ("!id", "\u0130D"),
        ("!\u0130d", "\u0130D"),
        ("!kelvin", "\u212aelvin"),
        ("!stra\xdfe", "STRA\u1e9eE"),
        ("!\u03c3", "\u03a3"),
    ],
)
def test_case_is_folded_as_tidb_folds_it(rule: str, column: str) -> None:
    assert not name_rules([rule], "columns")(column)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcd")), min_size=1, max_size=6), st.sampled_from("ABCDabcd"))
def test_rules_for_columns_against_a_model(told: list[tuple[bool, str]], column: str) -> None:
    found = name_rules([("" if accepts else "!") + name for accepts, name in told], "columns")
    matching = [accepts for accepts, name in told if name == column.lower()]
    expected = matching[-1] if matching else not any(accepts for accepts, _ in told)
    assert found(column) is expected


@pytest.mark.parametrize(
    "block",
    [
        {"column-selectors": [{"matcher": ["d.*"], "columns": ["a b"]}]},
        {"column-selectors": [{"matcher": ["d"], "columns": ["*"]}]},
        {"column-selectors": [{"matcher": ["d.*"], "columns": []}]},
        {"column-selectors": [{"matcher": ["d.*"], "columns": ["a.b"]}]},
        {"column-masks": [{"matcher": ["d.*"], "columns": ["a"]}]},
        {"column-masks": [{"matcher": ["d.*"], "columns": ["a"], "value": "", "hash-key": KEY}]},
        {"column-masks": [{"matcher": ["d.*"], "columns": ["a"], "hash-key": "short"}]},
        {"column-masks": [{"matcher": ["d.*"], "columns": ["a"], "hash-key": KEY, "hash-length": 8}]},
    ],
    ids=str,
)
def test_what_is_no_rule_is_refused(block: Mapping[str, Any]) -> None:
    with pytest.raises(ConfigError) as error:
        config_from({**LEAST, "sink": block}, "a test")
    assert "column" in error.value.fact or "matcher" in error.value.fact
    assert KEY not in str(error.value)


def test_the_first_selector_and_the_first_mask_count() -> None:
    found = rules(
        column_selectors=[
            {"matcher": ["d.t"], "columns": ["!a"]},
            {"matcher": ["d.*"], "columns": ["!b"]},
        ],
        column_masks=[
            {"matcher": ["D.T"], "columns": ["c*"], "value": "1"},
            {"matcher": ["d.*"], "columns": ["*"], "value": "2"},
        ],
    )
    ours, other = found.of(T), found.of(TableName("d", "u"))
    assert ours is not None
    assert other is not None
    assert ours.image({"a": "x", "b": "x", "c": "x", "n": None}) == {"b": "2", "c": "1", "n": None}
    assert other.image({"a": "x", "b": "x"}) == {"a": "2"}
    assert found.of(TableName("e", "t")) is None
    assert found.changes(T, "A")
    assert not without("!a").changes(T, "b")


def test_a_hash_is_an_hmac_of_the_text() -> None:
    expected = hmac.new(KEY.encode(), "Zoë".encode(), hashlib.sha256).hexdigest()
    assert Mask(key=KEY.encode()).of("Zoë") == expected
    assert Mask(key=KEY.encode(), length=20).of("Zoë") == expected[:20]
    assert KEY not in repr(Mask(key=KEY.encode()))


def test_a_row_is_left_with_what_is_taken() -> None:
    found = rules(
        column_selectors=[{"matcher": ["d.t"], "columns": ["*", "!v"]}],
        column_masks=[{"matcher": ["d.t"], "columns": ["s"], "value": "***"}],
    )
    sent = update("d.t", 5, {"v": 1, "s": "old"}, id=1, v=2, s="new").value
    told = row_of(selected(sent, found, "here"))
    assert told["data"] == [{"id": "1", "s": "***"}]
    assert told["old"] == [{"id": "1", "s": "***"}]
    assert told["mysqlType"] == {"id": "int", "s": "varchar"}
    rest = {name: value for name, value in row_of(sent).items() if name not in ("data", "old", "mysqlType", "sqlType")}
    assert rest == {name: told[name] for name in rest}


def test_what_is_no_row_stays_as_it_is() -> None:
    found = without("!v")
    statement = encoded(value_of("ALTER", "d.t", at(1), isDdl=True, sql="ALTER TABLE t ADD COLUMN v INT"))
    broken = [None, b"", b"{", b'{"type":"INSERT","database":5}', b"[]"]
    for value in [*broken, statement, watermark(3, 0).value, insert("e.t", 1, id=1, v=1).value]:
        assert selected(value, found, "here") == value


@pytest.mark.parametrize("image", ["[5]", "[[]]", '"x"', "[null]", '{"id":"1"}'])
def test_a_row_of_another_form_is_never_passed_on(image: str) -> None:
    value = b'{"database":"d","table":"t","type":"INSERT","pkNames":["id"],"data":%b,"_tidb":{"commitTs":9}}'
    with pytest.raises(InputError, match="can't be read"):
        selected(value % image.encode(), without("!v"), "here")


@pytest.mark.parametrize("found", [without("!ID"), masked(["i*"], value="x"), masked(["id"], **{"hash-key": KEY})])
def test_a_key_is_taken_as_it_is(found: ColumnRules) -> None:
    with pytest.raises(InputError, match="part of the key"):
        selected(delete("d.t", 1, id=1).value, found, "here")


def test_a_hash_stands_for_texts_only() -> None:
    with pytest.raises(InputError, match=r"'v' of d\.t is int"):
        selected(insert("d.t", 1, id=1, v=5).value, masked(["v"], **{"hash-key": KEY}), "here")


def test_a_digest_tells_of_each_change_and_of_no_key() -> None:
    various = [
        ColumnRules(),
        without("!v"),
        without("!v", "v"),
        masked(["v"], value=""),
        masked(["v"], value="x"),
        masked(["w"], value="x"),
        masked(["v"], **{"hash-key": KEY}),
        masked(["v"], **{"hash-key": KEY[::-1]}),
        masked(["v"], **{"hash-key": KEY, "hash-length": 16}),
    ]
    assert len({one.digest for one in various}) == len(various)
    assert various[0].digest == ""
    assert without("!v").digest == without("!v").digest


def test_it_travels_to_tasks_and_knows_compressed_messages() -> None:
    form = pickle.loads(pickle.dumps(SelectedColumns(CANAL_JSON, without("!v"))))  # noqa: S301 our own
    found = form.canal(lz4(insert("d.t", 1, id=1, v=5).value or b""), Position("t", 0, 0), 1 << 20)
    assert row_of(found)["data"] == [{"id": "1"}]
    assert (form.name, form.keeps_schemas, form.sends_batches) == ("canal-json", False, False)
    assert SelectedColumns(Simple(), without("!v")).keeps_schemas


def test_a_row_that_is_read_upstream_is_left_with_what_is_taken() -> None:
    half = (b"row", 6, b'{"id":"1","v":"5","s":"x"}', 0)
    elsewhere = (b"row", 6, reference("", Position("t", 0, 1)), 0)

    class Upstream:
        def images(self, table: TableName, *_: Any) -> Iterator[KeyChange]:
            assert table == T
            yield half

    found = rules(
        column_selectors=[{"matcher": ["d.t"], "columns": ["!v"]}],
        column_masks=[{"matcher": ["d.t"], "columns": ["s"], "value": "-"}],
    )
    bodies = Bodies(Claims((), {}, {}, 1 << 20), Upstream(), found)  # type: ignore[arg-type]
    assert [json.loads(one[2]) for one in bodies.whole(T, ("id",), [elsewhere])] == [{"id": "1", "s": "-"}]
    bodies = Bodies(Claims((), {}, {}, 1 << 20), Upstream(), without("!x"))  # type: ignore[arg-type]
    assert json.loads(next(iter(bodies.whole(T, ("id",), [elsewhere])))[2]) == {"id": "1", "v": "5", "s": "x"}


class AnyReader:
    """Of a target that can compare all that it has."""

    def is_comparable(self, _: Column) -> bool:
        return True

    def trait(self, _: Column) -> None:
        return None

    def is_whole_number(self, _: Column) -> bool:
        return False


def test_verify_compares_no_column_that_is_left_out_or_masked() -> None:
    sink = {
        "column-selectors": [{"matcher": ["d.t"], "columns": ["!v"]}],
        "column-masks": [{"matcher": ["d.t"], "columns": ["s"], "value": "-"}],
    }
    compared = rules_of(config_from({**LEAST, "sink": sink}, "a test"), lambda *_: True, keyless=False)
    assert [compared.changed(T, column) for column in ("id", "V", "s")] == [False, True, True]
    assert not compared.changed(TableName("d", "u"), "v")
    columns = tuple(Column(name, "text", Shape.TEXT) for name in ("id", "v", "s", "w"))
    side: Any = Catalog({T: TableSchema(T, columns, ("id",), (("id",),))}), AnyReader()
    plan = planned(side, side, compared)
    assert [pair.left.name for pair in plan.tables[0].pairs] == ["id", "w"]
    assert [text for _, text in plan.left_out] == [
        "column 'v' is left out or masked by [sink]",
        "column 's' is left out or masked by [sink]",
    ]


@pytest.mark.parametrize(
    ("sql", "table", "matcher", "is_refused"),
    [
        ("ALTER TABLE `t` EXCHANGE PARTITION `p` WITH TABLE `u`", "t", "d.t", True),
        ("ALTER TABLE `t` EXCHANGE PARTITION `p` WITH TABLE `u`", "t", "d.u", True),
        ("ALTER TABLE `t` EXCHANGE PARTITION `p` WITH TABLE `u`", "t", "d.*", False),
        ("ALTER TABLE `t` EXCHANGE PARTITION `p` WITH TABLE `u`", "u", "d.t", True),
        ("ALTER TABLE `t` EXCHANGE PARTITION `p` WITH TABLE `u`", "u", "d.u", True),
        ("ALTER TABLE `d`.`T` EXCHANGE PARTITION `p` WITH TABLE `d`.`U`", "U", "d.t", True),
        ("ALTER TABLE `t` EXCHANGE PARTITION `p` WITH TABLE `u`", "u", "d.*", False),
        ("FLASHBACK TABLE `gone` TO `u`", "u", "d.gone", True),
        ("FLASHBACK TABLE `gone` TO `u`", "u", "d.u", True),
        ("FLASHBACK TABLE `gone` TO `u`", "u", "d.*", False),
        ("RECOVER TABLE `gone`", "gone", "d.gone", False),
        ("RENAME TABLE `d`.`t` TO `d`.`left_out`", "left_out", "d.t", False),
    ],
)
@pytest.mark.parametrize("kind", ["column_selectors", "column_masks"])
def test_no_rows_move_to_a_table_of_other_rules(
    sql: str, table: str, matcher: str, is_refused: bool, kind: str
) -> None:
    how = {"value": "-"} if kind == "column_masks" else {}
    found = rules(**{kind: [{"matcher": [matcher], "columns": ["s"] if how else ["!s"], **how}]})
    columns = tuple(Column(name, "text", Shape.TEXT) for name in ("id", "s"))
    here = Catalog({name: TableSchema(name, columns, ("id",), (("id",),)) for name in (T, TableName("d", "u"))})
    ddl = understood(RawDdl(Position("t", 0, 0), 9, "ALTER", "d", table, sql), here, ())
    with pytest.raises(InputError, match="say something else") if is_refused else nullcontext():
        refuse_moved_columns(ddl, found, table_filter(["*.*", "!d.left_out"]), here)


class AnyMender:
    """Says which statement it was asked for, and of which columns or key."""

    def head(self, _: object) -> list[str]:
        return []

    tail = list

    def insert(self, _: TableName, pairs: Any, row: Any) -> str:
        return f"insert {len(pairs)} {row[0]}"

    def update(self, _: TableSchema, __: Any, key: Any, changed: Any) -> str:
        return f"update {key[0]} {[pair.right.name for pair, _ in changed]}"

    def delete(self, _: TableName, __: Any, key: Any) -> str:
        return f"delete {key[0]}"


@pytest.mark.parametrize("other_unique", [False, True])
@pytest.mark.parametrize("mask", [False, True])
def test_no_repair_writes_a_row_without_its_masks(mask: bool, other_unique: bool) -> None:
    selector = {"column-selectors": [{"matcher": ["d.t"], "columns": ["!s"]}]}
    masks = {"column-masks": [{"matcher": ["d.t"], "columns": ["s"], "value": "-"}]}
    config = config_from({**LEAST, "sink": masks if mask else selector}, "a test")
    columns = tuple(Column(name, "text", Shape.TEXT) for name in ("id", "s", "w"))
    keys = (("id",), ("w",)) if other_unique else (("id",),)
    side: Any = Catalog({T: TableSchema(T, columns, ("id",), keys)}), AnyReader()
    plan = planned(side, side, rules_of(config, lambda *_: True, keyless=False))
    told = [("1", "x"), None], [("2", "x"), ("2", "y")], [None, ("3", "z")]
    outcome = VerifyOutcome("c", 1, ("up", "down"), plan, 10)
    outcome.tables = [TableOutcome(plan.tables[0], differences=[Difference(T, "", a, b) for a, b in told])]
    lines = list(repair(outcome, AnyMender()))[4:]  # type: ignore[arg-type]
    done = [line for line in lines if not line.startswith("--")]
    if not mask:
        updated = [] if other_unique else ["update 2 ['w']"]  # a new row would lack what the target holds in `s`
        assert done == ["delete 3", "insert 2 1", *updated]
        return
    assert done == (["delete 3"] if other_unique else ["delete 3", "update 2 ['w']"])
    left = [line for line in lines if "would lack its masks" in line]
    assert len(left) == 1 + other_unique
    assert "d.t, id='1'" in left[0]


def test_a_key_of_hashes_is_not_shown() -> None:
    block = {"matcher": ["d.t"], "columns": ["s"], "hash-key": KEY, "value": "v", "hash-length": 20}
    told = shown({"sink": {"column-masks": [block], "column-selectors": [{"matcher": ["d.*"], "columns": ["!v"]}]}})
    assert told["sink"]["column-selectors"] == [{"matcher": ["d.*"], "columns": ["!v"]}]
    assert told["sink"]["column-masks"][0] == {**block, "hash-key": "***", "value": "***"}
