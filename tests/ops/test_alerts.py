"""Alerts and dashboard: each expression parses, and names metrics and labels that /metrics really has."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.process_collector import ProcessCollector

from consumer.serve import metrics
from consumer.serve.api.models import Status
from consumer.serve.metrics import FleetCollector
from consumer.serve.observed.run_recorder import RunRecorder
from consumer.serve.status import STATES
from ordering.quarantine import QuarantineState
from sinks.bookkeeping.ddl_log import DdlState
from tests.page import scenes

ROOT = Path(__file__).parent.parent.parent
RULES = yaml.safe_load((ROOT / "docker/prometheus/alerts.yml").read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((ROOT / "docker/grafana/dashboard.json").read_text())
TARGETS = [(panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel["targets"]]
OF_PROMETHEUS = {"job", "instance"}
"""Labels that every scraped series gets."""
VALUES = {"state": {*STATES, *(one.value for one in QuarantineState), *(one.value for one in DdlState)}}


@dataclass
class Feed:
    """As much of a feed as the metrics need besides its status."""

    status: Status
    watching: RunRecorder = field(default_factory=RunRecorder)

    @property
    def name(self) -> str:
        return self.status.changefeed


class Fleet:
    """Feeds whose status is given."""

    def all(self) -> list[Feed]:
        return [Feed(scenes.stalled()), Feed(scenes.failed())]


@pytest.fixture
def exposed(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Each series' name with its labels, as Prometheus reads what we write."""
    monkeypatch.setattr(metrics, "status_of", lambda feed: feed.status)
    registry = CollectorRegistry()
    registry.register(FleetCollector(Fleet()))  # type: ignore[arg-type]
    ProcessCollector(registry=registry)
    found: dict[str, set[str]] = {"up": set()}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def nodes(node: Any) -> list[Any]:
    """The node and all below it."""
    below = [getattr(node, name, None) for name in ("lhs", "rhs", "expr", "param", "vector_selector")]
    below += list(getattr(node, "args", None) or [])
    return [node, *(found for one in below if one is not None for found in nodes(one))]


def parsed(expression: str) -> list[Any]:
    text = expression.replace("$__rate_interval", "5m").replace("$__range", "1h")
    return nodes(promql_parser.parse(text))


def check(expression: str, exposed: dict[str, set[str]]) -> None:
    found = parsed(expression)
    selectors = [one for one in found if isinstance(one, promql_parser.VectorSelector)]
    assert selectors
    labels = set(OF_PROMETHEUS)
    for selector in selectors:
        assert selector.name in exposed, f"no such metric: {selector.name}"
        labels |= exposed[selector.name]
        for matcher in selector.matchers.matchers:
            assert matcher.name in exposed[selector.name] | OF_PROMETHEUS, (
                f"{selector.name} has no label {matcher.name}"
            )
            values = set(matcher.value.split("|"))
            assert matcher.name not in VALUES or values <= VALUES[matcher.name], f"{matcher.name} is never {values}"
    grouped = {name for one in found for name in re.findall(r"\w+", labels_of(one))}
    assert grouped <= labels


def labels_of(node: Any) -> str:
    """The names within `by (...)` and `on (...)`."""
    modifier = getattr(node, "modifier", None)
    if modifier is None:
        return ""
    if isinstance(node, promql_parser.AggregateExpr):
        return " ".join(modifier.labels)
    matching = modifier.matching
    return "" if matching is None else " ".join(matching.labels)


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_s_expression_fits_the_metrics(rule: dict[str, Any], exposed: dict[str, set[str]]) -> None:
    check(rule["expr"], exposed)
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert set(rule["labels"]) == {"severity"}
    assert rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"
    given = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    by = {name for one in parsed(rule["expr"]) for name in labels_of(one).split()} | OF_PROMETHEUS
    assert given <= by


@pytest.mark.parametrize(("title", "expression"), TARGETS)
def test_a_panel_s_expression_fits_the_metrics(title: str, expression: str, exposed: dict[str, set[str]]) -> None:
    check(expression.replace('=~"$changefeed"', '=~".*"'), exposed)
    assert title


def test_what_the_metrics_have_is_looked_at(exposed: dict[str, set[str]]) -> None:
    used = {
        one.name
        for expression in [rule["expr"] for rule in ALERTS] + [expression for _, expression in TARGETS]
        for one in parsed(expression.replace('=~"$changefeed"', '=~".*"'))
        if isinstance(one, promql_parser.VectorSelector)
    }
    ours = {name for name in exposed if name.startswith("ticdc_reconciler_") and not name.endswith("_created")}
    for_people = {  # seen elsewhere, or the parts of one that is used
        "build_info", "stand_bys", "checkpoint_timestamp_seconds", "filtered_total", "quarantined_total", "ddls_total",
        "partition_offset", "partition_stalled", "window_duration_seconds_count", "window_duration_seconds_sum",
        "reads_archive",
    }  # fmt: skip
    assert {name.removeprefix("ticdc_reconciler_") for name in ours - used} == for_people


def test_the_dashboard_is_whole() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)  # none lies over another
    assert max(x for x, _ in cells) < 24
    told = set(re.findall(r"Alert (Reconciler\w+)", json.dumps(DASHBOARD)))
    assert told <= {rule["alert"] for rule in ALERTS}
    assert all(panel["description"] for panel in panels)


def test_prometheus_and_grafana_find_their_files() -> None:
    prometheus = yaml.safe_load((ROOT / "docker/prometheus/prometheus.yml").read_text())
    assert [(ROOT / "docker/prometheus" / name).exists() for name in prometheus["rule_files"]] == [True]
    assert [job["job_name"] for job in prometheus["scrape_configs"]] == ["ticdc-reconciler"]  # as the rules say
    provisioning = ROOT / "docker/grafana/provisioning"
    source = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())["datasources"][0]
    assert source["type"] == "prometheus"
    provider = yaml.safe_load((provisioning / "dashboards/reconciler.yml").read_text())["providers"][0]
    assert provider["type"] == "file"
