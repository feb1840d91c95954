"""Memory for an agent on the telephone: the tools of every agent, and those of a call.

Storing and recalling take into account that keys are spoken, that a recalled conversation must fit into a
pause, and that the caller decides what is remembered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Final

from pydantic_ai.toolsets import FunctionToolset

from echoic.adapters.twilio.caller_session import CallerSession
from echoic.adapters.twilio.settings import PhoneSettings
from echoic.capability.memory import CallerMemory
from echoic.capability.tools import DATA, MISSING, Answer, MemoryTools, ToolUse
from echoic.errors import NotAllowed
from echoic.memory.conversation import in_digits, match_keys, spelled
from echoic.memory.user import UserMemory
from echoic.prompt.block import estimate_tokens
from echoic.session.agents import Restart
from echoic.session.text_call import TextCall
from echoic.text import content_words, sound
from echoic.types import Conversation, Turn

CLOSE: Final = 0.05
"""Two keys whose similarity to what was said differs by no more are ambiguous."""
_OVERHEAD_TOKENS: Final = 12
"""Tokens of a passage besides its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meant:
    """The stored keys that a spoken key may refer to."""

    conversation: Conversation | None = None
    likeness: float = 0.0
    choices: tuple[Conversation, ...] = ()
    """The candidates, if there are several or one has another number: ask the caller which one."""


def meant_by(spoken: str, stored: Sequence[Conversation]) -> Meant:
    """Which of `stored`, oldest first, `spoken` refers to. Of two with the same words, the newer."""
    newest: dict[tuple[str, ...], Conversation] = {}
    for conversation in stored:
        newest[tuple(in_digits(conversation.recall_key or ""))] = conversation
    keys = {c.id: c.recall_key or "" for c in reversed(newest.values())}
    by_id = {c.id: c for c in newest.values()}
    matches = match_keys(spoken, keys)
    if not matches:
        near = match_keys(spoken, keys, other_numbers=True)[:4]
        return Meant(choices=tuple(by_id[name] for name, _ in near))
    name, likeness = matches[0]
    alike = [
        by_id[other]
        for other, score in matches[1:]
        # if one matches word for word, only keys that sound the same are ambiguous
        if (likeness < 1 and likeness - score <= CLOSE) or sound_alike(keys[other], keys[name])
    ]
    if alike:
        return Meant(choices=(by_id[name], *alike[:3]), likeness=likeness)
    return Meant(conversation=by_id[name], likeness=likeness)


def sound_alike(a: str, b: str) -> bool:
    """Whether two keys sound the same, word by word."""
    if in_digits(a) == in_digits(b):
        return True
    first, second = spelled(a), spelled(b)
    if len(first) != len(second):
        return False
    return all(x == y or bool(set(sound(x)) & set(sound(y))) for x, y in zip(first, second, strict=True))


def passages(
    turns: Sequence[Turn], moment: str, budget_tokens: int, *, found: Mapping[str, int] | None = None
) -> list[dict[str, Any]]:
    """The turns that fit the budget: the best matches with their neighbours, then the end.

    They are in spoken order; turns left out appear as {"turns_left_out": n}.
    """
    heard = [turn for turn in turns if turn.heard_text.strip()]
    scores = _scores(heard, moment, found or {})
    order = [at for at in sorted(range(len(heard)), key=lambda at: -scores[at]) if scores[at] > 0]
    wanted = [near for at in order for near in (at, at + 1, at - 1) if 0 <= near < len(heard)]
    wanted += reversed(range(len(heard)))  # the outcome is at the end
    chosen: set[int] = set()
    room = budget_tokens
    for at in dict.fromkeys(wanted):
        cost = estimate_tokens(heard[at].heard_text) + _OVERHEAD_TOKENS
        if cost <= room:
            chosen.add(at)
            room -= cost
    return _shown(heard, chosen)


def page(turns: Sequence[Turn], number: int, budget_tokens: int) -> tuple[list[dict[str, Any]], int]:
    """Page `number`, from 1, of everything that was said, and the number of pages."""
    heard = [turn for turn in turns if turn.heard_text.strip()]
    pages: list[set[int]] = [set()]
    room = budget_tokens
    for at, turn in enumerate(heard):
        cost = estimate_tokens(turn.heard_text) + _OVERHEAD_TOKENS
        if cost > room and pages[-1]:
            pages.append(set())
            room = budget_tokens
        pages[-1].add(at)
        room -= cost
    place = min(max(number, 1), len(pages)) - 1
    return [_said(heard[at]) for at in sorted(pages[place])], len(pages)


