"""A real browser in front of a real server process: what tests of the page need, and no test."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from playwright.async_api import expect

import forked

IMAGES = Path(__file__).parents[2] / "docs" / "images"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
SHELL = shutil.which("chromium-headless-shell") or CHROMIUM
"""The same engine without the browser around it: less of the processor. With a played device it has sound."""
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
# The list under the address bar is a page of the browser's own, and costs each window as much as a call. The last
# flag of this name counts: these are Playwright's own, too, as far as a test would notice them.
WITHOUT = (
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup,"
    "AimEnabled,AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,HttpsFirstBalancedModeAutoEnable,"
    "HttpsUpgrades,LensOverlay,MediaRouter,NetworkTimeServiceQuerying,OptimizationHints,PaintHolding,"
    "PreconnectToSearch,ThirdPartyStoragePartitioning"
)
STARTS_S = 60
VIEWPORT = {"width": 1280, "height": 800}
EMBEDDER = "local" if os.environ.get("ECHOIC_SCREENSHOTS") == "1" else "lexical"
"""Pictures show what callers see; other tests need no model, which takes a second to load and time for each word."""
expect.set_options(timeout=30_000)  # a machine may be busy; what is right is there at once


class Process:
    """`echoic serve`, which can be stopped and started again on the same port and store."""

    def __init__(self, directory, *words, **variables):
        self._directory, self._words, self._variables = directory, words, variables
        self._process = None
        self.url = ""

    def start(self):
        port = str(httpx.URL(self.url).port) if self.url else "0"
        command = [
            sys.executable,
            "-m",
            "echoic.cli",
            "--store",
            "sqlite:///echoic.db",
            "serve",
            "--port",
            port,
            *self._words,
        ]
        self._process = forked.Popen(
            command,
            cwd=self._directory,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.url = self._announced().rstrip("/")

    def stop(self, *, killed=False):
        if self._process is None:
            return
        self._process.kill() if killed else self._process.terminate()
        self._process.communicate(timeout=30)
        self._process = None

    def _environment(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ECHOIC_")}
        return {**kept, "ECHOIC_EMBEDDER": EMBEDDER, **self._variables}

    def _announced(self):
        lines = queue.Queue()
        threading.Thread(target=lambda: lines.put(self._process.stdout.readline()), daemon=True).start()
        try:
            line = lines.get(timeout=STARTS_S).strip()
        except queue.Empty:
            line = ""
        if not line:
            self._process.kill()
            raise AssertionError(f"the server did not start: {self._process.communicate()[1][-2000:]}")
        return line


@asynccontextmanager
async def launched(playwright, *flags, program=CHROMIUM):
    """A Chromium with `flags` beside those that all tests need."""
    if program is None:
        pytest.skip("no chromium and no google-chrome on this machine")
    browser = await playwright.chromium.launch(executable_path=program, args=[*FLAGS, WITHOUT, *flags])
    try:
        yield browser
    finally:
        await browser.close()


class Seen:
    """What went wrong in a page, as the browser tells it."""

    def __init__(self, page):
        self.console, self.errors, self.dialogs, self.foreign = [], [], [], []
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", self._dialog)

    def _said(self, message):
        # lines break when a test kills the server: the browser says so, the page takes them up again
        if message.type == "error" and "net::ERR_" not in message.text:
            self.console.append(message.text)

    async def _dialog(self, dialog):
        self.dialogs.append(dialog.message)
        await dialog.dismiss()

    def assert_nothing(self):
        seen = [*self.console, *self.errors, *self.dialogs, *self.foreign]
        assert not seen, seen  # no rewritten assertion here: it would not say what was seen


@asynccontextmanager
async def visiting(browser, process, *, script="", at="", **options):
    """A page of somebody who was never here, watched; `script` runs before any of its own. `at` is the place."""
    context = await browser.new_context(**{"viewport": VIEWPORT, "reduced_motion": "reduce", **options})
    context.set_default_timeout(30_000)
    page = await context.new_page()
    page.seen = Seen(page)
    page.on(
        "request", lambda r: page.seen.foreign.append(r.url) if not r.url.startswith(process.url) else None
    )
    await page.add_init_script(
        "window.violations = [];"
        "addEventListener('securitypolicyviolation',"
        " (event) => violations.push(`${event.violatedDirective} ${event.blockedURI}`));"
    )
    if script:
        await page.add_init_script(script)
    await page.goto(f"{process.url}/{at}" if at else process.url)
    if not at:
        await expect(page.locator(".turn.agent")).to_have_count(1)
    try:
        yield page
    finally:
        await context.close()


class OnePage:
    """One page for test after test, each as a caller whom nobody has met: loading it takes as long as most of them do.

    It is loaded anew after a test that failed.
    """

    def __init__(self, browser, process, **options):
        self._new = lambda: visiting(browser, process, **options)
        self._page, self._life = None, AsyncExitStack()

    async def close(self):
        self._page = None
        await self._life.aclose()

    @asynccontextmanager
    async def lent(self, request):
        """The page, for the test of `request`."""
        failed, page, self._page = request.session.testsfailed, self._page, None
        if page is None:
            await self.close()
            page = await self._life.enter_async_context(self._new())
        else:
            await somebody_else(page)
        yield page
        assert await page.evaluate("window.violations") == []
        page.seen.assert_nothing()
        if request.session.testsfailed == failed:
            self._page = page


async def somebody_else(page):
    """A caller whom nobody has met, on a page as it is when it was loaded; the browser knows of no other."""
    await page.unroute_all()
    await page.set_viewport_size(VIEWPORT)
    await page.emulate_media(color_scheme="light", reduced_motion="reduce")
    await press(page, "New caller")
    await page.get_by_role("tab", name="Memories").click()
    await page.get_by_role("textbox", name="Say something").focus()
    others = await page.evaluate(
        """() => {
          const { callers, current } = JSON.parse(localStorage.getItem("echoic.callers"));
          const here = callers.filter(({ user }) => user === current);
          localStorage.setItem("echoic.callers", JSON.stringify({ callers: here, current }));
          return callers.filter(({ user }) => user !== current).map(({ caller }) => caller);
        }"""
    )
    for caller in others:
        await page.context.clear_cookies(name=f"echoic_{caller}")


async def say(page, text):
    """Type it, send it, and wait for the answer."""
    await at_rest(page)  # an answer or a conversation that is still coming would be counted as this one
    before = await page.locator(".turn.agent").count()
    field = page.get_by_role("textbox", name="Say something")
    await field.fill(text)
    await field.press("Enter")
    await expect(page.locator(".turn.agent")).to_have_count(before + 1)
    return await settled(page)


async def settled(page):
    """Wait until the page is at rest; what the agent said last."""
    await at_rest(page)
    return await page.locator(".turn.agent .words").last.inner_text()


async def at_rest(page):
    await expect(page.locator("body:not([aria-busy])")).to_be_visible()


async def press(page, name):
    await page.get_by_role("button", name=name, exact=True).click()
    return await settled(page)


def card(page, key):
    return page.locator(f".card[data-key='{key}']")


async def token_of(page):
    """The token of whoever came last, which no script of the page can read."""
    stored = json.loads(await page.evaluate("localStorage.getItem('echoic.callers')"))
    return await cookie_of(page, stored["callers"][-1]["caller"])


async def signed_in(server, key):
    """How to visit a page whose browser signed in with `key` before."""
    headers = {"Authorization": f"Bearer {key}", "X-Echoic-Caller": "new"}
    async with httpx.AsyncClient(base_url=server.url, verify=False) as client:
        caller = (await client.post("/api/cookies/key", headers=headers)).json()["caller"]
        kept = [{"name": each.name, "value": each.value, "url": server.url} for each in client.cookies.jar]
    script = f"sessionStorage.setItem('echoic.key', {json.dumps(caller)});"
    return {"script": script, "storage_state": {"cookies": kept}}


async def cookie_of(page, caller):
    kept = {cookie["name"]: cookie["value"] for cookie in await page.context.cookies()}
    return kept[f"echoic_{caller}"]


# Contrast of every text that is seen, against the first opaque ground behind it (WCAG 2.2, 1.4.3).
CONTRAST = """
() => {
  const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const rgb = (css) => css.match(/[\\d.]+/g).map(Number);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = rgb(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const unseen = element.closest("noscript, .visually-hidden, .skip");
    if (!node.data.trim() || !element.checkVisibility() || unseen) continue;
    const text = luminance(rgb(getComputedStyle(element).color));
    const behind = luminance(ground(element));
    const ratio = (Math.max(text, behind) + 0.05) / (Math.min(text, behind) + 0.05);
    if (ratio < 4.5) low.push(`${ratio.toFixed(2)} ${node.data.trim().slice(0, 30)}`);
  }
  return low;
}
"""


async def low_contrast(page, when):
    """Texts that cannot be read, in light and in dark."""
    wrong = []
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        wrong += [f"{when}, {scheme}: {text}" for text in await page.evaluate(CONTRAST)]
    return wrong


WIDTHS = (320, 390, 1440, 1920)
# The view scrolls sideways at no width, and no control is drawn over another. What is stuck to an edge stays out:
# it is meant to be over what scrolls below it.
CROWDED = """
() => {
  const wrong = [];
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) wrong.push(`scrolls sideways: ${page.scrollWidth}`);
  const clipped = (element, rectangle) => {
    let { left, top, right, bottom } = rectangle;
    for (let at = element.parentElement; at; at = at.parentElement) {
      const { overflowX, overflowY, position } = getComputedStyle(at);
      if (position === "sticky" || position === "fixed") return null;
      if (overflowX === "visible" && overflowY === "visible") continue;
      const by = at.getBoundingClientRect();
      [left, top] = [Math.max(left, by.left), Math.max(top, by.top)];
      [right, bottom] = [Math.min(right, by.right), Math.min(bottom, by.bottom)];
    }
    return right - left > 1 && bottom - top > 1 ? { element, left, top, right, bottom } : null;
  };
  const pieces = [...document.querySelectorAll("a, button, input, select, textarea, summary")]
    .filter((element) => element.checkVisibility({ opacityProperty: true }) && !element.closest(".visually-hidden, .skip"))
    .flatMap((element) => [...element.getClientRects()].map((rectangle) => clipped(element, rectangle)))
    .filter(Boolean);
  const name = ({ element }) => element.getAttribute("aria-label") || element.innerText?.slice(0, 30) || element.id || element.tagName;
  pieces.forEach((one, place) => pieces.slice(place + 1).forEach((other) => {
    if (one.element.contains(other.element) || other.element.contains(one.element)) return;
    const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (wide > 1 && high > 1) wrong.push(`${name(one)} | ${name(other)}`);
  }));
  return wrong;
}
"""
PICTURES = Path(__file__).parents[2] / "build" / "screenshots"
AXE = Path(__file__).parent / "axe" / "node_modules" / "axe-core" / "axe.min.js"
"""axe-core, where `scripts/system-packages` could get it by npm."""
SERIOUS = """
async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target} ${node.failureSummary}`))
"""


async def crowded(page, when):
    """Where a view scrolls sideways or its controls overlap, at every width."""
    wrong, before = [], page.viewport_size
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 800})
        wrong += [f"{when}, {width} px: {each}" for each in await page.evaluate(CROWDED)]
    await page.set_viewport_size(before)
    return wrong


async def photographed(page, view):
    """Put pictures of a view into build/screenshots."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    before = page.viewport_size
    for width, height in ((390, 844), (1440, 900)):
        await page.set_viewport_size({"width": width, "height": height})
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            await page.screenshot(path=PICTURES / f"{view.replace(' ', '-')}-{width}-{scheme}.png")
    await page.set_viewport_size(before)


async def inaccessible(page, when):
    """What axe-core finds serious or critical in a view, in light and in dark."""
    if not AXE.exists():
        return []  # a test of its own says so
    if not await page.evaluate("() => 'axe' in window"):
        await page.evaluate(AXE.read_text(encoding="utf-8"))
    wrong = []
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        wrong += [f"{when}, {scheme}: {each}" for each in await page.evaluate(SERIOUS)]
    return wrong
