"""Live calls on the page: a real browser with a microphone, a real server process, and a provider that is played."""

from __future__ import annotations

import asyncio
import json
import os
import re

import pytest
from playwright.async_api import expect

from echoic_loopback.realtime import Refusal, Says, Script, UserSays, words_heard
from server.browsing import (
    CHROMIUM,
    EMBEDDER,
    IMAGES,
    SHELL,
    card,
    launched,
    low_contrast,
    photographed,
    press,
    say,
    settled,
    visiting,
)
from server.calls_in_browser import (
    MICROPHONE,
    ON_DEMAND,
    PAUSE_MS,
    SPEED,
    SPOKEN,
    call,
    calling,
    from_memory,
    hang_up,
    heard_out,
    last,
    served,
    speak,
    state,
)

pytest.importorskip("trustme", reason="the played Gemini speaks TLS")

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

BY_SOCKET_AND_BY_WEBRTC = ["openai", "webrtc"]
"""The two ways of a page's audio. Which provider the server calls, the page cannot tell: one test calls the other."""
either_way = pytest.mark.repeated(ways=BY_SOCKET_AND_BY_WEBRTC)
"""Of what the page does alike on both: `make test` draws one, `make soak` has both."""
WHO = "my name is Pavel and I live in Tel Aviv"
LONG = " ".join(
    f"{number} of the many things there are to say about it and"
    for number in ("one", "two", "three", "four", "five")
)
AT_LENGTH = Says(LONG, word_ms=900)
"""So slowly that a busy machine, too, cuts in before it is over."""
INTRODUCED = Script(
    Says("hello who is there"), UserSays(WHO, by_voice=True), Says("nice to meet you Pavel"), open_ended=True
)
BYTES_PER_MS = 48
"""Of the agent's voice: 24,000 samples of two bytes a second."""
KNOWN = Script(
    from_memory("welcome back {}", "name"),
    UserSays("where do I live", by_voice=True),
    from_memory("you live in {}", "home"),
    open_ended=True,
)


@pytest.fixture
def browser(calling_browser):
    return calling_browser


@pytest.mark.parametrize("way", ["gemini", "webrtc"])
async def test_a_caller_who_calls_again_is_greeted_by_name_and_answered_from_memory(browser, tmp_path, way):
    async with served(way, tmp_path, INTRODUCED, KNOWN) as server, calling(browser, server) as page:
        await call(page)
        await expect(last(page, "agent")).to_have_text("hello who is there")
        await speak(page, WHO)
        await expect(last(page, "agent")).to_have_text("nice to meet you Pavel")
        await expect(card(page, "user_name")).to_contain_text("Pavel")
        await expect(card(page, "home")).to_contain_text("Tel Aviv")
        await heard_out(page)
        await hang_up(page)
        await expect(page.locator(".divider").last).to_have_text("The call ended")

        await call(page)
        await expect(last(page, "agent")).to_have_text("welcome back Pavel")
        await speak(page, "where do I live")
        await expect(last(page, "agent")).to_have_text("you live in Tel Aviv")
        await heard_out(page)
        await hang_up(page)
        await expect(page.locator(".unheard")).to_have_count(0)
        assert await page.evaluate("window.violations") == []
        page.seen.assert_nothing()


