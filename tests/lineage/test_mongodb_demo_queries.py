"""The article's "Queries" tab: what the model asked of memory with its tools, as the page shows it."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import expect

from echoic_loopback.realtime import Calls, Says, Script, ToolCall, UserSays
from server.browsing import Process, low_contrast, say, visiting
from server.calls_in_browser import call, calling, hang_up, heard_out, last, served, speak
from server.scripted_model import ScriptedModel, Spoken

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

HOURS = "The store is open from 9 to 17."
ASKED = {
    "pet": {"operation": "set", "key": "pet", "value": "an axolotl <b>called Ada</b>"},
    "hours": {"operation": "set", "key": "opening_hours", "value": HOURS},
    "find": {"operation": "query", "query": "what is the axolotl called?"},
    "look": {"operation": "get", "key": "pet"},
    "none": {"operation": "get", "key": "shoe_size"},
    "gone": {"operation": "delete", "key": "pet"},
    "pin": {"operation": "set", "key": "pin_code", "value": "my PIN is 4831"},
}


class Model:
    """A model on this machine that calls the tool it is told to, and a server in front of it."""

    def __init__(self, directory):
        self.script = ScriptedModel(
            says=self._says, learns=lambda _request: {"read_up_to": "t1", "changes": []}
        )
        self.script.start()
        self.process = Process(
            directory,
            *("--model", "openai-chat:scripted"),
            OPENAI_BASE_URL=self.script.url,
            OPENAI_API_KEY="none",
            ECHOIC_EMBEDDER="lexical",
        )
        self.process.start()

    @staticmethod
    def _says(request):
        messages = request["messages"]
        at, said = next((n, m["content"]) for n, m in reversed([*enumerate(messages)]) if m["role"] == "user")
        answered = any(message["role"] == "tool" for message in messages[at:])
        word = said.split()[-1].strip(".")
        if word in ASKED and not answered:
            return Spoken(calls=(("agentMemory", ASKED[word]),))
        return Spoken(words=("Done.",))

    @property
    def url(self):
        return self.process.url

    def stop(self):
        self.process.stop()
        self.script.stop()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    running = Model(tmp_path_factory.mktemp("queries"))
    yield running
    running.stop()


def entry(page, operation):
    """The newest use of a tool that did this."""
    return page.locator(f"#queries .query[data-operation={operation}]").first


async def told(entry):
    """What an entry says, by name."""
    names = await entry.locator(".asked dt").all_inner_texts()
    return dict(zip(names, await entry.locator(".asked dd").all_inner_texts(), strict=True))


async def shown(page, operation):
    await expect(entry(page, operation)).to_be_visible()
    return await told(entry(page, operation))


async def test_what_the_model_asks_in_a_typed_call_is_shown_with_what_came_of_it(browser, model):
    async with visiting(browser, model) as page:
        await expect(page.locator("#listening")).to_be_visible()
        await page.get_by_role("tab", name="Queries").click()
        await expect(page.locator("#no-queries")).to_be_visible()
        await say(page, "Keep my pet")
        set_ = await shown(page, "set")
        assert set_["key"] == "pet"
        assert set_["value"] == "an axolotl <b>called Ada</b>"
        assert set_["why"].startswith("private: ")
        await expect(entry(page, "set").locator(".tag.private")).to_have_text("private")

        await say(page, "Please find")
        found = await shown(page, "query")
        assert found["query"] == "what is the axolotl called?"
        table = entry(page, "query").locator("table.hits")
        await expect(table.locator("tr.memory").first).to_contain_text("axolotl")
        await expect(table.locator("td b").first).to_contain_text("#")
        await entry(page, "query").get_by_text("the search pipeline").click()
        steps = json.loads(await entry(page, "query").get_by_role("region", name="Pipeline").inner_text())
        assert [next(iter(step)) for step in steps] == ["embed", "search", "weigh", "limit"]

        await say(page, "Have a look")
        assert (await shown(page, "get"))["value"] == "an axolotl <b>called Ada</b>"
        await say(page, "Is there none")
        await expect(entry(page, "get").locator(".asked")).to_contain_text("nothing is known")
        await say(page, "Let it be gone")
        assert "deleted" in (await shown(page, "delete"))["deleted"]
        await expect(page.locator("#queries-count")).to_have_text("5")
        page.seen.assert_nothing()


async def test_why_something_is_private_is_told_and_a_secret_is_not_shown(browser, model):
    async with visiting(browser, model) as page:
        await expect(page.locator("#listening")).to_be_visible()
        await page.get_by_role("tab", name="Queries").click()
        await say(page, "Keep our hours")  # which a model is asked about too, behind the answer
        assert (await shown(page, "set"))[
            "why"
        ] == "private: another classifier is still being asked about it"
        await say(page, "Keep my pin")
        await expect(entry(page, "set")).to_contain_text("pin_code")
        assert "4831" not in await page.locator("#panel-queries").inner_text()


async def test_another_callers_queries_are_not_shown(browser, model):
    async with visiting(browser, model) as page, visiting(browser, model) as other:
        for one in (page, other):
            await expect(one.locator("#listening")).to_be_visible()
            await one.get_by_role("tab", name="Queries").click()
        await say(page, "Keep my pet")
        await shown(page, "set")
        await say(other, "Is there none")
        await shown(other, "get")
        await expect(other.locator("#queries .query")).to_have_count(1)
        await page.get_by_role("button", name="New caller").click()
        await expect(page.locator("#queries .query")).to_have_count(0)
        await expect(page.locator("#no-queries")).to_be_visible()


async def test_queries_can_be_read_at_320_pixels_and_reached_by_keyboard(browser, model):
    async with visiting(browser, model, viewport={"width": 320, "height": 800}) as page:
        await expect(page.locator("#listening")).to_be_visible()
        await expect(page.get_by_role("textbox", name="Say something")).to_be_focused()
        await page.get_by_role("tab", name="Jobs").focus()
        await page.keyboard.press("ArrowLeft")
        await expect(page.get_by_role("tab", name="Queries")).to_have_attribute("aria-selected", "true")
        for word in ("pet", "find", "hours"):
            await say(page, f"Do {word}")
        await shown(page, "query")
        await expect(page.locator("#queries .query")).to_have_count(3)
        await entry(page, "query").locator("summary", has_text="pipeline").focus()
        await page.keyboard.press("Enter")
        await expect(entry(page, "query").get_by_role("region", name="Pipeline")).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 320
        assert await low_contrast(page, "queries") == []
        unnamed = (
            "[...document.querySelectorAll('#panel-queries [tabindex=\"0\"]')].filter((e) => !e.ariaLabel)"
        )
        assert await page.evaluate(f"{unnamed}.length") == 0
        page.seen.assert_nothing()


@pytest.mark.parametrize("way", ["webrtc", "gemini"])
async def test_what_the_model_asks_in_a_voice_call_is_shown_likewise(calling_browser, tmp_path, way):
    pytest.importorskip("trustme", reason="the played Gemini speaks TLS")
    script = Script(
        Says("hello who is there"),
        UserSays("I keep an axolotl", by_voice=True),
        Calls(ToolCall("agentMemory", ASKED["pet"]), ToolCall("agentMemory", ASKED["none"])),
        Calls(ToolCall("agentMemory", ASKED["find"]), ToolCall("agentMemory", ASKED["hours"])),
        Says("it is noted"),
        open_ended=True,
    )
    async with served(way, tmp_path, script) as server, calling(calling_browser, server) as page:
        await page.get_by_role("tab", name="Queries").click()
        await call(page)
        await expect(last(page, "agent")).to_have_text("hello who is there")
        await speak(page, "I keep an axolotl")
        await expect(last(page, "agent")).to_have_text("it is noted")
        sets = page.locator("#queries .query[data-operation=set]")
        await expect(sets).to_have_count(2)
        told_of = {said["key"]: said["why"] for said in [await told(one) for one in await sets.all()]}
        assert told_of["pet"].startswith("private: ")
        assert told_of["opening_hours"] == "proposed: when the business, or a part of it, is open"
        assert (await shown(page, "get"))["key"] == "shoe_size"
        await expect(entry(page, "query").locator("table.hits tr.memory").first).to_contain_text("axolotl")
        await heard_out(page)
        await hang_up(page)
        page.seen.assert_nothing()
