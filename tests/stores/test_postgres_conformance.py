"""The whole contract again behind row-level security and PgBouncer in transaction mode, both at once.

Directly and as a superuser, whom no policy binds, it is `test_conformance.TestPostgres`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.stores import store_from
from echoic.stores.base import Store
from echoic.testing import StoreConformance
from stores.postgres_between import pgbouncer
from stores.postgres_server import new_schema, shared

BOUND = f"bound_{new_schema()}"


@pytest.fixture(scope="module")
def pooler() -> Iterator[Path]:
    shared().sql(
        f"create extension if not exists vector; create role {BOUND} login; "
        f"grant create on database postgres to {BOUND}"
    )
    with (
        tempfile.TemporaryDirectory(prefix="echoic-pool-") as folder,
        pgbouncer(shared(), Path(folder), BOUND) as made,
    ):
        yield made


@pytest.mark.repeated
class TestFencedAndPooled(StoreConformance):
    @pytest.fixture
    def store(self, pooler: Path) -> Store:
        self.url_of_this_test = f"postgresql://{BOUND}@/postgres?host={pooler}&schema={new_schema()}&rls=on"
        return store_from(self.url_of_this_test)

    def reopen(self, store: Store) -> Store:
        return store_from(self.url_of_this_test)
