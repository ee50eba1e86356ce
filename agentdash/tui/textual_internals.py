"""Uses of private names of Textual, each with its reason. No other module uses one.

Tried with Textual 8.2.8, the version that pyproject.toml pins for tests.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from rich.style import Style
from textual._compositor import ChopsUpdate
from textual.dom import DOMNode

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.console import Console
    from textual.app import App


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


def failure(app: App[Any]) -> Exception | None:
    """Return the exception that has ended an app; None if there was none (`App._exception`)."""
    return app._exception


def end_failed(app: App[Any]) -> None:
    """End an app after a failure, as `App._fatal_error` does, but without its traceback."""
    app._close_messages_no_wait()


def write_changed_cells_only() -> None:
    """Write of a changed line what has changed.

    `ChopsUpdate.render_segments` writes all that stands before it in its widget too: for an age that grows by
    a second 1 kB in place of 60 bytes.
    """
    ChopsUpdate.render_segments = _render_changed  # type: ignore[assignment,method-assign]


def _render_changed(update: ChopsUpdate, console: Console) -> str:
    """Return what writes the spans of an update: a row, its first cell and the one after its last."""
    written = []
    for y, start, end in update.spans:
        for strip_end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            first, last = max(x, start), min(strip_end, end)
            if strip is not None and first < last:
                cells = strip.crop(first - x, last - x)
                written.append(f"\x1b[{y + 1};{first + 1}H{cells.render(console)}")
    return "".join(written)
