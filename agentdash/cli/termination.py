"""End by SIGTERM, SIGHUP, SIGQUIT or SIGINT: in order, or by force where the program does not react.

A signal ends the event loop's work, whose `finally` blocks restore the terminal and remove the status file.
If the process still runs after a grace period, because something reads without end, a thread does both and
exits.
The exit code is 128 + the number of the signal, as shells report it.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, ClassVar, Final, TypeVar

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_GRACE_S: Final = 1.0
"""From a signal to the exit by force. With the limits of the terminal's driver: 2 s from key to exit."""
_SIGNAL_CODE: Final = 128

_T = TypeVar("_T")


class _State:
    """What is known of the end of this process."""

    pid: int | None = None
    """Process that has installed the handlers: forked children inherit them."""
    received: int | None = None
    """First signal that was received, or None."""
    end: Callable[[], None] | None = None
    """Ends the work of the running event loop, or None."""
    cleanups: ClassVar[list[Callable[[], None]]] = []
    """Called before an exit by force, the last one first."""


def install() -> None:
    """Handle the signals from now on, except for those that are ignored, as by `nohup`."""
    _State.pid = os.getpid()
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _on_signal)


@contextmanager
def forced_cleanup(cleanup: Callable[[], None]) -> Iterator[None]:
    """Call `cleanup` if the process is ended by force while the block runs; from another thread."""
    _State.cleanups.append(cleanup)
    try:
        yield
    finally:
        _State.cleanups.remove(cleanup)


def run(work: Coroutine[Any, Any, _T], end: Callable[[], bool] = lambda: False) -> _T:
    """Run `work` in an event loop and return its result.

    Args:
        work: cancelled when a signal is received.
        end: called on the loop before, to end the work in another way; returns whether it can.

    Raises:
        SystemExit: a signal was received, and the work has ended.
    """
    import asyncio

    _notice_ended_children()

    async def until_signal() -> _T:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()

        def stop() -> None:
            if not end():
                task.cancel()

        def stop_soon() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(stop)

        _State.end = stop_soon
        if _State.received is not None:
            stop_soon()
        return await task

    try:
        return asyncio.run(until_signal())
    except asyncio.CancelledError:
        if _State.received is None:
            raise
        raise SystemExit(_SIGNAL_CODE + _State.received) from None
    finally:
        _State.end = None
        if _State.received is not None:
            raise SystemExit(_SIGNAL_CODE + _State.received)


def _notice_ended_children() -> None:
    """Wait for children by pidfd, as Python 3.12 does: not with a thread for each (Linux 5.3)."""
    if sys.platform == "linux" and sys.version_info < (3, 12):
        import asyncio

        with suppress(OSError):
            os.close(os.pidfd_open(os.getpid()))
            asyncio.set_child_watcher(asyncio.PidfdChildWatcher())


@contextmanager
def limited_end(code: int) -> Iterator[None]:
    """End the process by force, with exit code `code`, if the end of its work exceeds the grace period.

    The block is that end: after the screen was closed, and until the event loop is.
    """
    done = threading.Event()
    threading.Thread(target=_exit_by_force, args=(code, done), name="limited end", daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _on_signal(number: int, frame: FrameType | None) -> None:
    del frame
    if os.getpid() != _State.pid:  # a forked child: it ends as if the handler did not exist
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return
    if _State.received is not None:
        return
    _State.received = number
    code = _SIGNAL_CODE + number
    # not `threading`: its locks may be held by the code that the signal has interrupted
    _thread.start_new_thread(_exit_by_force, (code, threading.Event()))
    if _State.end is not None:
        _State.end()
        return
    sys.unraisablehook = lambda _: None  # a callback or finalizer would swallow what is raised, and print it
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(code)


def _exit_by_force(code: int, done: threading.Event) -> None:
    """Clean up and exit after the grace period, unless `done` is set before."""
    if done.wait(_GRACE_S):
        return
    for cleanup in reversed(_State.cleanups):
        with suppress(Exception):  # the exit must not depend on it
            cleanup()
    _kill_worker_processes()
    os._exit(code)


def _kill_worker_processes() -> None:
    """Kill the processes of a pool, which would wait for its work without end."""
    if multiprocessing := sys.modules.get("multiprocessing"):
        for process in multiprocessing.active_children():
            process.kill()
