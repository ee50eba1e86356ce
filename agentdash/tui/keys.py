"""Every key, once: the app's bindings, the footer, the help, the palette and the README are read from this table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from textual.binding import Binding, BindingType
from textual.keys import Keys

Group = Literal["Move", "Find", "Look", "Take along", "Time", "Library", "Program"]


class Key(NamedTuple):
    """A key or a few that do the same."""

    id: str
    """Stable name, for keymaps."""
    keys: str
    """As Textual spells them, separated by commas; the first is the one shown in the footer."""
    action: str
    """What Textual runs; `{key}` in it stands for the key that was pressed."""
    label: str
    """A word or two for the footer and the palette."""
    help: str
    """A sentence for the help screen."""
    group: Group
    on: Literal["app", "player", "library", "lines", "textual"] = "app"
    """Who answers: the app, the app only where it shows what is past, the library, the part that has the focus, or Textual itself."""

    @property
    def free(self) -> bool:
        """Whether it can be given other keys: not Textual's own, nor many that differ in what they do."""
        return self.on != "textual" and "{key}" not in self.action

    @property
    def shown(self) -> tuple[str, ...]:
        """The keys as people read them: `ctrl+d`, `pgdn`, `?`; `0-9` for many that differ in what they do."""
        keys = tuple(_SHOWN.get(key, key) for key in self.keys.split(","))
        return (f"{keys[0]}-{keys[-1]}",) if "{key}" in self.action else keys


_NAMED: Final = frozenset(key.value for key in Keys)
_SHOWN: Final = {"pagedown": "pgdn", "pageup": "pgup", "escape": "esc", "f1": "F1"}

KEYS: Final = (
    Key("down", "j,down", "down", "down", "Next row, or a line down.", "Move", "lines"),
    Key("up", "k,up", "up", "up", "Previous row, or a line up.", "Move", "lines"),
    Key("top", "g,home", "top", "top", "To the first row.", "Move", "lines"),
    Key("bottom", "G,end", "bottom", "bottom", "To the last row.", "Move", "lines"),
    Key("page-down", "ctrl+d,pagedown", "page(1)", "page down", "A page down.", "Move", "lines"),
    Key("page-up", "ctrl+u,pageup", "page(-1)", "page up", "A page up.", "Move", "lines"),
    Key("next-part", "tab", "focus_next", "next part", "To the next part of the screen.", "Move", "textual"),
    Key(
        "previous-part",
        "shift+tab",
        "focus_previous",
        "previous part",
        "To the previous part of the screen.",
        "Move",
        "textual",
    ),
    Key(
        "filter",
        "/",
        "filter",
        "filter",
        "Show only workers with these words in any column; a leading ! shows the others.",
        "Find",
    ),
    Key("next-match", "n", "match(1)", "next match", "To the next worker that the last filter fits.", "Find"),
    Key("previous-match", "N", "match(-1)", "previous match", "To the previous one.", "Find"),
    Key("bucket", "f", "bucket", "bucket", "All, Needs you, Running, Ready, Gone, Mismatch in turn.", "Find"),
    Key("attention", "a", "attention", "attention", "To the next worker that needs somebody.", "Find"),
    Key(
        "mismatch",
        "!",
        "mismatch",
        "mismatch",
        "To the next worker that got another sandbox than it was configured to have.",
        "Find",
    ),
    Key(
        "why",
        "w",
        "why",
        "why",
        "Why this state and this verdict: all evidence, also what disagrees.",
        "Look",
    ),
    Key(
        "open",
        "enter",
        "open",
        "open",
        "The chosen worker in detail; once more: on the whole screen.",
        "Look",
    ),
    Key(
        "tab-right",
        "right,l",
        "tab(1)",
        "next tab",
        "Timeline, Screen, Calls, Sandbox, Evidence: the next one.",
        "Look",
    ),
    Key("tab-left", "left,h", "tab(-1)", "previous tab", "The previous one.", "Look"),
    Key("jump", "o", "jump", "go to pane", "Go to the worker's tmux pane.", "Take along"),
    Key("copy-id", "y", "copy_id", "copy id", "Copy the worker's id.", "Take along"),
    Key(
        "copy-remedy",
        "Y",
        "copy_remedy",
        "copy remedy",
        "Copy the remedy of its worst finding; once more: of the next one.",
        "Take along",
    ),
    Key(
        "copy-text",
        "ctrl+c",
        "copy_text",
        "copy text",
        "Copy the text marked with the mouse.",
        "Take along",
        "textual",
    ),
    Key(
        "pause",
        "space",
        "pause",
        "play/pause",
        "Let the past go on, or stand still; at its end, begin again.",
        "Time",
        "player",
    ),
    Key(
        "next-event",
        "]",
        "step('event',1)",
        "next event",
        "To the next event, and stand still.",
        "Time",
        "player",
    ),
    Key(
        "previous-event",
        "[",
        "step('event',-1)",
        "previous event",
        "To the previous event.",
        "Time",
        "player",
    ),
    Key(
        "next-turn",
        "}",
        "step('turn',1)",
        "next turn",
        "To the beginning of the next turn.",
        "Time",
        "player",
    ),
    Key(
        "previous-turn",
        "{",
        "step('turn',-1)",
        "previous turn",
        "To the beginning of the previous turn.",
        "Time",
        "player",
    ),
    Key("next-command", ")", "step('command',1)", "next command", "To the next command.", "Time", "player"),
    Key(
        "previous-command",
        "(",
        "step('command',-1)",
        "previous command",
        "To the previous command.",
        "Time",
        "player",
    ),
    Key(
        "next-failure",
        "e",
        "step('failure',1)",
        "next failure",
        "To the next failure of a command, a turn or a worker.",
        "Time",
        "player",
    ),
    Key(
        "previous-failure",
        "E",
        "step('failure',-1)",
        "previous failure",
        "To the previous failure.",
        "Time",
        "player",
    ),
    Key(
        "next-wait",
        "p",
        "step('wait',1)",
        "next wait",
        "To where a worker next begins to wait for somebody.",
        "Time",
        "player",
    ),
    Key(
        "previous-wait",
        "P",
        "step('wait',-1)",
        "previous wait",
        "To where one began to wait before.",
        "Time",
        "player",
    ),
    Key(
        "next-finding",
        "m",
        "step('finding',1)",
        "next mismatch",
        "To where the next mismatch or denial shows.",
        "Time",
        "player",
    ),
    Key(
        "previous-finding",
        "M",
        "step('finding',-1)",
        "previous mismatch",
        "To where the one before showed.",
        "Time",
        "player",
    ),
    Key(
        "slower",
        "<",
        "speed(-1)",
        "slower",
        "Half as fast, down to a quarter of the real speed.",
        "Time",
        "player",
    ),
    Key(
        "faster",
        ">",
        "speed(1)",
        "faster",
        "Twice as fast, up to 64 times, and then as fast as it draws.",
        "Time",
        "player",
    ),
    Key(
        "tenth",
        "0,1,2,3,4,5,6,7,8,9",
        "tenth({key})",
        "to a tenth",
        "To the beginning, to a tenth, to two tenths ...",
        "Time",
        "player",
    ),
    Key("last", "$", "tenth(10)", "to the end", "To the end, or to what happens now.", "Time", "player"),
    Key(
        "go-to-time",
        "S",
        "go_to_time",
        "go to time",
        "To a time of day, or to a date and a time.",
        "Time",
        "player",
    ),
    Key(
        "unfold",
        "x",
        "unfold",
        "unfold",
        "Children and forks of the chosen session: show them, hide them.",
        "Library",
        "library",
    ),
    Key(
        "search",
        "s",
        "search",
        "search",
        "Full text: what was said, run and printed in the sessions listed.",
        "Library",
        "library",
    ),
    Key(
        "theme",
        "t",
        "theme",
        "theme",
        "The next theme: dark, light, high-contrast, colour-blind, terminal.",
        "Program",
    ),
    Key(
        "palette", ":,ctrl+p", "command_palette", "palette", "All actions and all workers by name.", "Program"
    ),
    Key("help", "?,f1", "help", "help", "These keys, and what the signs mean.", "Program"),
    Key("back", "escape", "back", "back", "Back to the list; in the list, clear the filter.", "Program"),
    Key("quit", "q", "leave", "quit", "Back, and from the list: quit.", "Program"),
    Key("quit-now", "ctrl+q", "quit", "quit now", "Quit from anywhere.", "Program", "textual"),
)
BY_ID: Final = {key.id: key for key in KEYS}
GROUPS: Final[tuple[Group, ...]] = ("Move", "Find", "Look", "Take along", "Time", "Library", "Program")


