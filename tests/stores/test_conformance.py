from __future__ import annotations

from pathlib import Path

import pytest

from echoic.stores.base import Store
from echoic.stores.files import FilesStore
from echoic.stores.in_memory import InMemoryStore
from echoic.stores.sqlite import SQLiteStore
from echoic.testing import StoreConformance


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


class TestMarkdownFiles(TestJsonFiles):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return FilesStore(tmp_path, "markdown")
