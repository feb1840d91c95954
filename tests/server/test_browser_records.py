"""People and Shared in a real browser: what an operator reads, changes, destroys and decides there."""

from __future__ import annotations

import json

import pytest
import pytest_asyncio
from playwright.async_api import expect

import echoic
from echoic.types import Turn
from server.browsing import (
    crowded,
    inaccessible,
    low_contrast,
    photographed,
    say,
    signed_in,
    token_of,
    visiting,
)
from server.conftest import OPERATOR_KEY, serving, settings_of

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

WIDTHS = (390, 1440)
HOSTILE = "<img src=x onerror=window.pwned=1>"


@pytest_asyncio.fixture(loop_scope="session")
async def running(start):
    async with start() as server:
        yield server


async def looks_right(page, name):
    """Nothing wider than the window, every text readable, in light and dark."""
    assert await low_contrast(page, name) == []
    assert await crowded(page, name) + await inaccessible(page, name) == []
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 900})
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, (name, width, wide)
    await photographed(page, name)
    await page.set_viewport_size({"width": 1280, "height": 800})


async def clean(page):
    assert await page.evaluate("window.violations") == []
    assert await page.evaluate("window.pwned") is None
    page.seen.assert_nothing()


async def planted(server):
    """Somebody with a past: corrections, a doubt, a condition, and more than one page of memories."""
    pavel = server.memory.user("pavel-48213")
    for number in range(70):
        await pavel.set(f"detail_{number:02}", f"value {number}", visibility="private")
    await pavel.set("user_name", "Pavel")
    call = await pavel.conversation("call-1")
    await call.append(
        Turn(speaker="user", text="I live in Tel Aviv.", confidence=0.93),
        Turn(speaker="agent", text="Noted."),
        Turn(speaker="user", text="Actually I moved to Lisbon."),
        Turn(speaker="user", text="My sister is called Quillonda."),
    )
    await call.complete()
    assert await server.memory.settle()
    await pavel.set("drink", "black tea", context="at work", category="preference", visibility="private")
    await pavel.remember(HOSTILE)
    await server.memory.user("someone else").set("user_name", "Maya")
    return pavel


def card(page, key):
    return page.locator(f".memory-card[data-key='{key}']")


async def test_an_operator_reads_a_memorys_life_and_sentences_edits_deletes_and_forgets_it(browser, running):
    pavel = await planted(running)
    async with visiting(browser, running, **await signed_in(running, OPERATOR_KEY), at="#/people") as page:
        await expect(page.locator(".everyone li")).to_have_count(2)
        await page.get_by_role("link", name="Pavel").click()
        await expect(page.get_by_role("heading", name="Pavel")).to_be_visible()
        await expect(page.get_by_text(HOSTILE)).to_be_visible()
        await expect(card(page, "drink")).to_contain_text("when: at work")

        home = card(page, "home")
        await home.get_by_role("button", name="Where from").click()
        await expect(home.locator(".life li")).to_have_count(2)
        await expect(home.locator(".life s")).to_have_text("Tel Aviv")
        await expect(home.locator(".sentences")).to_contain_text("Actually I moved to Lisbon.")
        await expect(home.locator(".sentences")).to_contain_text("heard 93 % surely")
        link = await home.get_by_role("link", name="Open the call").first.get_attribute("href")
        assert link.startswith("#/calls/call-1?user=pavel-48213&turn=")
        await looks_right(page, "people")
        await page.reload()
        await expect(home.locator(".life li")).to_have_count(2)

        await page.locator(".more").scroll_into_view_if_needed()
        await expect(card(page, "detail_00")).to_have_count(1)

        await home.get_by_role("button", name="Edit").click()
        await home.get_by_label("What is known").fill("Porto")
        await home.get_by_role("button", name="Save").click()
        await expect(card(page, "home").locator(".value")).to_have_text("Porto")
        await card(page, "drink").get_by_role("button", name="Forget").click()
        await card(page, "drink").get_by_role("button", name="Delete").click()
        await expect(card(page, "drink")).to_have_count(0)
        await expect(page.get_by_role("status")).to_contain_text("nothing recalls it")
        await expect(page.get_by_role("heading", name="Pavel")).to_be_focused()

        await card(page, "sister_name").get_by_role("button", name="Forget").click()
        await card(page, "sister_name").get_by_role("button", name="Destroy").click()
        receipt = page.get_by_role("dialog")
        await expect(receipt).to_contain_text("Verified")
        await expect(receipt).to_contain_text("1 memory")
        await expect(receipt).to_contain_text("in place of the words that said it")
        await looks_right(page, "receipt")
        await receipt.get_by_role("button", name="Done").click()
        assert "Quillonda" not in json.dumps(await pavel.export())

        await page.get_by_role("radio", name="Never").check()
        await expect(page.get_by_role("status")).to_contain_text("Consent changed")
        assert await pavel.consent() == "never"
        await page.get_by_role("link", name="No longer current").click()
        await expect(card(page, "drink").locator("s")).to_have_text("black tea")
        assert {m.text for m in await pavel.past()} >= {"Tel Aviv", "Lisbon", "black tea"}

        await page.get_by_role("button", name="Forget…").click()
        await page.get_by_role("button", name="Forget", exact=True).click()
        await expect(page.get_by_role("dialog")).to_contain_text("Destroyed")
        assert await pavel.facts() == []
        await clean(page)


