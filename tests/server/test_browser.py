"""The page in a real browser, in front of a real server process, as a caller sees it."""

from __future__ import annotations

import json
import os
import re

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import expect

from server.browsing import (
    IMAGES,
    OnePage,
    Process,
    at_rest,
    card,
    low_contrast,
    press,
    say,
    settled,
    token_of,
    visiting,
)
from server.scripted_model import ScriptedModel, Spoken

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

# Anything of these that became an element instead of text would run, load, or be seen.
PAYLOADS = [
    "<script>window.pwned = 1</script>",
    "<img src=x onerror=window.pwned=1>",
    "<svg onload=window.pwned=1>",
    "<svg><script>window.pwned=1</script></svg>",
    "</p></li><h1 onmouseover=window.pwned=1>big</h1>",
    '"><script src=//evil.example/x.js></script>',
    "' onfocus=window.pwned=1 autofocus='",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<a href=javascript:window.pwned=1>click</a>",
    "[click](javascript:window.pwned=1)",
    "![x](https://evil.example/leak.png)",
    "<style>*{display:none}</style>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=pwned=1&gt;'>",
    "<details open ontoggle=window.pwned=1>x</details>",
    "<base href=https://evil.example/>",
    "<form action=https://evil.example/><input name=q><button>go</button></form>",
    "${window.pwned=1}{{constructor.constructor('window.pwned=1')()}}",
    "\u202e\u2066<script>window.pwned=1</script>\u2069",
    "&lt;script&gt;window.pwned=1&lt;/script&gt;",
    "\x1b[2J\x1b]0;owned\x07",
]


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    running = Process(tmp_path_factory.mktemp("browser"))
    running.start()
    yield running
    running.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def one_page(browser, process):
    page = OnePage(browser, process)
    yield page
    await page.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(one_page, request):
    async with one_page.lent(request) as page:
        yield page


@pytest_asyncio.fixture(loop_scope="session")
async def new_page(browser, process):
    async with visiting(browser, process) as page:
        yield page
        assert await page.evaluate("window.violations") == []
        page.seen.assert_nothing()


async def test_a_caller_comes_back_tomorrow_to_another_process_and_is_known(page, process):
    await expect(page.get_by_text("Nothing is known about this caller yet.")).to_be_visible()
    await say(page, "I'm Pavel, I live in Tel Aviv")
    await expect(card(page, "user_name")).to_contain_text("Pavel")
    await expect(card(page, "home")).to_contain_text("Tel Aviv")
    await expect(card(page, "home")).to_contain_text("private")
    await expect(page.locator(".step .name", has_text="append").first).to_be_visible()

    assert await press(page, "Come back tomorrow") == "Welcome back, Pavel."
    await expect(page.locator(".divider").last).to_have_text("The next day")
    process.stop(killed=True)
    process.start()

    assert "Tel Aviv" in await say(page, "where do I live?")
    table = page.locator(".operation").first.locator("table.hits")
    columns = await table.locator("thead th").all_inner_texts()
    assert columns[0] == "found"
    assert columns[-1] == "score"
    assert {"vector", "text"} <= set(columns)
    await expect(table.locator("tr.memory").first).to_contain_text("Tel Aviv")
    assert re.search(r"#\d+\s+-?\d", await table.locator("tr.memory td").first.inner_text())
    await expect(page.locator(".operation").first.locator(".outcome")).to_have_text("complete")
    assert all(
        re.fullmatch(r"[\d.]+ ms", time) for time in await page.locator(".title .ms").all_inner_texts()
    )


async def test_a_page_that_is_loaded_again_goes_on_with_its_conversation(page):
    await say(page, "I'm Pavel and I live in Tel Aviv")
    place = await page.evaluate("location.hash")
    await page.reload()
    await expect(page.locator(".turn.user .words")).to_have_text(["I'm Pavel and I live in Tel Aviv"])
    await say(page, "Where do I live?")
    assert await page.evaluate("location.hash") == place
    await expect(page.locator(".turn.agent")).to_have_count(3)  # one greeting: it is the same conversation


