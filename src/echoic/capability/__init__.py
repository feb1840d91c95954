"""Memory for any PydanticAI agent: the memory block, the tools, and storing what is said.

    agent = Agent("openai:gpt-5", deps_type=Caller, capabilities=[Memory(service, user="user_id")])

Needs the extra "agents".
"""

from __future__ import annotations

from echoic.capability.memory import CallerMemory
from echoic.capability.memory import MemoryCapability as Memory
from echoic.capability.reflection import Reflected, reflect

__all__ = ["CallerMemory", "Memory", "Reflected", "reflect"]
