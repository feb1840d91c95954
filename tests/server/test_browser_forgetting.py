"""On the page: one memory forgotten by its id, and what the level of the telephone means; in a real browser."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from echoic.adapters.twilio.settings import TRUST_MEANS
from server.browsing import CONTRAST, Process, card, say, settled, visiting

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture(scope="module")
def process(tmp_path_factory, request):
    running = Process(
        tmp_path_factory.mktemp("forgetting"), "--phone-trust", request.param, ECHOIC_EMBEDDER="lexical"
    )
    running.trust = request.param
    running.start()
    yield running
    running.stop()


async def forget(page, key, how):
    one = card(page, key)
    await one.get_by_role("button", name="forget", exact=False).first.click()
    choices = one.get_by_role("group")
    await expect(choices.get_by_role("button", name="Delete")).to_be_focused()
    await choices.get_by_role("button", name=how).click()
    await expect(one).to_have_count(0)
    await settled(page)


@pytest.mark.parametrize("process", ["a"], indirect=True)
async def test_one_memory_is_taken_back_or_destroyed_and_the_others_stay(browser, process):
    narrow = {"viewport": {"width": 320, "height": 800}}
    async with visiting(browser, process, **narrow) as page:
        await say(page, "I'm Pavel and I live in Tel Aviv")
        await say(page, "My sister is called Quillonda")
        await card(page, "home").get_by_role("button", name="forget").click()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 320
        assert await page.evaluate(CONTRAST) == []
        await card(page, "home").get_by_role("button", name="forget").click()
        await expect(card(page, "home").get_by_role("group")).to_have_count(0)

        await forget(page, "home", "Delete")
        await expect(page.locator("#gone")).to_contain_text("Tel Aviv")
        await forget(page, "sister_name", "Destroy")
        await expect(page.locator(".operation").first).to_contain_text("verified gone")
        assert "Quillonda" not in await page.locator("#gone").text_content()
        assert "Quillonda" not in await say(page, "What is my sister called?")
        await expect(card(page, "user_name")).to_contain_text("Pavel")
        page.seen.assert_nothing()


@pytest.mark.parametrize("process", ["a", "any"], indirect=True)
async def test_the_page_says_what_the_level_of_the_telephone_means(browser, process):
    async with visiting(browser, process) as page:
        await page.get_by_role("tab", name="Profile").click()
        phone = page.get_by_role("region", name="On the telephone")
        await expect(phone).to_contain_text(TRUST_MEANS[process.trust])
        await expect(phone.locator("#phone")).to_contain_text("0 telephones")
        await expect(phone.locator("#phone dd")).to_have_text(["0 telephones", process.trust, "none"])
        page.seen.assert_nothing()