async def test_nothing_known_is_shown_as_an_answer_and_not_as_hits(page):
    await say(page, "I'm Pavel, I live in Tel Aviv")
    assert (await say(page, "When is my flight?")).startswith("I don't know that.")
    operation = page.locator(".operation").first
    await expect(operation.locator("[data-outcome=complete]")).to_contain_text("Nothing is known about this.")
    await expect(operation.locator("table.hits")).to_have_count(0)


async def test_a_new_caller_knows_nothing_and_the_old_one_is_still_there(page):
    await say(page, "I'm Pavel and I live in Tel Aviv")
    greeting = await press(page, "New caller")
    assert "Pavel" not in greeting
    await expect(page.locator(".card")).to_have_count(0)
    assert "Tel Aviv" not in await say(page, "Where do I live?")
    assert "Pavel" not in await say(page, "What do you know about me?")

    callers = page.get_by_role("combobox", name="Caller")
    await callers.select_option(label="Pavel")
    assert await settled(page) == "Welcome back, Pavel."
    assert "Tel Aviv" in await say(page, "Where do I live?")


async def test_a_correction_strikes_the_old_value_through_and_keeps_it_as_history(page):
    await say(page, "I live in Tel Aviv")
    await say(page, "Actually I moved to Lisbon")
    home = card(page, "home")
    await expect(home.locator(".value")).to_have_text("Lisbon")
    await expect(home.locator("s.was")).to_have_text("Tel Aviv")
    await expect(page.locator(".operation").first).to_contain_text("supersede")
    await expect(page.locator(".operation").first).to_contain_text("Tel Aviv → Lisbon")
    history = home.get_by_role("button", name="history")
    await history.click()
    await expect(history).to_have_attribute("aria-expanded", "true")
    await expect(home.locator(".history li")).to_have_count(2)
    await expect(home.locator(".history li").first).to_contain_text("corrected")
    await history.click()
    await expect(home.locator(".history")).to_have_count(0)


async def test_what_is_for_everyone_is_shown_as_proposed(page):
    await page.get_by_role("button", name="We're open nine to five").click()
    await settled(page)
    await expect(card(page, "opening hours").locator(".tag.proposed")).to_have_text("proposed")


async def test_forgetting_asks_first_shows_the_receipt_and_leaves_nothing(page):
    await say(page, "I'm Pavel and I live in Tel Aviv")
    await page.get_by_role("button", name="Forget me").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Keep it").click()
    await expect(dialog).not_to_be_visible()
    await expect(page.locator(".card")).to_have_count(2)

    await page.get_by_role("button", name="Forget me").click()
    await dialog.get_by_role("button", name="Forget me").click()
    await expect(dialog.get_by_role("heading", name="Forgotten")).to_be_visible()
    await expect(dialog).to_contain_text("Verified")
    destroyed = await dialog.get_by_role("listitem").all_inner_texts()
    # three sentences: the greeting, what was said, and the answer
    assert {"2 memories", "3 sentences"} <= set(destroyed)
    await expect(dialog.get_by_role("button", name="Start over")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.locator(".divider").last).to_have_text("Forgotten")
    assert "know nothing" in await settled(page)
    await expect(page.locator(".card")).to_have_count(0)
    assert "Tel Aviv" not in await say(page, "Where do I live?")


async def test_forgetting_by_voice_goes_on_with_a_new_conversation(page):
    await say(page, "I live in Tel Aviv")
    await say(page, "Forget everything about me")
    assert "Erased" in await say(page, "yes")
    await expect(page.locator(".card")).to_have_count(0)
    await say(page, "I live in Lisbon")
    await expect(card(page, "home")).to_contain_text("Lisbon")


async def no_markup(page):
    """Every element is one that the page makes itself."""
    names = await page.evaluate(
        "[...document.querySelectorAll('#transcript *, #memories *, #gone *, #block *, #operations *, #caller *')]"
        ".map((element) => element.tagName)"
    )
    made = "LI P SPAN DIV S B OL UL TIME BUTTON DETAILS SUMMARY PRE TABLE THEAD TBODY TR TH TD OPTION"
    assert set(names) <= set(made.split())
    assert "PRE" in names, "the block was shown"
    assert await page.evaluate("window.pwned") is None


