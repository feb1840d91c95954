"""The command that lets voice-memory-bench drive a memory. The contract is `echoic_bench.sidecar`'s."""

from __future__ import annotations

import socket
from typing import Any

import click

from echoic.cli.asyncio_runner import embedder_at, memory_at, run_apart
from echoic.cli.command import command
from echoic.cli.output import CommandResult, Output
from echoic.cli.settings import Settings
from echoic.errors import InvalidInput


@command("sidecar")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8301,
    show_default=True,
    envvar="VBENCH_SIDECAR_PORT",
    show_envvar=True,
    help="0: any free one.",
)
@click.pass_context
def sidecar_command(ctx: click.Context, *, port: int) -> int:
    """Let voice-memory-bench drive the memory in --store.

    Speaks its sidecar contract on this machine only, without identities: whoever reaches the port can read
    and reset everyone in the deployment "voice-memory-bench". For measuring, never for serving. The URL is
    printed to stdout when it can be used.
    """

    async def work(settings: Settings, output: Output) -> CommandResult:
        try:
            from echoic_bench.sidecar import sidecar_app
        except ImportError as error:
            raise InvalidInput(
                f"the sidecar needs packages that are not installed ({error.name}): "
                "pip install 'echoic[server]'"
            ) from error
        embedder = embedder_at(settings)
        await embedder.ready()
        async with memory_at(settings, embedder) as memory:
            with _listening(port) as bound:
                await _serve(sidecar_app(memory), bound, output)
        return CommandResult(data=None)

    return run_apart(ctx, work)


async def _serve(app: Any, bound: socket.socket, output: Output) -> None:
    import uvicorn

    url = f"http://127.0.0.1:{bound.getsockname()[1]}"

    class Server(uvicorn.Server):
        """Says when it can be used."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            output.finish(CommandResult(data={"url": url}, text=url, count=1))

    await Server(uvicorn.Config(app, log_level="warning")).serve(sockets=[bound])


def _listening(port: int) -> socket.socket:
    """A socket on this machine only.

    Raises:
        InvalidInput: the port is taken.
    """
    bound = socket.socket()
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", port))
        bound.listen()
    except OSError as error:
        bound.close()
        raise InvalidInput(f"port {port} cannot be used ({error.strerror}): take another, or 0") from error
    return bound


__all__ = ["sidecar_command"]
