"""Glyphs, names and tones of states and verdicts, and the colours of the five themes.

Glyphs in columns are one cell wide in every terminal, with two exceptions that East Asian terminals may draw
two cells wide: `≠`, and the box-drawing lines of the tree. `--ascii` avoids them.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, NamedTuple

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
    "★☆✦✧✱✳✶✻✽✢⁕⚹∗": "*",
    "⚠⚡❗": "!",
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
THEMES: Final = (
    Theme(  # of the 256 colours, and so the same in a terminal that has no others
        name="dark",
        primary="#87afd7",
        secondary="#87afaf",
        success="#87af5f",
        warning="#d7af5f",
        error="#ff875f",
        accent="#d7afff",
        foreground="#d0d0d0",
        background="#1c1c1c",
        surface="#262626",
        panel="#303030",
        variables={
            "border-blurred": "#4e4e4e",
            "border": "#87afd7",
            "block-cursor-background": "#3a3a3a",
            "text-muted": "#9e9e9e",
            "text-primary": "#87afd7",
            "text-secondary": "#87afaf",
            "text-success": "#87af5f",
            "text-warning": "#d7af5f",
            "text-error": "#ff875f",
            "text-accent": "#d7afff",
        },
    ),
    Theme(  # likewise
        name="light",
        primary="#005faf",
        secondary="#5f5f87",
        success="#005f00",
        warning="#875f00",
        error="#af0000",
        accent="#8700af",
        foreground="#262626",
        background="#ffffff",
        surface="#eeeeee",
        panel="#e4e4e4",
        dark=False,
        variables={
            "border-blurred": "#bcbcbc",
            "border": "#005faf",
            "block-cursor-background": "#d7d7ff",
            "text-muted": "#626262",
            "text-primary": "#005faf",
            "text-secondary": "#5f5f87",
            "text-success": "#005f00",
            "text-warning": "#875f00",
            "text-error": "#af0000",
            "text-accent": "#8700af",
        },
    ),
    Theme(
        name="high-contrast",
        primary="#66ccff",
        secondary="#ffffff",
        success="#00ff66",
        warning="#ffff00",
        error="#ff6666",
        accent="#ff99ff",
        foreground="#ffffff",
        background="#000000",
        surface="#000000",
        panel="#1a1a1a",
        text_alpha=1.0,
        variables={
            "border-blurred": "#aaaaaa",
            "border": "#ffffff",
            "block-cursor-background": "#004080",
            "text-muted": "#d8d8d8",
        },
    ),
    Theme(  # after Okabe and Ito, whose purple is grey to eyes without red or green cones: it is bluer here
        name="colour-blind",
        primary="#56b4e9",
        secondary="#999999",
        success="#56b4e9",
        warning="#f0e442",
        error="#e8771f",
        accent="#8f9bff",
        foreground="#e4e4e4",
        background="#15171a",
        surface="#1a1d21",
        panel="#22262b",
        variables={
            "border-blurred": "#3a3f46",
            "border": "#56b4e9",
            "block-cursor-background": "#2f3841",
            "text-warning": "#f0e442",  # Textual's tints are told apart half as well
            "text-error": "#e8771f",
            "text-accent": "#8f9bff",
        },
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
