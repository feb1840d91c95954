"""Talking with no voice model: the browser's own recognition and voice, over the text route of a real server.

Headless browsers have neither a recogniser nor a voice. Both are played by the test, by the interfaces that the
Web Speech API defines; all else is real.
"""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio
from playwright.async_api import expect

from server.browsing import OnePage, Process, card, say, settled, visiting

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SPEECH = """
(() => {
  window.ears = {lives: 0, hears(text, final) {
    const result = Object.assign([{transcript: text, confidence: 0.9}], {isFinal: final});
    this.on?.onresult({results: [result], resultIndex: 0});
  }, fails(error) { const on = this.on; on.onerror({error}); on.onend(); }};
  window.SpeechRecognition = window.webkitSpeechRecognition = class {
    start() { ears.on = this; ears.lives += 1; }
    abort() { if (ears.on === this) ears.on = null; }
    stop() { this.abort(); this.onend?.(); }
  };
  window.mouth = {said: [], now: null, cancelled: 0, upTo(word) {
    this.now.onboundary?.({charIndex: this.now.text.indexOf(word), name: 'word'});
  }, finishes() { const now = this.now; this.now = null; now?.onend?.({}); }};
  window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
  Object.defineProperty(window, 'speechSynthesis', {value: {
    speak(utterance) { mouth.now = utterance; mouth.said.push(utterance.text); utterance.onstart?.({}); },
    cancel() { const now = mouth.now; mouth.now = null; mouth.cancelled += 1; now?.onerror?.({error: 'interrupted'}); },
    getVoices() { return [{name: 'of this test'}]; },
  }});
})();
"""


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    running = Process(tmp_path_factory.mktemp("speech"), ECHOIC_EMBEDDER="lexical")
    running.start()
    yield running
    running.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def one_page(browser, process):
    page = OnePage(browser, process, script=SPEECH)
    yield page
    await page.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(one_page, request):
    async with one_page.lent(request) as page:
        await page.evaluate("Object.assign(ears, {lives: 0, on: null})")
        await page.evaluate("Object.assign(mouth, {said: [], now: null, cancelled: 0})")
        yield page


def state(page):
    return page.locator("#call-state")


async def talk(page):
    await page.get_by_role("button", name="Talk").click()
    await expect(state(page)).to_have_text("Speaking")


async def hears(page, text, *, final=True):
    await page.evaluate("([text, final]) => ears.hears(text, final)", [text, final])


async def turns(page):
    """What the server kept of all that was said."""
    exported = await page.evaluate(
        """async () => {
          const { callers, current } = JSON.parse(localStorage.getItem("echoic.callers"));
          const { caller } = callers.find(({ user }) => user === current);
          return (await fetch("/api/export", { headers: { "X-Echoic-Caller": caller } })).json();
        }"""
    )
    return [turn for conversation in exported["conversations"] for turn in conversation["turns"]]


async def to_the_end(page):
    """The voice says all it has to say."""
    await expect(state(page)).to_have_text("Speaking")
    while await page.evaluate("mouth.now !== null"):
        await page.evaluate("mouth.finishes()")
    await expect(state(page)).to_have_text("Listening")


async def test_a_caller_talks_through_the_browsers_own_speech_and_is_remembered_the_next_time(page):
    await talk(page)
    await to_the_end(page)
    await hears(page, "I'm Pavel and", final=False)
    await expect(page.locator(".turn.user.growing .words")).to_have_text("I'm Pavel and")
    await hears(page, "I'm Pavel and I live in Tel Aviv")
    await expect(card(page, "home")).to_contain_text("Tel Aviv")
    await expect(page.locator(".turn.user")).to_have_count(1)
    await to_the_end(page)
    await page.get_by_role("button", name="Hang up").click()
    await expect(page.locator("#call")).not_to_be_visible()
    await expect(page.locator(".divider").last).to_have_text("The talk ended")

    await talk(page)
    assert await page.evaluate("mouth.said.at(-1)") == "Welcome back, Pavel."
    await to_the_end(page)
    await hears(page, "Where do I live?")
    await to_the_end(page)
    assert "Tel Aviv" in " ".join(await page.evaluate("mouth.said.slice(-3)"))


async def test_who_speaks_while_the_agent_does_silences_it_and_what_was_not_heard_is_struck_through(page):
    await talk(page)
    await to_the_end(page)
    await hears(page, "I'm Pavel and I live in Tel Aviv")
    await expect(state(page)).to_have_text("Speaking")
    whole = await page.locator(".turn.agent .words").last.inner_text()
    first = await page.evaluate("mouth.now.text")
    word = first.split()[2]
    await page.evaluate("(word) => mouth.upTo(word)", word)
    await hears(page, "Actually I moved to Lisbon", final=False)
    assert await page.evaluate("mouth.now") is None
    cut = page.locator(".turn.agent .words", has=page.locator("s.unheard")).last
    assert await cut.locator("s").inner_text() == whole[whole.index(word) :]
    await hears(page, "Actually I moved to Lisbon")
    await expect(card(page, "home").locator(".value").first).to_have_text("Lisbon")
    await to_the_end(page)
    kept = await turns(page)
    assert [turn["text"] for turn in kept if "heard" in turn] == [whole]
    assert [turn["heard"] for turn in kept if turn["text"] == whole] == [whole[: whole.index(word)].strip()]