async def test_a_caller_sees_themselves_alone_and_no_more_than_their_level_is_told(browser, tmp_path):
    memory = echoic.open(f"sqlite:///{tmp_path}/e.db", embedder="lexical", assurance="device=personal")
    async with serving(memory, settings_of()) as server, visiting(browser, server) as page:
        await memory.user("someone else").set("user_name", "Maya")
        await say(page, "I'm Pavel")
        token = await token_of(page)
        user = (await server.client.get("/api/access", headers={"Authorization": f"Bearer {token}"})).json()[
            "user"
        ]
        await memory.user(user).set("condition", "diabetes")
        await page.get_by_role("link", name="People").click()
        await expect(page.get_by_role("heading", name="Pavel")).to_be_visible()
        await expect(page.locator(".memory-card")).to_have_count(1)
        assert "diabetes" not in await page.content()
        assert "Maya" not in await page.content()
        await expect(page.locator("tr.here")).to_contain_text("what is personal")
        for name in ("Import…", "Shared", "← People"):
            await expect(page.get_by_text(name, exact=True)).to_have_count(0)
        await page.get_by_role("button", name="Export").click()
        await expect(page.get_by_role("alert")).to_contain_text("needs a proof")
        await card(page, "user_name").get_by_role("button", name="Forget").click()
        await card(page, "user_name").get_by_role("button", name="Destroy").click()
        await expect(page.get_by_role("dialog")).to_contain_text("Verified")
        assert (await memory.user(user).get("condition")).text == "diabetes"
        page.seen.console.clear()  # the browser logs the refused export
        await clean(page)


