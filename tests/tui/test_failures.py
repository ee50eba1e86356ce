"""What fails while an app runs becomes a message in it: an action, and what an action has started."""

import asyncio
import io
import logging
import sys

import pytest

from agentdash.tui.app import AgentDash
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.spans import plain

from . import sample_fleet
from .rendering import screen_text


async def fails(*_):
    raise RuntimeError("out of order")


class Broken(AgentDash):
    """The dashboard with keys whose actions fail."""

    def action_sort(self):
        raise RuntimeError("out of order")

    async def action_why(self):
        await fails()

    def action_past(self):
        self.run_worker(fails, name="task")

    def action_copy_id(self):
        self.run_worker(lambda: asyncio.run(fails()), name="thread", thread=True)


@pytest.mark.parametrize("key", ["s", "w", "x", "y", "o"])
async def test_a_failure_is_a_message(key, caplog):
    app = Broken(sample_fleet.Feed(sample_fleet.SNAPSHOT), sample_fleet.frozen(), go_to_pane=fails)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.press("home", key)
        said = "That failed: RuntimeError: out of order (--debug-log FILE writes the traceback)"
        while said not in plain(app.screen.query_one(Footer).line_at(0)):
            await pilot.pause()
        await pilot.press("?")
        assert "agentdash is read-only" in screen_text(app)
    assert [(each.name, each.levelno, each.exc_info[0]) for each in caplog.records] == [
        ("agentdash.tui.base_app", logging.ERROR, RuntimeError)
    ]


async def test_what_is_imported_late_finds_whole_streams():
    """libtmux reads `sys.stdout.encoding` when it is imported."""
    app = sample_fleet.dashboard()
    async with app.run_test():
        for stream in (sys.stdout, sys.stderr):
            print("text \udcff that nobody reads", file=stream, flush=True)
            stream.buffer.write(b"bytes")
            assert (stream.encoding, stream.isatty()) == ("utf-8", False)
            with pytest.raises(io.UnsupportedOperation):  # a program is not given it unawares
                stream.fileno()