@pytest.mark.crash
@pytest.mark.parametrize("way", BY_SOCKET_AND_BY_WEBRTC)
async def test_a_call_whose_server_is_killed_in_mid_turn_goes_on_by_itself_with_the_next(
    browser, tmp_path, way
):
    ends = (UserSays("thank you", by_voice=True), Says("goodbye Pavel"))
    if way == "webrtc":
        # the provider's session outlives our server: one script plays through
        scripts = (Script(Says("hello"), UserSays(WHO, by_voice=True), AT_LENGTH, *ends, open_ended=True),)
    else:
        scripts = (
            Script(Says("hello"), UserSays(WHO, by_voice=True), AT_LENGTH, open_ended=True),
            Script(Says("where was I"), *ends, open_ended=True),
            KNOWN,
        )
    async with served(way, tmp_path, *scripts) as server, calling(browser, server) as page:
        await call(page)
        await speak(page, WHO)
        await expect(last(page, "agent")).to_contain_text("one of the many things")
        await expect(card(page, "home")).to_contain_text("Tel Aviv")
        await expect(state(page)).to_have_text("Speaking")
        await asyncio.sleep(1 / SPEED)
        await asyncio.to_thread(server.process.stop, killed=True)
        await expect(state(page)).to_have_text(re.compile("Reconnecting"))
        if way != "webrtc":
            await expect(page.locator(".turn.broken")).to_contain_text("disconnected here")
        await asyncio.to_thread(server.process.start)
        await expect(state(page)).to_have_text(re.compile("Muted|Speaking"), timeout=40_000)
        await speak(page, "thank you", cutting_in=True)
        # what was cut off may be shown after it: how much of that was heard is told later
        parting = page.locator(".turn.agent", has_text="goodbye Pavel")
        await expect(parting).to_have_attribute("data-heard", "all", timeout=60_000)
        await hang_up(page)
        if way != "webrtc":  # what is known in the next call does not depend on the way of its audio
            await call(page)
            await expect(last(page, "agent")).to_have_text("welcome back Pavel")
            await speak(page, "where do I live")
            await expect(last(page, "agent")).to_have_text("you live in Tel Aviv")
            await hang_up(page)
        assert page.seen.errors == []


def sent_by(page, kind):
    """What the page's sockets send of a `kind` from now on, in order."""
    sent = []

    def note(payload):
        if isinstance(payload, str) and (message := json.loads(payload)).get("type") == kind:
            sent.append(message)

    page.on("websocket", lambda socket: socket.on("framesent", note))
    return sent


async def test_who_cuts_in_is_heard_and_page_and_provider_agree_on_what_they_heard(browser, tmp_path):
    script = Script(
        Says("hello"),
        UserSays("tell me all", by_voice=True),
        AT_LENGTH,
        UserSays("stop it", by_voice=True),
        Says("as you like"),
        open_ended=True,
    )
    async with served("openai", tmp_path, script) as server, calling(browser, server) as page:
        reports = sent_by(page, "played")
        await call(page)
        await speak(page, "tell me all")
        await expect(state(page)).to_have_text("Speaking")
        # before the agent speaks at length, nothing but its first words was played
        first = next(item for item in server.calls[0].conversation if item.audio_ms)
        long = AT_LENGTH.speech(24_000, speed=SPEED).words
        async with asyncio.timeout(30):
            while not reports or reports[-1]["bytes"] / BYTES_PER_MS - first.audio_ms < long[6].start_ms:
                await asyncio.sleep(0.02)
        await speak(page, "stop it", cutting_in=True)
        cut = page.locator(".turn.agent", has=page.locator("s.unheard"))
        await expect(cut).to_have_count(1)
        await expect(page.locator(".operation", has_text="You interrupted")).to_have_count(1)
        await expect(last(page, "agent")).to_have_text("as you like")
        unheard = await cut.locator("s").inner_text()
        assert LONG.endswith(unheard)
        heard = LONG.removesuffix(unheard).split()
        assert 5 <= len(heard) < len(LONG.split())
        (item,) = [item for item in server.calls[0].conversation if item.truncated_ms is not None]
        # The provider is told at once what the page had reported. The page plays on until it hears of the cut, and
        # the turn is kept with the last that was reported then: on a busy machine, before the page's last word.
        at = [report["bytes"] / BYTES_PER_MS - first.audio_ms for report in reports]
        flushed = next(place for place, report in enumerate(reports) if report["flushed"])
        told = min(range(flushed), key=lambda place: abs(item.truncated_ms - at[place]))
        assert abs(item.truncated_ms - at[told]) <= 1
        reported = [len(item.spoken.heard(round(ms)).split()) for ms in at[told : flushed + 1]]
        assert min(abs(words - len(heard)) for words in reported) <= 1
        await hang_up(page)

        await page.get_by_role("navigation").get_by_role("link", name="Calls", exact=True).click()
        await page.locator("a.row", has_text="Voice").click()
        shown = page.locator(".exchange", has_text="tell me all")
        await expect(shown.locator(".unheard")).to_have_text(f" (not heard:) {unheard}")
        await expect(shown.locator(".turn.agent")).to_contain_text(re.compile(r"cut off after \d\.\d s of"))
        await expect(shown.locator(".waterfall li", has_text="caller cuts in")).to_be_visible()
        await expect(page.locator(".exchange").first.locator(".turn")).to_contain_text("at 0:0")
        page.seen.assert_nothing()