async def test_who_hangs_up_has_not_heard_the_rest_of_the_greeting(page):
    await talk(page)
    first = await page.evaluate("mouth.now.text")
    await page.evaluate("mouth.finishes()")
    second = await page.evaluate("mouth.now.text")
    await page.evaluate("(word) => mouth.upTo(word)", second.split()[1])
    await page.get_by_role("button", name="Hang up").click()
    await page.get_by_role("button", name="Come back tomorrow").click()
    await expect(page.locator(".divider").last).to_have_text("The next day")
    heard = [turn["heard"] for turn in await turns(page) if "heard" in turn]
    assert heard == [f"{first} {second.split()[0]}"]


class Held:
    """Answers of the server that do not reach the page before they are let go."""

    def __init__(self):
        self.come, self._go = asyncio.Event(), asyncio.Event()

    async def hold(self, page, path):
        await page.route(path, self._hold)
        return self

    async def _hold(self, route):
        answer = await route.fetch()
        self.come.set()
        await self._go.wait()
        await route.fulfill(response=answer)

    def let_go(self):
        self._go.set()


async def test_who_hangs_up_before_the_greeting_has_come_is_heard_and_spoken_to_no_more(page):
    greeting = await Held().hold(page, "**/api/conversations")
    await page.get_by_role("button", name="Talk").click()
    await greeting.come.wait()
    await page.get_by_role("button", name="Hang up").click()
    await expect(page.locator("#call")).not_to_be_visible()
    greeting.let_go()
    await settled(page)
    assert await page.evaluate("[ears.lives, mouth.said]") == [0, []]
    assert [turn["heard"] for turn in await turns(page) if "heard" in turn] == [""]


async def two_things_at_once(page):
    """Said before there is an answer to the first; both answers, of which the first is being spoken."""
    first = await Held().hold(page, "**/api/chat/stream")
    await hears(page, "I live in Haifa")
    await first.come.wait()
    await hears(page, "Where do I live?")
    first.let_go()
    answers = page.locator(".turn.agent:not(.growing) .words")
    await expect(answers).to_have_count(4)
    return (await answers.all_inner_texts())[2:]


async def test_two_things_said_before_the_first_answer_are_answered_one_after_the_other(page):
    await talk(page)
    await to_the_end(page)
    before = await page.evaluate("mouth.said.length")
    one, two = await two_things_at_once(page)
    await to_the_end(page)
    said = " ".join(await page.evaluate("(before) => mouth.said.slice(before)", before))
    assert said == f"{one} {two}"
    kept = await turns(page)
    assert [turn["text"] for turn in kept][-4:] == ["I live in Haifa", one, "Where do I live?", two]
    assert not [turn for turn in kept if "heard" in turn]


async def test_who_cuts_in_while_a_second_answer_waits_has_heard_nothing_of_it(page):
    await talk(page)
    await to_the_end(page)
    one, two = await two_things_at_once(page)
    word = one.split()[2]
    await expect(state(page)).to_have_text("Speaking")
    await page.evaluate("(word) => mouth.upTo(word)", word)
    await hears(page, "stop please")
    assert await page.evaluate("mouth.now") is None
    await to_the_end(page)
    assert two not in await page.evaluate("mouth.said")
    kept = await turns(page)
    assert {turn["text"]: turn["heard"] for turn in kept if "heard" in turn} == {
        one: one[: one.index(word)].strip(),
        two: "",
    }
    assert [turn["text"] for turn in kept if turn["speaker"] == "user"][-1] == "stop please"


async def test_who_hangs_up_while_an_answer_is_on_its_way_has_not_heard_it(page):
    await talk(page)
    await to_the_end(page)
    answer = await Held().hold(page, "**/api/chat/stream")
    await hears(page, "I live in Haifa")
    await answer.come.wait()
    await page.get_by_role("button", name="Hang up").click()
    await expect(page.locator("#call")).not_to_be_visible()
    before = await page.evaluate("mouth.said.length")
    async with page.expect_response("**/truncate"):
        answer.let_go()
    assert await page.evaluate("mouth.said.length") == before
    kept = await turns(page)
    assert [turn["heard"] for turn in kept if "heard" in turn] == [""]
    assert kept[-2]["text"] == "I live in Haifa"


