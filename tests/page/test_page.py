"""The status page in a real browser: what it shows, by keyboard, live, and within its policy."""

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

BUILD = Path(__file__).parents[2] / "build" / "page"
TOKEN = "0123456789abcdef0123"  # noqa: S105 - of this test


def cell(page: Page, split: str) -> Any:
    return page.locator(f'#heat [data-key="{split}"]')


def select_orders(page: Page) -> None:
    page.get_by_role("link", name="orders").click()
    expect(page.locator("#source-title")).to_have_text("orders in shop")


def test_the_picture(serve: Any, open_page: Any) -> None:
    served = serve()
    served.do("hour")
    with open_page(served.address) as page:
        select_orders(page)
        expect(page.locator("#connection")).to_have_text("Live")
        expect(page.locator("#heat [role=row]")).to_have_count(2)
        expect(page.locator("#heat [role=gridcell]")).to_have_count(6)
        expect(cell(page, "main/orders/0")).to_have_attribute(
            "aria-label", "main/orders/0, reader 0: lag 0, rate unknown"
        )
        served.do("later")  # a rate needs two reports
        expect(cell(page, "main/orders/0")).to_have_attribute(
            "aria-label", "main/orders/0, reader 0: lag 0, rate 10/s"
        )
        unknown = cell(page, "main/orders/5")
        expect(unknown).to_have_text("?")
        expect(unknown).to_have_class("cell level-unknown")
        # the unknown minutes interrupt the line
        expect(page.locator("#chart-rate polyline")).to_have_count(2)
        expect(page.locator("#timeline tbody tr")).to_have_count(1)
        BUILD.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=BUILD / "light.png", full_page=True)
        page.emulate_media(color_scheme="dark")
        page.screenshot(path=BUILD / "dark.png", full_page=True)


def test_a_rescale_appears_by_itself_and_leaves_the_focus_where_it_was(
    serve: Any, open_page: Any
) -> None:
    served = serve()
    with open_page(served.address) as page:
        select_orders(page)
        cell(page, "main/orders/3").click()
        expect(cell(page, "main/orders/3")).to_be_focused()

        served.do("show", readers=3, epoch=5)

        expect(page.locator("#heat [role=row]")).to_have_count(3)
        expect(page.locator("#timeline tbody tr").first).to_contain_text(
            "Rescaled from 2 to 3 readers"
        )
        expect(page.locator("#sources tbody")).to_contain_text("5")
        expect(cell(page, "main/orders/3")).to_be_focused()
        page.locator("#timeline summary").first.click()
        expect(page.locator("#timeline li").first).to_contain_text(
            "main/orders/2: reader 0 → reader 2"
        )


def test_the_heat_map_by_keyboard(serve: Any, open_page: Any) -> None:
    with open_page(serve().address) as page:
        select_orders(page)
        expect(page.locator('#heat [tabindex="0"]')).to_have_count(1)
        page.locator('#measure input[value="lag"]').focus()
        page.keyboard.press("Tab")
        expect(cell(page, "main/orders/0")).to_be_focused()
        for key, split in (
            ("ArrowRight", 2),
            ("ArrowDown", 3),
            ("End", 5),
            ("Home", 1),
            ("ArrowUp", 0),
            ("ArrowUp", 0),
            ("ArrowLeft", 0),
        ):
            page.keyboard.press(key)
            expect(cell(page, f"main/orders/{split}")).to_be_focused()
        expect(page.locator("#heat-cell")).to_contain_text("main/orders/0, reader 0")
        page.locator('#measure input[value="lag"]').focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator("#legend")).to_contain_text("? unknown")
        expect(cell(page, "main/orders/1")).to_have_text("?")  # a rate needs two reports


def test_the_plan_of_a_rescale(serve: Any, open_page: Any) -> None:
    with open_page(serve().address, expected=("409 (Conflict)",)) as page:
        select_orders(page)
        expect(page.get_by_label("Readers")).to_have_value("2")
        page.get_by_label("Readers").fill("3")
        page.keyboard.press("Enter")
        expect(page.locator("#plan-result")).to_contain_text("2 of 6 splits would move.")
        expect(page.locator("#plan-result")).to_contain_text("Splits per reader: 3 → 2.")
        expect(page.locator("#plan-result li")).to_have_count(2)


def test_names_and_messages_are_text(serve: Any, open_page: Any) -> None:
    with open_page(serve().address) as page:
        page.get_by_role("link", name="odd").click()
        expect(page.locator("#source-message")).to_contain_text("<script>")
        expect(page.locator("#conditions tbody")).to_contain_text("<img src=")
        expect(page.locator("#heat [role=gridcell]").first).to_have_attribute(
            "aria-label", re.compile("<img src=")
        )
        expect(page.locator("main img, main script")).to_have_count(0)
        expect(page).to_have_title("Balanced Source")


def test_a_source_with_many_splits_has_a_cell_per_reader(serve: Any, open_page: Any) -> None:
    served = serve()
    served.do("show", readers=4, splits=2001, epoch=5)
    with open_page(served.address) as page:
        select_orders(page)
        expect(page.locator("#heat [role=gridcell]")).to_have_count(4)
        expect(page.locator("#heat-note")).to_contain_text("more than 2,000 splits")
        head = page.locator("#heat [role=rowheader]").first
        expect(head).to_have_text("reader 0 (501)")
        served.do("show", readers=4, splits=2405, epoch=6)
        expect(head).to_have_text("reader 0 (602)")


def test_a_deleted_source_is_reported_and_the_others_stay(serve: Any, open_page: Any) -> None:
    with open_page(serve().address + "#shop/former") as page:
        expect(page.locator("#connection")).to_have_text("Live. There is no source former now.")
        select_orders(page)
        expect(page.locator("#connection")).to_have_text("Live")


def test_a_token_opens_the_page(serve: Any, open_page: Any, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    served = serve(str(tmp_path / "token"))
    with open_page(served.address, expected=("401 (Unauthorized)",)) as page:
        expect(page.locator("#login-reason")).to_contain_text("This page needs a token")
        expect(page.locator("main")).to_be_hidden()
        page.get_by_label("Token").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#login-reason")).to_contain_text("The token is wrong")
        page.get_by_label("Token").fill(TOKEN)
        page.keyboard.press("Enter")
        select_orders(page)
        assert page.context.storage_state() == {"cookies": [], "origins": []}, (
            "the token is not stored"
        )


def test_an_operator_that_does_not_answer_is_reported(serve: Any, open_page: Any) -> None:
    served = serve()
    with open_page(
        served.address, expected=("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING")
    ) as page:
        select_orders(page)
        served.stop()
        expect(page.locator("#connection")).to_contain_text(
            "The operator does not answer. Trying again"
        )
        expect(page.locator("#heat [role=gridcell]")).to_have_count(6)
