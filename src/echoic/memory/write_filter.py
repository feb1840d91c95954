"""The write filter: every change passes it on its way to the store and loses the secrets in it.

Every write goes through the service's store, which calls `WriteFilter.prepare`. Markers are stored, so no
reader of the store, and nothing that is learned from it, ever sees a secret.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from echoic.checks import checked_depth
from echoic.errors import EchoicError, InvalidInput, brief
from echoic.memory.injection import WHY, injected
from echoic.memory.records import (
    CALL,
    CHECKPOINT,
    CONVERSATION,
    EXCHANGE,
    INDEXED_ITEM,
    ITEM,
    LINK_CODE,
    LINK_GUESSES,
    MEMORY,
    PHONE_LINE,
    PHONE_OF,
    PHONE_PIN,
    PROPOSAL,
    TURN,
    named_by,
)
from echoic.secrets import (
    CONTEXT,
    Known,
    Masked,
    Said,
    SecretSpan,
    is_bare,
    leans_on_context,
    mask,
    mask_json,
    mask_named,
    mask_turn,
    replaced,
)
from echoic.secrets.forms import BLOCK
from echoic.stores.base import Change, Put, Record, Store
from echoic.types import Memory, Scope

if TYPE_CHECKING:
    from echoic.memory.extraction.reconciliation import ThirdParties


Secrets = Literal["mask", "keep"]
"""What happens to passwords, card numbers and the like. "mask": a marker is stored. "keep": they are stored.
"""

Instructions = Literal["refuse", "keep"]
"""What happens to a memory that addresses the model. "refuse": it is not stored. "keep": it is quoted like
any other."""

_OURS: Final = frozenset(
    {CALL, EXCHANGE, LINK_CODE, LINK_GUESSES, PHONE_OF, PHONE_PIN}
    | {"revocation", "key", "judgement", "consent", "progress", "lease", "hold", "erasure"}
)
"""Kinds that hold our own hashes, ids and times, and nothing that was said: an id may look like a key, and
the digits in a hash like a card's."""
_OUR_FIELDS: Final = ("at", "times", "taught_by", "tokens", "exchange")
"""Fields that hold our own times, counts and hashes, in records of what was said."""
_SCOPES: Final = 1024
_SECRETS: Final = 32
_TELLING: Final = 6
"""Digits of a number that is hardly repeated by chance; a caller must repeat twice as many."""
_READ_BACK: Final = 4
"""Digits that suffice in an agent's words, or in a tool's arguments."""
_LEAST_ENCODED: Final = 512
_ENCODED: Final = re.compile(
    r"(?<![\w+/=.-])(?<!bearer )(?<!basic )(?!(?-i:eyJ))[A-Za-z0-9+/_=-]{512,}", re.IGNORECASE
)
"""Binary data as text, such as an image. Keys as long are JSON tokens, which begin with "eyJ", and those that
something announces."""
_PROBE: Final = "k3Yq9Zt7Lm2Xw8Vb4Nc6"
"""Masked only in a field whose name announces a key."""
_STAND_IN: Final = "\ue000"
"""A private-use character, which no spoken text contains."""
_TOLD: Final = 128
_TOLD_CHARACTERS: Final = 400
"""Longer turns are not remembered: they are recognised by their own content."""
_PARTS: Final = 4096
"""Masked message parts that are cached: a checkpoint repeats the same ones every time."""

_PASSED: Final = 64
"""Memories that passed and are about to be written, so that they are not checked twice."""


class CheckedChanges(list[Change]):
    """Changes that passed the write filter."""

    rewritten: bool = False
    """Whether a stored record is replaced, so that its old bytes must be removed."""


