from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echoic.errors import StoreCorrupt, StoreTooNew
from echoic.stores.base import Record
from echoic.stores.files import FilesStore
from echoic.testing.store_histories import attach, everything, expected, loaded, note, opened, put, told, unit
from echoic.types import Scope
from scale import many

ANA = Scope("default", "ana")
THEIRS = """
## Preferences

- Prefers dark mode
- Likes concise answers

## Entities

- Works at Acme Corp
"""


def fact(name: str, text: str, category: object = "preference", **more: object) -> Record:
    data = {"text": text, "category": category, "valid_from": "2026-11-20T10:00:00+00:00", **more}
    return Record(kind="memory", id=name, data=data)


def lines(path: Path) -> list[str]:
    """What a person reads: the file without our part."""
    return path.read_text().split("\n\n<!-- Kept by Echoic")[0].split("\n")


async def texts(store: FilesStore) -> list[tuple[str, str]]:
    return [(r.data["text"], r.data["category"]) for r in await store.scan(ANA, "memory")]


async def test_a_file_of_another_program_opens_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ana.md"
    path.write_text(THEIRS)
    async with opened(FilesStore(tmp_path, "markdown")) as store:
        assert await texts(store) == [
            ("Prefers dark mode", "preference"),
            ("Likes concise answers", "preference"),
            ("Works at Acme Corp", "entity"),
        ]
        assert path.read_text() == THEIRS, "looking changed the file"
        records = await everything(store, ANA)
        await store.write(ANA, [put(fact("new", "Chose the red one", "decision")), put(note("n", n=1))])
        assert [told(r) for r in await everything(store, ANA)][:3] == [told(r) for r in records]
        assert lines(path) == [
            "",
            "## Preferences",
            "",
            f"- Prefers dark mode <!-- id={records[0].id} -->",
            f"- Likes concise answers <!-- id={records[1].id} -->",
            "",
            "## Entities",
            "",
            f"- Works at Acme Corp <!-- id={records[2].id} -->",
            "",
            "## Decisions",
            "",
            "- Chose the red one <!-- id=new -->",
        ]


async def test_our_own_file_reads_well(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path, "markdown")) as store:
        await store.write(
            ANA,
            [
                put(fact("a", "Likes tea")),
                put(fact("b", "Has a sister", "entity")),
                put(fact("c", "Likes rain")),
                put(fact("d", "Nobody said what this is", None)),
            ],
        )
        await store.write(ANA, [put(note("n", n=1))])
    assert lines(tmp_path / "ana.md") == [
        "# Memory of ana",
        "",
        "## Preferences",
        "",
        "- Likes tea <!-- id=a -->",
        "- Likes rain <!-- id=c -->",
        "",
        "## Entities",
        "",
        "- Has a sister <!-- id=b -->",
        "",
        "## Other",
        "",
        "- Nobody said what this is <!-- id=d -->",
    ]
    block = (tmp_path / "ana.md").read_text().split("```json echoic\n")[1].split("\n```")[0]
    assert [own["id"] for own in json.loads(block)["facts"]] == ["a", "b", "c", "d"]
    assert [own["id"] for own in json.loads(block)["records"]] == ["n"]


async def test_what_a_person_edits_is_known_at_the_next_look(tmp_path: Path) -> None:
    path = tmp_path / "ana.md"
    async with opened(FilesStore(tmp_path, "markdown")) as store:
        names = {"a": "likes tea", "b": "likes rain", "c": "likes fog", "d": "likes snow"}
        await store.write(ANA, [put(fact(name, text)) for name, text in names.items()])
        await store.write(ANA, [attach(r, r.seq) for r in await store.scan(ANA, "memory")])
        text = path.read_text()
        text = text.replace("- likes tea <", "- likes green tea <")  # said otherwise
        text = text.replace("- likes rain <!-- id=b -->\n", "")  # forgotten
        text = text.replace("- likes fog <!-- id=c -->\n", "")  # filed elsewhere …
        text = text.replace(
            "# Memory of ana", "# Memory of ana\n\nMy own notes.\n\n## Decisions\n\n- likes fog <!-- id=c -->"
        )
        text = text.replace(
            "<!-- id=d -->", "<!-- id=d -->\n- likes hail\n  and *thunder*,\n  both\n\nMore of my notes."
        )
        path.write_text(text)
        records = await store.scan(ANA, "memory")
        assert [(r.id, r.data["text"], r.data["category"], r.version, r.seq) for r in records][:3] == [
            ("a", "likes green tea", "preference", 2, 0),
            ("c", "likes fog", "decision", 2, 2),
            ("d", "likes snow", "preference", 1, 3),
        ]
        assert [(r.data["text"], r.seq) for r in records[3:]] == [("likes hail and *thunder*, both", 4)]
        vectors = {("memory", "c"): unit(2), ("memory", "d"): unit(3)}
        assert await loaded(store, ANA) == expected(records, vectors)
        await store.write(ANA, [put(note("n"))])
        now = lines(path)
        assert "My own notes." in now
        assert "More of my notes." in now
        assert now.index("- likes hail") + 2 == now.index(f"  both <!-- id={records[3].id} -->")
        assert [told(r) for r in await store.scan(ANA, "memory")] == [told(r) for r in records]
    async with opened(FilesStore(tmp_path, "markdown")) as store:
        assert [told(r) for r in await store.scan(ANA, "memory")] == [told(r) for r in records]


