"""`echoic mcp` and `echoic tools`: memory for the programs that others wrote."""

from __future__ import annotations

import json

import click

from echoic.cli.asyncio_runner import embedder_at, memory_at, run_apart
from echoic.cli.command import command, output_of
from echoic.cli.output import CommandResult, Output
from echoic.cli.settings import Settings
from echoic.errors import InvalidInput
from echoic.integrations.tools import FORMATS, exported


@command("mcp")
@click.pass_context
def mcp_command(ctx: click.Context) -> int:
    """Serve one user's memory to an MCP client over stdin and stdout.

    A client that starts programs, such as a desktop assistant or an editor, is given this command. It offers
    four tools (search_memory, get_memory, set_memory, delete_memory), the memory block as a resource, and a
    prompt. Whose memory it is comes from --user alone. `echoic serve --mcp` serves many users over HTTP.
    """

    async def work(settings: Settings, output: Output) -> CommandResult:
        import asyncio

        from echoic.integrations.mcp import serve_stdio
        from echoic.memory.concurrency import noted

        if "user" not in settings.named:
            raise InvalidInput("whose memory should be served? Name the user with --user or ECHOIC_USER")
        async with memory_at(settings, embedder_at(settings)) as memory:
            output.say(f"serving the memory of {settings.user!r} over stdin and stdout")
            user = memory.user(settings.user, settings.deployment)
            warming = asyncio.create_task(user.warm())  # a first search should not wait for the encoder
            warming.add_done_callback(noted)
            await serve_stdio(user)
            warming.cancel()
        return CommandResult(data=None)

    return run_apart(ctx, work)


@command("tools")
@click.option(
    "--format",
    "shape",
    type=click.Choice(FORMATS),
    required=True,
    help="The provider or framework that the definitions are for.",
)
@click.pass_context
def tools_command(ctx: click.Context, shape: str) -> int:
    """Print the definitions of the memory tools for a provider or framework, as JSON.

    Your code passes them to the model and carries its calls out with echoic.integrations.tools.call.
    """
    made = exported(shape)
    text = json.dumps(made, indent=2, ensure_ascii=False)
    return output_of(ctx).finish(CommandResult(data=made, text=text, count=len(made)))


__all__ = ["mcp_command", "tools_command"]
