"""What the keys of the dashboard do beside the workers of `fleet.py`. Each walk begins in the list.

What shows a message comes last in a walk: for five seconds the message hides the hints.
"""

import re

from agentdash.tui.fleet.screen import HINTS, PANEL_HINTS, WORKER_HINTS
from tests.live.hands.hands import Hands, Seen, Walk, lacks, shows

WORKERS = ("[[ask]] go", "[[denied]] go", "[[work]] go", "[[hello]] go", "[[done]] go", "[[parent]] go")
_TAB = re.compile(r"\[([A-Z][a-z]+)\]")
_HINTS_OF_LIST = shows("o go there  d dismiss")
UNCOVERED = lacks("╭")
in_sandboxes = shows(" Sandbox problems  ")
ON_WORKER = shows("d dismiss  y copy id")
WHY = shows("[Evidence]", " since ")
HELP = shows("agentdash is read-only: no key")
PALETTE = shows("An action, or the name of a worker")
COMPLETED = "turn: completed"
"""The newest line of a timeline."""
STATE = "blocked sandbox  since "
"""The first line of the evidence."""


def in_list(hands: Hands) -> bool:
    """Return whether the list has the focus."""
    return bool(_HINTS_OF_LIST(hands) and UNCOVERED(hands) and not PALETTE(hands))


def in_panel(hands: Hands) -> bool:
    """Return whether the panel has the focus."""
    return bool(shows("esc back  right next tab")(hands) and UNCOVERED(hands))


def whole(hands: Hands) -> bool:
    """Return whether no filter hides a worker."""
    return set(WORKERS) <= set(hands.rows)


def at(row: int) -> Seen:
    """Return whether the cursor is on this row, counted from 0, or from the end as Python does."""
    return lambda hands: bool(rows := hands.rows) and hands.selected == rows[row]


def on(name: str) -> Seen:
    """Return whether the cursor is on this worker."""
    return lambda hands: hands.selected == name


def only(name: str) -> Seen:
    """Return whether a filter leaves few workers, the first of them this one, and is no longer edited."""
    return lambda hands: len(hands.rows) <= 2 and hands.selected == name and "clears" in hands.text


def tab(name: str) -> Seen:
    """Return whether this tab is open."""
    return lambda hands: name in _TAB.findall(hands.text)


def on_problem(hands: Hands) -> bool:
    """Return whether the cursor is on the worker with a flag that it inherited, in the list of problems."""
    return bool(in_sandboxes(hands)) and hands.selected == "[[work]] go"


def went_to(name: str) -> Seen:
    """Return whether the client shows the pane of this worker."""

    def seen(hands: Hands) -> bool:
        pane = hands.shown_pane
        return pane != hands.pane and name in hands.tmux("capture-pane", "-p", "-t", pane)

    return seen


def copied(*words: str) -> Seen:
    """Return whether these words were copied, and a message says so."""
    return lambda hands: all(word in hands.buffer for word in words) and "Copied to tmux" in hands.text


def copied_id(hands: Hands) -> bool:
    """Return whether the id in the message was copied."""
    found = re.search(r"Copied to tmux.*: (\S+)", hands.text)
    return found is not None and hands.buffer == found[1]


def acknowledged(hands: Hands) -> bool:
    """Return whether the worker that asks needs no one any more, and has left the group of those who do."""
    return "1 needs you" in hands.text and hands.rows[0] != "[[ask]] go"


def not_acknowledged(hands: Hands) -> bool:
    """Return whether it is in that group."""
    return "2 need you" in hands.text and "[[ask]] go" in hands.rows[:2]


def opened(deed: str, box: Seen, behind: Seen) -> Walk:
    """Return the steps that open something, and close it."""
    return ((deed, box), ("escape", behind))


def select(name: str) -> Walk:
    """Return the steps that select a worker in the list."""
    return (
        ("/", shows("words in any column")),
        (f'"{name}"', None),
        ("enter", only(name)),
        ("escape", lambda hands: whole(hands) and in_list(hands) and hands.selected == name),
    )


ON_DENIED = select("[[denied]] go")
JUMP: Walk = (
    ("o", went_to("[[denied]] go")),
    (Hands.come_back, lambda hands: hands.shown_pane == hands.pane),
)
COPY: Walk = (("Y", copied("writable_roots")),)