async def test_what_was_said_is_never_read_as_html(page, process):
    # several at a time, and before there are memories: all of them are drawn with each answer
    for number in range(4):
        await say(page, " ".join(PAYLOADS[number::4]))
    shown = " ".join(await page.locator(".turn.user .words").all_text_contents())
    assert [payload for payload in PAYLOADS if payload.isprintable() and payload not in shown] == []
    await no_markup(page)

    headers = {"Authorization": f"Bearer {await token_of(page)}"}
    body = {"operation": "set", "deploymentId": "default", "userCookie": await token_of(page)}
    async with httpx.AsyncClient(base_url=process.url, verify=False) as client:
        for number, payload in enumerate(PAYLOADS):
            for key, value in ((f"payload {number}", payload), (payload, "as a key")):
                answer = await client.post("/api/memory", json={**body, "key": key, "value": value})
                assert answer.status_code == 200
        await client.post("/api/memory", json={**body, "key": "payload 0", "value": PAYLOADS[1]})
        await client.post("/api/memory", json={**body, "key": "user_name", "value": PAYLOADS[1]})
        assert (
            len((await client.get("/api/memories", headers=headers)).json()["memories"])
            == 2 * len(PAYLOADS) + 1
        )
    await page.reload()
    await expect(page.locator(".card")).to_have_count(2 * len(PAYLOADS) + 1)
    await page.locator(".card .link").first.click()
    await expect(page.locator(".history li")).to_have_count(2)
    values = await page.locator(".card .value").all_text_contents()
    for number, payload in enumerate(PAYLOADS[1:], 1):
        assert await card(page, f"payload {number}").locator(".value").text_content() == payload
        assert payload in values
    for payload in PAYLOADS[:3]:
        await say(page, f"What is {payload}?")
    found = await page.locator(".operation table.hits").all_text_contents()
    assert any(payload in table for payload in PAYLOADS for table in found)
    await no_markup(page)


async def test_a_server_that_is_gone_is_told_and_nothing_typed_is_lost(page, process):
    await say(page, "I'm Pavel")
    process.stop()
    field = page.get_by_role("textbox", name="Say something")
    await field.fill("I live in Tel Aviv")
    await field.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    await expect(field).to_have_value("I live in Tel Aviv")
    await expect(page.locator(".turn.user").last).to_contain_text("not answered")
    process.start()
    await field.press("Enter")
    await expect(card(page, "home")).to_contain_text("Tel Aviv")
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_an_identity_the_server_does_not_know_is_told_and_can_be_replaced(browser, process):
    async with visiting(browser, process) as page:
        await page.evaluate(
            "localStorage.setItem('echoic.callers',"
            " JSON.stringify({callers: [{user: 'a', caller: 'b', name: ''}]}))"
        )
        await page.reload()
        await expect(page.get_by_role("alert")).to_contain_text("New caller")
        await press(page, "New caller")
        await expect(page.locator(".turn.agent")).to_have_count(1)
        await expect(page.get_by_role("alert")).to_have_count(0)


async def test_whoever_else_this_browser_knows_outlasts_an_identity_that_was_refused(browser, process):
    """Their tokens are the only way to their memories."""
    async with visiting(browser, process) as page:
        await say(page, "I'm Pavel")
        await page.evaluate(
            "const known = JSON.parse(localStorage.getItem('echoic.callers'));"
            "known.callers.push({user: 'a', caller: 'b', name: ''});"
            "localStorage.setItem('echoic.callers', JSON.stringify({...known, current: 'a'}))"
        )
        await page.reload()
        alert = page.get_by_role("alert")
        await expect(alert).to_contain_text("New caller")
        for text in ("Hello?", "Is anybody there?"):
            field = page.get_by_role("textbox", name="Say something")
            await field.fill(text)
            await field.press("Enter")
            await expect(page.locator(".turn.user").last).to_contain_text(text)
            await expect(alert).to_contain_text("New caller")
        await page.get_by_role("combobox", name="Caller").select_option(label="Pavel")
        await expect(page.locator(".turn.agent").last).to_contain_text("Welcome back, Pavel.")


