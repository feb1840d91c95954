"""Every view of the page in a real browser: walked through in light and dark, wide and narrow."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from server.browsing import (
    AXE,
    CONTRAST,
    EMBEDDER,
    Process,
    crowded,
    inaccessible,
    photographed,
    press,
    say,
    settled,
    visiting,
)

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

OPERATOR_KEY = "the operator of the console's tests, and no other"
SIZES = {"light": (1440, 900), "dark": (390, 844)}

# What a screen reader would stumble over: a control without a name, an id twice, a picture without a
# description, a heading that skips a level.
UNREADABLE = """
() => {
  const seen = (element) => element.checkVisibility();
  // what is not drawn yet, since nobody looks at it, has no inner text
  const text = (element) => element.checkVisibility({ contentVisibilityAuto: true }) ? element.innerText : element.textContent;
  const name = (element) => element.getAttribute("aria-label") || element.title || text(element)?.trim()
    || document.getElementById(element.getAttribute("aria-labelledby"))?.innerText
    || [...(element.labels ?? [])].map((label) => label.innerText).join("");
  const wrong = [];
  for (const element of document.querySelectorAll("a, button, input, select, summary, [role=img], [role=region], nav"))
    if (seen(element) && !name(element)) wrong.push(`no name: ${element.outerHTML.slice(0, 80)}`);
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push(`twice: ${id}`);
  let before = 1;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4")) {
    if (!seen(heading)) continue;
    const level = Number(heading.tagName[1]);
    if (level > before + 1) wrong.push(`h${before}, then h${level}: ${heading.innerText}`);
    before = level;
  }
  if (document.documentElement.scrollWidth > innerWidth) wrong.push(`wider than the window: ${document.documentElement.scrollWidth}`);
  return wrong;
}
"""


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    running = Process(tmp_path_factory.mktemp("console"), ECHOIC_OPERATOR_KEY=OPERATOR_KEY)
    running.start()
    yield running
    running.stop()


async def go(page, view):
    await page.get_by_role("navigation").get_by_role("link", name=view, exact=True).click()
    await expect(page.get_by_role("heading", name=view, level=2)).to_be_visible()


async def sign_in(page):
    await page.get_by_role("button", name="Sign in").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("textbox", name="Key").fill(OPERATOR_KEY)
    await dialog.get_by_role("button", name="Sign in").click()
    await expect(dialog).not_to_be_visible()


async def look(page, name):
    """What is wrong with a view, in light and wide, and in dark and narrow."""
    wrong = []
    for scheme, (width, height) in SIZES.items():
        await page.set_viewport_size({"width": width, "height": height})
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found = await page.evaluate(UNREADABLE) + await page.evaluate(CONTRAST)
        wrong += [f"{name}, {scheme}: {each}" for each in found]
    await page.set_viewport_size({"width": 1440, "height": 900})
    await photographed(page, name)
    return wrong + await crowded(page, name) + await inaccessible(page, name)


@pytest.mark.skipif(not AXE.exists(), reason="npm has not brought axe-core: scripts/system-packages")
async def test_what_judges_accessibility_finds_what_is_wrong(browser):
    page = await browser.new_page()
    await page.set_content("<html lang=en><title>x</title><main><h1>x</h1><button></button></main>")
    assert any("button-name" in each for each in await inaccessible(page, "a button without a name"))
    await page.set_content("<a href=#a>One</a><a href=#b style='margin-left:-20px'>Two</a>")
    assert await crowded(page, "links") != []
    await page.close()


async def test_every_view_can_be_read_in_light_and_dark_wide_and_narrow(browser, process):
    async with visiting(browser, process) as page:
        await say(page, "I'm Pavel and I live in Tel Aviv")
        await say(page, "Where do I live?")
        await say(page, "When is my flight?")
        sources = await page.locator(".turn .source").all_inner_texts()
        assert re.match(r"From “The user lives in Tel Aviv”, said ", sources[0])
        assert sources[1].startswith("Nothing is known about this")
        wrong = await look(page, "try")

        await go(page, "Calls")
        await expect(page.locator("a.row")).to_have_count(1)
        wrong += await look(page, "calls")
        await page.locator("a.row").click()
        asked = page.locator(".exchange", has_text="Where do I live?")
        await expect(asked.locator(".hit").first).to_contain_text("The user lives in Tel Aviv.")
        await expect(asked.locator(".waterfall li", has_text="recall")).to_be_visible()
        unknown = page.locator(".exchange", has_text="When is my flight?")
        await expect(unknown.locator(".none")).to_contain_text("Nothing is known")
        wrong += await look(page, "call")
        address = page.url
        await page.goto(f"{address}?other={address.rpartition('/')[2]}")
        await expect(page.locator(".beside .exchange")).to_have_count(8)
        wrong += await look(page, "two calls")

        await sign_in(page)
        await go(page, "Health")
        await expect(page.locator(".tile", has_text="Silence").locator(".number")).to_have_text("33 %")
        if EMBEDDER == "lexical":  # not where pictures are taken
            await expect(page.get_by_text("Search is by words and sounds")).to_be_visible()
        wrong += await look(page, "health")
        assert not wrong, "\n".join(wrong)
        page.seen.assert_nothing()
        assert await page.evaluate("violations") == []


async def test_a_place_outlasts_a_reload_and_the_way_back_and_sources_stay_under_their_answers(
    browser, process
):
    async with visiting(browser, process) as page:
        await say(page, "I'm Pavel and I live in Tel Aviv")
        await say(page, "Where do I live?")
        await page.reload()
        await settled(page)
        await expect(page.locator(".turn .source")).to_contain_text("From “The user lives in Tel Aviv”")
        await go(page, "Calls")
        await page.locator("a.row").click()
        await expect(page.locator(".exchange")).to_have_count(3)
        await page.reload()
        await expect(page.locator(".exchange")).to_have_count(3)
        slider = page.get_by_role("slider", name="Place in the call")
        await slider.fill("0")
        await expect(page.locator(".exchange.later")).to_have_count(2)
        await page.go_back()
        await expect(page.locator("a.row")).to_have_count(1)
        await page.go_back()
        await expect(page.locator(".turn.agent").last).to_contain_text("Tel Aviv")


async def test_who_is_no_operator_is_not_offered_health_and_a_wrong_key_is_refused(browser, process):
    async with visiting(browser, process) as page:
        links = page.get_by_role("navigation").get_by_role("link")
        await expect(links.filter(has_text="Health")).to_have_count(0)
        await page.get_by_role("button", name="Sign in").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("textbox", name="Key").fill("no key of this server")
        await dialog.get_by_role("button", name="Sign in").click()
        await expect(dialog.get_by_role("alert")).to_be_visible()
        await dialog.get_by_role("button", name="Cancel").click()
        await sign_in(page)
        await expect(links.filter(has_text="Health")).to_have_count(1)
        await page.get_by_role("button", name="Sign out").click()
        await expect(links.filter(has_text="Health")).to_have_count(0)


READABLE = """async () => JSON.stringify({
  cookie: document.cookie, local: {...localStorage}, session: {...sessionStorage}, address: location.href,
  databases: await indexedDB.databases(), caches: await caches.keys(),
  answers: window.answers,
})"""
"""Whatever a script of the page can read, and the body of each answer it got."""
LISTENING_IN = """
window.answers = [];
const fetched = window.fetch;
window.fetch = async (...asked) => {
  const answer = await fetched(...asked);
  if (answer.headers.get("content-type") === "application/json") window.answers.push(await answer.clone().text());
  return answer;
};
"""


async def test_no_token_and_no_key_is_where_a_script_of_the_page_can_read_it(browser, process):
    async with visiting(browser, process, script=LISTENING_IN) as page:
        await say(page, "I'm Pavel")
        await press(page, "New caller")
        await say(page, "I'm Maya")
        await sign_in(page)
        await go(page, "People")
        await page.get_by_role("link", name="Maya").click()
        await expect(page.locator(".memory-card").first).to_be_visible()
        kept = {cookie["name"]: cookie for cookie in await page.context.cookies()}
        assert sorted(name.split("-")[0] for name in kept if "-" in name) == ["echoic_as", "echoic_key"]
        assert len(kept) == 4, "two callers, a person and a key"
        assert all(cookie["httpOnly"] and cookie["sameSite"] == "Strict" for cookie in kept.values())
        readable = await page.evaluate(READABLE)
        assert "Maya" in readable, "control: what it reads is this page"
        for secret in (*(cookie["value"] for cookie in kept.values()), OPERATOR_KEY, "eyJ"):
            assert secret not in readable
        await page.reload()
        await expect(page.locator(".memory-card").first).to_be_visible()
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        await page.wait_for_function("answers.some((answer) => answer.includes('dropped'))")
        assert not any("key-" in cookie["name"] for cookie in await page.context.cookies())
        page.seen.assert_nothing()


async def test_a_list_of_calls_is_drawn_as_it_is_scrolled_and_keeps_its_filter(browser, process):
    async with visiting(browser, process) as page:
        await page.evaluate(
            "async () => { const {caller} = JSON.parse(localStorage['echoic.callers']).callers.at(-1);"
            " const headers = {'X-Echoic-Caller': caller, 'Content-Type': 'application/json'};"
            " for (let each = 0; each < 6; each++) await Promise.all(Array.from({length: 10}, (_, place) =>"
            "  fetch('/v1/conversations', {method: 'POST', headers, body: JSON.stringify({id: `${each}-${place}`})}))) }"
        )
        await go(page, "Calls")
        await expect(page.locator("a.row").nth(49)).to_be_attached()
        assert await page.locator("a.row").count() < 61
        for _ in range(3):
            await page.locator("a.row").last.scroll_into_view_if_needed()
        await expect(page.locator("a.row")).to_have_count(61)
        await page.get_by_role("combobox", name="Channel").select_option("phone")
        await expect(page.get_by_text("No call matches these filters.")).to_be_visible()
        await page.reload()
        await expect(page.get_by_role("combobox", name="Channel")).to_have_value("phone")
        await expect(page.get_by_text("No call matches these filters.")).to_be_visible()
