from __future__ import annotations

import pytest

from echoic.errors import EmbedderUnavailable, StoreCorrupt, StoreFull, StoreUnavailable, WriteConflict
from echoic.server.problems import problem_of


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (StoreFull("no space on /srv/secret/path"), 503, "store_full"),
        (StoreUnavailable("cannot open /srv/secret/path"), 503, "store_unavailable"),
        (EmbedderUnavailable("https://secret@host"), 503, "embedder_unavailable"),
        (WriteConflict("record secret"), 409, "conflict"),
        (StoreCorrupt("/srv/secret/path"), 500, "internal"),
    ],
)
def test_an_error_is_told_by_its_kind_and_without_its_details(error, status, code):
    answer = problem_of(error)
    assert answer.status_code == status
    assert f'"{code}"'.encode() in answer.body
    assert b"secret" not in answer.body
    assert ("retry-after" in answer.headers) == (status == 503)
