"""Glyphs, names and tones of states and verdicts, and the colours of the five themes.

Glyphs in columns are one cell wide in every terminal, with two exceptions that East Asian terminals may draw
two cells wide: `≠`, and the box-drawing lines of the tree. `--ascii` avoids them.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from rich.cells import cell_len
from textual.theme import BUILTIN_THEMES, Theme

from agentdash.config import NO_THRESHOLDS, ThresholdSettings
from agentdash.model.findings import Direction, Severity, Verdict
from agentdash.model.states import State
from agentdash.model.worker import Worker
from agentdash.tui.primitives.spans import Span, Tone

# ---------------------------------------------------------------- signs of foreign text in ASCII


_SIGNS: Final = {
    "─━┄┅┈┉╌╍═╴╶╸╺╼╾‾": "-",
    "│┃┆┇┊┋╎╏║╵╷╹╻▌▐▏▎▍▕❘": "|",
    "▁▂▃▔": "_",
    "█▉▊▋▓▆▇▅▄▀■▪◼◾▣": "#",
    "░▒□▢◻◽☐": ":",
    "●•◉◦○◌⬤∙·⋅▫⬝⏺◯": ".",
    "▶►▸▹❯›»→⏵➜➤⇒⟶": ">",
    "◀◄◂❮‹«←⏴⇐": "<",
    "▲△▴▵↑⇧": "^",
    "▼▽▾▿↓⇩": "v",
    "✓✔☑": "+",
    "✗✘✕✖×☒": "x",
    "“”„″": '"',
    "‘’‚′`": "'",
    "–—−‐‑": "-",
    "…⋯": ".",
    "⊘": "#",
    "↯": "E",
    "≠": "/",
}
_BY_CHARACTER: Final = {character: sign for characters, sign in _SIGNS.items() for character in characters}
_BOX_FIRST: Final = "\u2500"
_BOX_LAST: Final = "\u257f"
_OTHER_SIGN: Final = "*"


def ascii_signs(text: str) -> str:
    """Return the text with its signs in ASCII, each as wide as before."""
    return text if text.isascii() else "".join(map(_ascii, text))


@lru_cache(maxsize=4096)
def _ascii(character: str) -> str:
    if character.isascii():
        return character
    if (known := _BY_CHARACTER.get(character)) is not None:
        return known * cell_len(character)
    if _BOX_FIRST <= character <= _BOX_LAST:
        return "+"
    if unicodedata.category(character)[0] not in "SPZC":
        return character
    width = cell_len(character)
    return " " * width if unicodedata.category(character)[0] == "Z" else _OTHER_SIGN * width


# ---------------------------------------------------------------- our own


@dataclass(frozen=True)
class Glyphs:
    """A set of glyphs."""

    states: dict[State, str]
    verdicts: dict[Verdict, str]
    directions: dict[Direction, str]
    tree: tuple[str, str, str]
    """A child with siblings below it, the last child, and the line past a child."""
    folds: tuple[str, str]
    """A folded family, and an unfolded one."""
    cursor: str
    agrees: tuple[str, str]
    """Evidence against, evidence for: as a mismatch and a match."""
    ellipsis: str
    dot: str
    rule: str
    arrow: str
    """Between an expected value and the actual one."""
    sorted: str
    """Behind the title of the column that sorts a list."""


UNICODE: Final = Glyphs(
    states={
        State.RUNNING: "▸",
        State.WAITING_INPUT: "?",
        State.WAITING_APPROVAL: "!",
        State.BLOCKED_SANDBOX: "⊘",
        State.FAILED_PERMISSION: "⊘",
        State.FAILED_PROVIDER: "↯",
        State.COMPLETED: "✓",
        State.INTERRUPTED: "✕",
        State.EXITED: "✕",
        State.UNREACHABLE: "◦",
        State.UNKNOWN: "◦",
    },
    verdicts={"match": "=", "mismatch": "≠", "unverified": " "},
    directions={"narrower": "▾", "wider": "▴", "label": "≠"},
    tree=("├ ", "└ ", "│ "),
    folds=("+ ", "- "),
    cursor="›",
    agrees=("≠", "="),
    ellipsis="⋯",
    dot="⋅",
    rule="─",
    arrow="→",
    sorted="⇣",
)

ASCII: Final = replace(
    UNICODE,
    states={state: ascii_signs(sign) for state, sign in UNICODE.states.items()} | {State.COMPLETED: "o"},
    verdicts={"match": "=", "mismatch": "/=", "unverified": " "},
    directions={"narrower": "v", "wider": "^", "label": "/="},
    tree=("|- ", "`- ", "|  "),
    cursor="*",
    agrees=("/=", "="),
    ellipsis="..",
    dot="-",
    rule="-",
    arrow="->",
    sorted=":",
)


class Look(NamedTuple):
    """What drawing depends on beside the data and the width."""

    now: float
    """Unix seconds, for ages."""
    glyphs: Glyphs
    thresholds: ThresholdSettings = NO_THRESHOLDS


TONES_OF_STATES: Final[dict[State, Tone]] = {
    State.RUNNING: "live",
    State.WAITING_INPUT: "ask",
    State.WAITING_APPROVAL: "ask",
    State.BLOCKED_SANDBOX: "stuck",
    State.FAILED_PERMISSION: "stuck",
    State.FAILED_PROVIDER: "stuck",
    State.COMPLETED: "ready",
    State.INTERRUPTED: "ready",
    State.EXITED: "gone",
    State.UNREACHABLE: "gone",
    State.UNKNOWN: "gone",
}
GROUP_TONES: Final[dict[str, Tone]] = {
    "needs-you": "ask",
    "running": "live",
    "unclear": "gone",
    "done": "ready",
    "past": "gone",
    "mismatch": "mismatch",
}
SEVERITY_TONES: Final[dict[Severity, Tone]] = {"danger": "stuck", "warning": "mismatch", "info": "muted"}
VERDICT_TONES: Final[dict[Verdict, Tone]] = {"match": "muted", "mismatch": "mismatch", "unverified": "muted"}


def state_name(state: State) -> str:
    """Return the displayed name of a state."""
    return state.value.replace("-", " ")


def sign(worker: Worker, glyphs: Glyphs) -> Span:
    """Return glyph and name of a worker's state, with the exit status where it is known: `x exited 137`."""
    state, pane = worker.state, worker.pane
    text = state_name(state)
    if worker.stalled is not None:
        return Span(f"{glyphs.states[state]} {text}, stalled", "stuck")
    if state is State.EXITED and pane is not None and pane.dead and worker.host is None:
        if pane.dead_signal is not None:
            text += f" sig {pane.dead_signal}"
        elif pane.dead_status is not None:
            text += f" {pane.dead_status}"
    return Span(f"{glyphs.states[state]} {text}", TONES_OF_STATES[state])