class WriteFilter:
    """Masks secrets in what is about to be stored, and refuses what must not be.

    Masked secrets are remembered for a while, in this process only, so that they are found again when they
    are repeated.

    Raises:
        InvalidInput: an unknown mode.
    """

    def __init__(
        self,
        store: Store,
        secrets: Secrets,
        instructions: Instructions = "refuse",
        third_parties: ThirdParties = "keep",
    ) -> None:
        if secrets not in {"mask", "keep"}:
            raise InvalidInput(f"secrets must be 'mask' or 'keep', not {brief(secrets)}")
        if instructions not in {"refuse", "keep"}:
            raise InvalidInput(f"instructions must be 'refuse' or 'keep', not {brief(instructions)}")
        if third_parties not in {"keep", "adults", "drop"}:
            raise InvalidInput(
                f"third_parties must be 'keep', 'adults' or 'drop', not {brief(third_parties)}"
            )
        self._store, self._third_parties = store, third_parties
        self._refuses = instructions == "refuse"
        self.masks = secrets == "mask"
        self._known: OrderedDict[Scope, deque[Known]] = OrderedDict()
        self._told: OrderedDict[Scope, OrderedDict[str, str]] = OrderedDict()
        """Users' turns with a secret, and how they are stored: a checkpoint holds the original words."""
        self._parts: OrderedDict[bytes, dict[str, Any]] = OrderedDict()
        self._passed: OrderedDict[bytes, None] = OrderedDict()

    async def prepare(self, scope: Scope, changes: Sequence[Change]) -> CheckedChanges:
        """`changes` as they may be written."""
        if isinstance(changes, CheckedChanges):
            return changes
        prepared = CheckedChanges()
        if not self.masks:
            prepared.extend(changes)
            return prepared
        said: dict[str, list[tuple[Said, Record, bool]]] = {}
        for change in changes:
            if not isinstance(change, Put) or change.record.kind in _OURS:
                prepared.append(change)
            elif change.record.kind == TURN and not change.record.version and change.was is None:
                await self._turn(scope, change, prepared, said)
            elif change.record.kind == CHECKPOINT:
                prepared.append(replace(change, record=await self._checkpoint(scope, change.record)))
            else:
                prepared.append(replace(change, record=self._record(scope, change.record)))
        return prepared

    def refuse_third_parties(self, what: str, text: str, context: str | None, *, key: str | None) -> None:
        """Raise InvalidInput for texts about people that the deployment stores nothing about."""
        if self._third_parties == "keep":
            return
        from echoic.memory.extraction.reconciliation import is_dropped

        if is_dropped(self._third_parties, key, text, context):
            whom = "children" if self._third_parties == "adults" else "anybody but the user"
            raise InvalidInput(
                f"{what} is not kept: this deployment keeps nothing about {whom} (third_parties=)"
            )

    def refuse_instructions(self, what: str, *texts: str | None, key: str | None = None) -> None:
        """Raise InvalidInput if one of `texts`, to be stored under `key`, is an instruction to the model.

        The message names the texts as `what` and says why one looks like an instruction.
        """
        if not self._refuses:
            return
        for text in texts:
            if isinstance(text, str) and (kind := injected(text, key)):
                raise InvalidInput(
                    f"{what} reads as an instruction to the model ({WHY[kind]}) and is not kept: state "
                    "what is true of the user. Whoever runs this memory may have such texts kept, quoted: "
                    "instructions='keep', or --keep-instructions"
                )

    def key(self, key: str) -> str:
        """A memory's key as it is stored, to look it up.

        Masked by rules alone: what this process remembers, another that looks it up does not.
        """
        return mask(key).text if self.masks else key

    def memory(self, scope: Scope, memory: Memory) -> Memory:
        """`memory` as it will be stored, so that its id is not derived from what is masked.

        Raises:
            InvalidInput: its key repeats a secret that no rule finds there.
        """
        if not self.masks:
            return memory
        text, key, context = self._fields(scope, memory.text, memory.key, memory.context)
        known = self._of(scope)
        if key is not None and known and mask(key, known=known).text != key:
            raise InvalidInput(
                "key repeats a secret, such as a number that was masked where it was said: choose a key "
                "without it"
            )
        for user in (scope.user, None):  # it may become global
            self._passed[_digest(scope.deployment, user, text, key, context)] = None
        while len(self._passed) > _PASSED:
            self._passed.popitem(last=False)
        return replace(memory, text=text, key=key, context=context)

    def _fields(
        self, scope: Scope, text: str, key: str | None, context: str | None
    ) -> tuple[str, str | None, str | None]:
        masked, found = mask_named(text, key or "", self._of(scope))
        by_rules = mask(key or "")
        self._learn(scope, [*found, *by_rules.found])
        key = None if key is None else by_rules.text
        return masked, key, None if context is None else self.text(scope, context)

    def value(self, scope: Scope, value: Any, name: str = "") -> Any:
        """JSON as it will be stored under `name`; InvalidInput if it is nested too deep."""
        checked_depth(value, "a value")
        if not self.masks:
            return value
        masked, found = mask_json(value, label=name, known=self._of(scope, _READ_BACK))
        self._learn(scope, found)
        return masked

    def text(self, scope: Scope, text: str) -> str:
        """A text as it is stored."""
        return self._mask(scope, text).text

    def forget(self, scope: Scope) -> None:
        """Drop the masked secrets remembered for `scope`."""
        self._known.pop(scope, None)
        self._told.pop(scope, None)

    # -- one record

    def _record(self, scope: Scope, record: Record) -> Record:
        data = dict(record.data)
        if record.kind in {MEMORY, PROPOSAL}:
            return self._memory_record(scope, record, data)
        if record.kind == PHONE_LINE:  # of a person who also calls from it, the name was said
            named = {"name": self.text(scope, data["name"])} if "name" in data else {}
            return replace(record, data=data | named)
        if record.kind in {ITEM, INDEXED_ITEM}:
            return replace(record, data=self._item(scope, data))
        if record.kind == TURN:
            masked = self._mask(scope, data.get("text", ""))
            return replace(record, data=_turn_data(data, masked))
        if record.kind == CONVERSATION:
            for name in ("recall_key", "summary"):
                if isinstance(data.get(name), str):
                    data[name] = self.text(scope, data[name])
            return replace(record, data=data)
        ours: dict[str, Any] = {name: data.pop(name) for name in _OUR_FIELDS if name in data}
        if isinstance(step := data.get("name"), str) and "value" in data:  # the result of a step
            ours["name"] = data.pop("name")
            data["value"] = self.value(scope, data["value"], step)
        return replace(record, data=ours | self.value(scope, data))

    def _item(self, scope: Scope, data: dict[str, Any]) -> dict[str, Any]:
        """An item. Its names are ids, from which its record's key and id follow, and stay as they are."""
        fields = ("kind", "name", "conversation", "created_at", "updated_at")
        names: dict[str, Any] = {field: data.pop(field) for field in fields if field in data}
        name, value = str(names.get("name", "")), cast("Any", data.get("value"))
        if within := named_by(name, value):
            data["value"] = {field: each for field, each in value.items() if field not in within}
        masked = self._fields_of_item(scope, data, name)
        if within:
            masked["value"] = {**within, **masked["value"]}
        return {**names, **masked}

    def _fields_of_item(self, scope: Scope, data: dict[str, Any], name: str) -> dict[str, Any]:
        """What an item holds. Encoded data in it, such as an image, stays unchanged."""
        encoded: list[str] = []

        def stand_in(found: re.Match[str]) -> str:
            encoded.append(found.group())
            return f"{_STAND_IN}{len(encoded) - 1}{_STAND_IN}"

        def without(text: str, label: str) -> str:
            if len(text) < _LEAST_ENCODED or BLOCK.search(text) or mask_named(_PROBE, label)[1]:
                return text
            return _ENCODED.sub(stand_in, text)

        if _STAND_IN not in json.dumps(data, ensure_ascii=False):
            data = {
                field: _each_text(each, without, name if field == "value" else field)
                for field, each in data.items()
            }
        data = data | {"value": self.value(scope, data.get("value"), name)}
        masked: dict[str, Any] = self.value(scope, data)
        if not encoded:
            return masked
        put_back = re.compile(f"{_STAND_IN}([0-9]+){_STAND_IN}")
        whole: dict[str, Any] = _each_text(
            masked, lambda text, _: put_back.sub(lambda found: encoded[int(found[1])], text)
        )
        return whole

    def _memory_record(self, scope: Scope, record: Record, data: dict[str, Any]) -> Record:
        statement, context = data.get("statement"), data.get("context")
        context = context if isinstance(context, str) else None
        text = str(data.get("text", ""))
        if isinstance(statement, str):
            data["statement"] = self.text(scope, statement)
        elif self._passed.pop(_digest(scope.deployment, scope.user, text, record.key, context), 0) is None:
            return record  # `memory` has just returned it
        data["text"], key, context = self._fields(scope, text, record.key, context)
        return replace(record, key=key, data=data if context is None else data | {"context": context})

    def _mask(self, scope: Scope, text: str) -> Masked:
        if not self.masks:
            return Masked(text)
        masked = mask(text, known=self._of(scope))
        self._learn(scope, masked.found)
        return masked

    # -- turns

    async def _turn(
        self,
        scope: Scope,
        put: Put,
        prepared: CheckedChanges,
        said: dict[str, list[tuple[Said, Record, bool]]],
    ) -> None:
        """A turn, read together with those before it, some of which may have to be rewritten."""
        record = put.record
        one = _said(record.data)
        conversation = record.key or ""
        before = said.setdefault(conversation, [])
        if leans_on_context(one):
            before = said[conversation] = await self._before(scope, conversation, before)
        told = mask_turn(one, [each for each, _, _ in before], known=self._of(scope, _least(one)))
        for place, masked in told.earlier.items():
            self._again(scope, prepared, before, place, masked)
        self._learn(scope, told.masked.found)
        if one.speaker == "user":
            self._note_told(scope, one.text, told.masked)
        new = replace(record, data=_turn_data(dict(record.data), told.masked))
        prepared.append(replace(put, record=new))
        before.append((replace(one, text=told.masked.text), new, False))
        self._learn_whole(scope, told.masked.found, before)

    async def _before(
        self, scope: Scope, conversation: str, here: list[tuple[Said, Record, bool]]
    ) -> list[tuple[Said, Record, bool]]:
        """The stored turns before, and those of the same batch."""
        if len(here) >= CONTEXT or any(kept for _, _, kept in here):
            return here
        known = {record.id for _, record, _ in here}
        kept = [(_said(r.data), r, True) for r in await self._kept(scope, conversation) if r.id not in known]
        return [*kept, *here]

    async def _kept(self, scope: Scope, conversation: str) -> list[Record]:
        """The last stored turns of a conversation, oldest first."""
        try:
            records = await self._store.scan(scope, TURN, key=conversation, newest_first=True, limit=CONTEXT)
        except EchoicError:  # the write itself will raise
            return []
        return records[::-1]

    def _again(
        self,
        scope: Scope,
        prepared: CheckedChanges,
        before: list[tuple[Said, Record, bool]],
        place: int,
        masked: Masked,
    ) -> None:
        """Rewrite an earlier turn that turned out to contain a part of a secret."""
        one, record, kept = before[place]
        if not masked.found:
            return
        self._learn(scope, masked.found)
        self._note_told(scope, one.text, masked)
        new = replace(record, data=_turn_data(dict(record.data), masked))
        if kept:
            prepared.append(Put.over(record, new))
            prepared.rewritten = True
        else:
            for number, change in enumerate(prepared):
                if isinstance(change, Put) and change.record.kind == TURN and change.record.id == record.id:
                    prepared[number] = replace(change, record=new)
        before[place] = (replace(one, text=masked.text), new, kept)

    def _learn_whole(
        self, scope: Scope, found: Sequence[SecretSpan], before: list[tuple[Said, Record, bool]]
    ) -> None:
        """Remember a number dictated over several turns as a whole too: agents read it back that way."""
        if not found or found[-1].kind not in {"card", "account number", "ID number", "PIN", "one-time code"}:
            return
        known = self._known.get(scope)
        if known is None:
            return
        pieces = [one for one in known if one.kind == found[-1].kind and one.digits][-8:]
        if len(pieces) > 1 and len(pieces[-1].digits) <= 12 and len(before) > 1:
            whole = "".join(one.digits for one in pieces if len(one.digits) <= 12)
            if len(whole) <= 34:
                known.append(Known(found[-1].kind, whole))

    def _note_told(self, scope: Scope, text: str, masked: Masked) -> None:
        """Remember how `text` is stored. It may have been masked in part before."""
        if not masked.found or len(text) > _TOLD_CHARACTERS:
            return
        told = self._told.setdefault(scope, OrderedDict())
        self._told.move_to_end(scope)
        told |= {said: masked.text for said, kept in told.items() if kept == text} | {text: masked.text}
        while len(told) > _TOLD:
            told.popitem(last=False)
        while len(self._told) > _SCOPES:
            self._told.popitem(last=False)

    # -- checkpoints

    async def _checkpoint(self, scope: Scope, record: Record) -> Record:
        """A checkpoint with its turns and tool arguments masked.

        Messages contain an agent's question only as far as it was heard. So a caller's answer is read
        together with the whole turns, and masked in the messages as it is there.
        """
        data = dict(record.data)
        turns = [dict(turn) for turn in data.get("unkept", ())]
        told: dict[str, str] = dict(self._told.get(scope, {}))
        before: list[Said] = []
        if any(one.speaker == "user" and leans_on_context(one) for one in map(_said, turns)):
            before += [_said(r.data) for r in await self._kept(scope, str(data.get("conversation", "")))]
        for turn in turns:
            said = _said(turn)
            masked = self._in_dialogue(scope, said, before)
            if masked.found and said.speaker == "user":
                told[said.text] = masked.text
            _turn_data(turn, masked)
        data["unkept"] = turns
        if isinstance(messages := data.get("messages"), str):
            data["messages"] = self._messages(scope, messages, told)
        data["pending"] = [self._pending(scope, dict(tool)) for tool in data.get("pending", ())]
        if isinstance(data.get("summary"), str):
            data["summary"] = self.text(scope, data["summary"])
        return replace(record, data=data)

    def _pending(self, scope: Scope, tool: dict[str, Any]) -> dict[str, Any]:
        """A pending tool call. One whose arguments are masked cannot be made again."""
        arguments = self.value(scope, tool.get("arguments", {}), str(tool.get("name", "")))
        if arguments != tool.get("arguments", {}):
            tool["idempotent"] = False
        return {**tool, "arguments": arguments}

    def _messages(self, scope: Scope, messages: str, told: Mapping[str, str]) -> str:
        """Messages, masked turn by turn; the caller's words as masked in `told`."""
        try:
            parsed = json.loads(messages)
        except ValueError:
            return self.text(scope, messages)
        before: list[Said] = []

        def of(part: Mapping[str, Any]) -> dict[str, Any]:
            if _speaker(part) == "user":
                part = {k: told.get(v, v) if isinstance(v, str) else v for k, v in part.items()}
            return self._part(scope, part, before)

        changed = [_walked(message, of) for message in parsed]
        return messages if changed == parsed else json.dumps(changed, ensure_ascii=False)

    def _part(self, scope: Scope, part: Mapping[str, Any], before: list[Said]) -> dict[str, Any]:
        """One part of a message: speech and text as turns, everything else by field name."""
        seen = json.dumps([scope.deployment, scope.user, part, [one.text for one in before[-CONTEXT:]]])
        name = hashlib.blake2b(f"{seen}{self._of(scope)}".encode(), digest_size=16).digest()
        there = self._parts.get(name)
        if there is None:
            there = self._part_masked(scope, part, before)
            self._parts[name] = there
            while len(self._parts) > _PARTS:
                self._parts.popitem(last=False)
        elif isinstance(text := there.get("transcript") or there.get("content"), str):
            before.append(Said(_speaker(part), text))
        return there

    def _part_masked(self, scope: Scope, part: Mapping[str, Any], before: list[Said]) -> dict[str, Any]:
        done = dict(part)
        kind = str(part.get("part_kind", ""))
        for name in ("content", "transcript"):
            content = part.get(name)
            if isinstance(content, str) and kind in {"user-prompt", "text", "speech"}:
                done[name] = self._in_dialogue(scope, Said(_speaker(part), content), before).text
            elif name in part:
                done[name] = self.value(scope, content)
        if "args" in part:
            done["args"] = self.value(scope, part["args"], str(part.get("tool_name", "")))
        return done

    def _in_dialogue(self, scope: Scope, said: Said, before: list[Said]) -> Masked:
        told = mask_turn(said, before[-CONTEXT:], known=self._of(scope, _READ_BACK))
        self._learn(scope, told.masked.found)
        before.append(replace(said, text=told.masked.text))
        return told.masked

    # -- what is known

    def _of(self, scope: Scope, least: int = _TELLING) -> tuple[Known, ...]:
        """The masked secrets of `scope` that are spelled in words, or have at least `least` digits."""
        return tuple(
            one for one in self._known.get(scope, ()) if one.words or one.word or len(one.digits) >= least
        )

    def _learn(self, scope: Scope, found: Iterable[SecretSpan]) -> None:
        for one in found:
            new = Known(one.kind, one.value)
            if len(new.digits) < 4 and not new.words and not new.word:
                continue
            known = self._known.setdefault(scope, deque(maxlen=_SECRETS))
            self._known.move_to_end(scope)
            if new not in known:
                known.append(new)
        while len(self._known) > _SCOPES:
            self._known.popitem(last=False)


