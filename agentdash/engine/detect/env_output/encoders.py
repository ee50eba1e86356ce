"""Programs that write another form of their input, from which it can be decoded: base64, od, xxd, checksums.

What they write of known text is computed. Of a value that is not known they write something else than of the
values that are, since no two inputs have the same form.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from itertools import product
from typing import Final

from agentdash.engine.detect.env_output.declarations import not_found
from agentdash.engine.detect.env_output.inputs import input_of, operands
from agentdash.engine.detect.env_output.patterns import Choice, Encoded, Hole, Kind, Parts, concrete
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result

Encoder = Callable[[bytes], str]
_MAX_CHARACTERS: Final = 2_000
_MAX_HOLES: Final = 3
_NAMED: Final = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 0: "\\0"}


def encoded(call: Call) -> list[Result]:
    """Return what an encoder writes; on some machines it is missing."""
    files = operands(call.arguments, "wAtjNc") if call.name not in _SUMS else list(call.arguments)
    encoder = _ENCODERS[call.name](call.line)
    if encoder is None or [concrete(f) for f in files] not in ([], ["-"]):
        return UNKNOWN
    content = input_of(call, [])
    out = _written(content, encoder)
    if call.name == "base64" and (out is None or concrete(out) is None):
        out = (Encoded(content),)
    return UNKNOWN if out is None else [Result(out=out), not_found(call.name)]


def _written(content: Parts, encoder: Encoder) -> Parts | None:
    """Return what an encoder writes of a text; None where the text is not known."""
    match content:
        case (Choice(options=options),):
            found = [_written(option, encoder) for option in options]
            known = tuple(each for each in found if each is not None)
            return (Choice(known),) if len(known) == len(found) else None
        case _:
            pass
    holes = [part for part in content if isinstance(part, Hole)]
    if any(not isinstance(p, str | Hole) for p in content) or any(h.kind is not Kind.OTHER for h in holes):
        return None
    if len(holes) > _MAX_HOLES:
        return None
    values = product(*(("", *hole.exclude, *hole.unlike) for hole in holes))
    texts = [_filled(content, list(chosen)) for chosen in values]
    if any(len(text) > _MAX_CHARACTERS for text in texts):
        return None
    forms = tuple(encoder(text.encode()) for text in texts)
    return (Hole(Kind.ENCODED, exclude=forms),) if holes else (forms[0],) if forms[0] else ()


def _filled(content: Parts, values: list[str]) -> str:
    return "".join(part if isinstance(part, str) else values.pop(0) for part in content)


# ---------------------------------------------------------------- the programs


def _base64(options: str) -> Encoder | None:
    match = re.fullmatch(r"(?:(?:-w ?|--wrap=)(?P<width>\d+)|-b ?(?P<mac>\d+)|-|)", options.strip())
    if match is None:
        return None
    width = int(match["width"] or match["mac"] or 76)

    def encode(data: bytes) -> str:
        text = base64.b64encode(data).decode()
        if not width:
            return text
        return "".join(text[at : at + width] + "\n" for at in range(0, len(text), width))

    return encode


def _od(options: str) -> Encoder | None:
    match = re.fullmatch(r"(?P<a>-A ?n )?(?P<form>-c|-t ?c|-t ?x1|-x1)(?P<b> -A ?n)?", options)
    both = re.fullmatch(r"-An(?P<form>c|tx1)", options)
    if match is None and both is None:
        return None
    has_offsets = match is not None and not (match["a"] or match["b"])
    form = match["form"] if match else (both["form"] if both else "")
    cell = _character if form.endswith("c") else (lambda byte: f" {byte:02x}")
    return lambda data: _rows(data, lambda chunk: "".join(map(cell, chunk)), "{:07o}" if has_offsets else "")


def _character(byte: int) -> str:
    if byte in _NAMED:
        return f"{_NAMED[byte]:>4}"
    return f"   {chr(byte)}" if 32 <= byte < 127 else f" {byte:03o}"


def _rows(data: bytes, row: Callable[[bytes], str], offset: str) -> str:
    """Return rows of sixteen bytes with their offsets; rows that repeat are not distinguished from others."""
    lines = [offset.format(at) + row(data[at : at + 16]) + "\n" for at in range(0, len(data), 16)]
    return "".join(lines) + (offset.format(len(data)) + "\n" if offset else "")


def _hexdump(options: str) -> Encoder | None:
    if options not in ("-C", "-e", "-c -C"):
        return None

    def encode(data: bytes) -> str:
        def row(chunk: bytes) -> str:
            cells = [f"{byte:02x} " for byte in chunk] + ["   "] * (16 - len(chunk))
            return f"  {''.join(cells[:8])} {''.join(cells[8:])} |{_printable(chunk)}|"

        return _rows(data, row, "{:08x}") if data else ""

    return encode


def _xxd(options: str) -> Encoder | None:
    if options in ("-p", "-ps", "-plain"):
        return lambda data: "".join(data[at : at + 30].hex() + "\n" for at in range(0, len(data), 30))
    if options:
        return None

    def encode(data: bytes) -> str:
        lines: list[str] = []
        for at in range(0, len(data), 16):
            chunk = data[at : at + 16]
            pairs = " ".join(chunk[n : n + 2].hex() for n in range(0, len(chunk), 2))
            lines.append(f"{at:08x}: {pairs:<39}  {_printable(chunk)}\n")
        return "".join(lines)

    return encode


def _printable(chunk: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 else "." for byte in chunk)


def _rev(options: str) -> Encoder | None:
    return None if options else lambda data: "\n".join(line[::-1] for line in data.decode().split("\n"))


def _sum(name: str) -> Callable[[str], Encoder | None]:
    def choose(options: str) -> Encoder | None:
        if options not in ("", "-"):
            return None
        return lambda data: f"{hashlib.new(name, data, usedforsecurity=False).hexdigest()}  -\n"

    return choose


_SUMS: Final = ("md5sum", "sha1sum", "sha256sum", "sha512sum", "rev")
_ENCODERS: Final[dict[str, Callable[[str], Encoder | None]]] = {
    "base64": _base64,
    "od": _od,
    "hexdump": _hexdump,
    "hd": lambda options: None if options else _hexdump("-C"),
    "xxd": _xxd,
    "rev": _rev,
    **{name: _sum(name.removesuffix("sum")) for name in _SUMS if name.endswith("sum")},
}
ENCODERS: Final[dict[str, Callable[[Call], list[Result]]]] = dict.fromkeys(_ENCODERS, encoded)