async def test_whether_the_caller_interrupted_is_shown_as_the_server_says(browser, tmp_path):
    """The page cannot know: what it has played may be all of the answer, or all that was generated so far."""
    sound, lines, silent = bytes(300 * BYTES_PER_MS), [], asyncio.Event()

    def take(line):
        def heard(message):
            told = json.loads(message) if isinstance(message, str) else {}
            if told.get("type") == "played" and told["flushed"]:
                silent.set()
            elif told.get("type") == "played" and told["bytes"] == len(sound):
                line.send(json.dumps({"type": "flush"}))

        lines.append(line)
        line.on_message(heard)
        line.send(json.dumps({"type": "ready"}))
        line.send(sound)

    async with (
        served("openai", tmp_path, Script(open_ended=True)) as server,
        calling(browser, server) as page,
    ):
        await page.route_web_socket(re.compile("/api/voice/socket"), take)
        await call(page)
        async with asyncio.timeout(60):
            await silent.wait()
        shown = page.locator(".operation", has_text="You interrupted")
        await expect(shown).to_have_count(0)
        lines[0].send(json.dumps({"type": "interrupted"}))
        await expect(shown).to_have_count(1)
        lines[0].send(json.dumps({"type": "closed", "reason": "ended", "resumable": False}))
        await expect(page.locator("#call")).not_to_be_visible()


@pytest.mark.parametrize("way", BY_SOCKET_AND_BY_WEBRTC)
async def test_the_providers_ears_get_the_callers_words_and_silence_while_muted(browser, tmp_path, way):
    script = Script(Says("hello"), UserSays("spoken", by_voice=True), Says("heard"), open_ended=True)
    async with served(way, tmp_path, script) as server, visiting(browser, server) as page:
        await call(page)
        await expect(last(page, "agent")).to_have_text("hello")
        (session,) = server.calls
        await asyncio.sleep(1 / SPEED)
        quiet = bytes(session.input_audio)
        assert words_heard(quiet, SPOKEN, rate_hz=session.input_rate_hz) == []
        await speak(page, "spoken")
        words = words_heard(bytes(session.input_audio), SPOKEN, rate_hz=session.input_rate_hz, share=0.2)
        # the microphone says the same words over and over: those from when it was opened to its next pause
        assert words
        assert words == [*range(words[0], len(SPOKEN.words))]
        await asyncio.sleep(0.5)
        before = len(session.input_audio)
        await asyncio.sleep((SPOKEN.duration_ms + PAUSE_MS) / 1000)
        muted = bytes(session.input_audio)[before:]
        assert words_heard(muted, SPOKEN, rate_hz=session.input_rate_hz) == []
        await hang_up(page)


async def test_a_line_that_breaks_is_taken_up_again_with_what_was_typed_meanwhile(browser, tmp_path):
    script = Script(
        Says("hello"),
        Says("I read you"),
        UserSays(WHO, by_voice=True),
        Says("nice to meet you"),
        open_ended=True,
    )
    async with served("openai", tmp_path, script) as server, calling(browser, server) as page:
        await call(page)
        await heard_out(page)
        await page.context.set_offline(True)
        await expect(state(page)).to_have_text(re.compile("Reconnecting"))
        field = page.get_by_role("textbox", name="Say something")
        await field.fill("are you there")
        await field.press("Enter")
        await page.context.set_offline(False)
        await expect(last(page, "agent")).to_have_text("I read you")
        await speak(page, WHO)
        await expect(last(page, "agent")).to_have_text("nice to meet you")
        assert len(server.calls) == 1, "nothing of it was to be dialled anew"
        await hang_up(page)
        assert page.seen.errors == []


