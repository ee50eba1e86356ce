"""What the keys of the dashboard do beside the workers of `fleet.py`."""

from __future__ import annotations

import re

from agentdash.tui.fleet.findings import HINTS as FINDINGS_HINTS
from agentdash.tui.fleet.screen import FINDINGS_HINTS as STRIP_HINTS
from agentdash.tui.fleet.screen import HINTS, PANEL_HINTS
from agentdash.tui.lanes.screen import HINTS as LANES_HINTS
from agentdash.tui.matrix.screen import HINTS as MATRIX_HINTS
from agentdash.tui.worker.screen import HINTS as WORKER_HINTS
from tests.live.hands.checks import Check, Screen
from tests.live.hands.hands import Hands, Seen, Step, lacks, shows

_TAB = re.compile(r"\[([A-Z][a-z]+)\]")
_HINTS_OF_LIST = shows("a attention  o go to pane")
_IS_COVERED = shows("╭")
IN_PANEL = shows("esc back  right next tab")
ON_WORKER = shows("y copy id  Y copy remedy")
WHY = shows("Why: ")
HELP = shows("agentdash is read-only: no key")
MATRIX = shows("escalation  reach")
LANES = shows("h l time")
FINDINGS = shows("    remedy (Y) ", "label only ⋅ stale-network-flag")
PALETTE = shows("An action, or the name of a worker")
_ASKS = re.compile(r"\[\[ask\]\] go  \d\d:\d\d:\d\d  ! waiting approval")
WORKERS = ("[[ask]] go", "[[denied]] go", "[[work]] go", "[[hello]] go", "[[done]] go", "[[parent]] go")


def in_list(hands: Hands) -> bool:
    """Return whether the list has the focus."""
    return bool(_HINTS_OF_LIST(hands)) and not _IS_COVERED(hands)


def at(row: int) -> Seen:
    """Return whether the cursor is on this row, counted from 0, or from the end as Python does."""
    return lambda hands: bool(rows := hands.rows) and hands.selected == rows[row]


def on(name: str) -> Seen:
    """Return whether the cursor is on this worker."""
    return lambda hands: hands.selected == name


def asks(hands: Hands) -> bool:
    """Return whether the cursor is on the lane of the worker that waits for an approval."""
    return _ASKS.search(hands.text) is not None


def only(name: str) -> Seen:
    """Return whether a filter leaves this worker, and is no longer edited."""
    return lambda hands: len(hands.rows) <= 2 and hands.selected == name and "clears" in hands.text


def tab(name: str) -> Seen:
    """Return whether this tab is open."""
    return lambda hands: name in _TAB.findall(hands.text)


def whole(hands: Hands) -> bool:
    """Return whether no filter hides a worker."""
    return set(WORKERS) <= set(hands.rows)


def went_to(name: str) -> Seen:
    """Return whether the client shows the pane of this worker."""

    def seen(hands: Hands) -> bool:
        pane = hands.shown_pane
        return pane != hands.pane and name in hands.tmux("capture-pane", "-p", "-t", pane)

    return seen


def times(number: int, key: str) -> Seen:
    """Press a key many times."""
    return lambda hands: hands.tmux("send-keys", "-N", str(number), "-t", hands.pane, key) or True


def lane(row: int) -> Seen:
    """Return whether the cursor is on this lane, counted from 0."""
    return lambda hands: hands.text.split("\n")[2 + row].startswith("›")


def copied(*words: str) -> Seen:
    """Return whether these words were copied, and a message says so."""
    return lambda hands: all(word in hands.buffer for word in words) and "Copied to tmux" in hands.text


def copied_id(hands: Hands) -> bool:
    """Return whether the id in the message was copied."""
    found = re.search(r"clipboard: (\S+)", hands.text)
    return found is not None and hands.buffer == found[1]


def drag_name(hands: Hands) -> bool:
    """Select a name with the mouse."""
    hands.drag("turn: started")
    return True


def select(name: str) -> tuple[Step, ...]:
    """Return the steps that select a worker in the list."""
    return ("/", f'"{name}"', "enter", only(name), "escape", whole)


BACK = ("escape", in_list)
RETURN = (Hands.come_back,)

