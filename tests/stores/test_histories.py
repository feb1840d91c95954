from __future__ import annotations

from echoic.stores.sqlite import SQLiteStore
from echoic.testing import random_histories

TestSQLiteHistories = random_histories(lambda folder: SQLiteStore(folder / "echoic.db"))