async def test_a_call_that_a_reloaded_page_left_is_taken_up_by_hand(browser, tmp_path):
    script = Script(Says("hello"), UserSays(WHO, by_voice=True), Says("nice to meet you"), open_ended=True)
    async with served("openai", tmp_path, script) as server, calling(browser, server) as page:
        await call(page)
        await expect(last(page, "agent")).to_have_text("hello")
        await expect(state(page)).to_have_text("Muted")
        await page.reload()
        await page.get_by_role("button", name="Resume the interrupted call").click()
        await page.get_by_role("button", name="Mute").click()
        await expect(state(page)).to_have_text(re.compile("Muted|Speaking"), timeout=30_000)
        await speak(page, WHO, cutting_in=True)
        await expect(last(page, "agent")).to_have_text("nice to meet you")
        await heard_out(page)
        # "hello" may be kept after the page was loaded anew, and stands before what was said then
        spoken = await page.locator(".turn[data-turn] .words").all_inner_texts()
        assert spoken[-2:] == [WHO, "nice to meet you"]
        assert [words.split()[-1] for words in spoken[:-2]] in ([], ["hello"])
        await hang_up(page)
        await expect(page.get_by_role("button", name="Resume the interrupted call")).to_have_count(0)
        assert page.seen.errors == []


async def test_what_is_typed_during_a_call_is_answered_aloud(browser, tmp_path):
    script = Script(Says("hello"), Says("I read you"), open_ended=True)
    async with served("openai", tmp_path, script) as server, calling(browser, server) as page:
        await call(page)
        await expect(last(page, "agent")).to_have_text("hello")
        field = page.get_by_role("textbox", name="Say something")
        await field.fill(WHO)
        await field.press("Enter")  # while "hello" is heard or after it
        await expect(last(page, "agent")).to_have_text("I read you")
        await expect(page.locator(".turn.user")).to_have_count(1)
        await expect(last(page, "user")).to_have_text(WHO)
        await expect(card(page, "home")).to_contain_text("Tel Aviv")
        await hang_up(page)


async def test_what_is_typed_as_one_hangs_up_is_kept_before_the_end_and_answered_after_it(browser, tmp_path):
    async with (
        served("openai", tmp_path, Script(Says("hello"), open_ended=True)) as server,
        calling(browser, server) as page,
    ):
        await call(page)
        await heard_out(page)
        await page.evaluate(
            """() => {
              const type = (text) => { byId("say").value = text; byId("send").click(); };
              const byId = (id) => document.getElementById(id);
              type("I live in Haifa");
              byId("hang-up").click();
              type("Where do I live?");
            }"""
        )
        await expect(page.locator(".turn.agent").last).to_contain_text("You live in Haifa")
        await expect(page.locator(".turn.user .words")).to_have_text(["I live in Haifa", "Where do I live?"])
        page.seen.assert_nothing()


DEAD_LINES = """
  window.dead = false;
  window.WebSocket = class extends WebSocket { send(message) { if (!window.dead) super.send(message); } };
"""
"""In a page: nothing is sent while `dead`, and nothing says so, as when a network is gone."""


@either_way
@pytest.mark.parametrize("way", BY_SOCKET_AND_BY_WEBRTC)
async def test_what_is_typed_into_a_line_that_leads_nowhere_is_answered_on_the_next(browser, tmp_path, way):
    script = Script(Says("hello"), Says("I read you"), open_ended=True)
    async with (
        served(way, tmp_path, script) as server,
        visiting(browser, server, script=ON_DEMAND + DEAD_LINES) as page,
    ):
        await call(page)
        await heard_out(page)
        await page.evaluate("window.dead = true")
        field = page.get_by_role("textbox", name="Say something")
        await field.fill(WHO)
        await field.press("Enter")
        await expect(last(page, "user")).to_have_text(WHO)
        await page.evaluate("window.dead = false; dispatchEvent(new Event('offline'))")
        await expect(last(page, "agent")).to_have_text("I read you")
        await expect(page.locator(".turn.user")).to_have_count(1)
        await expect(card(page, "home")).to_contain_text("Tel Aviv")
        await hang_up(page)
        page.seen.assert_nothing()