async def test_an_erasure_whose_question_was_not_heard_out_is_not_agreed_to(page):
    await talk(page)
    await to_the_end(page)
    await hears(page, "I live in Tel Aviv")
    await to_the_end(page)
    await hears(page, "Forget everything about me")
    await expect(state(page)).to_have_text("Speaking")
    await page.evaluate("mouth.upTo(mouth.now.text.split(' ')[2])")
    await hears(page, "Yes")
    await to_the_end(page)
    await expect(card(page, "home")).to_contain_text("Tel Aviv")


async def test_what_the_loudspeaker_says_is_not_taken_for_the_caller(page):
    await talk(page)
    greeting = await page.evaluate("mouth.now.text")
    for final in (False, True):
        await hears(page, " ".join(greeting.split()[:3]).lower(), final=final)
    assert await page.evaluate("mouth.now.text") == greeting
    await expect(page.locator(".turn.user")).to_have_count(0)
    await hears(page, "stop", final=False)
    assert await page.evaluate("mouth.now") is None


async def test_a_recogniser_that_ends_is_begun_again_and_one_that_is_muted_is_not(page):
    await talk(page)
    await to_the_end(page)
    for error in ("no-speech", "aborted"):
        lives = await page.evaluate("ears.lives")
        await page.evaluate("(error) => ears.fails(error)", error)
        await page.evaluate(
            "async (lives) => { while (ears.lives === lives) await new Promise((done) => setTimeout(done, 20)); }",
            lives,
        )
    mute = page.get_by_role("button", name="Mute")
    await mute.click()
    await expect(mute).to_have_attribute("aria-pressed", "true")
    await expect(state(page)).to_have_text("Muted")
    assert await page.evaluate("ears.on") is None
    await mute.click()
    await expect(state(page)).to_have_text("Listening")
    await hears(page, "I live in Haifa")
    await expect(card(page, "home")).to_contain_text("Haifa")


async def test_who_mutes_before_the_greeting_has_come_is_not_listened_to(page):
    greeting = await Held().hold(page, "**/api/conversations")
    await page.get_by_role("button", name="Talk").click()
    await greeting.come.wait()
    mute = page.get_by_role("button", name="Mute")
    await mute.click()
    greeting.let_go()
    await expect(state(page)).to_have_text("Speaking")
    assert await page.evaluate("ears.lives") == 0
    await mute.click()
    assert await page.evaluate("ears.lives") == 1


async def test_one_recogniser_listens_however_quickly_who_speaks_mutes_and_unmutes(browser, process):
    async with visiting(browser, process, script=SPEECH) as page:  # whose clock is never its own again
        await talk(page)
        await to_the_end(page)
        lives = await page.evaluate("ears.lives")
        await page.clock.install()
        # it ends, and is to begin again in a moment
        await page.evaluate(
            "ears.fails('no-speech'); for (let n = 0; n < 2; n++) document.getElementById('mute').click()"
        )
        await page.clock.run_for(1000)
        assert await page.evaluate("ears.lives") == lives + 1
        page.seen.assert_nothing()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("not-allowed", "Allow it in the address bar"),
        ("network", "cannot be reached"),
        ("audio-capture", "There is no microphone"),
    ],
)
async def test_a_recogniser_that_cannot_work_is_told_plainly_and_typing_goes_on(page, error, said):
    await talk(page)
    await page.evaluate("(error) => ears.fails(error)", error)
    await expect(page.get_by_role("alert")).to_contain_text(said)
    await expect(page.get_by_role("alert")).to_contain_text("Type instead")
    await expect(page.locator("#call")).not_to_be_visible()
    await say(page, "I live in Haifa")
    await expect(card(page, "home")).to_contain_text("Haifa")


async def test_what_is_typed_during_a_talk_is_part_of_it(page):
    await talk(page)
    await page.get_by_role("textbox", name="Say something").fill("I live in Haifa")
    await page.keyboard.press("Enter")
    await expect(card(page, "home")).to_contain_text("Haifa")
    await to_the_end(page)


async def test_a_browser_without_speech_offers_typing_alone(browser, process):
    none = "for (const name of ['SpeechRecognition', 'webkitSpeechRecognition']) window[name] = undefined;"
    async with visiting(browser, process, script=none) as page:
        await settled(page)
        await expect(page.get_by_role("button", name="Talk")).to_have_count(0)
        await say(page, "I live in Haifa")
        await expect(card(page, "home")).to_contain_text("Haifa")
        page.seen.assert_nothing()


async def test_a_browser_without_a_voice_listens_and_writes(browser, process):
    mute = SPEECH + "Object.defineProperty(window, 'SpeechSynthesisUtterance', {value: undefined});"
    async with visiting(browser, process, script=mute) as page:
        await page.get_by_role("button", name="Talk").click()
        await expect(state(page)).to_have_text("Listening")
        await hears(page, "I live in Haifa")
        await expect(card(page, "home")).to_contain_text("Haifa")
        await expect(page.locator(".turn.agent").last).to_contain_text("Haifa")
        page.seen.assert_nothing()
