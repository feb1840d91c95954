"""A telephone and a page are linked by a code, given on either side, good once; and it can be undone."""

from __future__ import annotations

import asyncio
import importlib
import socket
import subprocess
import sys
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import httpx
import pytest

import echoic
from echoic.adapters.twilio.callers import PhoneLines
from echoic.adapters.twilio.proofs import MAX_CODE_GUESSES, TYPED_DIGITS, LinkCodes
from echoic.server import MemoryServer, ServerSettings, create_app, uvicorn_config

LINE = "phone:0123456789abcdef"
LINKED = {"phones": 1, "pin": False, "takenAt": []}


class Clock:
    def __init__(self):
        self.now = datetime(2026, 11, 20, 12, tzinfo=UTC)

    def __call__(self):
        return self.now


@pytest.fixture
async def service(tmp_path):
    async with echoic.open(f"sqlite:///{tmp_path}/codes.db", embedder="lexical") as service:
        yield service


@pytest.fixture
async def page(tmp_path):
    """A server of pages on the store a phone may answer from, in a service of its own."""
    async with AsyncExitStack() as stack:
        memory = echoic.open(f"sqlite:///{tmp_path}/echoic.db", embedder="lexical")
        app = create_app(memory, ServerSettings(secret="of these tests, and long enough for HS256"))
        listening = stack.enter_context(socket.socket(proto=socket.IPPROTO_TCP))
        listening.bind(("127.0.0.1", 0))
        server = MemoryServer(uvicorn_config(app))
        running = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=30, verify=False))
        yield client
        server.should_exit = True
        await running


async def identity(page):
    given = (await page.post("/api/identity")).json()
    return given["user"], {"Authorization": f"Bearer {given['userCookie']}"}


async def proven_line(codes, code):
    proven = await codes.take_proof(code)
    return proven and proven.line


async def test_a_code_proves_nobody_to_be_one_who_was_forgotten(service):
    codes = LinkCodes(service)
    given, line, other = await codes.give("ana"), await codes.give_line(LINE), await codes.give("bob")
    for forgotten in ("ana", LINE):
        receipt = await service.user(forgotten).forget()
        assert (receipt.other, receipt.verified) == (1, True)
    assert await codes.take(given.code) is None
    assert await proven_line(codes, line.code) is None
    assert await codes.take(other.code) == "bob"


async def test_a_code_is_good_once_for_minutes_and_only_for_what_it_was_given(service):
    clock = Clock()
    codes = LinkCodes(service, clock=clock)
    code = (await codes.give("ana")).code
    assert await proven_line(codes, code) is None, "a code of a page opens no page"
    assert [await codes.take(code), await codes.take(code)] == ["ana", None]
    old, new = await codes.give("ana"), await codes.give("ana")
    assert await codes.take(old.code) is None or old.code == new.code
    clock.now += timedelta(seconds=601)
    assert await codes.take(new.code) is None
    assert not await codes.waiting()


async def test_of_many_who_take_one_code_at_once_one_gets_it(service):
    code = await LinkCodes(service).give_line(LINE)
    takers = [LinkCodes(service) for _ in range(10)]
    taken = await asyncio.gather(*(proven_line(codes, code.code) for codes in takers))
    assert sorted(filter(None, taken)) == [LINE]


async def test_guesses_are_counted_before_they_are_looked_at_so_that_no_crowd_gets_by(service):
    clock = Clock()
    codes = LinkCodes(service, clock=clock)
    code = await codes.give("ana")
    wrong = f"{(int(code.code) + 1) % 1_000_000:06}"
    await asyncio.gather(*(LinkCodes(service, clock=clock).take(wrong) for _ in range(MAX_CODE_GUESSES + 5)))
    assert await codes.take(code.code) is None, "the right one as well, while it is that loud"
    assert await proven_line(codes, (await codes.give_line(LINE)).code) == LINE, (
        "the other kind is not disturbed"
    )
    clock.now += timedelta(seconds=601)
    assert await codes.take((await codes.give("ana")).code) == "ana"


async def test_a_right_code_is_no_guess(service):
    codes = LinkCodes(service)
    for _ in range(MAX_CODE_GUESSES + 2):
        assert await codes.take((await codes.give("ana")).code) == "ana"


async def test_codes_of_one_deployment_are_no_good_in_another(service):
    code = await LinkCodes(service, "acme").give("ana")
    assert await LinkCodes(service, "default").take(code.code) is None
    assert await LinkCodes(service, "acme").take(code.code) == "ana"


async def test_a_code_is_kept_as_a_hash_and_goes_when_it_is_used(service, tmp_path):
    codes = LinkCodes(service)
    code = await codes.give_line(LINE)
    await service.settle()
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("codes.db*") if path.is_file())
    assert code.code.encode() not in kept
    assert await proven_line(codes, code.code) == LINE
    assert await codes._records() == []


async def test_a_page_gets_a_code_that_is_said_on_the_phone_and_can_undo_it(line, page):
    phone = await line(lambda _said, _given: "Yes.")
    user, headers = await identity(page)
    kept = {"operation": "set", "key": "boat", "value": "Nellie", "deploymentId": "default"}
    token = headers["Authorization"].split()[1]
    assert (await page.post("/api/memory", json={**kept, "userCookie": token})).status_code == 200
    given = (await page.post("/api/phone/code", headers=headers)).json()
    assert len(given["code"]) == 6
    call = await phone.call()
    assert "linked" in await call.press(given["code"])
    await call.say("What is my boat called?")
    assert "Nellie" in phone.script.sent[-1], "another process gave the code, and keeps the memory"
    await call.hang_up()
    assert (await page.get("/api/phone/links", headers=headers)).json() == LINKED
    assert (await page.post("/api/phone/unlink", headers=headers)).json() == {"unlinked": 1}
    assert (await page.post("/api/phone/unlink", headers=headers)).json() == {"unlinked": 0}
    again = await phone.call()
    await again.say("What is my boat called?")
    assert "Nellie" not in phone.script.sent[-1]
    assert (await phone.phone.callers.identify("+15550100001", "TN-Validation-Passed-A")).user != user