async def test_an_operator_approves_rejects_writes_edits_and_withdraws_what_everyone_is_told(
    browser, running, tmp_path
):
    await running.memory.user("ana").set("opening_hours", "The store is open from 9 to 17.")
    await running.memory.user("bo").set("parking", "The store has parking for customers.")
    await running.memory.global_facts().set("note", HOSTILE)
    file = tmp_path / "facts.md"
    file.write_text(
        "---\nowner: Olga\n---\n# Facts\n<!-- not for callers:\n- the margin is 40 %\n-->\n<!-- nor this --> Dogs are welcome.\n"
        '- We ship worldwide\n  in 3 to 5 days.\n{"key": "phone", "text": "Ring twice."}\n{bad\n'
    )
    async with visiting(
        browser, running, **await signed_in(running, OPERATOR_KEY), at="#/shared/proposals"
    ) as page:
        await expect(page.locator(".memory-card")).to_have_count(2)
        await page.get_by_label("Decided by").fill("olga")
        await page.get_by_role("button", name="Approve: opening hours").click()
        await expect(page.get_by_role("status")).to_contain_text("Approved")
        await page.get_by_role("button", name="Reject: parking").click()
        await expect(page.get_by_text("Nothing waits for a decision.")).to_be_visible()

        await page.get_by_role("link", name="Facts").click()
        await expect(page.get_by_text(HOSTILE)).to_be_visible()
        await page.get_by_label("Fill from a file").set_input_files(file)
        await expect(page.get_by_role("region", name="Facts in the file")).to_contain_text(
            "We ship worldwide in 3 to 5 days."
        )
        await expect(page.get_by_text("Line 12: it is not JSON.")).to_be_visible()
        await page.get_by_role("button", name="Write 3 facts").click()
        await expect(page.get_by_role("status")).to_contain_text("3 new")
        await card(page, "phone").get_by_role("button", name="Edit").click()
        await card(page, "phone").get_by_label("What every caller is told").fill("Ring three times.")
        await card(page, "phone").get_by_role("button", name="Save").click()
        await expect(card(page, "phone").locator(".value")).to_have_text("Ring three times.")
        note = page.locator(".memory-card", has_text="We ship worldwide")
        await note.get_by_role("button", name="Edit").click()
        await note.get_by_label("Key").fill("shipping")
        await note.get_by_role("button", name="Save").click()
        await expect(card(page, "shipping")).to_have_count(1)
        await expect(note).to_have_count(1)
        await looks_right(page, "shared")
        await card(page, "opening_hours").get_by_role("button", name="Withdraw").click()
        await card(page, "opening_hours").get_by_role("button", name="Withdraw").last.click()
        await expect(card(page, "opening_hours")).to_have_count(0)
        known = {memory.text for memory in await running.memory.global_facts().list()}
        assert known == {
            HOSTILE,
            "Ring three times.",
            "We ship worldwide in 3 to 5 days.",
            "Dogs are welcome.",
        }

        await page.get_by_role("link", name="History").click()
        await expect(page.locator(".decision").first).to_contain_text("withdrawn")
        await expect(page.locator(".decision").first).to_contain_text("olga")
        await looks_right(page, "decisions")
        await clean(page)


async def test_what_is_exported_on_the_page_is_imported_for_somebody_else_in_pieces(browser, running):
    big, new = running.memory.user("big"), running.memory.user("new")
    call = await big.conversation("long")
    words = "and then we talked about the garden " * 860
    await call.append(*(Turn(speaker="user", text=f"{n} {words}") for n in range(4)), learn=False)
    for n in range(4):
        await big.items("note").set(f"note {n}", {"text": words + words})
        await big.add_result("long", f"looked up {n}", words)
    await big.set("home", "Leeds")
    await big.set("home", "Lisbon")
    await new.remember("They are new here.")
    async with visiting(
        browser, running, **await signed_in(running, OPERATOR_KEY), at="#/people/big"
    ) as page:
        async with page.expect_download() as saved:
            await page.get_by_role("button", name="Export").click()
        sent = []
        page.on("request", lambda request: sent.append(request) if "/import" in request.url else None)
        await page.goto(f"{running.url}/#/people/new")
        await expect(page.get_by_text("They are new here.")).to_be_visible()
        await page.get_by_label("Import…").set_input_files(await (await saved.value).path())
        await expect(page.get_by_role("status")).to_have_text("Imported: 15 records are new.")
        assert len(sent) >= 9
        assert max(len(request.post_data) for request in sent) < 150_000
        await clean(page)
    before, after = await big.export(), await new.export()
    assert after["conversations"] == before["conversations"]
    assert after["items"] == before["items"]
    assert (await new.get("home")).text == "Lisbon"
    assert {memory.text for memory in await new.facts()} == {"Lisbon", "They are new here."}