def _each_text(value: Any, change: Callable[[str, str], str], label: str = "") -> Any:
    """JSON with `change` applied to each text and the label that `mask_json` gives it, except names."""
    if isinstance(value, str):
        return change(value, label)
    if isinstance(value, Mapping):
        lead = label.rpartition(".")[2]
        return {name: _each_text(each, change, f"{lead}.{name}") for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_each_text(each, change, label) for each in value]
    return value


def _digest(*fields: str | None) -> bytes:
    return hashlib.blake2b(json.dumps(fields).encode(), digest_size=16).digest()


def _least(said: Said) -> int:
    if said.speaker == "agent":
        return _READ_BACK
    return _TELLING if is_bare(said.text) else 2 * _TELLING


def _speaker(part: Mapping[str, Any]) -> str:
    return "user" if part.get("part_kind") == "user-prompt" or part.get("speaker") == "user" else "agent"


def _walked(message: Any, part: Any) -> Any:
    """`message` with `part` applied to each of its parts."""
    if not isinstance(message, dict) or not isinstance(message.get("parts"), list):
        return message
    parts = [part(each) if isinstance(each, dict) else each for each in message["parts"]]
    return {**message, "parts": parts}


def _said(turn: Mapping[str, Any]) -> Said:
    return Said(str(turn.get("speaker", "")), str(turn.get("text", "")))


def _turn_data(data: dict[str, Any], masked: Masked) -> dict[str, Any]:
    """A turn's data with its text masked; the heard part stays a prefix of that text."""
    heard, text = data.get("heard"), data.get("text", "")
    data["text"] = masked.text
    if isinstance(heard, str) and masked.found:
        within = [one for one in masked.found if one.end <= len(heard)]
        cut = next((one.start for one in masked.found if one.start < len(heard) < one.end), len(heard))
        data["heard"] = replaced(text[:cut], within) if text.startswith(heard) else mask(heard).text
    return data
