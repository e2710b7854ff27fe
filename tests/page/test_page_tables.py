"""The page's tables: those written last first, found by name, each with what is known of it."""

import pytest

from tests.page import scenes
from tests.page.browser import Browser
from tests.page.scenes import Scene, status
from tests.page.test_page import AXE, FOCUS, PHONE, shown


def test_tables_are_found_and_one_is_shown_with_its_ddls(browser: Browser) -> None:
    feed = status()
    scene = Scene.of(feed)
    [orders, *_] = [one for one in scene.tables[feed.changefeed] if one.table == "shop.orders"]
    many = [orders.model_copy(update={"table": f"stock.item_{i:02d}", "rows_written": i}) for i in range(40)]
    scene.tables[feed.changefeed] += many
    with shown(browser, scene) as (_, page):
        page.wait("document.querySelectorAll('.tables tbody tr').length === 10")
        assert "The last 10 of 4" in page.text(".tables")
        page.run("document.getElementById('table-filter').focus()")
        page.type("ITEM_3")
        page.wait("document.querySelector('.tables [role=status]').innerText === '10 tables'")
        assert "item_29" not in page.text(".tables")
        assert page.run(FOCUS) == "table-filter"
        page.run("document.getElementById('table-filter').oninput({target: {value: 'shop.ord'}})")
        page.wait("document.querySelectorAll('.tables tbody tr').length === 1")
        page.click(".tables tbody button")
        page.wait("document.getElementById('sheet').open")
        told = page.text("#sheet")
        assert "184,220" in told
        assert "ADD COLUMN" in told
        assert "refunds" not in told
        scene.tables[feed.changefeed][0] = orders.model_copy(update={"rows_written": 184_221})
        page.wait("document.getElementById('sheet').innerText.includes('184,221')")
        assert page.text(".tables tbody th") == "shop.orders"


@pytest.mark.by_turns
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_table_is_accessible_by_axe_whatever_its_name(browser: Browser, dark: bool) -> None:
    for scene in (Scene.of(status()), Scene.of(scenes.hostile())):
        with shown(browser, scene, *PHONE, dark=dark, reduced=True) as (_, page):
            page.run(browser.tools.axe.read_text() + ";true")
            page.click(".tables tbody button")
            page.wait("document.getElementById('sheet').open")
            assert page.run(AXE) == []
            assert page.run("document.getElementById('sheet').scrollWidth") <= PHONE[0]
            assert page.run("document.querySelectorAll('#sheet img, #sheet script').length") == 0
