"""The API against its own document: whatever is asked, no answer is a 500, and each is one that the document tells."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from schemathesis import GenerationMode
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
schemathesis.serializer("application/toml")(lambda _, text: text if isinstance(text, bytes) else str(text).encode())
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
LIVING, PAUSED, FAILED = "living", "paused", "failed"


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
        (folder / "fixed.toml").write_text("changefeed = ")
        gone = feed_into(place, kafka_broker.bootstrap, "document-none")
        found.ask("POST", "", 201, json={**config_of(gone), "changefeed": FAILED})
        found.until(FAILED, "failure", lambda s: s["state"] == "failed")
        found.until(LIVING, "work", lambda s: s["events"] == 1)
        yield found
        assert not [line for line in found.lines if "bug" in line["event"]]
        assert found.ended()[0] == 0


def aimed(case: Any, number: int) -> Any:
    """Ids by chance are of no changefeed: half of them become real ones, which nobody deletes."""
    real = (LIVING, PAUSED, FAILED, None, None, None)[number % 6]
    if "changefeed_id" in case.path_parameters and real is not None and case.method != "DELETE":
        case.path_parameters["changefeed_id"] = real
    return case


def ask_at_random(operation: Any, mode: GenerationMode) -> int:
    """Ask one operation some dozen times; how often."""
    numbers = count()

    @seed(1)
    @settings(max_examples=10, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        response = aimed(case, next(numbers)).call(headers=HEADERS, timeout=60)
        case.validate_response(response, checks=CHECKS)

    ask()
    return next(numbers)


@pytest.mark.by_turns(9)
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_no_answer_is_a_500(serving: Serving, mode: GenerationMode) -> None:
    """Requests that the document allows, and such that it does not."""
    schema = schemathesis.openapi.from_url(f"{serving.url}openapi.json")
    operations = [result.ok() for result in schema.get_all_operations()]
    if mode is GenerationMode.NEGATIVE:  # the others have nothing that could be wrong
        operations = [one for one in operations if one.path_parameters or one.query or one.body]
    asked = {one.label: ask_at_random(one, mode) for one in operations}
    assert len(asked) >= 14
    assert sum(asked.values()) >= 50
    assert serving.process.poll() is None


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