async def test_a_line_below_our_part_is_picked_up(tmp_path: Path) -> None:
    path = tmp_path / "ana.md"
    async with opened(FilesStore(tmp_path, "markdown")) as store:
        await store.write(ANA, [put(fact("a", "likes tea"))])
        path.write_text(path.read_text() + "- likes jazz\n")
        assert await texts(store) == [("likes tea", "preference"), ("likes jazz", "preference")]
        await store.write(ANA, [put(note("n"))])
        assert await texts(store) == [("likes tea", "preference"), ("likes jazz", "preference")]
        assert path.read_text().rstrip().endswith("```")


async def test_what_is_no_fact_is_left_alone(tmp_path: Path) -> None:
    kept = """# Memory of ana

- not below a category

## Shopping

- milk

```
## Preferences
- not a fact but an example
```

~~~~
```
## Facts
- nor this
~~~~

### Preferences

- nor this

## Facts

Prose, 1. and so on.
 - indented
1. numbered

- Likes tea
"""
    (tmp_path / "ana.md").write_text(kept)
    async with opened(FilesStore(tmp_path, "markdown")) as store:
        assert await texts(store) == [("Likes tea", "fact")]
        await store.write(ANA, [put(note("n"))])
        assert "\n".join(lines(tmp_path / "ana.md")).startswith(kept.rstrip())


async def test_a_moved_category_moves_the_line(tmp_path: Path) -> None:
    async with opened(FilesStore(tmp_path, "markdown")) as store:
        await store.write(ANA, [put(fact("a", "one")), put(fact("b", "two"))])
        await store.write(ANA, [put(fact("a", "one", "decision"))])
        await store.write(ANA, [put(fact("b", "two", ["odd"]))])
        now = lines(tmp_path / "ana.md")
        assert now.index("## Decisions") + 2 == now.index("- one <!-- id=a -->")
        assert now.index("## Other") + 2 == now.index("- two <!-- id=b -->")
        assert [r.data["category"] for r in await store.scan(ANA, "memory")] == ["decision", ["odd"]]
        await store.write(ANA, [put(fact("b", "two", "preference")), put(fact("c", "three"))])
        now = lines(tmp_path / "ana.md")
        assert now.index("## Preferences") + 2 == now.index("- two <!-- id=b -->")
        assert now.index("- two <!-- id=b -->") + 1 == now.index("- three <!-- id=c -->")


TRICKY = [
    "two\nlines",
    "  spaces  around and  within ",
    "ends in a comment <!-- id=a -->",
    "<!-- id=b -->",
    "```",
    "```json echoic\n{}\n```",
    "## Preferences",
    "- a list",
    "",
    " ",
    "a\u2028b\u0085c\x0bd\x1ee",
    "\\n",
    "&lt;!-- already",
    "a\r\nb\rc",
    "# Memory of bob",
]


@pytest.mark.parametrize("text", TRICKY)
async def test_no_text_breaks_the_file(tmp_path: Path, text: str) -> None:
    async with opened(FilesStore(tmp_path, "markdown")) as store:
        await store.write(ANA, [put(fact("x y-->", text, more={"a": text})), put(fact("b", "other"))])
        records = [told(r) for r in await everything(store, ANA)]
    async with opened(FilesStore(tmp_path, "markdown")) as store:
        assert [told(r) for r in await everything(store, ANA)] == records
        await store.write(ANA, [put(fact("c", "third"))])
        assert [told(r) for r in await everything(store, ANA)][:2] == records
        assert (await store.scan(ANA, "memory"))[0].data["text"] == text


