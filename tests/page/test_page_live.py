"""The page before a real `reconciler serve`, with a changefeed that runs: charts against metrics, a stall, a pause."""

import json
import time
from math import inf
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from consumer.embedded import KafkaBroker
from tests.page.browser import Browser, Page
from tests.service.lab import Feed, eventually
from tests.service.messages import at, begun, insert, watermarks
from tests.serving.lab import TOKEN, Serving, config_of, feed_into

pytestmark = [pytest.mark.service, pytest.mark.spark]
STALLED_S = 3.0
MOST_LATE_S = 2
LIVE = "document.body.dataset.standing === 'live'"
BADGE = "document.querySelector('.feed-head .badge')?.textContent"
CHART = """
Promise.all([import('/page/series.js'), import('/page/connection.js')]).then(async ([series, {ask}]) => {
  const path = '/api/v2/changefeeds/' + encodeURIComponent(%s) + '/history';
  const told = await ask(path, sessionStorage.getItem('reconciler-token'));
  const end = told.items.at(-1).at;
  return series.RANGES.map(range => series.pointsOf(told.items, told.interval_seconds, range, end)
    .filter(point => point.rate !== null).reduce((sum, point) => sum + point.rate * point.seconds, 0));
})
"""


def metric(serving: Serving, name: str, feed: Feed) -> float:
    families = text_string_to_metric_families(serving.client.get("/metrics").text)
    samples = (sample for family in families for sample in family.samples)
    return next(s.value for s in samples if s.name == name and s.labels.get("changefeed") == feed.name)


def load(serving: Serving, feed: Feed, first: int, rounds: int, rows: int) -> int:
    """Send rows in rounds, each applied before the next; the number of the last round."""
    for number in range(first, first + rounds):
        keys = range(number * rows, (number + 1) * rows)
        feed.send([*(insert("d.t", number + 1, 1, id=key, v=key, s="x") for key in keys), *watermarks(number + 1)])
        serving.reached(feed.name, at(number + 1))
        time.sleep(0.7)  # the pace of the load, so that it spans several samples
    return first + rounds


def sign_in(page: Page, serving: Serving) -> None:
    page.open(serving.url)
    page.wait("document.querySelector('form.sign-in') !== null")
    page.type(TOKEN)
    page.press("Enter")
    page.wait(f"{LIVE} && {BADGE} !== undefined")


def runs(feed: Feed, page: Page, number: int) -> int:
    """Send watermarks until the page says that it runs: on a busy machine it may stall before one looks. The last."""
    sent = [number]

    def is_shown() -> bool:
        if page.run(f"{BADGE} === 'running'"):
            return True
        sent.append(sent[-1] + 1)
        feed.send(watermarks(sent[-1]))
        return False

    eventually("the page says that it runs", is_shown, pause_s=0.5)
    return sent[-1]


def shows_what_metrics_count(serving: Serving, feed: Feed, page: Page, last: int) -> int:
    """The events of a load, in the chart's points and in its table, are those of the counter. The last round."""
    eventually("a first sample", lambda: bool(serving.ask("GET", f"/{feed.name}/history")["items"]))
    before = serving.ask("GET", f"/{feed.name}/history")["items"][0]["events"]
    last = load(serving, feed, last, 8, 400)
    total = metric(serving, "ticdc_reconciler_events_total", feed)
    assert total - before >= 8 * 400
    page.wait(f"document.querySelector('[data-figure=Applied] b').textContent === '{int(total):,}'")
    sampled = "the samples have it"
    eventually(sampled, lambda: serving.ask("GET", f"/{feed.name}/history")["items"][-1]["events"] == total)
    for shown in page.run(CHART % json.dumps(feed.name)):
        assert shown == pytest.approx(total - before)
    page.click(".as-table summary")
    rates = "[...document.querySelectorAll('.as-table tbody td:nth-child(2)')].map(d => d.textContent)"
    page.wait(f"{rates}.some(rate => rate !== '0')")

    def in_the_table() -> float:
        return sum(2 * float(rate.replace(",", "")) for rate in page.run(rates) if rate[:1].isdigit())

    tables = serving.ask("GET", f"/{feed.name}/tables")["items"]
    assert [(one["table"], one["rows_written"]) for one in tables] == [("d.t", 1 + 8 * 400)]
    assert page.text(".tables tbody th") == "d.t"
    eventually("the table adds up, but for rounding", lambda: abs(in_the_table() - (total - before)) < 80)
    return last


def shows_a_stall_in_time(serving: Serving, feed: Feed, page: Page, last: int) -> float:
    """Partition 2 stands still, the others go on; seconds beyond the configured age until the page says so."""
    feed.send([one for one in watermarks(last + 1) if one.partition != 2])
    serving.until(feed.name, "2 holds back", lambda s: [p[-1:] for p in s["source"]["held_back_by"]] == ["2"])
    asked = time.monotonic()
    seen = serving.status(feed.name)
    took = time.monotonic() - asked
    still = next(p["still_seconds"] for p in seen["source"]["partitions"] if p["partition"] == 2)
    rows = "[...document.querySelectorAll('.partitions tbody tr.stalled th')].map(place => place.innerText).join()"
    page.wait(f"{rows} === {json.dumps(f'{feed.topic} / 2')}")
    late = time.monotonic() - (asked - still) - STALLED_S
    assert late > -0.1  # the API rounds to tenths; `still` was true at some moment while it answered
    assert page.run(f"{BADGE} === 'stalled'")
    assert "stands still" in page.text(".verdict")
    return late - took


def pauses_and_resumes(serving: Serving, feed: Feed, page: Page) -> None:
    for word, state in (("paused", "stopped"), ("stalled", "normal")):
        page.wait("document.querySelector('#feed-command').disabled === false")
        page.click("#feed-command")
        page.wait("document.getElementById('confirm').open")
        page.click("#confirm-yes")
        serving.until(feed.name, state, lambda s, state=state: s["state"] == state)
        page.wait(f"{BADGE} === '{word}'")


@pytest.mark.by_turns(9)
def test_a_running_changefeed(browser: Browser, kafka_broker: KafkaBroker, topic_name: str, tmp_path: Path) -> None:
    folder = tmp_path / "changefeeds"
    folder.mkdir()
    (folder / "_serve.toml").write_text('[spark]\nmaster = "local[2]"\n')
    feed = feed_into(tmp_path, kafka_broker.bootstrap, topic_name).with_(limits={"stalled-seconds": STALLED_S})
    with Serving(folder) as serving, browser.page() as page:
        feed.send([*begun(), *watermarks(3)])
        serving.ask("POST", "", 201, json=config_of(feed))
        serving.reached(feed.name, at(3))
        feed.send(watermarks(4))
        sign_in(page, serving)
        last = shows_what_metrics_count(serving, feed, page, runs(feed, page, 4))
        late = inf
        for _ in range(3):  # unless the machine is busy with something else, three times
            if late >= MOST_LATE_S:
                last = runs(feed, page, last + 1)
                late = shows_a_stall_in_time(serving, feed, page, last)
        print(f"the stall is shown {late:.2f} s after limits.stalled-seconds")
        assert late < MOST_LATE_S, "seconds after limits.stalled-seconds"
        pauses_and_resumes(serving, feed, page)
        assert [text for text in page.complaints() if "401" not in text] == []  # before the token was given
        code, _ = serving.ended()
        assert code == 0
        page.wait("document.body.dataset.standing === 'gone'")
