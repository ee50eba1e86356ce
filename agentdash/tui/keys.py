"""The table of keys, from which bindings, footer, help and palette are built."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

from textual.binding import Binding, BindingType
from textual.keys import Keys

from agentdash.model.suggestions import suggest

HandledBy = Literal["app", "fleet", "player", "library", "lines", "textual"]
"""What has the action: every app but the library, the dashboard, the replay, the library, the widget with the
focus, Textual itself."""
_NEVER_TOGETHER: Final = ({"fleet", "library"}, {"player", "library"})
"""Handlers that are not in one app: they may have the same keys."""


class Key(NamedTuple):
    """An action and its keys."""

    id: str
    """The name in the table `keys` of the config file: it must not change."""
    keys: str
    """As Textual spells them, separated by commas; the first is the one shown in the footer."""
    action: str
    """The action that Textual runs."""
    label: str
    """A word or two for the footer and the palette."""
    help: str
    """A sentence for the help screen."""
    on: HandledBy

    @property
    def remappable(self) -> bool:
        """Whether it can have other keys: Textual's own cannot."""
        return self.on != "textual"

    @property
    def shown(self) -> tuple[str, ...]:
        """The keys as they are displayed: `ctrl+d`, `pgdn`, `?`."""
        return tuple(_DISPLAY_NAMES.get(key, key) for key in self.keys.split(","))

    @property
    def press(self) -> str:
        """The action that presses the first of its keys: what a click on its hint does."""
        return f"app.simulate_key('{_textual_name(self.keys.partition(',')[0])}')"


OPENS_INPUT: Final = frozenset(("filter", "label", "command_palette", "search", "export"))
"""Actions that open an input (`BaseApp.check_action`)."""
_NAMED_KEYS: Final = frozenset(key.value for key in Keys)
_DISPLAY_NAMES: Final = {"pagedown": "pgdn", "pageup": "pgup", "escape": "esc", "f1": "F1"}


def _keys(on: HandledBy, *rows: tuple[str, str, str, str, str]) -> tuple[Key, ...]:
    """Return keys that are handled by `on`; a row has id, keys, action, label, help."""
    return tuple(Key(*row, on) for row in rows)


# fmt: off
KEYS: Final = (
    *_keys(
        "lines",
        ("down", "j,down", "down", "down", "Next row, or a line down."),
        ("up", "k,up", "up", "up", "Previous row, or a line up."),
        ("top", "home", "top", "top", "To the first row."),
        ("bottom", "G,end", "bottom", "bottom", "To the last row."),
        ("page-down", "ctrl+d,pagedown", "page(1)", "page down", "A page down."),
        ("page-up", "ctrl+u,pageup", "page(-1)", "page up", "A page up."),
    ),
    *_keys(
        "app",
        ("filter", "/", "filter", "filter",
         "Show only workers with these words in any column; a leading ! shows the others. In a replay: find "
         "what was said, run or printed."),
        ("attention", "a", "attention", "next", "To the next worker that needs you."),
        ("past", "x", "past", "all", "Show also past workers; again: hide them."),
        ("known", "K", "known", "known",
         "Mark its worst sandbox problem as known: this kind no longer counts in this directory until the "
         "policy changes. Again: the next problem, then undo."),
    ),
    *_keys(
        "fleet",
        ("acknowledge", "d", "acknowledge", "dismiss",
         "Dismiss what the worker needs: it does not need you until it changes. Again: undo."),
        ("sort", "s", "sort", "sort", "Sort by attention, activity, age, tokens, cost, name in turn."),
        ("group", "g", "group", "group",
         "Group by state, by project (a repository, then its worktrees; families folded), by host in turn."),
        ("label", "L", "label", "label",
         "Label the worker's session: lists show that in place of its name. Empty: its name again."),
        ("pin", "P", "pin", "pin",
         "Pin the worker's session: its family stands above all groups, at one place. Again: undo."),
        ("fold", "z", "fold", "fold", "Fold the worker's family, or unfold it."),
    ),
    *_keys(
        "app",
        ("why", "w", "why", "why", "Why this state and verdict: all evidence, for and against; again: back."),
        ("open", "enter", "open", "open", "The selected worker in detail, on the whole screen."),
        ("tab-right", "right,l", "tab(1)", "next tab",
         "Overview, Talk, Commands, Changes, Screen, Evidence: the next one."),
        ("tab-left", "left,h", "tab(-1)", "previous tab", "The previous one."),
        ("sandboxes", "m", "only('mismatch')", "sandboxes",
         "Show only workers whose sandboxes differ, with what is configured and what they have; again: all."),
        ("jump", "o", "go_to_pane", "go there", "Go to the worker's tmux pane."),
        ("copy-id", "y", "copy_id", "copy id", "Copy the worker's id."),
        ("copy-remedy", "Y", "copy_remedy", "copy remedy",
         "Copy the remedy of its worst finding for one run; once more: for good; then the next one's."),
    ),
    *_keys(
        "player",
        ("pause", "space", "pause", "play/pause", "Play or pause; at the end, play from the beginning."),
        ("next-event", "]", "step('event',1)", "next event", "To the next event, and pause."),
        ("previous-event", "[", "step('event',-1)", "previous event", "To the previous event."),
        ("next-turn", "}", "step('turn',1)", "next turn", "To the beginning of the next turn."),
        ("previous-turn", "{", "step('turn',-1)", "previous turn", "To the beginning of the previous turn."),
        ("next-failure", "e", "step('failure',1)", "next failure",
         "To the next failure of a command, a turn or a worker; after the last, to the first."),
        ("next-mark", "v", "step('mark',1)", "next mark",
         "To the next mark on the timeline; after the last, to the first."),
        ("search", "S", "search", "search",
         "Full text: what was said, run and printed, in the sessions listed or in this replay; there also a "
         "time of day, or 50%."),
        ("next-match", "n", "match", "next match", "To the next text found."),
        ("export", "X", "export", "export", "Write the session to a file: a report, or its conversation."),
    ),
    *_keys(
        "library",
        ("copy-resume", "C", "copy_resume", "resume",
         "Copy the command that resumes the selected session: `codex resume ID`."),
    ),
    *_keys(
        "app",
        ("theme", "t", "theme", "theme", "The next theme: dark, light, or the terminal's own colours."),
        ("palette", ":,ctrl+p", "command_palette", "more", "All actions and all workers by name."),
        ("help", "?,f1", "help", "help", "These keys, and what the signs mean."),
        ("back", "escape", "back", "back", "Back to the list; in the list, clear the filter."),
        ("quit", "q", "leave", "quit", "Back, and from the list: quit."),
    ),
    *_keys(
        "textual",
        ("next-part", "tab", "focus_next", "next part", "To the next part of the screen."),
        ("previous-part", "shift+tab", "focus_previous", "previous part",
         "To the previous part of the screen."),
        ("suspend", "ctrl+z", "suspend_process", "suspend",
         "Stop the program; `fg` in the shell continues it."),
    ),
)
# fmt: on
BY_ID: Final = {key.id: key for key in KEYS}


