from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import echoic.testing
from echoic.stores import store_from
from echoic.stores.base import Store
from echoic.stores.files import FilesStore
from echoic.stores.in_memory import InMemoryStore
from echoic.stores.sqlite import SQLiteStore
from echoic.testing import StoreConformance
from stores import mongodb_server, postgres_server


class TestInMemory(StoreConformance):
    @pytest.fixture
    def store(self) -> Store:
        return InMemoryStore()


class TestSQLite(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return SQLiteStore(tmp_path / "echoic.db")

    def reopen(self, store: Store) -> Store:
        return SQLiteStore(store._path)


class TestJsonFiles(StoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return FilesStore(tmp_path)

    def reopen(self, store: Store) -> Store:
        return FilesStore(store._folder.root, store._folder.layout)


@pytest.mark.repeated
class TestMarkdownFiles(TestJsonFiles):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return FilesStore(tmp_path, "markdown")


class TestPostgres(StoreConformance):
    @pytest.fixture
    def url(self) -> str:
        return postgres_server.shared().url()

    @pytest.fixture
    def store(self, url: str) -> Store:
        self.url_of_this_test = url
        return store_from(url)

    def reopen(self, store: Store) -> Store:
        return store_from(self.url_of_this_test)


class TestMongoDB(StoreConformance):
    @pytest.fixture
    def url(self) -> str:
        return mongodb_server.patient(mongodb_server.url())

    @pytest.fixture
    def store(self, url: str) -> Store:
        self.url_of_this_test = url
        return store_from(url)

    def reopen(self, store: Store) -> Store:
        return store_from(self.url_of_this_test)


def test_the_suite_brings_no_model_runtime_and_no_driver() -> None:
    heavy = ["onnxruntime", "tokenizers", "apsw", "pymongo", "asyncpg", "pydantic_ai", "fastapi", "httpx2"]
    code = (
        "import sys, echoic.testing; from echoic.testing import StoreConformance, random_histories, InMemoryStore; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_everything_that_is_exported_is_there() -> None:
    assert all(getattr(echoic.testing, name).__name__ == name for name in echoic.testing.__all__)
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = echoic.testing.nothing_of_the_kind
