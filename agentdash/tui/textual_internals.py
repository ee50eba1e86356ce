"""Uses of private names of Textual, each with its reason; no other module uses one. Among them its driver for
terminals, with what that lacks: SIGSTOP, vanished terminals, a busy event loop.

Tried with Textual 8.2.8, the version that pyproject.toml pins for tests.
"""

from __future__ import annotations

import errno
import io
import os
import select
import signal
import sys
import threading
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import takewhile
from typing import IO, TYPE_CHECKING, Any, Final, cast

from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual._parser import ParseError, Parser
from textual._xterm_parser import XTermParser
from textual.dom import DOMNode
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agentdash.tui import terminal
from agentdash.tui.start_up import settings_before

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.console import Console
    from textual.app import App
    from textual.geometry import Size


class _Nowhere(io.RawIOBase):
    """A file that keeps nothing of what is written to it."""

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        return memoryview(data).nbytes


def discard_prints(app: App[Any]) -> None:
    """Give an app whole streams for `sys.stdout` and `sys.stderr`, whose text goes nowhere.

    `App._capture_stdout`, `App._capture_stderr`: Textual's own have neither `encoding` nor `buffer`, which
    whatever is imported while the app runs may read (libtmux 0.62: `AttributeError`).
    """
    stream: Any = io.TextIOWrapper(_Nowhere(), "utf-8", errors="backslashreplace", write_through=True)
    app._capture_stdout = app._capture_stderr = stream


def part_style(node: DOMNode, name: str) -> Style:
    """Return the style that the stylesheet has for a class of parts of a node.

    `DOMNode._attach`: `Widget.get_component_rich_style` returns the same for a name of `COMPONENT_CLASSES`,
    but Textual computes the styles of all of these whenever it styles a node, painted or not: a sixth of the
    start.
    """
    part = DOMNode(classes=name)
    part._attach(node)
    node.app.stylesheet.apply(part)
    return part.rich_style


def set_content_size(view: ScrollView, size: Size) -> None:
    """Set the size of what a view scrolls, where its own size does not depend on that.

    `Widget._scroll_update`: to set `virtual_size` lays out the whole screen, and paints all of it. To paint
    the scroll bar paints all rows beside it.
    """
    may_scroll = max(view.virtual_size.height, size.height) > view.size.height
    view.set_reactive(ScrollView.virtual_size, size)
    if may_scroll:
        view._scroll_update(size)


def failure(app: App[Any]) -> Exception | None:
    """Return the exception that has ended an app; None if there was none (`App._exception`)."""
    return app._exception


def end_failed(app: App[Any]) -> None:
    """End an app after a failure, as `App._fatal_error` does, but without its traceback."""
    app._close_messages_no_wait()


# ---------------------------------------------------------------- what is written


_rows: dict[int, Strip] = {}
"""The rows that the terminal shows."""


def write_changed_cells_only() -> None:
    """Write of each row what differs from what the terminal shows.

    `LayoutUpdate.render_segments`, `ChopsUpdate.render_segments`: Textual writes all rows when the layout
    changes, up to five times for one key (180 kB at 120x36), and all of a row before a cell that changes.
    """
    LayoutUpdate.render_segments = _render_layout  # type: ignore[assignment,method-assign]
    ChopsUpdate.render_segments = _render_parts  # type: ignore[assignment,method-assign]


def forget_what_is_shown() -> None:
    """Write all rows with the next update: the terminal may show something else."""
    _rows.clear()


def _render_layout(update: LayoutUpdate, console: Console) -> str:
    x, top = update.region.offset
    return "".join(_write(y, x, Strip.join(line), console) for y, line in enumerate(update.strips, top))


def _render_parts(update: ChopsUpdate, console: Console) -> str:
    written = []
    for y, start, end in update.spans:
        for strip_end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            first, last = max(x, start), min(strip_end, end)
            if strip is not None and first < last:
                written.append(_write(y, first, strip.crop(first - x, last - x), console))
    return "".join(written)


