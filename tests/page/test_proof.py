"""What proofs have found, on the page."""

from consumer.serve.api.models import TableProof
from tests.page.browser import Browser
from tests.page.scenes import NOW, Scene, status, tso
from tests.page.test_page import shown


def proof_of(table: str, verdict: str, reason: str = "", *columns: str) -> TableProof:
    return TableProof.model_validate(
        {"table": table, "verdict": verdict, "reason": reason, "checkpoint_ts": tso(NOW), "checkpoint_time": "t",
         "compared_at": "t", "rows": 3, "rows_expected": 4, "buckets": [7], "columns_left_out": list(columns)}
    )  # fmt: skip


def test_what_is_proven_what_is_not_and_what_differs_is_told(browser: Browser) -> None:
    found = [
        proof_of("a.fine", "equal"),
        proof_of("a.bare", "unproven", "no key"),
        proof_of("a.bad", "different", "", "x"),
    ]
    feed = status(proof=found, file="/srv/my feeds/orders.toml")
    with shown(browser, Scene.of(feed)) as (_, page):
        page.wait("document.querySelector('#proofs-title') !== null")
        told = page.text(".proofs tbody")
        assert told.index("a.bad") < told.index("a.bare") < told.index("a.fine")
        assert "1 of 3 tables proven equal" in page.text(".panel.proofs")
        assert "no key" in told
        assert "columns x" in told
        assert "a.bad: 3 rows, 4 expected, buckets 7 differ" in page.text(".advice")
        assert "reconciler verify '/srv/my feeds/orders.toml' --tables a.bad" in page.text(".advice code")
    with shown(browser, Scene.of(status())) as (_, page):
        page.wait("document.querySelector('#feed-title') !== null")
        assert page.run("document.querySelector('#proofs-title') === null")
