"""Each integration is checked with the real framework, where it is installed: `make integrations`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from this_machine import only_this_machine  # noqa: F401 - for every test

FRAMEWORKS = {
    "test_adk.py": "google.adk",
    "test_hosted_agents.py": "retell",
    "test_langgraph.py": "langgraph",
    "test_livekit.py": "livekit.agents",
    "test_mcp.py": "mcp",
    "test_openai_agents.py": "agents",
    "test_peers.py": "hindsight_pipecat",
    "test_pipecat.py": "pipecat",
    "test_tools.py": "langchain_core",
}


def is_there(module: str) -> bool:
    package = module.partition(".")[0]
    return find_spec(package) is not None and find_spec(module) is not None


collect_ignore = [
    file
    for file, module in FRAMEWORKS.items()
    if (Path(__file__).parent / file).exists() and not is_there(module)
]
