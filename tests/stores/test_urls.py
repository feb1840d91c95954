from __future__ import annotations

from pathlib import Path

import pytest

from echoic.errors import InvalidInput
from echoic.stores import store_from
from echoic.stores.files import FilesStore
from echoic.stores.in_memory import InMemoryStore
from echoic.stores.sqlite import SQLiteStore
from echoic.testing.store_histories import ANA, memory, opened, put


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///rel.db", Path("rel.db")),
        ("sqlite:///a/rel.db", Path("a/rel.db")),
        ("sqlite:////abs.db", Path("/abs.db")),
        ("SQLite:////abs.db?cache_mb=8", Path("/abs.db")),
        ("sqlite:///C:/x.db", Path("C:/x.db")),
        ("sqlite:///100%25%3F#1 é.db", Path("100%?#1 é.db")),
    ],
)
def test_three_slashes_are_relative_and_four_are_absolute(url: str, path: Path) -> None:
    store = store_from(url)
    assert isinstance(store, SQLiteStore)
    assert store._path == path


@pytest.mark.parametrize(
    ("url", "path", "layout"),
    [
        ("files:///dir", Path("dir"), "json"),
        ("files:////var/dir", Path("/var/dir"), "json"),
        ("files:///dir/?format=markdown", Path("dir"), "markdown"),
        ("files:///.?format=json&cache_mb=1", Path(), "json"),
    ],
)
def test_a_folder_of_files_says_its_format(url: str, path: Path, layout: str) -> None:
    store = store_from(url)
    assert isinstance(store, FilesStore)
    assert (store._folder.root, store._folder.layout) == (path, layout)


def test_memory_needs_nothing() -> None:
    assert isinstance(store_from("memory://"), InMemoryStore)


def test_the_cache_is_bounded_in_megabytes() -> None:
    assert store_from("sqlite:///x.db?cache_mb=3")._cache._limit == 3 << 20
    assert store_from("files:///x?cache_mb=3")._cache._limit == 3 << 20


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://localhost", ["redis", "sqlite:///", "files:///", "memory://"]),
        ("echoic.db", ["echoic.db", "sqlite:///"]),
        ("", ["''", "sqlite:///"]),
        (None, ["None", "sqlite:///"]),
        ("sqlite:/x.db", ["sqlite:/x.db", "sqlite:///"]),
        ("sqlite://", ["sqlite://", "three slashes"]),
        ("sqlite:///", ["sqlite:///", "three slashes"]),
        ("sqlite:////", ["sqlite:////", "three slashes"]),
        ("sqlite://x.db", ["sqlite://x.db", "sqlite:///x.db"]),
        ("files://dir", ["files://dir", "files:///dir"]),
        ("files:///a%00b", ["files:///a%00b"]),
        ("sqlite:///:memory:", [":memory:", "memory://"]),
        ("memory:///x", ["'/x'", "memory://"]),
        ("memory://?cache_mb=1", ["cache_mb", "none"]),
        ("sqlite:///x.db?format=json", ["format", "cache_mb"]),
        ("sqlite:///x.db?mode=ro", ["mode", "cache_mb"]),
        ("files:///x?layout=json", ["layout", "format", "cache_mb"]),
        ("files:///x?format=yaml", ["yaml", "json", "markdown"]),
        ("files:///x?format=json&format=markdown", ["format", "json", "markdown"]),
        ("sqlite:///x.db?cache_mb=0", ["cache_mb", "'0'"]),
        ("sqlite:///x.db?cache_mb=-1", ["cache_mb", "'-1'"]),
        ("sqlite:///x.db?cache_mb=", ["cache_mb", "''"]),
        ("files:///x?cache_mb=1.5", ["cache_mb", "'1.5'"]),
    ],
)
def test_what_is_not_known_is_refused_with_what_is(url: str, said: list[str]) -> None:
    with pytest.raises(InvalidInput) as error:
        store_from(url)
    assert all(part in str(error.value) for part in said), str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://ana:secret@db.example/echoic",
        "ana:secret@db.example/echoic",
        "postgresql:/ana:secret@db.example/echoic",
        "sqlite://ana:secret@db.example/echoic",
        "files://ana:s@secret@db.example",
        "memory://ana:secret@db.example",
    ],
)
def test_an_unknown_url_is_refused_without_repeating_its_password(url: str) -> None:
    with pytest.raises(InvalidInput) as error:
        store_from(url)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("url", ["sqlite:///{0}/e.db", "files:///{0}/f", "files:///{0}/m?format=markdown"])
async def test_a_store_from_a_url_keeps_what_it_is_given(url: str, tmp_path: Path) -> None:
    for _ in range(2):
        async with opened(store_from(url.format(tmp_path))) as store:
            await store.write(ANA, [put(memory("a"))])
    async with opened(store_from(url.format(tmp_path))) as store:
        assert [r.version for r in await store.read(ANA, "memory", ["a"])] == [2]


def test_naming_a_store_touches_nothing(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path}/e.db", f"files:///{tmp_path}/f"):
        store_from(url)
    assert list(tmp_path.iterdir()) == []
