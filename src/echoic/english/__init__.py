"""English as people speak it: from an utterance to what it says of its speaker, by rules. No language model.

`listen` is the whole of it. The rules are conservative: a wrong memory is worse than none. Words, patterns
and triggers are data (`data/*.txt`); the modules say what they mean. Nothing here knows of memories, stores
or users.
"""

from __future__ import annotations

from echoic.english.listener import listen
from echoic.english.slots import Heard

__all__ = ["Heard", "listen"]