LIST = Screen(
    name="list",
    hints=HINTS,
    open=(),
    close=(),
    checks=(
        Check("unread", lambda hands: not at(0)(hands), ("g", at(0))),
        Check("down", at(1), ("g", at(0))),
        Check("up", at(0), ("g", at(0), "j", at(1))),
        Check("top", at(0), ("G", at(-1))),
        Check("bottom", at(-1), ("g", at(0))),
        Check("page-down", at(-1), ("g", at(0))),
        Check("page-up", at(0), ("G", at(-1))),
        Check("next-part", IN_PANEL, after=BACK),
        Check("previous-part", shows("Z findings  m matrix"), after=BACK),
        Check(
            "filter",
            shows("words in any column"),
            after=('"[[hello]]"', "enter", only("[[hello]] go"), "escape", whole),
        ),
        Check("next-match", on("[[hello]] go"), (*select("[[hello]] go"), "g", at(0))),
        Check("previous-match", on("[[hello]] go"), (*select("[[hello]] go"), "g", at(0))),
        Check("bucket", shows(" Needs you  2 of"), after=("escape", whole)),
        Check("attention", at(0), ("G", at(-1))),
        Check("mismatch", on("[[work]] go"), ("g", at(0))),
        Check("fold", lacks("child done"), select("[[parent]] go"), ("z", shows("child done"))),
        Check("past", shows("x hides them"), after=("x", shows("x shows them"))),
        Check("why", WHY, after=BACK),
        Check("open", IN_PANEL, after=("enter", ON_WORKER, "escape", IN_PANEL, *BACK)),
        Check("tab-right", tab("Screen"), select("[[denied]] go"), ("h", tab("Timeline"))),
        Check("tab-left", tab("Evidence"), after=("l", tab("Timeline"))),
        Check(
            "shift-right",
            lacks("turn: completed"),
            (*select("[[denied]] go"), shows("turn: completed")),
            ("shift+left", shows("turn: completed")),
        ),
        Check(
            "shift-left",
            shows("turn: completed"),
            (*select("[[denied]] go"), "shift+right", lacks("turn: completed")),
        ),
        Check("matrix", MATRIX, after=BACK),
        Check("lanes", LANES, after=BACK),
        Check("findings", FINDINGS, ("g",), BACK),
        Check("palette", PALETTE, after=('"matrix"', shows("All workers by files"), "enter", MATRIX, *BACK)),
        Check("help", HELP, after=BACK),
        Check("back", whole, ("f", shows(" Needs you  2 of"))),
        Check("jump", went_to("[[hello]] go"), select("[[hello]] go"), RETURN),
        Check("copy-id", copied_id),
        Check("copy-remedy", copied("writable_roots"), select("[[denied]] go")),
        Check("copy-text", copied("turn: started"), (drag_name,), BACK),
        Check("acknowledge", shows(" 1 needs you"), ("g", at(0)), ("d", shows(" 2 need you"))),
        Check("sort", shows("Sorted by activity"), after=("s",) * 5 + (shows("Sorted by attention"),)),
        Check("freeze", shows("Rows stay where they are"), after=("F", shows("Rows move again"))),
        Check("suspend", shows("Cannot be suspended")),
        Check("theme", shows("Theme: light"), after=("t",) * 4 + (shows("Theme: dark"),)),
    ),
)

UNCOVERED = lacks("╭")
CLOSED = ("escape", UNCOVERED)
FIRST, LAST = shows("turn: completed"), shows("turn: started")
IN_STRIP = shows("Z findings  m matrix")
TO_STRIP = ("shift+tab", IN_STRIP)
DENIED_FILES, DENIED_NETWORK = shows(" [[denied]] go  files: "), shows(" [[denied]] go  network: ")
NOT_DENIED = lacks(" [[denied]] go  files: ")
WHY_BOX = Check("why", WHY, after=CLOSED)
HELP_BOX = Check("help", HELP, after=CLOSED)
JUMP = Check("jump", went_to("[[denied]] go"), after=RETURN)
COPY_REMEDY = Check("copy-remedy", copied("writable_roots"))


def why(name: str) -> tuple[Step, ...]:
    """Return the steps that ask why this worker is as it is, which is the one pointed at."""
    return ("w", shows(f"Why: {name}"), *CLOSED)