def _scores(turns: Sequence[Turn], moment: str, found: Mapping[str, int]) -> list[float]:
    """Scores by words and sounds shared with the moment, weighted by rarity, and by the rank in a search."""
    asked = {code for word in content_words(moment) for code in (word.stem, *word.codes)}
    said = [
        {code for word in content_words(turn.heard_text) for code in (word.stem, *word.codes)}
        for turn in turns
    ]
    often = Counter(code for codes in said for code in codes)
    scores = []
    for turn, codes in zip(turns, said, strict=True):
        shared = sum(log(1 + len(turns) / often[code]) for code in codes & asked)
        place = found.get(turn.id)
        scores.append(shared + (0 if place is None else 3 / (1 + place)))
    return scores


def _shown(turns: Sequence[Turn], chosen: set[int]) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = []
    missing = 0
    for at, turn in enumerate(turns):
        if at not in chosen:
            missing += 1
            continue
        if missing:
            shown.append({"turns_left_out": missing})
        missing = 0
        shown.append(_said(turn))
    return [*shown, {"turns_left_out": missing}] if missing else shown


def _said(turn: Turn) -> dict[str, Any]:
    return {"said_by": turn.speaker, "text": turn.heard_text}


GUEST: Final = "I can't keep this call for you, because I don't know who is calling. Tell me who you are."
UNPROVEN: Final = (
    "I can't do that: nothing proves who is calling. Say or key in your PIN, or a code from your page."
)
THIS_CALL: Final = "I know you in this call; the phone itself is not linked."
NO_CODE: Final = "That code is wrong or has expired. Get a new one."
WITHHELD: Final = "Your number is withheld, so there is no phone to link. Call with it shown."
UNKEPT: Final = "Nothing of this call is kept, as you asked."
FORGOTTEN: Final = "Nothing of this call will be remembered. Goodbye!"
AFTER_FORGETTING: Final = "Say good-bye and call hang_up, unless the user wants to go on."
GOODBYE: Final = "Goodbye!"
LAST_WORDS: Final = "Say your last words now. The line ends when they were spoken."
NOT_YET: Final = "The user has said more meanwhile: the call goes on with that."
_STORE: Final = (
    "Store this call under a key, so that the user can have it recalled in another. Use it when asked to "
    "remember or save the call, and by yourself when it came to something worth taking up again. Choose "
    "a key that is easy to say and to hear: two or three plain words, like none of those there are. Tell the "
    "user the key."
)
_RECALL: Final = (
    "Recall an earlier call by what the user calls it. It need not be exact: keys are heard over a phone. "
    "If choices come back, ask the user which one. You get the summary and the passages that matter now; ask "
    "again with `about` for others, or with `part` for all that was said, page by page."
)
_SPEAK: Final = (
    "Change the line to another language, when the user asks for it or speaks it: they are then understood "
    "and answered in it, in this call and in later ones. One of: {languages}."
)
_NAMES: Final = {
    "agentMemory": "agent_memory",
    "store_conversation": "store_conversation",
    "recall_conversation": "recall_passages",
    "remember_call": "remember_call",
    "wrong_caller": "wrong_caller",
    "link_phone": "link_phone",
    "unlink_phone": "unlink_phone",
    "browser_code": "browser_code",
    "set_pin": "set_pin",
    "hang_up": "hang_up",
}
"""Tools in the order they are sent: name -> method."""
_PAGE_SHARE: Final = 2
"""A page of the whole conversation may have this many budgets, since it was asked for."""
_SEARCHED: Final = 40


class AnotherCaller(Restart):
    """The agent found that somebody else is speaking: the current action must not be done for them."""

    def __init__(self, name: str | None) -> None:
        super().__init__("another caller")
        self.name = name