class KeysProblem(Exception):  # noqa: N818 - it is said to the user as it is
    """A key cannot be given to an action; says which and why."""

    def __init__(self, action: str, what: str) -> None:
        super().__init__(f"keys.{action}: {what}")
        self.action = action


def remapped(wanted: Mapping[str, str]) -> dict[str, Key]:
    """The table, by id, with other keys for some actions.

    Args:
        wanted: keys by the action's id, separated by commas, as Textual spells them: `J,ctrl+n`, `f2`, `!`.

    Raises:
        KeysProblem: there is no such action or key, or a key would do two things.
    """
    table = dict(BY_ID)
    for name, keys in wanted.items():
        if (key := table.get(name)) is None:
            raise KeysProblem(name, f"no such action; there are {', '.join(k.id for k in KEYS if k.free)}")
        if not key.free:
            raise KeysProblem(name, f"{key.shown[0]} cannot be changed")
        table[name] = key._replace(keys=",".join(_known(name, part.strip()) for part in keys.split(",")))
    taken: dict[str, str] = {}
    for name, key in table.items():
        for part in key.keys.split(","):
            if (other := taken.setdefault(_spelled(part), name)) != name:
                raise KeysProblem(
                    name if name in wanted else other,
                    f"{part} already means `{other if name in wanted else name}`",
                )
    return table


def keymap(wanted: Mapping[str, str]) -> dict[str, str]:
    """The same as Textual wants it: characters by their names."""
    return {
        name: ",".join(_spelled(part) for part in remapped(wanted)[name].keys.split(",")) for name in wanted
    }


def _spelled(key: str) -> str:
    """`exclamation_mark` for `!`."""
    return next(iter(Binding.make_bindings([Binding(key, "x")]))).key


def _known(action: str, key: str) -> str:
    name = key.rpartition("+")[2] if len(key) > 1 else key
    if (len(name) == 1 and name.isprintable() and name != " ") or name in _NAMED:
        return key
    raise KeysProblem(action, f"{key!r} is no key")


def bindings(*ids: str) -> list[BindingType]:
    """Textual's bindings of these keys."""
    return [
        Binding(
            pressed,
            key.action.replace("{key}", pressed),
            key.label,
            tooltip=key.help,
            id=key.id,
            group=Binding.Group(key.group),
        )
        for key in (BY_ID[name] for name in ids)
        for pressed in key.keys.split(",")
    ]


def ids(on: str) -> tuple[str, ...]:
    """The keys that this party answers."""
    return tuple(key.id for key in KEYS if key.on == on)
