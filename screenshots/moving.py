"""An animation of several pictures of equal size: one SVG with CSS only: it runs where scripts do not.

Elements that several frames share are stored once. Where animation is off (`prefers-reduced-motion`), the
last frame is shown.
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
"""The groups: opening tag, background, class of the text, text."""


def moving(frames: Sequence[str], seconds: Sequence[float]) -> str:
    """Return one SVG of several.

    Args:
        frames: as Textual exports them, of equal size and with one prefix of class names.
        seconds: how long each frame is shown.
    """
    styles: dict[str, str] = {}
    background: dict[str, set[int]] = {}
    text: dict[str, set[int]] = {}
    for number, frame in enumerate(frames):
        own = dict(_STYLE.findall(frame))
        body = _BODY.search(frame)
        assert body is not None, "not as Textual exports it"
        for part, shown in ((body[2], background), (body[4], text)):
            for element in _ELEMENT.findall(_renamed(part, own, styles)):
                shown.setdefault(element, set()).add(number)
    spans = sorted({tuple(sorted(span)) for shown in (background, text) for span in shown.values()})
    rules = [f".{name} {{ {style} }}" for style, name in styles.items()]
    rules += [
        rule
        for number, span in enumerate(spans)
        if len(span) < len(frames)
        for rule in _animation(number, span, seconds)
    ]
    rules += ["@media (prefers-reduced-motion) { g { animation: none !important } }"]
    head = _STYLE.sub("", frames[-1]).replace("</style>", "\n".join((*rules, "</style>")), 1)
    return _BODY.sub(
        lambda body: f'{body[1]}{_groups(background, spans)}<g class="{body[3]}">{_groups(text, spans)}</g>',
        head.replace("\n\n", "\n"),
        count=1,
    )


def _renamed(part: str, own: dict[str, str], styles: dict[str, str]) -> str:
    """Return elements with the same class names in all frames: each frame numbers its own styles."""
    return _CLASS.sub(lambda name: styles.setdefault(own[name[0]], f"c{len(styles)}"), part)


def _animation(number: int, span: Iterable[int], seconds: Sequence[float]) -> Iterable[str]:
    """Yield the CSS rules that show a group in the frames of `span`."""
    whole, last = sum(seconds), len(seconds) - 1
    steps = [
        f"{sum(seconds[:frame]) / whole:.2%} {{ visibility: {'visible' if frame in span else 'hidden'} }}"
        for frame in range(len(seconds))
    ]
    hidden = "" if last in span else "visibility: hidden; "
    yield f".f{number} {{ {hidden}animation: f{number} {whole:g}s step-end infinite }}"
    yield f"@keyframes f{number} {{ {' '.join(steps)} }}"


def _groups(shown: dict[str, set[int]], spans: Sequence[tuple[int, ...]]) -> str:
    """Return the elements in groups that are shown in the same frames."""
    groups: dict[int, list[str]] = {}
    for element, span in shown.items():
        groups.setdefault(spans.index(tuple(sorted(span))), []).append(element)
    return "".join(f'<g class="f{number}">{"".join(groups[number])}</g>\n' for number in sorted(groups))