async def test_a_failure_while_callers_are_switched_drops_none_of_them(browser, process):
    async with visiting(browser, process) as page:
        await say(page, "I'm Pavel")
        await press(page, "New caller")
        await say(page, "I'm Maya")
        await page.get_by_role("link", name="Calls").click()
        await expect(page.get_by_role("heading", name="Calls")).to_be_visible()
        failures = [503, 503]

        async def fail(route):
            if not failures:
                return await route.continue_()
            return await route.fulfill(
                status=failures.pop(), json={"error": "the store is away", "code": "away"}
            )

        await page.route("**/api/cookies", fail)
        await callers_of(page).select_option(label="Pavel")
        await expect(page.get_by_text("The store is away.")).to_be_visible()
        assert sorted(await callers_of(page).locator("option").all_inner_texts()) == ["Maya", "Pavel"]
        await page.get_by_role("button", name="Try again").click()
        await expect(page.get_by_role("heading", name="Calls")).to_be_visible()
        await page.get_by_role("link", name="Try it").click()
        await expect(page.locator(".turn .words")).to_have_text(["Welcome back, Pavel."])
        assert "Pavel" in await say(page, "What is my name?")
        page.seen.console.clear()  # the browser logs the failures


async def test_who_is_chosen_in_another_view_finds_nothing_of_whoever_spoke_before(page):
    await say(page, "I'm Pavel")
    await press(page, "New caller")
    await say(page, "I'm Maya")
    await page.get_by_role("link", name="Calls").click()
    await callers_of(page).select_option(label="Pavel")
    await expect(callers_of(page).locator("option:checked")).to_have_text("Pavel")
    await page.get_by_role("link", name="Try it").click()
    await expect(page.locator(".turn .words")).to_have_text(["Welcome back, Pavel."])
    await expect(card(page, "user_name")).to_contain_text("Pavel")
    assert "Pavel" in await say(page, "What is my name?")


async def test_a_conversation_goes_on_after_one_thing_was_erased_from_it(page):
    await say(page, "I parked on level three.")
    before = await page.evaluate("location.hash")
    await say(page, "Forget where I parked.")
    await say(page, "Yes.")
    await expect(page.locator(".operation").first).to_contain_text("verified gone")
    assert await page.evaluate("location.hash") == before


async def test_two_pages_of_one_browser_lose_nobody_one_of_them_meets_and_bring_back_nobody_it_lets_go(
    browser, process
):
    async with visiting(browser, process) as page:
        other = await page.context.new_page()
        await other.goto(process.url)
        await expect(other.locator(".turn.agent")).to_have_count(1)
        await say(page, "I'm Pavel")
        await press(page, "New caller")
        await press(other, "New caller")  # takes in the other page's, who has no name yet
        await say(page, "I'm Maya")
        await expect(callers_of(page).locator("option", has_text="Maya")).to_have_count(1)
        await say(other, "I'm Olga")
        await expect(callers_of(other).locator("option", has_text="Olga")).to_have_count(1)
        await other.reload()
        await expect(other.locator(".turn.agent")).to_have_count(2)
        assert sorted(await callers_of(other).locator("option").all_inner_texts()) == [
            "Maya",
            "Olga",
            "Pavel",
        ]

        await page.evaluate(
            "const known = JSON.parse(localStorage.getItem('echoic.callers'));"
            "known.callers = known.callers.filter((one) => one.name !== 'Pavel');"
            "localStorage.setItem('echoic.callers', JSON.stringify(known))"
        )
        await press(other, "New caller")
        await say(other, "I'm Nora")
        await expect(callers_of(other).locator("option", has_text="Nora")).to_have_count(1)
        left = await callers_of(other).locator("option").all_inner_texts()
        assert sorted(left) == ["Maya", "Nora", "Olga"]


async def test_a_page_goes_on_with_the_token_that_another_page_of_its_browser_renewed(browser, process):
    async with visiting(browser, process) as page:
        first = await token_of(page)
        other = await page.context.new_page()
        await other.goto(process.url)
        await expect(other.locator(".turn.agent")).to_have_count(1)
        assert (await token_of(page)) != first
        async with page.expect_request("**/api/chat**") as asked:
            await say(page, "I'm Pavel")
        headers = await (await asked.value).all_headers()
        assert await token_of(page) in headers["cookie"]
        assert first not in headers["cookie"]


