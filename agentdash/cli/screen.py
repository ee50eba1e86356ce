"""Run the full-screen apps: with a terminal, until they are closed or a signal ends them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from agentdash.cli import debug_log, termination
from agentdash.tui.terminal import NoTerminalError, own_terminal

if TYPE_CHECKING:
    from agentdash.config import Config
    from agentdash.engine.hub import Hub, Service
    from agentdash.tui.base_app import BaseApp
    from agentdash.tui.options import Options

_T = TypeVar("_T")
_FAILED: Final = 2
"""Exit code of an app that an exception has ended. Textual's own, 1, means "findings" here."""
_COLLECT_AFTER_OBJECTS: Final = 10_000
"""New objects after which garbage is searched for: a snapshot of a busy fleet has a few thousand, which the
next one frees without a search."""


@contextmanager
def terminal(instead: str = "") -> Iterator[None]:
    """Prepare the terminal for the block, which reads what the app shows and runs it; restore it after.

    Args:
        instead: what to do without a terminal.

    Raises:
        click.UsageError: there is no terminal.
    """
    try:
        with own_terminal() as restore, termination.forced_cleanup(restore):
            gc.disable()  # imports make no garbage; looking for it takes a tenth of the start
            yield
    except NoTerminalError as problem:
        hint = f": {instead}" if instead else ""
        raise click.UsageError(f"the screen needs a terminal, but {problem}{hint}") from None
    finally:
        gc.enable()


def run_app(app: BaseApp[_T], hub: Hub | None = None, services: Sequence[Service] = ()) -> _T | None:
    """Run an app, and the hub that feeds it with its services, until the app is closed; return its result.

    The hub starts after the first picture: what it imports, and its first reads, take as long as that.

    Raises:
        SystemExit: a signal or a quit key has ended the program.
        Exception: the app has failed with it.
    """

    def end() -> bool:
        app.exit()
        return app.is_running

    gc.freeze()  # what was imported is never garbage
    gc.set_threshold(_COLLECT_AFTER_OBJECTS)
    gc.enable()
    with ExitStack() as stack:

        async def until_closed() -> _T | None:
            async with _fed(app, hub, services) if hub is not None else nullcontext():
                result = await app.run_async()
                stack.enter_context(termination.limited_end(_FAILED if app.failure else app.return_code or 0))
                return result

        result = termination.run(until_closed(), end)
    if app.failure is not None:
        raise app.failure
    if app.quit_requested or app.return_code:
        raise SystemExit(app.return_code)
    return result


def _fed(app: BaseApp[Any], hub: Hub, services: Sequence[Service]) -> AbstractAsyncContextManager[None]:
    """Run the hub of an app, with its services, after the first picture."""
    from agentdash.engine.hub import running

    async def freeze() -> None:
        await hub.wait_for_snapshot(None)
        gc.freeze()  # nor is what the hub has imported

    return running(hub, *services, ("start", freeze), after=app.painted.wait)


def screen_options(config: Config, **more: Any) -> Options:
    """Return the options of an app, with more that are not in the configuration.

    Raises:
        click.UsageError: a key in the configuration is invalid.
    """
    from agentdash.cli.set_up import checked_keys
    from agentdash.tui.options import Options

    return Options(
        ascii=config.ascii,
        theme=config.theme,
        title=config.title,
        filters=config.filters,
        thresholds=config.thresholds,
        keys=checked_keys(config),
        copy_to_tmux=_copy_to_tmux,
        debug_log_hint=debug_log.hint(),
        **more,
    )


async def _copy_to_tmux(text: str) -> str | None:
    """Copy inside tmux; return what has happened, or None outside it."""
    from agentdash.collect.tmux.actions import copy

    return await asyncio.to_thread(copy, text)
