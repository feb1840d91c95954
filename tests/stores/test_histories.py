from __future__ import annotations

from echoic.stores.files import FilesStore
from echoic.stores.in_memory import InMemoryStore
from echoic.stores.sqlite import SQLiteStore
from echoic.testing import random_histories

TestInMemoryHistories = random_histories(lambda _: InMemoryStore(), instances=1, lasts=False)
TestSQLiteHistories = random_histories(lambda folder: SQLiteStore(folder / "echoic.db"))
TestJsonFilesHistories = random_histories(FilesStore)
TestMarkdownFilesHistories = random_histories(lambda folder: FilesStore(folder, "markdown"))