def callers_of(page):
    return page.get_by_role("combobox", name="Caller")


async def test_a_browser_that_keeps_nothing_can_talk_all_the_same(browser, process):
    script = "Storage.prototype.setItem = () => { throw new DOMException('no room', 'QuotaExceededError') }"
    async with visiting(browser, process, script=script) as page:
        await say(page, "I'm Pavel")
        assert await press(page, "Come back tomorrow") == "Welcome back, Pavel."
        page.seen.assert_nothing()


async def test_asking_twice_to_be_forgotten_leaves_the_receipt_as_it_was(page):
    await say(page, "I'm Pavel and I live in Tel Aviv")
    await page.get_by_role("button", name="Forget me").click()
    await page.evaluate("for (const _ of [1, 2]) document.getElementById('erase').click()")
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("heading", name="Forgotten")).to_be_visible()
    await settled(page)
    assert (await dialog.get_by_role("listitem").all_inner_texts())[0] == "2 memories"
    await dialog.get_by_role("button", name="Start over").click()


async def test_the_page_is_used_with_the_keyboard_alone(new_page):
    page = new_page
    await expect(page.get_by_role("textbox", name="Say something")).to_be_focused()
    await page.keyboard.type("I'm Pavel")
    await page.keyboard.press("Enter")
    await expect(card(page, "user_name")).to_contain_text("Pavel")
    await at_rest(page)  # then the field has the focus again, which would else be moved between the keys
    await expect(page.get_by_role("textbox", name="Say something")).to_be_focused()
    reached = []
    for _ in range(40):
        await page.keyboard.press("Tab")
        reached.append(await page.evaluate("document.activeElement.id || document.activeElement.className"))
    tabs = {"tab-memories", "panel-memories"}
    assert tabs | {"caller", "tomorrow", "new-caller", "forget", "stage", "suggestion", "send"} <= set(
        reached
    )
    log = page.get_by_role("log")
    await expect(log).to_have_attribute("aria-live", "polite")
    for role in ("banner", "main", "complementary"):
        await expect(page.get_by_role(role)).to_have_count(1)


async def test_the_tabs_are_gone_through_with_the_arrows(page):
    await say(page, "I'm Pavel and I live in Tel Aviv")
    await page.get_by_role("tab", name="Memories").focus()
    for key, name in (
        ("ArrowRight", "Profile"),
        ("ArrowRight", "Block"),
        ("End", "Jobs"),
        ("ArrowRight", "Memories"),
    ):
        await page.keyboard.press(key)
        tab = page.get_by_role("tab", name=name)
        await expect(tab).to_be_focused()
        await expect(tab).to_have_attribute("aria-selected", "true")
        await expect(page.get_by_role("tabpanel")).to_have_count(1)
        await expect(page.get_by_role("tabpanel", name=name)).to_be_visible()


async def test_the_profile_and_the_block_with_its_tokens_follow_what_is_said(page):
    await page.get_by_role("tab", name="Profile").click()
    await expect(page.get_by_text("The profile is a view")).to_be_visible()
    await say(page, "I'm Pavel and I live in Tel Aviv")
    facts = page.locator("#profile")
    await expect(facts).to_contain_text("Pavel")
    await expect(facts).to_contain_text("Tel Aviv")
    await page.get_by_role("tab", name="Block").click()
    shown = page.locator("[data-section=profile] .text")
    await expect(shown).to_contain_text('home: "Tel Aviv"')
    # read at once: it is drawn anew with whatever is learned
    counted, shortly, measured = await page.evaluate(
        "['block-tokens', 'tokens', 'block-meter'].map((id) => document.getElementById(id))"
        ".map((element) => element.value ?? element.innerText)"
    )
    tokens, budget = map(int, re.fullmatch(r"(\d+) of (\d+) tokens", counted).groups())
    assert 0 < tokens < budget
    assert shortly == str(tokens)
    assert measured == tokens
    await page.locator("[data-section=profile] summary").click()
    await say(page, "Actually I moved to Lisbon")
    await expect(page.locator("#undone")).to_have_text("")  # what waited for the rules was read
    await expect(shown).to_contain_text("Lisbon")
    await expect(shown).not_to_be_visible()  # what was folded stays folded