def _write(y: int, x: int, new: Strip, console: Console) -> str:
    """Return what shows these cells from column `x` on, without those that are shown already."""
    end = x + new.cell_length
    row = _rows.get(y, Strip.blank(0))
    if (old := row.crop(x, end)) == new:
        return ""
    _rows[y] = Strip.join([row.crop(0, x), new, row.crop(end)]) if row.cell_length >= x else row
    first, last = (0, new.cell_length) if old.cell_length < new.cell_length else _difference(old, new)
    changed = new.crop(first, last)
    return f"\x1b[{y + 1};{x + first + 1}H{changed.simplify().render(console)}" if first < last else ""


def _difference(old: Strip, new: Strip) -> tuple[int, int]:
    """Return the first cell in which two strips of one width differ, and the one after the last."""
    pairs = list(zip(old, new, strict=False))
    same = list(takewhile(lambda pair: pair[0] == pair[1], pairs))
    first = sum(segment.cell_length for _, segment in same)
    if len(same) == len(new) == len(old):
        return first, first
    rest = zip(reversed(list(old)[len(same) :]), reversed(list(new)[len(same) :]), strict=False)
    ends = takewhile(lambda pair: pair[0] == pair[1], rest)
    return first, new.cell_length - sum(segment.cell_length for _, segment in ends)


# ---------------------------------------------------------------- the driver


_QUIT_KEYS: Final = ("ctrl+c", "ctrl+q")
_KEY_PATIENCE_S: Final = 0.5
"""After a quit key, for the app to react. Later the process is interrupted."""
_LOOK_INTERVAL_S: Final = 0.1
"""Between two looks whether a sequence remains incomplete."""
_READ_BYTES: Final = 4_096
_WITHOUT_TITLE: Final = ("linux", "vt100", "vt220")
"""Values of `TERM` of terminals that have no title, and may print it."""


class _Output:
    """The terminal as a stream. What is written after it has vanished is dropped.

    Textual's writing thread would end with the first error, and its queue block the event loop.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()


def _output() -> IO[str]:
    """Return where to draw: stderr as Textual does, or stdout where stderr goes to a file."""
    errors, output = sys.__stderr__, sys.__stdout__
    if isinstance(output, io.TextIOWrapper) and not (errors is not None and errors.isatty()):
        output.reconfigure(errors="backslashreplace")  # as stderr: an ASCII locale must not end the drawing
        return output
    return cast("IO[str]", errors)


class _KeyParser(XTermParser):
    """Textual's parser of what a terminal sends, which drops a sequence that it cannot parse.

    The base class raises, and parses nothing afterwards.
    """

    def feed(self, data: str) -> Iterable[Message]:
        """Parse a text; an empty one is the end."""
        for part in data or ("",):
            yield from self._parsed(super().feed(part))

    def tick(self) -> Iterable[Message]:
        """Parse what remained incomplete for too long."""
        yield from self._parsed(super().tick())

    def _parsed(self, messages: Iterable[Message]) -> Iterator[Message]:
        try:
            yield from messages
        except ParseError:
            raise
        except Exception:  # a number, point or size that cannot be
            Parser.__init__(self)  # begins anew, and keeps what is known of the terminal


class _ExitEvent(threading.Event):
    """An event for which `select` can wait, beside a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._reader, self._writer = os.pipe()

    def __del__(self) -> None:
        os.close(self._reader)
        os.close(self._writer)

    def fileno(self) -> int:
        return self._reader

    def set(self) -> None:
        os.write(self._writer, b"!")
        super().set()

    def clear(self) -> None:
        super().clear()
        os.read(self._reader, 1)


