"""Python's garbage collector, kept from stopping calls: for a process that serves them. Knows no calls.

A full collection looks at every object there is, and nothing else runs meanwhile. With the providers' clients
loaded that is a quarter of a million objects and 0.15 to 0.3 s (`benchmarks/voice.py`): a gap that a caller
hears, at a moment nobody chose, often when a line is opened for another agent.
"""

from __future__ import annotations

import gc


def freeze_heap() -> int:
    """Collect once, then leave what is alive out of all later collections; how many objects that spares.

    Call it when everything is loaded and memory is open, and before the first call: it takes as long as the
    pause it prevents. What is freed by itself later is freed as ever; only what was alive now and becomes
    garbage in a cycle stays until the process ends. `gc.unfreeze()` takes it back. It concerns the whole
    process, which is why nothing in the library calls it unasked.
    """
    gc.collect()
    gc.freeze()
    return gc.get_freeze_count()


__all__ = ["freeze_heap"]
