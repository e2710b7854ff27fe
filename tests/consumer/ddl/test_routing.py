"""DDLs by the target's names: what is said, which table has which place afterwards, and what is refused."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumer.config.model import config_from
from consumer.config.routes import Routes, read_routes
from consumer.config.table_sections import SinkSection
from consumer.ddl.merged.shards import RoutedDdl, Shards
from consumer.ddl.policy import understood
from consumer.ddl.routing import after, routed, with_rows
from consumer.library import feed
from consumer.spark_source import options
from consumer.tasks.report import RawDdl
from ordering.errors import ConfigError, InputError
from ordering.events import Position, TableName
from ordering.progress import Progress
from sinks.rows.routed import NameMap
from sinks.rows.schema import Catalog, TableSchema

AT = Position("t", 0, 7)


def routes_of(*dispatchers: Mapping[str, Any]) -> Routes:
    return read_routes(SinkSection.model_validate({"dispatchers": list(dispatchers)}))


ARCHIVE = routes_of({"matcher": ["sales.*"], "target-schema": "archive", "target-table": "{schema}_{table}"})
ONE_TABLE = routes_of({"matcher": ["sales.orders"], "target-schema": "archive"})
MERGED = routes_of({"matcher": ["shop_*.orders"], "target-schema": "shop", "target-table": "orders"})


def name(text: str) -> TableName:
    return TableName(*text.split(".", maxsplit=1))


def catalog_of(*tables: str) -> Catalog:
    return Catalog({name(t): TableSchema(name(t), (), (), ()) for t in tables})


def ran(sql: str, routes: Routes = ARCHIVE, at: str = "sales.", **known: Any) -> RoutedDdl:
    """Route a statement of a message about `at`. `sources`: upstream's tables -> places; `more`: lies there too."""
    sources = {name(k): name(v) for k, v in known.get("sources", {}).items()}
    here = catalog_of(*known.get("sources", {}).values(), *known.get("more", ()))
    raw = RawDdl(AT, 9, "QUERY", *at.split(".", maxsplit=1), sql)
    view = here.routed(NameMap(routes, sources))
    shards = Shards(routes, NameMap(routes, sources), {}, here, torn=known.get("torn", False))
    return routed(understood(raw, view, ()), shards)


ORDERS = {"sales.orders": "archive.sales_orders"}
BOTH = {**ORDERS, "sales.items": "archive.sales_items"}
SAID = (
    ("create table orders (id int primary key) /*T![ttl] TTL=`c` + INTERVAL 1 DAY */", {},
     "create table `archive`.`sales_orders` (id int primary key) /*T![ttl] TTL=`c` + INTERVAL 1 DAY */"),
    ("ALTER TABLE `Sales`.`ORDERS` ADD COLUMN `sales` INT COMMENT 'sales.orders'", ORDERS,
     "ALTER TABLE `archive`.`sales_orders` ADD COLUMN `sales` INT COMMENT 'sales.orders'"),
    ("ALTER TABLE orders ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES `items`(`id`)", BOTH,
     "ALTER TABLE `archive`.`sales_orders` ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES `archive`.`sales_items`(`id`)"),
    ("create table b (id int, foreign key (id) references other.t (id))", {},
     "create table `archive`.`sales_b` (id int, foreign key (id) references `other`.`t` (id))"),
    ("alter table orders exchange partition p0 with table sales.items", BOTH,
     "alter table `archive`.`sales_orders` exchange partition p0 with table `archive`.`sales_items`"),
    ("create unique index u on orders (id)", ORDERS, "create unique index u on `archive`.`sales_orders` (id)"),
    ("drop index u on sales . orders", ORDERS, "drop index u on `archive`.`sales_orders`"),
    ("drop table if exists orders, `items`", BOTH,
     "drop table if exists `archive`.`sales_orders`, `archive`.`sales_items`"),
    ("truncate orders", ORDERS, "truncate `archive`.`sales_orders`"),
    ("create table n like orders", ORDERS, "create table `archive`.`sales_n` like `archive`.`sales_orders`"),
    ("alter table orders rename as `a``b`", ORDERS,
     "alter table `archive`.`sales_orders` rename as `archive`.`sales_a``b`"),
    ("rename table orders to x, items to orders, x to items", BOTH,
     ("rename table `archive`.`sales_orders` to `archive`.`sales_x`, `archive`.`sales_items` to"
      " `archive`.`sales_orders`, `archive`.`sales_x` to `archive`.`sales_items`")),
    ("rename table orders to other.orders", ORDERS, "rename table `archive`.`sales_orders` to `other`.`orders`"),
    ("create database if not exists `sales` charset utf8mb4", {},
     "create database if not exists `archive` charset utf8mb4"),
    ("drop database sales", BOTH, "drop database `archive`"),
    ("alter database sales collate utf8mb4_bin", ORDERS, "alter database `archive` collate utf8mb4_bin"),
    ("create table /* sales.orders */ orders (`e` ENUM('\\','a'), s varchar(9) default 'it''s')", {},
     "create table /* sales.orders */ `archive`.`sales_orders` (`e` ENUM('\\','a'), s varchar(9) default 'it''s')"),
)  # fmt: skip