async def test_what_was_taken_back_is_listed_struck_through(page):
    await say(page, "I live in Tel Aviv")
    await say(page, "I don't live in Tel Aviv anymore")
    gone = page.locator("#gone")
    await gone.locator("summary").click()
    await expect(gone.locator("s")).to_have_text("Tel Aviv")
    await expect(gone).to_contain_text("deleted")
    await expect(page.locator(".card")).to_have_count(0)


async def test_what_another_conversation_teaches_appears_while_one_looks_on(page, process):
    await expect(page.locator("#listening")).to_be_visible()
    headers = {"Authorization": f"Bearer {await token_of(page)}"}
    async with httpx.AsyncClient(
        base_url=process.url, verify=False, headers=headers, timeout=30
    ) as elsewhere:
        await elsewhere.post("/api/chat", json={"text": "I live in Haifa."})
        await expect(card(page, "home")).to_contain_text("Haifa")
        await elsewhere.post("/api/chat", json={"text": "Actually I moved to Jaffa."})
        await expect(card(page, "home").locator("s.was")).to_have_text("Haifa")
        await elsewhere.post("/api/forget", json={"everything": True})
        await expect(page.locator(".card")).to_have_count(0)


@pytest_asyncio.fixture(loop_scope="session")
async def pieces(start):
    """A server whose embedder hands out its word pieces."""
    async with start(embedder="local") as running:
        yield running


async def test_the_channel_that_compares_word_pieces_is_shown_beside_the_others(browser, pieces):
    async with visiting(browser, pieces) as page:
        await say(page, "My brother mends violins and cellos.")
        assert await pieces.memory.settle(60)  # vectors are computed after the answer
        await say(page, "What does my brother repair?")
        table = page.locator(".operation").first.locator("table.hits")
        await expect(table).to_be_visible()
        columns = await table.locator("thead th").all_inner_texts()
        assert columns[:3] == ["found", "vector", "late"]
        late = columns.index("late")
        first = table.locator("tbody tr").first
        assert re.fullmatch(
            r"#\d+\s+-?\d+(\.\d+)?", (await first.locator("th, td").nth(late).inner_text()).strip()
        )
        assert "word piece" in await table.locator("thead th").nth(late).get_attribute("title")
        page.seen.assert_nothing()


class Model:
    """A model on this machine, and a server that talks and learns with it."""

    def __init__(self, directory):
        self.script = ScriptedModel(learns=lambda _request: {"read_up_to": "t1", "changes": []})
        self.script.start()
        words = ("--model", "openai-chat:scripted")
        self.process = Process(
            directory,
            *words,
            OPENAI_BASE_URL=self.script.url,
            OPENAI_API_KEY="none",
            ECHOIC_EMBEDDER="lexical",
        )
        self.process.start()

    @property
    def url(self):
        return self.process.url

    def stop(self):
        self.process.stop()
        self.script.stop()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    running = Model(tmp_path_factory.mktemp("model"))
    yield running
    running.stop()


async def test_a_models_answer_appears_as_it_comes_and_what_it_learns_afterwards(browser, model):
    def learns(request):
        asked = json.dumps(request["messages"])
        if "read_up_to" not in json.dumps(request["tools"]) or "accordion" not in asked:
            return {"read_up_to": "t1", "changes": []}
        fact = {"action": "add", "sentence": "The user plays the accordion.", "category": "preference"}
        return {"read_up_to": "t2", "changes": [{**fact, "turns": ["t2"]}]}

    def says(request):
        said = next(m["content"] for m in reversed(request["messages"]) if m["role"] == "user")
        if "axolotl" in said and not any(m["role"] == "tool" for m in request["messages"]):
            return Spoken(calls=(("agentMemory", {"operation": "set", "key": "pet", "value": "an axolotl"}),))
        return Spoken(words=("How ", "lovely, ", "an ", "instrument."), pause_s=0.3)

    model.script.learns, model.script.says = learns, says
    async with visiting(browser, model) as page:
        await expect(page.locator("#fine")).to_contain_text("scripted")
        field = page.get_by_role("textbox", name="Say something")
        await field.fill("On Thursdays it is accordion practice with me.")
        await field.press("Enter")
        await expect(page.locator(".turn.coming .words")).to_contain_text("How lovely")
        await expect(page.locator(".turn.agent .words").last).to_have_text("How lovely, an instrument.")
        await settled(page)
        await expect(page.locator(".operation").first).to_contain_text("first words")
        await say(page, "Remember my axolotl, please.")
        await expect(card(page, "pet")).to_contain_text("an axolotl")
        await press(page, "Come back tomorrow")
        await expect(page.locator(".card", has_text="The user plays the accordion.")).to_be_visible()
        await expect(page.locator(".operation", has_text="Learned after the conversation")).to_be_visible()
        page.seen.assert_nothing()