def remapped(wanted: Mapping[str, str]) -> dict[str, Key]:
    """Return the table by id, with other keys for some actions, of which none is wrong.

    Args:
        wanted: keys by the action's id, separated by commas, as Textual spells them: `J,ctrl+n`, `f2`, `!`.
    """
    changed = {name: ",".join(map(str.strip, keys.split(","))) for name, keys in wanted.items()}
    return BY_ID | {name: BY_ID[name]._replace(keys=keys) for name, keys in changed.items()}


def wrong_keys(wanted: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the actions that cannot have these keys, and why: an unknown action or key, or a key of two."""
    wrong = {name: reason for name, keys in wanted.items() if (reason := _reason_against(name, keys))}
    yield from wrong.items()
    valid = {name: keys for name, keys in wanted.items() if name not in wrong}
    taken: dict[str, list[Key]] = {}
    for key in remapped(valid).values():
        for part in key.keys.split(","):
            others = taken.setdefault(_textual_name(part), [])
            for other in others:
                if {key.on, other.on} not in _NEVER_TOGETHER:
                    own, its = (key.id, other.id) if key.id in valid else (other.id, key.id)
                    yield own, f"{part} is already assigned to `{its}`"
                    break
            others.append(key)


def _reason_against(name: str, keys: str) -> str:
    """Return why an action cannot have these keys; empty where it can."""
    if name not in BY_ID:
        return f"unknown action{suggest(name, [each.id for each in KEYS if each.remappable])}"
    if not BY_ID[name].remappable:
        return f"{BY_ID[name].shown[0]} cannot be remapped"
    return next(
        (f"invalid key {part!r}" for part in map(str.strip, keys.split(",")) if not _is_key(part)), ""
    )


def keymap(wanted: Mapping[str, str]) -> dict[str, str]:
    """Return the remapped keys by id as Textual's keymap, with characters by their names."""
    keys = {name: key.keys.split(",") for name, key in remapped(wanted).items() if name in wanted}
    return {name: ",".join(map(_textual_name, each)) for name, each in keys.items()}


def _textual_name(key: str) -> str:
    """Return Textual's name of a key: `exclamation_mark` for `!`."""
    return next(iter(Binding.make_bindings([Binding(key, "x")]))).key


def _is_key(text: str) -> bool:
    name = text.rpartition("+")[2] if len(text) > 1 else text
    return (len(name) == 1 and name.isprintable() and name != " ") or name in _NAMED_KEYS


def bindings(*ids: str) -> list[BindingType]:
    """Return Textual's bindings of these keys."""
    return [
        Binding(pressed, key.action, key.label, tooltip=key.help, id=key.id)
        for key in (BY_ID[name] for name in ids)
        for pressed in key.keys.split(",")
    ]


def ids(on: HandledBy) -> tuple[str, ...]:
    """Return the ids of the keys that are handled by `on`."""
    return tuple(key.id for key in KEYS if key.on == on)
