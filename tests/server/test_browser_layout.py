"""Nothing on the page is drawn over anything else, at any size of the window; measured in a real browser."""

from __future__ import annotations

import contextlib

import pytest
from playwright.async_api import TimeoutError as NotYet
from playwright.async_api import expect

from scale import some
from server.browsing import Process, press, say, settled, visiting

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

SIZES = [(1280, 800), (1280, 600), (1280, 460), (1024, 768), (800, 600), (844, 390), (390, 844), (320, 568)]
LONG = "and the thing is that " * 30

# Every piece of text or control that is seen: the part of its rectangle that no scrolling ancestor cuts off.
# Two of them that share more than a pixel either way are drawn over one another, unless one holds the other.
OVERLAPS = """
() => {
  const clipped = (element) => {
    let { left, top, right, bottom } = element.getBoundingClientRect();
    for (let at = element.parentElement; at; at = at.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(at);
      if (overflowX === "visible" && overflowY === "visible") continue;
      const by = at.getBoundingClientRect();
      [left, top] = [Math.max(left, by.left), Math.max(top, by.top)];
      [right, bottom] = [Math.min(right, by.right), Math.min(bottom, by.bottom)];
    }
    return { element, left, top, right, bottom };
  };
  const pieces = [...document.querySelectorAll(
    ".top, .intro p, #transcript > li, .compose > *, .say > *, .suggestion, .call > *, .panel"
  )]
    .filter((element) => element.checkVisibility() && !element.matches(".visually-hidden"))
    .map(clipped)
    .filter(({ left, top, right, bottom }) => right - left > 1 && bottom - top > 1);
  const name = ({ element }) => `${element.className || element.id || element.tagName}: ${element.innerText?.slice(0, 30)}`;
  const found = [];
  for (const one of pieces) for (const other of pieces) {
    if (one === other || one.element.compareDocumentPosition(other.element) !== 4) continue;
    const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (wide > 1 && high > 1) found.push(`${name(one)} | ${name(other)}`);
  }
  return found;
}
"""

# What was said last can be read, and the field to answer in is there.
LAST_IS_SEEN = """
() => {
  const last = document.querySelector("#transcript > li:last-child").getBoundingClientRect();
  const field = document.querySelector(".compose").getBoundingClientRect();
  const top = document.querySelector(".top").getBoundingClientRect();
  return last.bottom <= field.top + 1 && last.bottom > top.bottom;
}
"""


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    running = Process(tmp_path_factory.mktemp("layout"), ECHOIC_EMBEDDER="lexical")
    running.start()
    yield running
    running.stop()


async def drawn(page):
    """Wait until the browser has drawn what was changed."""
    await page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


async def look(page, when, *, at_the_end=True):
    """Nothing overlaps and the end is seen, at every size in turn."""
    wrong = []
    for width, height in SIZES:
        await page.set_viewport_size({"width": width, "height": height})
        await drawn(page)
        with contextlib.suppress(NotYet):  # a busy machine scrolls some frames later
            seen = f"({LAST_IS_SEEN})()" if at_the_end else "true"
            await page.wait_for_function(f"({OVERLAPS})().length === 0 && {seen}", timeout=10_000)
            continue
        wrong += [f"{when}, {width} x {height}: {pair}" for pair in await page.evaluate(OVERLAPS)]
        if at_the_end and not await page.evaluate(LAST_IS_SEEN):
            wrong.append(f"{when}, {width} x {height}: what was said last is not seen")
    assert wrong == []


@pytest.mark.parametrize("scheme", some(["light", "dark"]))  # nothing is elsewhere in the other
async def test_the_introduction_is_never_drawn_over_what_is_said(browser, process, scheme):
    async with visiting(browser, process, color_scheme=scheme) as page:
        await settled(page)
        await expect(page.locator("#intro")).to_be_visible()
        await look(page, "fresh")
        for day in range(1, 4):
            await press(page, "Come back tomorrow")
            await look(page, f"day {day}")
        await press(page, "New caller")
        await look(page, "a new caller")
        await say(page, f"I'm Pavel {LONG}")
        await look(page, "after a long sentence")
        await press(page, "Come back tomorrow")
        await look(page, "the next day")
        page.seen.assert_nothing()


@pytest.mark.parametrize("way", ["blocked", "without a line"])
async def test_talk_that_cannot_begin_leaves_everything_readable(browser, process, way):
    """The notice takes its place from the conversation, and the end of that stays in sight."""
    script = (
        "window.SpeechRecognition = window.webkitSpeechRecognition = class extends EventTarget {"
        f" start() {{ setTimeout(() => {{ const error = '{'not-allowed' if way == 'blocked' else 'network'}';"
        " this.onerror?.({ error }); this.dispatchEvent(Object.assign(new Event('error'), { error }));"
        " this.onend?.({}); this.dispatchEvent(new Event('end')); }); } stop() {} abort() {} };"
        "navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('', 'NotAllowedError'); };"
    )
    async with visiting(browser, process, script=script) as page:
        await settled(page)
        talk = page.get_by_role("button", name="Talk", exact=True)
        for _ in range(2):
            await talk.click()
            await expect(page.locator("#notice")).to_be_visible()
            await expect(talk).to_be_visible()
            await settled(page)
            await look(page, "talk could not begin")


async def test_who_reads_further_up_is_left_there_and_who_is_at_the_end_stays_there(browser, process):
    async with visiting(browser, process) as page:
        await settled(page)
        for number in range(6):
            await say(page, f"{number} {LONG}")
        stage = page.locator(".stage")
        await expect(stage).to_be_visible()
        await look(page, "much was said")
        await page.set_viewport_size({"width": 1280, "height": 800})
        await drawn(page)
        await stage.evaluate("stage => { stage.scrollTop = 40; }")
        await drawn(page)
        await page.set_viewport_size({"width": 1280, "height": 600})
        await drawn(page)
        assert await stage.evaluate("stage => stage.scrollTop") == 40
        await stage.focus()
        await page.keyboard.press("End")
        await page.wait_for_function(LAST_IS_SEEN)