async def test_a_call_gets_a_code_that_is_typed_into_the_page(line, page):
    def answer(said, given):
        if "browser" in said and not given:
            return [("browser_code", {})]
        return f"Your code is {given[0]['result']['code']}." if given else "Yes."

    phone = await line(answer)
    user, headers = await identity(page)
    call = await phone.call()
    heard = await call.say("Link my browser, please.")
    code = "".join(c for c in heard if c.isdigit())
    assert len(code) == TYPED_DIGITS
    typed = f"{code[:4]} {code[4:]}"
    linked = await page.post("/api/phone/link", json={"code": typed}, headers=headers)
    assert (linked.status_code, linked.json()) == (200, LINKED)
    twice = await page.post("/api/phone/link", json={"code": typed}, headers=headers)
    assert (twice.status_code, twice.json()["code"]) == (403, "code_not_good")
    await call.hang_up()
    assert (await phone.phone.callers.identify("+15550100001", "TN-Validation-Passed-A")).user == user


async def test_a_withheld_number_has_no_code_to_give(line):
    def answer(said, given):
        return given[0]["say"] if given else [("browser_code", {})]

    phone = await line(answer)
    call = await phone.call("anonymous")
    assert "withheld" in await call.say("Link my browser.")


@pytest.mark.parametrize("code", ["", "1234567", "abcdefgh", "\u0661" * 8, "00000000", "123456"])
async def test_a_wrong_code_is_refused_in_the_same_words_whatever_is_wrong_with_it(page, code):
    _, headers = await identity(page)
    answer = await page.post("/api/phone/link", json={"code": code}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "code_not_good")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "code"),
        ("POST", "link"),
        ("GET", "links"),
        ("POST", "unlink"),
        ("POST", "pin"),
        ("DELETE", "pin"),
    ],
)
async def test_nobody_gets_or_gives_a_code_without_an_identity(page, method, path):
    for headers in ({}, {"Authorization": "Bearer forged"}):
        answer = await page.request(method, f"/api/phone/{path}", json={"code": "1"}, headers=headers)
        assert answer.status_code == 401


async def test_one_user_neither_sees_nor_undoes_the_links_of_another(service):
    lines = PhoneLines(service, "default")
    await lines.link(LINE, "ana")
    assert await lines.linked_to("ben") == []
    assert await lines.unlink_user("ben") == 0
    assert (await lines.read(LINE)).linked == "ana"
    await lines.link(LINE, "ben")
    assert await lines.linked_to("ana") == []
    assert await lines.unlink_user("ana") == 0, "it is another's by now"


async def test_a_pin_that_was_set_on_the_page_opens_its_users_memory_on_the_phone_and_can_be_removed(
    line, page
):
    secret = "of these tests, and long enough for HS256"
    phone = await line(lambda _said, _given: "Yes.", salt=secret)
    user, headers = await identity(page)
    weak = await page.post("/api/phone/pin", json={"pin": "123456"}, headers=headers)
    assert weak.status_code == 422
    assert "123456" not in weak.text
    assert (await page.post("/api/phone/pin", json={"pin": "482913"}, headers=headers)).json() == {
        "pin": True
    }
    code = (await page.post("/api/phone/code", headers=headers)).json()["code"]
    first = await phone.call(attestation="")
    assert "in this call" in await first.press(code)
    await first.hang_up()
    again = await phone.call(attestation="")
    assert "I know who you are" in await again.say("My PIN is 482913.")
    assert phone.phone.known(again.sid).caller.user == user
    await again.hang_up()
    assert (await page.get("/api/phone/links", headers=headers)).json() == {
        **LINKED,
        "phones": 0,
        "pin": True,
    }
    assert (await page.delete("/api/phone/pin", headers=headers)).json() == {"pin": False}
    third = await phone.call(attestation="")
    assert "does not tell me" in await third.say("My PIN is 482913.")


async def test_a_page_cannot_take_a_line_on_which_somebody_else_has_memories(line, page):
    phone = await line(lambda _said, _given: "Yes.")
    known = await phone.call()
    await known.say("My name is Ana.")
    await known.hang_up()
    _, headers = await identity(page)
    code = await phone.phone.links.give_line(phone.phone.callers.line_of("+15550100001"))
    refused = await page.post("/api/phone/link", json={"code": code.code}, headers=headers)
    assert (refused.status_code, refused.json()["code"]) == (403, "line_not_proven")
    assert (await page.get("/api/phone/links", headers=headers)).json() == {**LINKED, "phones": 0}


def test_pages_are_linked_where_no_phone_package_is_installed():
    program = (
        "import sys; sys.modules['twilio'] = None; sys.modules['pydantic_ai'] = None\n"
        "import echoic.server.routes.identity, echoic.adapters.twilio as phone\n"
        "print(phone.LinkCodes.__name__)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "LinkCodes", ran.stderr


@pytest.mark.parametrize("package", ["echoic.adapters.twilio", "echoic.adapters.browser", "echoic.session"])
def test_every_name_that_a_package_of_calls_exports_can_be_imported(package):
    module = importlib.import_module(package)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
