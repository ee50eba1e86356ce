"""Uses of private names of Textual, each with its reason. No other module uses one.

Tried with Textual 8.2.8, the version that pyproject.toml pins for tests.
"""

from __future__ import annotations

import io
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.dom import DOMNode
from textual.strip import Strip

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
    old = row.crop(x, end)
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