async def test_what_is_typed_and_reaches_the_call_no_more_is_handed_back(browser, tmp_path):
    async with (
        served("openai", tmp_path, Script(Says("hello"), open_ended=True)) as server,
        calling(browser, server) as page,
    ):
        await call(page)
        await heard_out(page)
        await page.context.set_offline(True)
        await expect(state(page)).to_have_text(re.compile("Reconnecting"))
        field = page.get_by_role("textbox", name="Say something")
        await field.fill(WHO)
        await field.press("Enter")
        await expect(page.locator(".turn.user .words")).to_have_text(WHO)
        await hang_up(page)
        await expect(page.locator(".turn.user")).to_contain_text("not answered")
        await expect(field).to_have_value(WHO)
        await page.context.set_offline(False)
        await field.press("Enter")
        await expect(card(page, "home")).to_contain_text("Tel Aviv")


async def test_a_call_that_cannot_be_had_says_why(browser, tmp_path):
    refused = Script(refuse=Refusal(status=401, message="not with this key"))
    async with served("openai", tmp_path, refused) as server, calling(browser, server) as page:
        await page.get_by_role("button", name="Call", exact=True).click()
        await expect(page.locator(".divider").last).to_have_text("The call ended")
        await settled(page)
        await page.evaluate("new Promise((done) => setTimeout(done, 200))")  # nothing takes it away again
        assert "could not be reached" in await page.locator("#notice").inner_text()


@either_way
@pytest.mark.parametrize("way", BY_SOCKET_AND_BY_WEBRTC)
async def test_a_line_that_breaks_before_the_call_is_up_is_told_and_another_call_is_offered(
    browser, tmp_path, way
):
    async with (
        served(way, tmp_path, Script(open_ended=True)) as server,
        calling(browser, server) as page,
    ):
        await page.route_web_socket(re.compile("/api/voice/socket"), lambda line: line.close(code=1011))
        await page.get_by_role("button", name="Call", exact=True).click()
        await expect(page.get_by_role("alert")).to_contain_text("failed before the call began")
        await expect(page.get_by_role("button", name="Call", exact=True)).to_be_visible()
        assert page.seen.errors == []


async def test_who_hangs_up_before_the_call_is_up_tells_the_server(browser, tmp_path):
    slow = Script(Says("hello"), accept_after_s=20, open_ended=True)
    watched = """
      window.WebSocket = class extends WebSocket { constructor(...line) {
        super(...line);
        this.addEventListener("open", () => (window.lineStands = true));
      } };
    """
    async with (
        served("openai", tmp_path, slow) as server,
        visiting(browser, server, script=ON_DEMAND + watched) as page,
    ):
        told = sent_by(page, "hang_up")
        async with page.expect_websocket() as opening:
            await page.get_by_role("button", name="Call", exact=True).click()
        await page.wait_for_function("window.lineStands")
        await hang_up(page)
        socket = await opening.value
        if not socket.is_closed():
            await socket.wait_for_event("close")
        assert told


async def test_forgetting_everything_ends_the_call_and_what_is_said_next_is_kept(browser, tmp_path):
    script = Script(Says("hello"), Says("I read you"), open_ended=True)
    async with served("openai", tmp_path, script) as server, calling(browser, server) as page:
        await call(page)
        await heard_out(page)
        field = page.get_by_role("textbox", name="Say something")
        await field.fill(WHO)
        await field.press("Enter")
        await expect(card(page, "home")).to_contain_text("Tel Aviv")
        await page.get_by_role("button", name="Forget me").click()
        await page.get_by_role("dialog").get_by_role("button", name="Forget me").click()
        await page.get_by_role("button", name="Start over").click()
        await expect(page.locator(".divider")).to_have_text(["Forgotten"])
        await expect(page.locator("#call")).not_to_be_visible()
        await expect(page.locator(".card")).to_have_count(0)
        await say(page, "I live in Lisbon")
        await expect(card(page, "home")).to_contain_text("Lisbon")
        page.seen.assert_nothing()


