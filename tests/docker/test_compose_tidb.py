"""The TiDB cluster of the Compose files: addresses agree, and the changefeed is one that the reconciler can read."""

import re
import shlex
import tomllib
from urllib.parse import parse_qs, urlsplit

import click
from click.testing import CliRunner

from consumer.config.changefeed_filter import read_filter
from consumer.config.model import config_from
from consumer.demo.shop_load import main
from consumer.kafka.topic_names import matcher
from tests.docker.stack import CHANGEFEEDS, DOCKER, SERVICES, mounts, options

CLUSTER = ("pd", "tikv", "tidb", "ticdc")


def creation() -> dict[str, str]:
    """The options with which the changefeed is made."""
    script = SERVICES["changefeed"]["entrypoint"][-1]
    query, create = (shlex.split(part) for part in script.replace(">/dev/null", "").split("||"))
    assert query[:4] == ["/cdc", "cli", "changefeed", "query"]
    assert create[:4] == ["/cdc", "cli", "changefeed", "create"]
    assert "--no-confirm" in create
    create.remove("--no-confirm")
    found = options(create)
    assert options(query) == {name: found[name] for name in ("server", "changefeed-id")}
    assert set(found) == {"server", "changefeed-id", "config", "sink-uri"}
    return found


def test_one_version_of_all() -> None:
    assert {SERVICES[name]["image"].split(":")[1] for name in (*CLUSTER, "changefeed")} == {"v8.5.3"}


def test_addresses_are_those_of_the_services() -> None:
    given = {name: options([word for word in SERVICES[name]["command"] if "=" in word]) for name in CLUSTER}
    pd = given["pd"]
    assert pd["advertise-client-urls"] == "http://pd:2379" == given["ticdc"]["pd"]
    assert given["tikv"]["pd"] == given["tidb"]["path"] == "pd:2379"
    assert pd["initial-cluster"] == f"{pd['name']}={pd['advertise-peer-urls']}"
    for name, key in (("tikv", "advertise-addr"), ("ticdc", "advertise-addr"), ("tidb", "advertise-address")):
        assert given[name][key].split(":")[0] == name
    assert creation()["server"] == f"http://{given['ticdc']['advertise-addr']}"
    for name in CLUSTER:
        for flag in ("config", "data-dir"):
            if flag in given[name]:
                assert any(place == given[name][flag] for _, place in mounts(SERVICES[name]))


def test_config_files_are_toml_and_say_what_was_meant() -> None:
    pd, tikv = (tomllib.loads((DOCKER / "tidb" / f"{name}.toml").read_text()) for name in ("pd", "tikv"))
    assert pd == {"replication": {"max-replicas": 1}}
    assert tikv["storage"]["block-cache"]["capacity"] == "512MB"


def test_the_changefeed_is_one_that_can_be_read() -> None:
    found = creation()
    uri = urlsplit(found["sink-uri"])
    asked = {name: value for name, (value,) in parse_qs(uri.query).items()}
    assert (uri.scheme, uri.netloc) == ("kafka", "kafka:19092")
    assert (asked["protocol"], asked["enable-tidb-extension"]) == ("canal-json", "true")
    assert set(asked) == {"protocol", "enable-tidb-extension", "partition-num", "replication-factor"}
    for path in CHANGEFEEDS.glob("shop-*.toml"):
        source = tomllib.loads(path.read_text())["source"]
        assert matcher(source["topics"])(uri.path.removeprefix("/"))
        assert source["bootstrap-servers"] == uri.netloc
        assert f"--tz={source['time-zone']}" in SERVICES["ticdc"]["command"]


def test_its_filter_takes_the_load_s_tables() -> None:
    ((source, place),) = mounts(SERVICES["changefeed"])
    assert creation()["config"] == place
    values = tomllib.loads((DOCKER / source).read_text())
    least = {
        "changefeed": "x",
        "source": {"bootstrap-servers": "x", "topics": ["x"]},
        "target": {"uri": "sqlite:///x"},
        "filter": values["filter"],
    }
    rules = read_filter(config_from(least, source).filter)
    assert rules is not None
    assert values["filter"]["rules"] == ["shop.*"]
    (dispatcher,) = values["sink"]["dispatchers"]
    assert dispatcher["partition"] in {"default", "index-value", "table", "ts", "columns"}


def test_the_load_s_command_line_is_one() -> None:
    python, module = SERVICES["load"]["entrypoint"], "consumer.demo.shop_load"
    assert python == ["python", "-m", module]
    uri, *words = SERVICES["load"]["command"]
    assert re.fullmatch(r"tidb://root@(\w+):4000", uri)[1] in SERVICES  # type: ignore[index]
    assert {option for option in words if option.startswith("--")} <= {
        name for option in main.params if isinstance(option, click.Option) for name in option.opts
    }
    done = CliRunner().invoke(main, ["tidb://root@127.0.0.1:1", *words, "--no-such-option"])
    assert (done.exit_code, "no-such-option" in done.output) == (2, True)