async def test_a_file_that_holds_no_export_is_refused(browser, running, tmp_path):
    await running.memory.user("new").remember("They are new here.")
    (tmp_path / "null.json").write_text("null")
    (tmp_path / "long.json").write_text(json.dumps({"format": "echoic-export"}))
    async with visiting(
        browser, running, **await signed_in(running, OPERATOR_KEY), at="#/people/new"
    ) as page:
        await page.get_by_label("Import…").set_input_files(tmp_path / "null.json")
        await expect(page.get_by_role("alert")).to_contain_text("is no export")
        await page.route("**/import?*", lambda route: route.fulfill(status=413, json={"error": "too large"}))
        await page.get_by_label("Import…").set_input_files(tmp_path / "long.json")
        await expect(page.get_by_role("alert")).to_contain_text("Import the file with “echoic import”.")
        page.seen.console.clear()  # the browser logs the failure
        await clean(page)


async def test_a_receipt_is_shown_where_the_page_cannot_be_read_again_after_the_erasure(browser, running):
    olga = running.memory.user("olga")
    await olga.set("pet", "a parrot")
    await olga.set("drink", "black tea")
    failure = {"status": 503, "json": {"error": "the store is away", "code": "unavailable"}}
    async with visiting(
        browser, running, **await signed_in(running, OPERATOR_KEY), at="#/people/olga"
    ) as page:
        await expect(page.locator(".memory-card")).to_have_count(2)
        await page.route("**/api/memories?*", lambda route: route.fulfill(**failure))
        await card(page, "pet").get_by_role("button", name="Forget").click()
        await card(page, "pet").get_by_role("button", name="Destroy").click()
        receipt = page.get_by_role("dialog")
        await expect(receipt).to_contain_text("Verified")
        await expect(page.locator(".notice", has_text="The store is away.")).to_have_count(1)
        await receipt.get_by_role("button", name="Done").click()
        await page.get_by_role("button", name="Forget…").click()
        await receipt.get_by_role("button", name="Forget", exact=True).click()
        await expect(receipt).to_contain_text("Verified")
        await receipt.get_by_role("button", name="Done").click()
        page.seen.console.clear()  # the browser logs the failures
        await clean(page)
    assert await olga.facts() == []


async def test_a_call_of_which_no_turn_is_kept_has_a_page(browser, running):
    call = await running.memory.user("iris").conversation("silent")
    await call.complete()
    async with visiting(
        browser, running, **await signed_in(running, OPERATOR_KEY), at="#/calls/silent?user=iris"
    ) as page:
        await expect(page.get_by_text("Nothing of what was said is kept.")).to_be_visible()
        await clean(page)


async def test_of_a_call_of_hours_no_more_is_drawn_than_is_looked_at(browser, running):
    ana = running.memory.user("ana of the long call")
    call = await ana.conversation("long")
    turns = [
        Turn(id=f"t{n}", speaker="agent" if n % 2 else "user", text=f"garden {n // 2}") for n in range(1000)
    ]
    await call.append(*turns, learn=False)
    at = "#/calls/long?user=ana%20of%20the%20long%20call"
    async with visiting(browser, running, **await signed_in(running, OPERATOR_KEY), at=at) as page:
        drawn = page.locator(".exchange")
        await expect(drawn).to_have_count(100)
        await drawn.last.scroll_into_view_if_needed()
        await expect(drawn).to_have_count(200)
        await page.goto(f"{running.url}/{at}&turn=t600")
        await expect(page.locator(".exchange.meant")).to_contain_text("garden 300")
        assert await drawn.count() <= 200
        await page.get_by_role("button", name="Show earlier turns").click()
        await expect(page.get_by_text("garden 150", exact=True).first).to_be_attached()
        await page.get_by_role("slider", name="Place in the call").fill("0")
        await expect(page.locator(".exchange.now")).to_contain_text("garden 0")
        assert await drawn.count() <= 200
        assert await page.evaluate("document.querySelectorAll('*').length") < 3000
        await clean(page)