TERMINAL_THEME: Final = "terminal"
"""The theme of the terminal's own colours. Its ground may be light or dark, and no coloured text can be read
on both in all palettes: states are distinguished by reverse video, white on red, underlining and dimming."""
BADGE_FOREGROUND: Final = "#ffffff"
"""On the terminal's own red: its own white is a grey in light palettes."""


def _theme(name: str, colours: str, *, muted: str, cursor: str, line: str, **more: Any) -> Theme:
    """Return a theme. Texts have its own colours: Textual's tints of them are told apart half as well.

    Args:
        colours: primary, secondary, success, warning, error, accent, foreground, background, surface, panel.
        muted: colour of what matters less.
        cursor: ground of the selected row.
        line: colour of lines between parts without the focus.
    """
    of: dict[str, Any] = dict(zip(_COLOURS, colours.split(), strict=True))
    variables = {f"text-{role}": of[role] for role in _COLOURS[:6]}
    variables |= {"text-muted": muted, "block-cursor-background": cursor}
    variables |= {"border": of["primary"], "border-blurred": line}
    return Theme(name=name, variables=variables, **of, **more)


_COLOURS: Final = (
    *("primary", "secondary", "success", "warning", "error", "accent"),
    *("foreground", "background", "surface", "panel"),
)
THEMES: Final = (
    _theme(  # of the 256 colours, and so the same in a terminal that has no others
        "dark",
        "#87afd7 #87afaf #87af5f #d7af5f #ff875f #d7afff #d0d0d0 #1c1c1c #262626 #303030",
        muted="#9e9e9e",
        cursor="#3a3a3a",
        line="#4e4e4e",
    ),
    _theme(  # likewise
        "light",
        "#005faf #5f5f87 #005f00 #875f00 #af0000 #8700af #262626 #ffffff #eeeeee #e4e4e4",
        muted="#626262",
        cursor="#d7d7ff",
        line="#bcbcbc",
        dark=False,
    ),
    _theme(
        "high-contrast",
        "#9addff #ffffff #56ff9a #ffff56 #ff9a9a #ffbbff #ffffff #000000 #000000 #1a1a1a",
        muted="#d8d8d8",
        cursor="#004080",
        line="#aaaaaa",
        text_alpha=1.0,
    ),
    _theme(  # after Okabe and Ito, whose purple is grey to eyes without red or green cones: it is bluer here
        "colour-blind",
        "#8fcdf0 #bbbbbb #8fcdf0 #f0e442 #e8771f #8f9bff #e4e4e4 #15171a #1a1d21 #22262b",
        muted="#a5a6a7",
        cursor="#2f3841",
        line="#3a3f46",
    ),
    replace(  # the terminal's own sixteen colours, on its own dark or light background
        BUILTIN_THEMES["ansi-dark"],
        name=TERMINAL_THEME,
        accent="ansi_magenta",
        variables={
            **BUILTIN_THEMES["ansi-dark"].variables,
            "border": "ansi_blue",
            "border-blurred": "ansi_bright_black",
            "scrollbar": "ansi_bright_black",
            "scrollbar-background": "ansi_default",
        },
    ),
)
