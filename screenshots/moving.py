"""Several pictures of the same size as one that moves by itself: SVG with CSS alone, as pages show it that run no scripts.

What several frames have in common is drawn once: it takes the room of three frames, not of nine. Where nothing moves, or nothing shall, the
last frame is seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

_ELEMENT: Final = re.compile(r"<rect .*?/>|<text .*?</text>")
_STYLE: Final = re.compile(r"\.(\S+-r\d+) \{ (.*?) \}\n?")
_CLASS: Final = re.compile(r'(?<=class=")[^" ]+-r\d+(?=")')
_BODY: Final = re.compile(
    r"(?s)(<g transform=\"translate\(9, 41\)\".*?>)(.*?)<g class=\"(\S+-matrix)\">(.*?)</g>"
)


def moving(frames: Sequence[str], seconds: Sequence[float]) -> str:
    """One SVG of several.

    Args:
        frames: as Textual exports them, of one size and with one prefix of names.
        seconds: how long each is shown.
    """
    styles: dict[str, str] = {}
    behind: dict[str, set[int]] = {}
    before: dict[str, set[int]] = {}
    for number, frame in enumerate(frames):
        own = dict(_STYLE.findall(frame))
        body = _BODY.search(frame)
        assert body is not None, "not as Textual exports it"
        for part, shown in ((body[2], behind), (body[4], before)):
            for element in _ELEMENT.findall(_renamed(part, own, styles)):
                shown.setdefault(element, set()).add(number)
    spans = sorted({tuple(sorted(span)) for shown in (behind, before) for span in shown.values()})
    rules = [f".{name} {{ {style} }}" for style, name in styles.items()]
    rules += [
        rule
        for number, span in enumerate(spans)
        if len(span) < len(frames)
        for rule in _shown(number, span, seconds)
    ]
    rules += ["@media (prefers-reduced-motion) { g { animation: none !important } }"]
    head = _STYLE.sub("", frames[-1]).replace("</style>", "\n".join((*rules, "</style>")), 1)
    return _BODY.sub(
        lambda body: f'{body[1]}{_drawn(behind, spans)}<g class="{body[3]}">{_drawn(before, spans)}</g>',
        head.replace("\n\n", "\n"),
        count=1,
    )


def _renamed(part: str, own: dict[str, str], styles: dict[str, str]) -> str:
    """With names that mean the same in all frames: each frame counts its colours (`own`) by itself."""
    return _CLASS.sub(lambda name: styles.setdefault(own[name[0]], f"c{len(styles)}"), part)


def _shown(number: int, span: Iterable[int], seconds: Sequence[float]) -> Iterable[str]:
    """When the elements of a group are to be seen."""
    whole, last = sum(seconds), len(seconds) - 1
    steps = [
        f"{sum(seconds[:frame]) / whole:.2%} {{ visibility: {'visible' if frame in span else 'hidden'} }}"
        for frame in range(len(seconds))
    ]
    hidden = "" if last in span else "visibility: hidden; "
    yield f".f{number} {{ {hidden}animation: f{number} {whole:g}s step-end infinite }}"
    yield f"@keyframes f{number} {{ {' '.join(steps)} }}"


def _drawn(shown: dict[str, set[int]], spans: Sequence[tuple[int, ...]]) -> str:
    """The elements in groups that come and go together."""
    groups: dict[int, list[str]] = {}
    for element, span in shown.items():
        groups.setdefault(spans.index(tuple(sorted(span))), []).append(element)
    return "".join(f'<g class="f{number}">{"".join(groups[number])}</g>\n' for number in sorted(groups))