async def test_a_model_that_fails_is_told_and_its_trouble_stands_among_the_jobs(browser, model):
    model.script.says = lambda _request: Spoken(status=500)
    model.script.learns = lambda _request: None
    async with visiting(browser, model) as page:
        field = page.get_by_role("textbox", name="Say something")
        await field.fill("On Thursdays it is accordion practice with me.")
        await field.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("gave no answer")
        await expect(field).to_have_value("On Thursdays it is accordion practice with me.")
        await page.get_by_role("tab", name="Jobs").click()
        await press(page, "Come back tomorrow")
        await expect(page.locator("[data-job=failing] .number")).to_have_text("1")
        await expect(page.locator("#undone")).not_to_have_text("")


async def test_every_text_can_be_read_in_light_and_in_dark(page):
    await tell_the_story(page)
    wrong = await low_contrast(page, "the story")
    for name in ("Profile", "Block", "Jobs"):
        await page.get_by_role("tab", name=name).click()
        wrong += await low_contrast(page, name)
    await page.get_by_role("button", name="Forget me").click()
    wrong += await low_contrast(page, "what may be forgotten")
    await page.get_by_role("dialog").get_by_role("button", name="Keep it").click()
    assert wrong == []


async def test_nothing_is_cut_off_at_any_width(page):
    await say(page, "I'm Pavel and I live in Tel Aviv")
    await say(page, "Where do I live?")
    for width in (320, 390, 768, 1024, 1920):
        await page.set_viewport_size({"width": width, "height": 800})
        for name in ("Memories", "Profile", "Block", "Jobs"):
            await page.get_by_role("tab", name=name).click()
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
        for name in ("Come back tomorrow", "New caller", "Forget me", "Say"):
            box = await page.get_by_role("button", name=name, exact=True).bounding_box()
            assert box["x"] >= 0, (name, width)
            assert box["x"] + box["width"] <= width, (name, width)


async def tell_the_story(page):
    """What the picture in the README shows."""
    await say(page, "I'm Pavel and I live in Tel Aviv")
    await say(page, "Actually I moved to Lisbon")
    await say(page, "We're open nine to five")
    assert await press(page, "Come back tomorrow") == "Welcome back, Pavel."
    return await say(page, "Where do I live?")


@pytest.mark.parametrize(("scheme", "name"), [("light", "page.png"), ("dark", "page-dark.png")])
async def test_the_picture_in_the_readme_is_of_this_page(browser, process, scheme, name):
    picture = IMAGES / name
    if picture.exists() and os.environ.get("ECHOIC_SCREENSHOTS") != "1":
        head = picture.read_bytes()[:24]
        assert (int.from_bytes(head[16:20]), int.from_bytes(head[20:24])) == (1280, 800)
        return
    async with visiting(browser, process, color_scheme=scheme, reduced_motion="reduce") as page:
        assert "Lisbon" in await tell_the_story(page)
        await expect(page.locator(".card")).to_have_count(3)
        await expect(page.locator("#undone")).to_have_text("")
        await expect(page.locator("#listening")).to_be_visible()
        await page.mouse.move(5, 400)
        picture.parent.mkdir(parents=True, exist_ok=True)
        await page.screenshot(path=picture)
        page.seen.assert_nothing()
