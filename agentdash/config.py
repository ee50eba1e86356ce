"""What the user has set, as one frozen value: by flags, by the environment, in `config.toml`, or not at all.

`Config` is the one table of options: defaults, comments and checks of the file are read from it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_type_hints

import msgspec
from msgspec import Meta

from agentdash.model.sanitize import clean_line
from agentdash.model.states import State

Theme = Literal["dark", "light", "high-contrast", "colour-blind", "terminal"]
THEMES: Final[tuple[str, ...]] = get_args(Theme)
"""Names of `tui.theme.THEMES`, here for those who must not import Textual."""
ENVIRONMENT: Final = {"codex_home": "CODEX_HOME"}
"""Options that a variable sets, too."""


class NotificationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """On entering which states somebody is told, and how; nothing is said by default."""

    bell: Annotated[
        tuple[State, ...],
        Meta(description="States that ring the terminal's bell.", examples=[["waiting-approval"]]),
    ] = ()
    terminal: Annotated[
        tuple[State, ...],
        Meta(description="States of which the terminal is told (OSC 9 and OSC 777), to show it as it likes."),
    ] = ()
    desktop: Annotated[
        tuple[State, ...],
        Meta(description="States that make a desktop notification (`notify-send`, `osascript`)."),
    ] = ()
    pause: Annotated[
        float, Meta(ge=0, description="Seconds in which the same worker is not spoken of again.")
    ] = 30.0

    @property
    def wanted(self) -> bool:
        """Whether anything is to be said at all."""
        return bool(self.bell or self.terminal or self.desktop)


class Config(msgspec.Struct, frozen=True):
    """Everything that can be set. The description of an option is its comment in the file, the example its value there."""

    codex_home: Annotated[
        Path | None, Meta(description="The Codex home to watch.", examples=["~/.codex"])
    ] = None
    """None: `$CODEX_HOME`, or `~/.codex`."""
    tmux: Annotated[bool, Meta(description="Whether to look at tmux at all.")] = True
    socket_names: Annotated[
        tuple[str, ...],
        Meta(description="Further tmux servers by name, as for `tmux -L`.", examples=[["work"]]),
    ] = ()
    socket_paths: Annotated[
        tuple[Path, ...],
        Meta(description="Further tmux servers by socket, as for `tmux -S`.", examples=[["/tmp/other"]]),  # noqa: S108
    ] = ()
    ascii: Annotated[bool, Meta(description="Whether to draw with plain ASCII characters.")] = False
    theme: Annotated[Theme | None, Meta(description=f"Colours: {', '.join(THEMES)}.", examples=["dark"])] = (
        None
    )
    """None: `$TEXTUAL_THEME`, or `dark`."""
    record: Annotated[
        Path | None,
        Meta(
            description="Where to record what only a live agentdash sees, for `agentdash replay`.",
            examples=["~/agentdash-journal"],
        ),
    ] = None
    """None: nowhere."""
    sessions: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="How many of the newest sessions to read at the start, beside the last day's; 0: all."
        ),
    ] = 50
    """Older ones are read when they change. None: all."""
    rules: Annotated[
        Path | None,
        Meta(
            description="Where your own rules for worker CLIs are: CLI.toml each.",
            examples=["~/.config/agentdash/agents"],
        ),
    ] = None
    """None: `agents` beside the file."""
    publish: Annotated[
        bool,
        Meta(description="Whether the dashboard keeps the status file that agents inside of sandboxes read."),
    ] = True
    stalled_after: Annotated[
        float,
        Meta(
            gt=0,
            description="Seconds without output, CPU and I/O after which a worker that runs is marked as stalled.",
        ),
    ] = 120.0
    notices: Annotated[
        NotificationSettings, Meta(description="Who is told when a worker enters a state; nobody by default.")
    ] = NotificationSettings()
    keys: Annotated[
        dict[str, str], Meta(description="Other keys for an action, by its id, separated by commas.")
    ] = {}

    @property
    def agents(self) -> Path:
        """Where the user keeps rules for worker CLIs."""
        return self.rules or agents_folder()


class Setting(NamedTuple):
    """An option as it is in force."""

    name: str
    value: Any
    source: Literal["default", "file", "env", "flag"]
    where: str
    """The file and line, the variable or the flag; empty for a default."""


class ConfigProblem(Exception):  # noqa: N818 - it is said to the user as it is
    """The file cannot be used; each line says where and what is wrong."""

    @property
    def lines(self) -> tuple[str, ...]:
        """One for each problem."""
        return tuple(str(line) for line in self.args)


def agents_folder() -> Path:
    """Where the user keeps rules for worker CLIs: `~/.config/agentdash/agents/<cli>.toml`, or where the platform wants it."""
    from platformdirs import user_config_path  # noqa: PLC0415 - needed by few commands

    return user_config_path("agentdash") / "agents"


def state_folder() -> Path:
    """Where agentdash keeps what it writes: `$XDG_STATE_HOME/agentdash`, `~/.local/state/agentdash`, or where the platform wants it."""
    from platformdirs import user_state_path  # noqa: PLC0415 - needed by few commands

    return user_state_path("agentdash")


def journal_folder() -> Path:
    """Where recordings go unless somebody says otherwise: `journal` in the state directory."""
    return state_folder() / "journal"


def config_file(environ: Mapping[str, str] = os.environ) -> Path:
    """`$AGENTDASH_CONFIG`, or `~/.config/agentdash/config.toml`, or where the platform wants it."""
    if named := environ.get("AGENTDASH_CONFIG"):
        return Path(named).expanduser()
    from platformdirs import user_config_path  # noqa: PLC0415 - not where it is named

    return user_config_path("agentdash") / "config.toml"


def load(flags: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> tuple[Config, list[Setting]]:
    """The configuration in force, and where each option comes from: flags before the environment before the file.

    Args:
        flags: options by name, those alone that were given.
        environ: the environment.

    Raises:
        ConfigProblem: the file, or a variable, says something that cannot be.
    """
    path = config_file(environ)
    text = _text(path, named=bool(environ.get("AGENTDASH_CONFIG")))
    given = read(text, path)
    settings = []
    for name, default in defaults().items():
        variable = ENVIRONMENT.get(name, "")
        if name in flags:
            settings.append(Setting(name, flags[name], "flag", "the command line"))
        elif variable and environ.get(variable):
            settings.append(Setting(name, _convert(name, environ[variable]), "env", variable))
        elif name in given:
            settings.append(
                Setting(name, given[name], "file", f"{clean_line(str(path))}:{_line(text, name)}")
            )
        else:
            settings.append(Setting(name, default, "default", ""))
    return Config(**{setting.name: setting.value for setting in settings}), settings


def read(text: str, path: Path) -> dict[str, Any]:
    """The options that a file sets, checked.

    Raises:
        ConfigProblem: something in it cannot be; says every such thing, with its line.
    """
    if not text:
        return {}
    import tomllib  # noqa: PLC0415 - most people have no file

    shown = clean_line(str(path))
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"(.*) \(at line (\d+), column \d+\)", str(error))
        line, what = (
            (found[2], found[1]) if found else (str(text.count("\n") + 1), str(error).partition(" (")[0])
        )
        raise ConfigProblem(f"{shown}:{line}: {clean_line(what)}") from error
    options: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in table.items():
        try:
            options[name] = _convert(name, value)
        except (KeyError, msgspec.ValidationError) as error:
            what = (
                str(error)
                if isinstance(error, msgspec.ValidationError)
                else f"no such option; there are {', '.join(defaults())}"
            )
            what += f"; there are {', '.join(THEMES)}" if name == "theme" else ""
            inner = re.search(r"(?:\$\.|unknown field `)(\w+)", what) if name == "notices" else None
            line = line_of(text, name, inner[1]) if inner else _line(text, name)
            problems.append(f"{shown}:{line}: {clean_line(name)}: {clean_line(what)}")
    if problems:
        raise ConfigProblem(*problems)
    return options


def defaults() -> dict[str, Any]:
    """Every option, and what holds where nobody sets it."""
    return {
        field.name: field.default_factory() if field.default is msgspec.NODEFAULT else field.default
        for field in _fields()
    }


def default_text(keys: Mapping[str, str]) -> str:
    """A file that changes nothing: every option with its comment, commented out.

    Args:
        keys: the keys of every action, by its id.
    """
    lines = [
        "# agentdash's options. What is commented out shows the default, or an example where there is none."
    ]
    for name, default in defaults().items():
        about = _meta(Config, name)
        if isinstance(default, msgspec.Struct):
            lines += ["", f"# {about.description}", f"#[{name}]"]
            for field in msgspec.structs.fields(default):
                lines += [
                    f"# {_meta(type(default), field.name).description}",
                    _option(type(default), field.name, field.default),
                ]
        elif name == "keys":
            lines += [
                "",
                f"# {about.description}",
                "#[keys]",
                *(f"#{action} = {_toml(shown)}" for action, shown in keys.items()),
            ]
        else:
            lines += ["", f"# {about.description}", _option(Config, name, default)]
    return "\n".join(lines) + "\n"


def _option(struct: type[msgspec.Struct], name: str, default: Any) -> str:
    return f"#{name} = {_toml((_meta(struct, name).examples or [default])[0])}"


def line_of(text: str, name: str, key: str) -> int:
    """The line (from 1) on which `key` stands in table `name`."""
    start = re.search(rf"(?m)^\s*\[{re.escape(name)}\]", text)
    return _line(text, key, start.end() if start else 0)


def _text(path: Path, *, named: bool) -> str:
    try:
        return path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError) as error:
        if named:
            raise ConfigProblem(
                f"{clean_line(str(path))}: there is no such file (AGENTDASH_CONFIG names it)"
            ) from error
        return ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigProblem(f"{clean_line(str(path))}: cannot be read: {why}") from error


def _fields() -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(Config)


def _meta(struct: type[msgspec.Struct], name: str) -> Meta:
    """An option's description and example."""
    return next(
        m
        for m in get_type_hints(struct, include_extras=True)[name].__metadata__
        if isinstance(m, Meta) and m.description
    )


def _convert(name: str, value: Any) -> Any:
    kind = {field.name: field.type for field in _fields()}[name]
    converted = msgspec.convert(value, kind, dec_hook=_path)
    return None if name == "sessions" and converted == 0 else converted


def _path(kind: type, value: Any) -> Any:
    if kind is not Path:
        raise NotImplementedError(kind)
    if not isinstance(value, str):
        raise msgspec.ValidationError("Expected a path")
    return Path(value).expanduser()


def _line(text: str, key: str, start: int = 0) -> int:
    """The line (from 1) on which a key or table begins; the last one where it is written in a way that is not found."""
    found = re.compile(rf"(?m)^\s*\[?[\"']?{re.escape(key)}[\"']?\s*[]=.]").search(text, start)
    return text.count("\n", 0, found.end() if found else len(text)) + 1


def _toml(value: Any) -> str:
    """A value as TOML writes it; JSON's way is the same for all that there is here."""
    return msgspec.json.encode(value).decode()