async def test_a_call_ends_where_another_caller_is_chosen_in_another_view(browser, tmp_path):
    async with (
        served("openai", tmp_path, Script(Says("hello"), open_ended=True)) as server,
        calling(browser, server) as page,
    ):
        await say(page, "I'm Pavel")
        await press(page, "New caller")
        await say(page, "I'm Maya")
        await call(page)
        await heard_out(page)
        await page.get_by_role("navigation").get_by_role("link", name="Calls", exact=True).click()
        await page.get_by_role("combobox", name="Caller").select_option(label="Pavel")
        await expect(page.get_by_role("combobox", name="Caller").locator("option:checked")).to_have_text(
            "Pavel"
        )
        await page.get_by_role("link", name="Try it").click()
        await expect(page.locator(".turn.agent .words")).to_have_text(["Welcome back, Pavel."])
        await expect(page.locator("#call")).not_to_be_visible()
        await expect(card(page, "user_name")).to_contain_text("Pavel")
        await say(page, "I live in Haifa")
        await expect(card(page, "home")).to_contain_text("Haifa")
        page.seen.assert_nothing()


async def test_another_microphone_is_chosen_during_the_call(browser, tmp_path):
    script = Script(Says("hello"), UserSays("spoken", by_voice=True), Says("heard"), open_ended=True)
    async with served("openai", tmp_path, script) as server, visiting(browser, server) as page:
        await call(page)
        devices = page.get_by_role("combobox", name="Microphone")
        labels = await devices.locator("option").all_inner_texts()
        assert len(labels) > 1
        await devices.select_option(label=labels[-1])
        await expect(devices.locator("option:checked")).to_have_text(labels[-1])
        before = len(server.calls[0].input_audio)
        await speak(page, "spoken")
        assert len(server.calls[0].input_audio) > before
        await hang_up(page)
        page.seen.assert_nothing()


UNPLUGGED = """
  const plugged = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = async (constraints) => {
    if (window.unplugged) throw new DOMException("", "NotFoundError");
    const stream = await plugged(constraints);
    [window.track] = stream.getAudioTracks();
    return stream;
  };
  window.plug = (there) => {
    window.unplugged = !there;
    if (!there) {
      track.stop();
      track.dispatchEvent(new Event("ended"));
    }
    navigator.mediaDevices.dispatchEvent(new Event("devicechange"));
  };
"""


@either_way
@pytest.mark.parametrize("way", BY_SOCKET_AND_BY_WEBRTC)
async def test_a_microphone_that_is_unplugged_in_a_call_is_spoken_through_once_it_is_back(
    browser, tmp_path, way
):
    script = Script(Says("hello"), UserSays("spoken", by_voice=True), Says("heard"), open_ended=True)
    async with (
        served(way, tmp_path, script) as server,
        visiting(browser, server, script=f"{ON_DEMAND};{UNPLUGGED}") as page,
    ):
        await call(page)
        await heard_out(page)
        await page.evaluate("plug(false)")
        await expect(page.get_by_role("alert")).to_contain_text("There is no microphone")
        await page.evaluate("plug(true)")
        await expect(page.get_by_role("alert")).to_have_count(0)
        await speak(page, "spoken")
        await expect(last(page, "agent")).to_have_text("heard")
        await hang_up(page)
        page.seen.assert_nothing()


async def test_the_bar_of_a_call_is_used_with_the_keyboard_alone(browser, tmp_path):
    script = Script(Says("hello"), open_ended=True)
    async with served("openai", tmp_path, script) as server, visiting(browser, server) as page:
        begin = page.get_by_role("button", name="Call", exact=True)
        await begin.focus()
        await page.keyboard.press("Enter")
        await expect(state(page)).to_have_text(re.compile("Listening|Speaking"), timeout=30_000)
        mute = page.get_by_role("button", name="Mute")
        await expect(mute).to_be_focused()
        await page.keyboard.press("Space")
        await expect(mute).to_have_attribute("aria-pressed", "true")
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("button", name="Hang up")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#call")).not_to_be_visible()
        await expect(begin).to_be_visible()
        page.seen.assert_nothing()


