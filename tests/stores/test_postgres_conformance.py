"""The whole contract again behind row-level security, and through PgBouncer in transaction mode."""

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


class TestFenced(StoreConformance):
    """As a role that is no superuser, so that it is bound."""

    @pytest.fixture
    def store(self) -> Store:
        role = new_schema()
        shared().sql(
            "create extension if not exists vector; "
            f"create role {role} login; create schema {role} authorization {role}"
        )
        self.url_of_this_test = shared().url(role, user=role, rls="on")
        return store_from(self.url_of_this_test)

    def reopen(self, store: Store) -> Store:
        return store_from(self.url_of_this_test)


@pytest.fixture(scope="module")
def pooler() -> Iterator[Path]:
    with (
        tempfile.TemporaryDirectory(prefix="echoic-pool-") as folder,
        pgbouncer(shared(), Path(folder)) as made,
    ):
        yield made


class TestPooled(StoreConformance):
    @pytest.fixture
    def store(self, pooler: Path) -> Store:
        self.url_of_this_test = f"postgresql://postgres@/postgres?host={pooler}&schema={new_schema()}"
        return store_from(self.url_of_this_test)

    def reopen(self, store: Store) -> Store:
        return store_from(self.url_of_this_test)