@pytest.mark.parametrize(("sql", "sources", "said"), SAID)
def test_what_is_said_by_the_targets_names(sql: str, sources: dict[str, str], said: str) -> None:
    at = "other.orders" if "other.orders" in sql else "sales."
    found = ran(sql, at=at, sources=sources)
    assert (found.ddl.statement, found.because) == (said, "")
    assert found.ddl.identity.endswith(sql)  # it is still the message's


def places(found: RoutedDdl) -> dict[str, str]:
    return {str(key): str(value) for key, value in found.sources.items()}


def test_places_follow_what_statements_do() -> None:
    assert places(ran("create table Orders (id int primary key)")) == {"sales.Orders": "archive.sales_Orders"}
    assert places(ran("alter table orders add a int", sources=ORDERS)) == ORDERS
    assert places(ran("drop table ORDERS", sources=BOTH)) == {"sales.items": "archive.sales_items"}
    assert places(ran("drop database SALES", sources=BOTH)) == {}
    swapped = ran("rename table orders to x, items to orders, x to items", sources=BOTH)
    assert places(swapped) == BOTH
    moved = ran("rename table orders to other.orders", at="other.orders", sources=ORDERS)
    assert places(moved) == {"other.orders": "other.orders"}


def test_what_keeps_all_its_names_is_as_it_came() -> None:
    found = ran("alter table t add a int", at="other.t")
    assert found.ddl.routed == ""
    assert places(found) == {"other.t": "other.t"}


