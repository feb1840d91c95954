"""The command that talks with the keyless agent in a terminal. What is said back is decided elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from echoic.cli.command import command
from echoic.cli.output import Output, Result
from echoic.cli.plain import harmless, moment, ranks_of, state_of
from echoic.cli.query import LEXICAL
from echoic.cli.running import Desk, run, words_only
from echoic.errors import EmbedderError, InvalidInput

if TYPE_CHECKING:
    from echoic.memory.conversation import OpenConversation
    from echoic.memory.keyless import KeylessAgent, Reply