REFUSED = [
    (MICROPHONE[:1], CHROMIUM, "The microphone is blocked"),  # the other has nobody to ask
    (MICROPHONE[1:], SHELL, "There is no microphone"),
]


@pytest.mark.parametrize(("flags", "program", "said"), REFUSED)
async def test_a_microphone_that_is_refused_or_missing_is_told_with_the_way_out(
    playwright, tmp_path, flags, program, said
):
    async with (
        launched(playwright, *flags, program=program) as browser,
        served("openai", tmp_path, Script(open_ended=True)) as server,
        visiting(browser, server) as page,
    ):
        await page.get_by_role("button", name="Call", exact=True).click()
        await expect(page.get_by_role("alert")).to_contain_text(said)
        await expect(page.get_by_role("alert")).to_contain_text("call again")
        await expect(page.locator("#call")).not_to_be_visible()
        await page.get_by_role("textbox", name="Say something").fill("I live in Haifa")
        await page.keyboard.press("Enter")
        await expect(card(page, "home")).to_contain_text("Haifa")
        assert server.calls == []
        page.seen.assert_nothing()


STORY = (
    Script(
        Says("Hello, who is there?"),
        UserSays("I'm Pavel and I live in Tel Aviv.", by_voice=True),
        Says("Nice to meet you, Pavel."),
        UserSays("Actually I moved to Lisbon.", by_voice=True),
        Says("Noted."),
        open_ended=True,
    ),
    Script(
        from_memory("Welcome back, {}. How can I help?", "name"),
        UserSays("Where do I live?", by_voice=True),
        from_memory(
            "You moved to {}, as you told me when we spoke last, and before that it was Tel Aviv for a while.",
            "home",
            word_ms=600,
        ),
        UserSays("Right, thank you.", by_voice=True),
        Says("My pleasure. Is there anything else?", word_ms=600),
        open_ended=True,
    ),
)


async def tell_the_story(page):
    """What the picture shows."""
    await call(page)
    await speak(page, "I'm Pavel and I live in Tel Aviv.")
    await expect(last(page, "agent")).to_contain_text("Nice to meet you")
    await speak(page, "Actually I moved to Lisbon.")
    await expect(last(page, "agent")).to_contain_text("Noted")
    await heard_out(page)
    await hang_up(page)
    await call(page)
    await expect(last(page, "agent")).to_have_text("Welcome back, Pavel. How can I help?")
    await speak(page, "Where do I live?")
    await expect(state(page)).to_have_text("Speaking")
    await asyncio.sleep(2 / SPEED)
    await speak(page, "Right, thank you.", cutting_in=True)
    await expect(last(page, "agent")).to_contain_text("My pleasure")
    await expect(page.locator("s.unheard")).to_have_count(1)
    await expect(page.locator(".operation", has_text="You interrupted")).to_have_count(1)
    await expect(state(page)).to_have_text("Speaking")


async def test_every_text_of_a_call_can_be_read_and_the_pictures_of_it_are_of_this_page(browser, tmp_path):
    async with (
        served("openai", tmp_path, *STORY, embedder=EMBEDDER) as server,
        calling(browser, server) as page,
    ):
        await tell_the_story(page)
        assert await low_contrast(page, "the call") == []
        pictures = {"light": IMAGES / "voice.png", "dark": IMAGES / "voice-dark.png"}
        if os.environ.get("ECHOIC_SCREENSHOTS") == "1" or not all(
            each.exists() for each in pictures.values()
        ):
            await page.mouse.move(5, 400)
            await page.get_by_role("button", name="Mute").click()
            await page.locator("#say").focus()
            IMAGES.mkdir(parents=True, exist_ok=True)
            for scheme, picture in pictures.items():
                await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                await page.screenshot(path=picture)
        for picture in pictures.values():
            head = picture.read_bytes()[:24]
            assert (int.from_bytes(head[16:20]), int.from_bytes(head[20:24])) == (1280, 800)
        for width in (320, 390, 768):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
        await photographed(page, "a call by voice")
        await hang_up(page)
        page.seen.assert_nothing()
