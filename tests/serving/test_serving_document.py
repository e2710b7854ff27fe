"""The API against its own document: whatever is asked, no answer is a 500, and each is one that the document tells."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from consumer.embedded import KafkaBroker
from tests.service.messages import begun, watermarks
from tests.serving.lab import HEADERS, TOKEN, Serving, config_of, feed_into

pytestmark = [pytest.mark.service, pytest.mark.spark]
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
LIVING, PAUSED, FAILED = "living", "paused", "failed"
API = ("ddls", "quarantine", "history", "config")


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, kafka_broker: KafkaBroker) -> Iterator[Serving]:
    """A changefeed that runs, one that is paused, one that has failed."""
    place = tmp_path_factory.mktemp("document")
    folder = place / "changefeeds"
    folder.mkdir()
    (folder / "_serve.toml").write_text('paused = ["paused"]\n[spark]\nmaster = "local[1]"\n')
    with Serving(folder) as found:
        for name in (LIVING, PAUSED):
            feed = feed_into(place, kafka_broker.bootstrap, f"document-{name}")
            feed.send([*begun(), *watermarks(3)])
            found.ask("POST", "", 201, json={**config_of(feed), "changefeed": name})
        (folder / "mended.toml").write_text("changefeed = ")
        gone = feed_into(place, kafka_broker.bootstrap, "document-none")
        found.ask("POST", "", 201, json={**config_of(gone), "changefeed": FAILED})
        found.until(FAILED, "failure", lambda s: s["state"] == "failed")
        found.until(LIVING, "work", lambda s: s["events"] == 1)
        yield found
        assert not [line for line in found.lines if "bug" in line["event"]]
        assert found.ended()[0] == 0


@pytest.fixture(scope="module")
def document(serving: Serving) -> Any:
    return schemathesis.openapi.from_url(f"{serving.url}openapi.json")


schema = schemathesis.pytest.from_fixture("document")


@schemathesis.hook("map_path_parameters")
def of_changefeeds_that_are_there(context: Any, parameters: dict[str, Any] | None) -> dict[str, Any] | None:
    """Ids by chance are of no changefeed: half of them become real ones."""
    name = (parameters or {}).get("changefeed_id")
    if parameters and isinstance(name, str):
        real = (LIVING, PAUSED, FAILED, None, None, None)[len(name) % 6]
        if real is not None and context.operation.method != "delete":
            parameters["changefeed_id"] = real
    return parameters


@schema.parametrize()
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_answer_is_a_500(case: Any) -> None:
    response = case.call(headers=HEADERS, timeout=60)
    case.validate_response(response, checks=CHECKS)


def test_the_document_is_of_all_routes(serving: Serving) -> None:
    told = httpx.get(f"{serving.url}openapi.json").json()
    assert told["openapi"].startswith("3.1")
    paths = told["paths"]
    assert {"/api/v2/health", "/metrics", "/api/v2/changefeeds"} <= paths.keys()
    operations = [(path, verb) for path, verbs in paths.items() for verb in verbs]
    assert len(operations) >= 16
    for path, verb in operations:
        operation = paths[path][verb]
        assert operation["operationId"]
        assert operation["description"]
        if path.startswith("/api/v2/changefeeds"):
            assert operation["security"] == [{"HTTPBearer": []}]
            assert httpx.request(verb, f"{serving.url}{path[1:]}").status_code == 401
    assert TOKEN not in str(told)
