"""An agent that needs no language model: it answers from memory by rules, and says when rules do not suffice.

It shows what memory does, and is honest about being rules; it is not a conversationalist.
"""

from echoic.memory.keyless.agent import AGENT, KeylessAgent, Reply

__all__ = ["AGENT", "KeylessAgent", "Reply"]