PANEL = Screen(
    name="panel",
    hints=PANEL_HINTS,
    open=(*select("[[denied]] go"), "enter", IN_PANEL),
    close=BACK,
    checks=(
        Check("tab-right", tab("Screen"), after=("left", tab("Timeline"))),
        Check("tab-left", tab("Evidence"), after=("right", tab("Timeline"))),
        Check("next-part", IN_STRIP, after=("shift+tab", IN_PANEL)),
        Check("open", ON_WORKER, after=("escape", IN_PANEL)),
        WHY_BOX,
        HELP_BOX,
        Check("back", in_list, after=("enter", IN_PANEL)),
        Check("shift-right", lacks("turn: completed"), after=("shift+left", FIRST)),
        JUMP,
        COPY_REMEDY,
    ),
)
STRIP = Screen(
    name="findings below the list",
    hints=STRIP_HINTS,
    open=TO_STRIP,
    close=BACK,
    checks=(
        Check("findings", FINDINGS, after=("escape", IN_STRIP)),
        Check("matrix", MATRIX, after=("escape", IN_STRIP)),
        Check("lanes", LANES, after=("escape", IN_STRIP)),
        Check("next-part", in_list, after=TO_STRIP),
        Check("back", in_list, after=TO_STRIP),
        HELP_BOX,
        Check(
            "open",
            on("[[work]] go"),
            ("g", "enter", on("[[denied]] go"), in_list, *TO_STRIP, "G"),
            TO_STRIP,
        ),
    ),
)
WORKER = Screen(
    name="worker",
    hints=WORKER_HINTS,
    open=(*select("[[denied]] go"), "enter", IN_PANEL, "enter", ON_WORKER, FIRST),
    close=("escape", IN_PANEL, *BACK),
    checks=(
        WHY_BOX,
        HELP_BOX,
        Check("tab-right", tab("Screen"), after=("left", tab("Timeline"))),
        Check("tab-left", tab("Evidence"), after=("right", tab("Timeline"))),
        Check("down", lacks("turn: completed"), after=("k", FIRST)),
        Check("up", FIRST, ("j", lacks("turn: completed"))),
        Check("bottom", LAST, after=("g", FIRST)),
        Check("top", FIRST, ("G", lacks("turn: completed"))),
        Check("page-down", LAST, after=("g", FIRST)),
        Check("page-up", FIRST, ("G", lacks("turn: completed"))),
        Check("attention", shows("[[ask]] go ⋅ codex"), after=("a", shows("[[denied]] go ⋅ codex"))),
        Check("back", IN_PANEL, after=("enter", ON_WORKER)),
        Check("quit", IN_PANEL, after=("enter", ON_WORKER)),
        Check("shift-right", lacks("turn: completed"), after=("shift+left", FIRST)),
        JUMP,
        Check("copy-id", copied_id),
        COPY_REMEDY,
    ),
)
ALL_FINDINGS = Screen(
    name="findings",
    hints=FINDINGS_HINTS,
    open=("Z", FINDINGS),
    close=BACK,
    checks=(
        Check("down", None, ("g",), why("[[board]]")),
        Check("up", None, ("g", "j"), why("[[denied]]")),
        Check("bottom", None, ("g",), why("[[work]]")),
        Check("top", None, ("G",), why("[[denied]]")),
        Check("page-down", None, ("g",), why("[[work]]")),
        Check("page-up", None, ("G",), why("[[denied]]")),
        Check("why", shows("Why: [[denied]]"), ("g",), CLOSED),
        HELP_BOX,
        Check("back", in_list, after=("Z", FINDINGS)),
        Check(
            "open",
            on("[[work]] go"),
            ("escape", in_list, "g", at(0), "Z", FINDINGS, "G"),
            ("Z", FINDINGS, "g"),
        ),
        JUMP,
        COPY_REMEDY,
    ),
)
IN_MATRIX = Screen(
    name="matrix",
    hints=MATRIX_HINTS,
    open=(*select("[[denied]] go"), "m", DENIED_FILES),
    close=BACK,
    checks=(
        Check("tab-right", DENIED_NETWORK, after=("left", DENIED_FILES)),
        Check("tab-left", DENIED_FILES, ("right", DENIED_NETWORK)),
        Check("down", NOT_DENIED, after=("k", DENIED_FILES)),
        Check("up", DENIED_FILES, ("j", NOT_DENIED)),
        Check("bottom", NOT_DENIED, after=("g", DENIED_FILES)),
        Check("top", DENIED_FILES, ("G", NOT_DENIED)),
        Check("page-down", NOT_DENIED, after=("g", DENIED_FILES)),
        Check("page-up", DENIED_FILES, ("G", NOT_DENIED)),
        Check("open", shows("│ [[denied]] go  files: "), after=CLOSED),
        WHY_BOX,
        HELP_BOX,
        Check("back", in_list, after=("m", DENIED_FILES)),
        JUMP,
        COPY_REMEDY,
    ),
)
IN_LANES = Screen(
    name="lanes",
    hints=LANES_HINTS,
    open=("g", at(0), "L", LANES, "g", lane(0)),
    close=BACK,
    checks=(
        Check("down", lane(1), after=("g", lane(0))),
        Check("up", lane(0), ("j", lane(1))),
        Check("bottom", lane(10), after=("g", lane(0))),
        Check("top", lane(0), ("G", lane(10))),
        Check("page-down", lane(10), after=("g", lane(0))),
        Check("page-up", lane(0), ("G", lane(10))),
        Check("zoom-out", lacks("10 minutes"), after=("+", shows("10 minutes"))),
        Check("zoom-in", shows("10 minutes"), ("-", lacks("10 minutes"))),
        Check(
            "tab-left", None, (), (times(99, "h"), shows("not known"), times(100, "l"), lacks("not known"))
        ),
        Check("tab-right", None, (times(99, "h"), shows("not known")), (times(99, "l"), lacks("not known"))),
        Check("attention", asks, ("g", lane(0)), ("g", lane(0))),
        HELP_BOX,
        Check("back", in_list, after=("L", LANES)),
        Check("open", in_list, after=("L", LANES, "g", lane(0))),
    ),
)
WHY_SCREEN = Screen(
    name="why",
    hints=("copy-remedy", "jump", "down", "back"),
    open=(*select("[[denied]] go"), "w", WHY),
    close=CLOSED,
    checks=(
        Check("down", lacks("Why: "), after=("k", WHY)),
        Check("up", WHY, ("j", lacks("Why: "))),
        Check("bottom", lacks("Why: "), after=("g", WHY)),
        Check("top", WHY, ("G", lacks("Why: "))),
        Check("page-down", lacks("Why: "), after=("g", WHY)),
        Check("page-up", WHY, ("G", lacks("Why: "))),
        Check("jump", went_to("[[denied]] go"), after=RETURN),
        Check("copy-id", copied_id),
        COPY_REMEDY,
        Check("why", UNCOVERED, after=("w", WHY)),
        Check("quit", UNCOVERED, after=("w", WHY)),
        Check("back", UNCOVERED, after=("w", WHY)),
        Check("help", UNCOVERED, after=("w", WHY)),
    ),
)
IN_HELP = Screen(
    name="help",
    hints=("filter", "down", "back"),
    open=("?", HELP),
    close=CLOSED,
    checks=(
        Check("down", lacks("agentdash is read-only: no key"), after=("k", HELP)),
        Check("bottom", lacks("agentdash is read-only: no key"), after=("g", HELP)),
        Check("top", HELP, ("G", lacks("agentdash is read-only: no key"))),
        Check("page-down", lacks("agentdash is read-only: no key"), after=("g", HELP)),
        Check(
            "filter",
            shows("words of a key, a sign"),
            after=(
                '"tmux pane"',
                shows("Go to the worker's tmux pane"),
                lacks("Next row, or"),
                "escape",
                HELP,
            ),
        ),
        Check("help", UNCOVERED, after=("?", HELP)),
        Check("quit", UNCOVERED, after=("?", HELP)),
        Check("back", UNCOVERED, after=("?", HELP)),
    ),
)
DASHBOARD = (
    LIST,
    PANEL,
    STRIP,
    WORKER,
    ALL_FINDINGS,
    IN_MATRIX,
    IN_LANES,
    WHY_SCREEN,
    IN_HELP,
)
CLICKS: tuple[tuple[str, Seen, tuple[Step, ...]], ...] = (
    ("need you", shows(" Needs you  2 of"), ("escape", whole)),
    ("running  ", shows(" Running  1 of"), ("escape", whole)),
    ("4 done", shows(" Done  4 of"), ("escape", whole)),
    ("4 past", shows(" Past  4 of"), ("escape", whole)),
    ("mismatch", shows(" Mismatch  1 of"), ("escape", whole)),
    ("[[hello]] go", on("[[hello]] go"), ()),
    (" Talk ", tab("Talk"), ()),
    (" Timeline ", tab("Timeline"), ()),
    ("WORKER ", shows("Sorted by name"), ()),
    ("FOR", shows("Sorted by age"), ()),
    ("COST", shows("Sorted by cost"), ()),
    ("CTX", shows("Sorted by tokens"), ()),
    ("ACTIVITY", shows("Sorted by activity"), ()),
    ("WHAT, AND WHY", shows("Sorted by attention"), ()),
)
"""What else can be clicked: a text, what is seen then, and the way back."""