PREFIXED = routes_of({"matcher": ["s*.*"], "target-schema": "in_{schema}", "target-table": "t_{table}"})
SHARD = {"shop_1.orders": "shop.orders"}
REFUSED = (
    # two to one
    ("create table orders (id int)", MERGED, "shop_2.", {"sources": SHARD}, "shop_1.orders and shop_2.orders to one"),
    ("alter table orders add a int", MERGED, "shop_2.", {"sources": SHARD}, "to one table, shop.orders"),
    ("drop table orders", MERGED, "shop_2.", {"sources": SHARD}, "to one table"),
    ("truncate table SHOP_2.ORDERS", MERGED, "shop_2.", {"sources": SHARD}, "to one table"),
    ("drop table a, orders", MERGED, "shop_2.", {"sources": SHARD}, "to one table"),
    ("rename table a to orders", MERGED, "shop_2.", {"sources": SHARD}, "to one table"),
    ("alter table a rename orders", MERGED, "shop_2.", {"sources": SHARD}, "to one table"),
    ("create table a like shop_2.orders", MERGED, "shop_2.", {"sources": SHARD}, "to one table"),
    ("create table a (id int, foreign key (id) references orders (id))", MERGED, "shop_2.", {"sources": SHARD}, "to o"),
    ("alter table a exchange partition p with table orders", MERGED, "shop_2.", {"sources": SHARD}, "to one table"),
    ("create table orders (id int)", MERGED, "shop.", {"sources": SHARD}, "shop_1.orders and shop.orders to one"),
    ("create view v as select * from orders", MERGED, "shop_2.", {"sources": SHARD}, "to one table"),
    ("create table orders (id int)", ARCHIVE, "sales.", {"more": ["archive.sales_orders"]}, "holds a table already"),
    ("create table t (id int)", ARCHIVE, "other.", {"more": ["other.t"]}, "holds a table already"),
    # what can't be said by other names
    ("create view v as select * from orders", ARCHIVE, "sales.", {}, "a view about sales.orders, sales.v"),
    ("create view other.v as select * from sales.orders", ARCHIVE, "other.", {}, "a view about sales.orders"),
    ("create view v as select from from", ARCHIVE, "sales.", {}, "a view that can't be read"),
    ("recover table orders", ARCHIVE, "sales.", {}, "not said by other names"),
    ("flashback table orders to old", ARCHIVE, "sales.", {}, "not said by other names"),
    ("recover table by job 7", ARCHIVE, "sales.orders", {}, "not said by other names"),
    ("create table a (id int default nextval(`sales`.`s`))", ARCHIVE, "sales.", {}, "names nextval"),
    ("create table a (id int default (next value for sales.s))", ARCHIVE, "sales.", {}, "names value"),
    ("create table a (id int) union = (b, c)", ARCHIVE, "sales.", {}, "names union"),
    ("alter table orders add check (`orders`.`a` > 1)", ARCHIVE, "sales.", {}, "names orders.a"),
    # databases
    ("create database sales", ONE_TABLE, "sales.", {}, "with tables in schemas|lie in schemas archive, sales"),
    ("drop database sales", ONE_TABLE, "sales.", {}, "lie in schemas"),
    ("drop database sales", ARCHIVE, "sales.", {"more": ["archive.mine"]}, "holds archive.mine too"),
    ("drop database archive", ARCHIVE, "archive.", {"sources": ORDERS}, "holds archive.sales_orders too"),
    ("alter database archive collate utf8mb4_bin", ARCHIVE, "archive.", {"sources": ORDERS}, "archive.sales_orders"),
    ("create database archive charset latin1", ARCHIVE, "archive.", {"sources": ORDERS}, "archive.sales_orders"),
    ("drop database archive", ONE_TABLE, "archive.", {"more": ["Archive.Orders"]}, "holds Archive.Orders too"),
    ("drop database shop", MERGED, "shop.", {"more": ["shop.orders"]}, "holds shop.orders too"),
    ("alter database shop collate utf8mb4_bin", MERGED, "shop.", {"more": ["shop.orders"]}, "holds shop.orders too"),
    ("drop database in_sales", PREFIXED, "in_sales.", {"more": ["in_sales.t_a"]}, "holds in_sales.t_a too"),
    # an old name without its database
    ("rename table orders to sales.b", ARCHIVE, "sales.b", {}, "which is meant is not known"),
    ("rename table orders to sales.b", ARCHIVE, "sales.b", {"sources": {**ORDERS, "other.orders": "other.orders"}},
     "which is meant is not known"),
    ("rename table orders to other.b", ARCHIVE, "other.b", {"sources": {"other.orders": "other.orders"},
     "more": ["archive.sales_orders"]}, "which is meant is not known"),
    ("create table other.b like orders", ARCHIVE, "other.b", {}, "which is meant is not known"),
)  # fmt: skip


@pytest.mark.parametrize(("sql", "routes", "at", "known", "why"), REFUSED)
def test_what_is_refused(sql: str, routes: Routes, at: str, known: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why) as error:
        ran(sql, routes, at, **known)
    assert error.value.hint


@pytest.mark.parametrize(
    ("sql", "routes", "more"),
    [
        ("drop database shop", MERGED, "shop.items"),
        ("drop database in_sales", PREFIXED, "in_sales.other"),
        (
            "drop database sales",
            routes_of({"matcher": ["*.a"], "target-schema": "{schema}", "target-table": "b"}),
            "sales.b",
        ),
        ("drop database other", ARCHIVE, "other.t"),
    ],
)
def test_a_database_goes_with_a_table_that_no_other_one_is_led_to(sql: str, routes: Routes, more: str) -> None:
    assert ran(sql, routes, at=f"{sql.rsplit(maxsplit=1)[-1]}.", more=[more]).ddl.statement == sql


def test_a_schema_that_others_share_is_not_made_again() -> None:
    found = ran("create database archive", at="archive.", sources=ORDERS)
    assert "there already" in found.because


def test_a_database_is_passed_over_whose_schemas_are_all_there() -> None:
    sql = "create database sales"
    assert "there already" in ran(sql, ONE_TABLE, more=["archive.x", "sales.x"]).because
    with pytest.raises(InputError, match="lie in schemas"):
        ran(f"{sql} charset latin1", ONE_TABLE, more=["archive.x", "sales.x"])
    by_table = routes_of({"matcher": ["sales.*"], "target-schema": "{table}"})
    with pytest.raises(InputError, match="lie in schemas"):
        ran(sql, by_table, more=["{table}.x"])