class TerminalDriver(LinuxDriver):
    """Textual's driver, that also survives SIGSTOP, a vanished terminal and a busy event loop."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._file: Any = _Output(_output())
        self.exit_event: _ExitEvent = _ExitEvent()
        self._title = ""
        """The title shown; empty where the app shows none."""

    def start_application_mode(self) -> None:
        """Start application mode."""
        terminal.application_mode.set()
        forget_what_is_shown()
        super().start_application_mode()  # type: ignore[no-untyped-call]
        if self.attrs_before is not None:  # those of the start, during which keys were kept
            self.attrs_before = settings_before() or self.attrs_before
        if self._title:  # it continues after it was stopped
            self._write_title()

    def set_title(self, title: str) -> None:
        """Show a title, plain text of one line, until the app ends or is stopped."""
        if title != self._title and os.environ.get("TERM") not in _WITHOUT_TITLE:
            self._title = title
            self._write_title()

    def _write_title(self) -> None:
        save = "" if terminal.title_saved.is_set() else terminal.SAVE_TITLE
        self.write(f"{save}\x1b]2;{self._title}\x07")
        terminal.title_saved.set()

    def stop_application_mode(self) -> None:
        """Stop application mode, restore the terminal."""
        if terminal.title_saved.is_set():
            terminal.title_saved.clear()
            self.write(terminal.RESTORE_TITLE)
        super().stop_application_mode()
        terminal.application_mode.clear()

    def _sigtstp_application(self, *_: object) -> None:
        """Restore the terminal and stop, where a shell can continue the program; else the kernel stops none.

        A key ctrl+z is such a signal until the app reads keys. On the loop: a handler that interrupts the
        driver while it holds the lock of its queue would wait for that lock for ever.
        """
        if not terminal.has_job_control():
            return
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        super()._sigtstp_application()

    def _sigcont_application(self, *_: object) -> None:
        """Set up the terminal again after SIGSTOP, which cannot be handled, as after SIGTSTP.

        On the loop, since a second SIGCONT may come meanwhile. The base class would start a second thread
        that reads keys, and save the settings of the app as those to restore.
        """
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._resume)

    def _resume(self) -> None:
        if not self._auto_restart or self._app._exit:
            return
        if self._key_thread is not None and self._key_thread.is_alive():
            self.suspend_application_mode()
        self._must_signal_resume = True
        self.resume_application_mode()
        self._app.call_later(self._app.refresh, layout=True)

    def _run_input_thread(self) -> None:
        try:
            self.run_input_thread()
        except OSError:  # EIO: the terminal has vanished
            terminal.hang_up()
        except Exception as error:
            with suppress(Exception):
                self._app.call_later(self._app._handle_exception, error)

    def run_input_thread(self) -> None:
        """Read keys until input is disabled; Textual's own looks ten times a second whether it is."""
        parser = _KeyParser(self._debug)
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        while not self.exit_event.is_set():
            wait = None if parser._timeout_time is None else _LOOK_INTERVAL_S
            if self.fileno in select.select([self.fileno, self.exit_event.fileno()], [], [], wait)[0]:
                if not (data := os.read(self.fileno, _READ_BYTES)):  # the terminal has vanished
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                text = decode(data)
                for message in parser.feed(text) if text else ():
                    self.process_message(message)
            for message in parser.tick():
                self.process_message(message)

    def process_message(self, message: Message) -> None:
        """Pass a message to the app; interrupt the process if the app does not react to a quit key."""
        if isinstance(message, Key) and message.key in _QUIT_KEYS:
            if self._app.is_running:
                threading.Thread(target=self._interrupt_if_busy, name="quit key", daemon=True).start()
            else:  # still mounting: it would drop the key
                os.kill(os.getpid(), signal.SIGINT)
        super().process_message(message)

    def _interrupt_if_busy(self) -> None:
        reacted = threading.Event()
        self._app.call_later(reacted.set)
        if not reacted.wait(_KEY_PATIENCE_S):
            os.kill(os.getpid(), signal.SIGINT)
