"""Rules that listen: from what a user says to keyed memories, without a language model.

`listen` is the whole of it. Conservative by design: a wrong memory is worse than none.
"""

from __future__ import annotations

from echoic.memory.listening.listener import listen
from echoic.memory.listening.slots import Heard

__all__ = ["Heard", "listen"]