class PhoneTools(MemoryTools):
    """The tools of one run in a call; see `MemoryTools`."""

    def __init__(
        self,
        call: TextCall,
        caller: CallerSession,
        settings: PhoneSettings,
        user: UserMemory,
        agent: str,
        *,
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(
            user, lambda: call.recorder.name, lambda: agent, timeout_s=settings.timeout_s, changed=changed
        )
        self._call, self._caller, self._settings = call, caller, settings

    def toolset(self) -> FunctionToolset[Any]:
        descriptions = {"store_conversation": _STORE, "recall_conversation": _RECALL}
        names = dict(_NAMES)
        if len(self._settings.spoken) > 1:
            names["speak_language"] = "speak_language"
            descriptions["speak_language"] = _SPEAK.format(languages=", ".join(self._settings.spoken))
        return FunctionToolset(
            [self.tool(method, name, descriptions.get(name)) for name, method in names.items()], id="echoic"
        )

    async def recall_passages(self, key: str, about: str | None = None, part: int | None = None) -> Answer:
        """Recall an earlier call.

        Args:
            key: what the user calls it by.
            about: what of it is wanted; left out: what the user just said.
            part: a page of all that was said, from 1; left out: the passages that matter.
        """
        seen = ToolUse("recall_conversation", "recall_conversation", key=key, query=about)
        return await self._watched(self._read(self._passages(key, about, part)), seen)

    async def remember_call(self, remember: bool) -> Answer:
        """Say whether this call may be remembered, once the user agreed or asked for it not to be.

        Args:
            remember: False destroys what was kept of it.
        """
        return await self._write(self._remember(remember=remember))

    async def wrong_caller(self, name: str | None = None) -> Answer:
        """Say that somebody else is speaking than was thought. What is known of the other is put away.

        Args:
            name: who it is, if they said so.
        """
        raise AnotherCaller(name)

    async def link_phone(self, code: str) -> Answer:
        """Link this phone with the user's other identity, by the code of six digits they were given there.

        Args:
            code: the digits.
        """
        return await self._write(self._link(code))

    async def browser_code(self) -> Answer:
        """Get a code of eight digits that links this phone with the user's browser: they type it in there.

        Say it slowly, digit by digit, twice.
        """
        return await self._write(self._code())

    async def speak_language(self, language: str) -> Answer:
        """Change the line to another language.

        Args:
            language: its tag.
        """
        return await self._write(self._speak(language))

    async def unlink_phone(self, not_mine: bool = False) -> Answer:
        """Undo the link of this phone with another identity, when the user asks for it.

        Args:
            not_mine: True if they say that they never linked it: what was said on this phone since then is
                taken out of the other identity's memory and given back to the phone's own.
        """
        return await self._write(self._unlink(not_mine=not_mine))

    async def set_pin(self) -> Answer:
        """Set or change the PIN by which the user proves who they are when they call, if they ask for it.

        Say what is answered. The digits are heard by the line and kept from you: never ask for them yourself.
        """
        return await self._write(self._pin())

    async def hang_up(self) -> Answer:
        """End the call, when the user says good-bye, asks you to hang up, or there is nothing more to do.

        What you say in this reply is spoken to its end first. Say good-bye once this was answered.
        """
        if not self._call.leave():
            return {"success": False, "note": NOT_YET}
        return {"success": True, "say": GOODBYE, "note": LAST_WORDS}

    async def _write(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return await super()._write(self._call.in_flight(work))

    def _refused(self) -> Answer:
        """The answer to a guest, for whom nothing is kept."""
        return {"success": False, "say": UNPROVEN if self._caller.caller.unproven else GUEST}

    async def _store(self, key: str, summary: str | None) -> Answer:
        if self._caller.caller.guest:
            return self._refused()
        words = self._call.recorder
        others = [c.recall_key or "" for c in await self._recallable() if c.id != words.name]
        if not await words.keep():
            raise TimeoutError  # not durable: the key would name half a conversation
        if words.opened is not None and words.opened.silent:
            return {"success": False, "say": UNKEPT}
        answer = await super()._store(key, summary)
        alike = [other for other in others if sound_alike(other, key)]
        if alike:
            answer["sounds_like"] = alike[:3]
            answer["note"] = (
                "Another stored call sounds the same: say so, or store this one under another key."
            )
        return answer

    async def _passages(self, key: str, about: str | None, part: int | None) -> Answer:
        meant = meant_by(key, await self._recallable())
        if meant.choices:
            names = [choice.recall_key for choice in meant.choices]
            told = [{"key": c.recall_key, "summary": c.summary} for c in meant.choices]
            return {"success": True, "result": None, "choices": told, "say": _which(names), "note": DATA}
        if meant.conversation is None:
            return {"success": True, "result": None, "say": MISSING}
        task = await self._user.task(meant.conversation.id)
        turns = task.turns if task else ()
        head = {"key": meant.conversation.recall_key, "summary": meant.conversation.summary}
        if part is not None:
            shown, pages = page(turns, part, self._settings.recall_tokens * _PAGE_SHARE)
            return {"success": True, "result": {**head, "turns": shown, "pages": pages}, "note": DATA}
        moment = about or self._call.moment
        found = await self._found(moment, meant.conversation.id)
        shown = passages(turns, moment, self._settings.recall_tokens, found=found)
        return {"success": True, "result": {**head, "turns": shown}, "note": DATA}

    async def _found(self, moment: str, conversation: str) -> dict[str, int]:
        """The rank of turns of a conversation in a search for the moment."""
        if not moment.strip():
            return {}
        recall = await self._user.recall(
            moment, limit=_SEARCHED, deadline_ms=self._timeout_s * 300, min_relevance=0
        )
        here = [hit.turn.id for hit in recall.hits if hit.turn and hit.turn.conversation == conversation]
        return {turn: place for place, turn in enumerate(here)}

    async def _recallable(self) -> list[Conversation]:
        return [c for c in await self._user.conversations() if c.recall_key]

    async def _remember(self, *, remember: bool) -> Answer:
        if not remember:
            await self._caller.keep_nothing()
            await self._changed()
            told = {"say": FORGOTTEN, "note": AFTER_FORGETTING}
            return {"success": True, "result": {"remembered": False}, **told}
        if self._caller.caller.guest:
            self._caller.unkept = False  # once they prove who they are
            return self._refused()
        recorder = self._call.recorder
        opened = recorder.opened
        if opened is None:
            opened = await recorder.memory.conversation(recorder.name, begin=False)
        if opened.silent:
            await opened.remember()
        self._caller.unkept = False
        if not await recorder.keep():
            raise TimeoutError
        return {"success": True, "result": {"remembered": True}}

    async def _link(self, code: str) -> Answer:
        linked = await self._caller.link(code)
        if linked is None:
            return {"success": False, "say": NO_CODE}
        return {"success": True, "result": {"linked": linked}, **({} if linked else {"say": THIS_CALL})}

    async def _code(self) -> Answer:
        try:
            code = await self._caller.code()
        except NotAllowed:
            return {"success": False, "say": UNPROVEN}
        if code is None:
            return {"success": False, "say": WITHHELD}
        return {"success": True, "result": {"code": " ".join(code.code), "good_for_minutes": 10}}

    async def _speak(self, language: str) -> Answer:
        if await self._caller.speak_in(language):
            return {"success": True, "result": {"language": self._caller.language}}
        return {"success": False, "say": f"I can speak these: {', '.join(self._settings.spoken)}."}

    async def _unlink(self, *, not_mine: bool) -> Answer:
        try:
            await self._caller.unlink(not_mine=not_mine)
        except NotAllowed:
            return {"success": False, "say": UNPROVEN}
        return {"success": True, "result": {"linked": False}}

    async def _pin(self) -> Answer:
        return {"success": True, "say": await self._caller.new_pin()}


def _which(names: Sequence[str | None]) -> str:
    *said, last = [f"“{name}”" for name in names]
    return f"Do you mean {', '.join(said)} or {last}?" if said else f"Do you mean {last}?"


@dataclass(kw_only=True)
class PhoneMemory(CallerMemory):
    """The caller's memory in one run of a call. The call itself stores turns, since it knows what was
    heard.
    """

    call: TextCall
    caller: CallerSession
    settings: PhoneSettings

    def get_toolset(self) -> FunctionToolset[Any]:
        agent = self._name or self.agent or ""
        tools = PhoneTools(self.call, self.caller, self.settings, self.memory, agent, changed=self.refresh)
        return tools.toolset()