def test_executable_comments_are_read_and_names_stay_names() -> None:
    routes = routes_of({"matcher": ["sales.*"], "target-table": "{table}*/`"})
    found = ran("create table t (id int /*! references `p` (id) */, `{schema}` int)", routes)
    assert found.ddl.statement == (
        "create table `sales`.`t*/``` (id int /*! references `sales`.`p*/``` (id) */, `{schema}` int)"
    )
    assert routes_of({"matcher": ["*.*"], "target-table": "{table}_{schema}"})(name("d.{schema}")).table == "{schema}_d"


LEAST = {
    "changefeed": "x",
    "source": {"bootstrap-servers": "h:1", "topics": ["t"]},
    "target": {"uri": "sqlite:////tmp/out"},
}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"sink": {"dispatchers": [{"matcher": ["a.*"], "target-schema": "{db}"}]}}, "the only placeholders"),
        ({"sink": {"dispatchers": [{"matcher": ["a.*"], "target-table": "a{b"}]}}, "the only placeholders"),
        ({"sink": {"dispatchers": [{"matcher": ["a"], "target-table": "b"}]}}, "matcher"),
        ({"sink": {"dispatchers": [{"target-table": "b"}]}}, "matcher"),
        ({"sink": {"dispatchers": [{"matcher": ["a.*"]}]}, "filter": {"case-sensitive": True}}, "in any case"),
    ],
)
def test_a_wrong_config_is_refused(more: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        config_from({**LEAST, **more}, "a test")


def test_a_block_of_ticdc_can_be_pasted() -> None:
    block = {"matcher": ["a.*"], "topic": "t_{schema}", "partition": "index-value", "target-schema": "b"}
    first = {"matcher": ["*.*"], "dispatcher": "ts", "index": "i", "columns": ["c"]}
    routes = read_routes(config_from({**LEAST, "sink": {"dispatchers": [first, block]}}, "a test").sink)
    assert routes(name("A.t")) == TableName("b", "t")
    assert routes(name("c.t")) == name("c.t")


def test_the_library_and_the_data_source_refuse_routes() -> None:
    config = config_from({**LEAST, "sink": {"dispatchers": [{"matcher": ["a.*"], "target-schema": "b"}]}}, "a test")
    for check in (feed._check, options._check):
        with pytest.raises(ConfigError) as error:
            check(config)
        assert "sink.dispatchers" in str(error.value)


def test_a_renaming_that_the_target_does_not_see_only_moves_the_place() -> None:
    found = ran("rename table orders to orders2", routes_of({"matcher": ["sales.*"], "target-table": "o"}),
                sources={"sales.orders": "sales.o"})  # fmt: skip
    assert "same name" in found.because
    assert places(found) == {"sales.orders2": "sales.o"}


def test_a_table_that_a_killed_run_may_have_made_is_its_own() -> None:
    found = ran("create table orders (id int)", more=["archive.sales_orders"], torn=True)
    assert places(found) == ORDERS


def test_a_table_made_by_hand_is_the_one_that_its_rows_came_for() -> None:
    known = with_rows(Progress(), ARCHIVE, {name("sales.orders"): AT, name("other.t"): AT})
    assert known.sources == {name("sales.orders"): name("archive.sales_orders"), name("other.t"): name("other.t")}
    assert with_rows(known, ARCHIVE, {name("sales.orders"): AT}) is known
    with pytest.raises(InputError, match=r"shop_1.orders and shop_2.orders to one") as error:
        with_rows(Progress(), MERGED, {name("shop_1.orders"): AT, name("shop_2.orders"): AT})
    assert error.value.where == str(AT)


@pytest.mark.parametrize("schema", ["mysql", "TiDB_CDC", "ticdc_reconciler", "pg_catalog", "information_schema"])
def test_no_table_is_led_where_none_may_be(schema: str) -> None:
    routes = routes_of({"matcher": ["sales.*"], "target-schema": schema})
    for sql in ("create table orders (id int)", "create database sales"):
        with pytest.raises(InputError, match="not upstream's to write to"):
            ran(sql, routes)


def test_names_longer_than_a_server_takes_are_refused() -> None:
    routes = routes_of({"matcher": ["*.*"], "target-table": "{schema}_{table}_{table}"})
    with pytest.raises(InputError, match="1 to 64 characters"):
        ran(f"create table `{'x' * 40}` (id int)", routes)


TABLES = st.builds(
    lambda database, table: f"{database}.{table}",
    st.sampled_from(["shop_1", "shop_2", "shop", "Shop_2"]),
    st.sampled_from(["orders", "b"]),
)
STEPS = st.one_of(
    st.tuples(st.just("create"), TABLES),
    st.tuples(st.just("drop"), TABLES),
    st.tuples(st.just("rows"), TABLES),
    st.tuples(st.just("alter"), TABLES),
    st.tuples(st.just("rename"), TABLES, TABLES),
)
"""What comes of two shards, of which `orders` have one place, and of a third table that has it by its own name."""


def model_place(table: str) -> str:
    low = table.lower()
    return "shop.orders" if low.startswith("shop_") and low.endswith(".orders") else low


def model_step(owners: dict[str, str], step: tuple[str, ...]) -> dict[str, str] | None:
    """Who owns which place afterwards; None where the step is refused."""
    kind, table, goal = step[0], step[1].lower(), step[-1].lower()
    if owners.get(model_place(table), table) != table:
        return None
    if kind in ("drop", "rename"):
        owners = {place: owner for place, owner in owners.items() if owner != table}
    if kind == "rename" and owners.get(model_place(goal), goal) != goal:
        return None
    return owners if kind == "drop" else {**owners, model_place(goal): goal}


def stepped(progress: Progress, step: tuple[str, ...]) -> Progress:
    kind, table, goal = step[0], step[1], step[-1]
    if kind == "rows":
        return with_rows(progress, MERGED, {name(table): AT})
    said = {"create": "CREATE TABLE {} (id INT)", "drop": "DROP TABLE {}", "alter": "ALTER TABLE {} ADD a INT"}
    sql = said.get(kind, f"RENAME TABLE {table} TO {goal}").format(table)
    here = catalog_of(*(str(place) for place in progress.sources.values()))
    view = here.routed(NameMap(MERGED, progress.sources))
    event = understood(RawDdl(AT, 9, "QUERY", *goal.split(".", maxsplit=1), sql), view, ())
    return after(progress, routed(event, Shards(MERGED, NameMap(MERGED, progress.sources), {}, here)))


@given(st.lists(STEPS, max_size=12))
def test_a_place_never_has_two_sources(steps: list[tuple[str, ...]]) -> None:
    progress, owners = Progress(), dict[str, str]()
    for step in steps:
        wanted = model_step(owners, step)
        try:
            progress = stepped(progress, step)
        except InputError:
            assert wanted is None, step
        else:
            assert wanted is not None, step
            owners = wanted
        assert {str(at).lower(): str(key).lower() for key, at in progress.sources.items()} == owners


@given(
    st.dictionaries(TABLES.map(name), TABLES.map(name), max_size=5),
    st.sets(TABLES.map(name), max_size=5),
    TABLES.map(name),
)
def test_a_table_is_found_where_it_lies_or_not_at_all(
    sources: dict[TableName, TableName], there: set[TableName], asked: TableName
) -> None:
    """A table is what lies at its place, if the place is not another's; every spelling of it is one."""
    sources = {key: at for key, at in sources.items() if [k.folded for k in sources].count(key.folded) == 1}
    sources = {key: at for key, at in sources.items() if [p.folded for p in sources.values()].count(at.folded) == 1}
    there = {one for one in there if [o.folded for o in there].count(one.folded) == 1}
    found = catalog_of(*map(str, there)).routed(NameMap(MERGED, sources))
    known = {key.folded: at.folded for key, at in sources.items()}
    place = known.get(asked.folded, MERGED(asked).folded)
    owner = {at: key for key, at in known.items()}.get(place, asked.folded)
    lies = [one for one in there if one.folded == place and owner == asked.folded]
    schema = found.get(asked)
    assert ([] if schema is None else [schema.here]) == lies
    assert (asked in found) == bool(lies)
    assert (
        len({found.spelled(TableName(d, asked.table)) for d in (asked.database, asked.database.upper())}) == 1
        or not lies
    )
    assert all(name.folded in {n.folded for n in found.tables} for name, at in sources.items() if at in there)