@settings(
    max_examples=many(60, least=10),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    said=st.lists(
        st.tuples(
            st.text(st.sampled_from("ab \n#-`<!->&;\\*_"), max_size=14),
            st.sampled_from(["preference", "fact", "odd", None, 5]),
        ),
        max_size=6,
    )
)
async def test_whatever_is_written_is_read_back_by_another(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, object]]
) -> None:
    folder = tmp_path_factory.mktemp("m")
    records = [
        Record(kind="memory", id=str(n), data={"text": t, "category": c}) for n, (t, c) in enumerate(said)
    ]
    async with (
        opened(FilesStore(folder, "markdown")) as store,
        opened(FilesStore(folder, "markdown")) as other,
    ):
        for record in records:
            await store.write(ANA, [put(record)])
        assert [told(r) for r in await everything(other, ANA)] == [
            told(r) for r in await everything(store, ANA)
        ]
        assert [r.data for r in await other.scan(ANA, "memory")] == [r.data for r in records]


async def test_an_edited_line_of_a_text_that_takes_several_counts(tmp_path: Path) -> None:
    path = tmp_path / "ana.md"
    async with opened(FilesStore(tmp_path, "markdown")) as store:
        await store.write(ANA, [put(fact("a", "first\nsecond"))])
        assert "- first second <!-- id=a -->" in lines(path)
        path.write_text(path.read_text().replace("- first second", "- first third"))
        assert await texts(store) == [("first third", "preference")]


async def test_a_copied_line_is_another_fact(tmp_path: Path) -> None:
    path = tmp_path / "ana.md"
    async with opened(FilesStore(tmp_path, "markdown")) as store:
        await store.write(ANA, [put(fact("a", "first\nsecond"))])
        line = "- first second <!-- id=a -->"
        path.write_text(path.read_text().replace(line, f"{line}\n{line}"))
        assert await texts(store) == [("first\nsecond", "preference"), ("first second", "preference")]
        await store.write(ANA, [put(note("n"))])
        records = await store.scan(ANA, "memory")
        assert [r.id == "a" for r in records] == [True, False]
        assert lines(path)[-1] == f"- first second <!-- id={records[1].id} -->"


@pytest.mark.parametrize(
    "cut",
    ["```json echoic", '"facts": [', "<!-- Kept by Echoic", "\n```\n"],
    ids=["the opening", "the middle", "the note", "the closing"],
)
async def test_a_file_that_was_cut_short_is_never_a_smaller_memory(tmp_path: Path, cut: str) -> None:
    path = tmp_path / "ana.md"
    async with opened(FilesStore(tmp_path, "markdown")) as store:
        await store.write(ANA, [put(fact("a", "likes tea")), put(fact("b", "likes rain")), put(note("n"))])
        text = path.read_text()
        path.write_text(text[: text.rindex(cut)])
        for verb in (store.scan(ANA, "memory"), store.write(ANA, [put(fact("c", "x"))]), store.erase(ANA)):
            with pytest.raises(StoreCorrupt, match=r"ana\.md"):
                await verb
        assert path.read_text() == text[: text.rindex(cut)]
        path.write_text(text)
        assert len(await everything(store, ANA)) == 3


async def test_a_file_of_a_newer_version_is_left_untouched(tmp_path: Path) -> None:
    path = tmp_path / "ana.md"
    path.write_text('# Memory of ana\n\n```json echoic\n{"format": 9}\n```\n')
    async with opened(FilesStore(tmp_path, "markdown")) as store:
        with pytest.raises(StoreTooNew):
            await store.scan(ANA, "memory")


async def test_an_editor_may_end_lines_as_it_likes(tmp_path: Path) -> None:
    path = tmp_path / "ana.md"
    async with opened(FilesStore(tmp_path, "markdown")) as store:
        await store.write(ANA, [put(fact("a", "likes tea")), put(note("n", n=1))])
        records = [told(r) for r in await everything(store, ANA)]
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
        assert [told(r) for r in await everything(store, ANA)] == records


async def test_a_name_of_many_lines_stays_on_one(tmp_path: Path) -> None:
    odd = Scope("default", "a\n## Preferences\n- x <!-- id=y -->")
    async with opened(FilesStore(tmp_path, "markdown")) as store:
        await store.write(odd, [put(fact("a", "likes tea"))])
        await store.write(Scope("default", None), [put(fact("a", "everyone's"))])
        assert [r.data["text"] for r in await store.scan(odd, "memory")] == ["likes tea"]
        assert lines(tmp_path / "%everyone.md")[0] == "# Memory of everyone"
