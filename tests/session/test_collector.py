from __future__ import annotations

import gc

from echoic.session.voice_call import freeze_heap


def test_what_was_alive_is_left_out_of_later_collections_until_it_is_taken_back():
    kept = [{"number": number} for number in range(1000)]
    try:
        assert freeze_heap() > len(kept)
        assert not any(each is kept for each in gc.get_objects())
    finally:
        gc.unfreeze()
    assert any(each is kept for each in gc.get_objects())
