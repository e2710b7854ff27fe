"""The page of a changefeed that reads its archive."""

from tests.page.browser import Browser
from tests.page.scenes import Scene, status
from tests.page.test_page import shown


def test_an_archive_that_is_read_instead_of_topics(browser: Browser) -> None:
    why = "s3://archive/ticdc: offsets 88120 to 90455 are gone (orders-0)"
    with shown(browser, Scene.of(status("orders", archived=why))) as (_, page):
        assert page.run("document.querySelector('.flow .step h4').textContent") == "Archive"
        assert "The archive is read instead of the topics" in page.text(".advice")
        assert why in page.text(".advice")
    with shown(browser, Scene.of(status("orders"))) as (_, page):
        assert page.run("document.querySelector('.flow .step h4').textContent") == "Kafka"