MOVES: Walk = (
    ("G", at(-1)),
    ("home", at(0)),
    ("j", at(1)),
    ("k", at(0)),
    ("down", at(1)),
    ("up", at(0)),
    ("end", at(-1)),
    ("home", at(0)),
    ("ctrl+d", at(-1)),
    ("ctrl+u", at(0)),
    ("pagedown", at(-1)),
    ("pageup", at(0)),
    ("a", at(1)),
    *opened("tab", in_panel, in_list),
    *opened("shift+tab", in_panel, in_list),
    ("x", shows("x hides them")),
    ("x", shows("x shows them")),
    *select("[[parent]] go"),
    ("z", lacks("child done")),
    ("z", shows("child done")),
    ("s", shows("Sorted by activity")),
    ("s", shows("Sorted by age")),
    ("g", shows("Grouped by project", "+1", "workspace  /")),
    ("z", lacks("+1")),
    ("z", shows("+1")),
    ("g", shows("Grouped by host", "this machine")),
    ("g", shows("Grouped by state", "NEEDS YOU")),
    ("L", shows("what you call it")),
    ('"payments"', None),
    ("enter", lambda hands: hands.selected.startswith("payments")),
    ("P", shows("PINNED", "Pinned payments")),
    ("P", lacks("PINNED")),
    ("L", shows("L payments")),
    ("ctrl+u", shows("what you call it")),
    ("enter", lambda hands: in_list(hands) and hands.selected.startswith("[[parent]]")),
    ("home", at(0)),
)
OPENS: Walk = (
    *opened("m", in_sandboxes, whole),
    *opened("?", HELP, in_list),
    *opened("f1", HELP, in_list),
    *opened("ctrl+p", PALETTE, in_list),
    *opened(":", PALETTE, in_list),
    ('":sandboxes"', shows("Show only workers whose sandboxes")),  # in one read of the terminal
    ("enter", in_sandboxes),
    ("escape", whole),
    *ON_DENIED,
    *opened("w", WHY, in_list),
    ("l", tab("Talk")),
    ("h", tab("Overview")),
    *opened("enter", ON_WORKER, in_list),
    *opened("tab", in_panel, in_list),
    ("y", copied_id),
    *COPY,
    ("ctrl+z", shows("Cannot be suspended")),
    ("t", shows("Theme: light")),
    *JUMP,
    ("a", at(0)),
    ("d", acknowledged),
    ("d", not_acknowledged),
)
PANEL: Walk = (
    *ON_DENIED,
    ("tab", in_panel),
    ("right", tab("Talk")),
    ("left", tab("Overview")),
    ("left", tab("Evidence")),
    ("j", lacks(STATE)),
    ("k", shows(STATE)),
    ("G", lacks(STATE)),
    ("home", shows(STATE)),
    ("right", tab("Overview")),
    *opened("enter", ON_WORKER, in_panel),
    *opened("w", WHY, in_panel),
    *opened("?", HELP, in_panel),
    ("click esc back", in_list),
    ("tab", in_panel),
    *COPY,
    *JUMP,
)
WORKER: Walk = (
    *ON_DENIED,
    ("enter", lambda hands: ON_WORKER(hands) and COMPLETED in hands.text),
    (lambda hands: hands.drag("turn: started"), None),
    ("ctrl+c", copied("turn: started")),
    ("right", tab("Talk")),
    ("left", tab("Overview")),
    ("w", WHY),
    ("w", in_list),
    ("enter", ON_WORKER),
    *opened("?", HELP, UNCOVERED),
    ("d", shows("Dismissed [[denied]] go")),
    ("a", shows("[[ask]] go ⋅ codex")),
    ("q", in_list),
    *ON_DENIED,
    ("enter", ON_WORKER),
    ("click esc back", in_list),
    ("enter", ON_WORKER),
    ("y", copied_id),
    *COPY,
    *JUMP,
)
IN_SANDBOXES: Walk = (
    ("m", on_problem),
    ("m", whole),
    *select("[[work]] go"),
    ("K", lacks("1 sandbox problem")),
    ("m", shows("No sandbox differs")),
    ("K", shows("1 sandbox problem")),
    ("m", on_problem),
    *opened("w", WHY, in_sandboxes),
    ("escape", whole),
    ("K", shows("Known: ")),
)
IN_BOXES: Walk = (
    *ON_DENIED,
    ("w", WHY),
    ("w", in_list),
    ("w", WHY),
    ("q", in_list),
    ("?", HELP),
    ("j", lacks("agentdash is read-only: no key")),
    ("home", HELP),
    ("?", UNCOVERED),
    ("w", WHY),
    ("y", copied_id),
    *COPY,
    *JUMP,
)
CLICKS: Walk = (
    *opened("click need you", shows(" Needs you  2 of"), whole),
    *opened("click 1 running ", shows(" Running  1 of"), whole),
    *opened("click 4 done", shows(" Done  4 of"), whole),
    *opened("click 1 sandbox problem", shows(" Sandbox problems  1 of"), whole),
    ("click [[hello]] go", on("[[hello]] go")),
    ("click  Talk ", tab("Talk")),
    ("click  Overview ", tab("Overview")),
    ("click a next", at(0)),
    *opened("click m sandboxes", in_sandboxes, whole),
    *opened("click w why", WHY, in_list),
    *opened("click enter open", ON_WORKER, in_list),
    *opened("click : more", PALETTE, in_list),
    *opened("click ? help", HELP, in_list),
    *opened("click / filter", shows("words in any column"), lacks("words in any column")),
    ("click WORKER ", shows("Sorted by name")),
    ("click FOR", shows("Sorted by age")),
    ("click CTX", shows("Sorted by tokens")),
    ("click WHAT", shows("Sorted by attention")),
)
WALKS = {
    "moves": MOVES,
    "opens": OPENS,
    "panel": PANEL,
    "worker": WORKER,
    "sandboxes": IN_SANDBOXES,
    "boxes": IN_BOXES,
    "clicks": CLICKS,
}
FOOTERS: tuple[tuple[tuple[str, ...], Walk], ...] = (
    (HINTS, (*MOVES, *OPENS)),
    (PANEL_HINTS, PANEL),
    (WORKER_HINTS, WORKER),
)
"""The ids of a footer, and the walk that presses its keys."""
