"""The configuration: command-line flags over environment variables over `config.toml` over defaults.

`Config` is the one table of options; defaults, comments and validation of the file are derived from it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_type_hints

import msgspec
from msgspec import Meta

from agentdash import folders
from agentdash.files import expand_user, read_text
from agentdash.model.limits import STALLED_AFTER_S
from agentdash.model.sanitize import clean_line
from agentdash.model.states import State

Theme = Literal["dark", "light", "high-contrast", "colour-blind", "terminal"]
THEMES: Final[tuple[str, ...]] = get_args(Theme)
"""Names of `tui.theme.THEMES`, repeated here because this module must not import Textual."""
_MAX_SECONDS: Final = 365 * 86_400.0
"""A year: also keeps out `inf`."""
_HOST_EXAMPLES: Final = {
    "ssh": "me@build1.example.com:2222",
    "container": "devbox",
    "carrier": "kubectl exec -i devbox -- sh -c {}",
    "command": "~/.local/bin/agentdash",
}
_ENVIRONMENT_VARIABLES: Final = {"codex_home": "CODEX_HOME", "claude_home": "CLAUDE_CONFIG_DIR"}
"""Options that can also be set by an environment variable: paths."""


class NotificationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """States that trigger a notification, by channel; none by default."""

    bell: Annotated[
        tuple[State, ...],
        Meta(description="States that ring the terminal's bell.", examples=[["waiting-approval"]]),
    ] = ()
    terminal: Annotated[
        tuple[State, ...],
        Meta(description="States that send a terminal notification (OSC 9 and OSC 777)."),
    ] = ()
    desktop: Annotated[
        tuple[State, ...],
        Meta(description="States that make a desktop notification (`notify-send`, `osascript`)."),
    ] = ()
    pause: Annotated[
        float,
        Meta(
            ge=0, le=_MAX_SECONDS, description="Minimum seconds between two notifications of the same worker."
        ),
    ] = 30.0

    @property
    def wanted(self) -> bool:
        """Whether any state triggers a notification."""
        return bool(self.bell or self.terminal or self.desktop)


class HostSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How another host is reached, and where agentdash is there: by ssh, unless another way is given."""

    ssh: Annotated[
        str | None, Meta(description="What ssh connects to: [USER@]HOST[:PORT]; else its name here.")
    ] = None
    container: Annotated[
        str | None,
        Meta(
            description="A container, for `docker exec` or `podman exec`: NAME, docker:NAME or podman:NAME."
        ),
    ] = None
    carrier: Annotated[
        str | None,
        Meta(
            description="Any other command that runs a shell line there: {}, or else `sh -c LINE` at its end."
        ),
    ] = None
    command: Annotated[str, Meta(description="agentdash there, as a shell would find it.")] = "agentdash"

    @property
    def kind(self) -> Literal["ssh", "container", "carrier"]:
        """Return how it is reached."""
        return "carrier" if self.carrier else "container" if self.container else "ssh"


class Config(msgspec.Struct, frozen=True):
    """All options. In the printed file an option has its description as comment and its example as value."""

    codex_home: Annotated[
        Path | None, Meta(description="The Codex home to watch.", examples=["~/.codex"])
    ] = None
    """None: `$CODEX_HOME`, or `~/.codex`."""
    tmux: Annotated[bool, Meta(description="Whether to watch tmux.")] = True
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
    title: Annotated[
        bool, Meta(description="Whether the title of the terminal shows how many workers need you, and run.")
    ] = True
    record: Annotated[
        Path | None,
        Meta(
            description="Where to record panes, processes and screens for `agentdash replay`.",
            examples=["~/agentdash-journal"],
        ),
    ] = None
    """None: no recording."""
    sessions: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="How many of the newest sessions to read at first, and 100 of the last day; 0: all."
        ),
    ] = 50
    """Older ones are read when they change. None: all."""
    rules: Annotated[
        Path | None,
        Meta(
            description="Directory of your own rules for worker CLIs, one CLI.toml each.",
            examples=["~/.config/agentdash/agents"],
        ),
    ] = None
    """None: `agents` beside the file."""
    publish: Annotated[
        bool,
        Meta(description="Whether the dashboard writes the status file that sandboxed agents read."),
    ] = True
    claude_home: Annotated[
        Path | None,
        Meta(description="The configuration directory of Claude Code to watch.", examples=["~/.claude"]),
    ] = None
    """None: `$CLAUDE_CONFIG_DIR`, or `~/.claude`."""
    stalled_after: Annotated[
        float,
        Meta(
            gt=0,
            le=_MAX_SECONDS,
            description="Seconds without output, CPU and I/O after which a running worker counts as stalled.",
        ),
    ] = STALLED_AFTER_S
    debug_log: Annotated[
        Path | None,
        Meta(
            description="Where to append tracebacks, restarts of sources and slow steps.",
            examples=["~/.local/state/agentdash/debug.log"],
        ),
    ] = None
    """None: no debug log."""
    ssh_config: Annotated[
        Path | None,
        Meta(
            description="Configuration file for ssh, as for `ssh -F`.", examples=["~/.ssh/agentdash_config"]
        ),
    ] = None
    """None: ssh's own."""
    notices: Annotated[
        NotificationSettings, Meta(description="Notifications when a worker enters a state; none by default.")
    ] = NotificationSettings()
    hosts: Annotated[
        dict[str, HostSettings], Meta(description="Other hosts to watch: a table for each, by its name here.")
    ] = {}
    filters: Annotated[
        dict[str, str],
        Meta(description="Filters by a name: `@mine` stands for it in a filter of the list or the library."),
    ] = {}
    keys: Annotated[
        dict[str, str], Meta(description="Keys of an action by its id, separated by commas.")
    ] = {}

    @property
    def agents(self) -> Path:
        """Return the directory of the user's rules for worker CLIs."""
        return self.rules or agents_folder()


class Setting(NamedTuple):
    """An option in force, and where its value comes from."""

    name: str
    value: Any
    source: Literal["default", "file", "env", "flag"]
    where: str
    """File and line, variable or flag; empty for a default."""


class ConfigError(Exception):
    """The configuration is invalid; `lines` has one message for each problem, with file and line."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Return one message for each problem."""
        return tuple(str(line) for line in self.args)


def agents_folder() -> Path:
    """Return the default directory of user rules: `agents` in agentdash's config directory."""
    return Path(folders.config_folder(), "agents")


def state_folder() -> Path:
    """Return the directory that agentdash writes its own files to, `~/.local/state/agentdash` on Linux."""
    return Path(folders.state_folder())


def journal_folder() -> Path:
    """Return the default directory of recordings: `journal` in the state directory."""
    return state_folder() / "journal"


def config_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Return `$AGENTDASH_CONFIG`, else `config.toml` in agentdash's config directory.

    Raises:
        ConfigError: the variable names a home directory that does not exist.
    """
    if environ.get("AGENTDASH_CONFIG"):
        return _of_variable("AGENTDASH_CONFIG", environ)
    return Path(folders.config_folder(), "config.toml")


def load(flags: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> tuple[Config, list[Setting]]:
    """Return the configuration in force, and for each option its source.

    Args:
        flags: values of the flags that were given, by option name.

    Raises:
        ConfigError: the file cannot be read or is invalid.
    """
    path = config_file(environ)
    text = _text(path, named=bool(environ.get("AGENTDASH_CONFIG")))
    from_file = read(text, path)
    settings = []
    for name, default in defaults().items():
        variable = _ENVIRONMENT_VARIABLES.get(name, "")
        if name in flags:
            settings.append(Setting(name, flags[name], "flag", "the command line"))
        elif variable and environ.get(variable):
            settings.append(Setting(name, _of_variable(variable, environ), "env", variable))
        elif name in from_file:
            settings.append(
                Setting(name, from_file[name], "file", f"{clean_line(str(path))}:{_line(text, name)}")
            )
        else:
            settings.append(Setting(name, default, "default", ""))
    return Config(**{setting.name: setting.value for setting in settings}), settings


def _of_variable(variable: str, environ: Mapping[str, str]) -> Path:
    try:
        return expand_user(environ[variable])
    except OSError as error:
        raise ConfigError(f"{variable}: {clean_line(error.strerror or '')}") from error


def read(text: str, path: Path) -> dict[str, Any]:
    """Parse and validate the text of a config file; return the options that it sets, by name.

    Raises:
        ConfigError: the text is invalid; has one message for each problem, with its line.
    """
    if not text:
        return {}
    import tomllib  # noqa: PLC0415 - slow import, most users have no file

    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(_syntax_problem(error, text, path)) from error
    except RecursionError as error:
        raise ConfigError(f"{clean_line(str(path))}: nested too deeply") from error
    from agentdash.config_problems import find_problems  # noqa: PLC0415 - as above

    if problems := find_problems(table, text, Config):
        raise ConfigError(*(problem.at(clean_line(str(path))) for problem in problems))
    return {name: _convert(name, value) for name, value in table.items()}


def _syntax_problem(error: Exception, text: str, path: Path) -> str:
    """Return the message of a TOML syntax error; before Python 3.14 its place is only in the text."""
    file = clean_line(str(path))
    found = re.search(r"(.*) \(at line (\d+), column (\d+)\)", str(error))
    if found is not None:
        return f"{file}:{found[2]}:{found[3]}: {clean_line(found[1])}"
    last = text.count("\n") + 1
    return f"{file}:{last}:1: {clean_line(str(error).partition(' (')[0])}"  # "(at end of document)"


def defaults() -> dict[str, Any]:
    """Return every option with its default value."""
    return msgspec.structs.asdict(Config())


def default_text(keys: Mapping[str, str]) -> str:
    """Return the text of a file with every option, its description, and its default commented out.

    Args:
        keys: the default keys of every action, by its id.
    """
    lines = [
        "# Options of agentdash. A line commented out shows the default, or an example if there is none."
    ]
    for name, default in defaults().items():
        lines += ["", f"# {_meta(Config, name).description}"]
        if isinstance(default, msgspec.Struct):
            lines.append(f"#[{name}]")
            for field in msgspec.structs.fields(default):
                lines.append(f"# {_meta(type(default), field.name).description}")
                lines.append(_option(type(default), field.name, field.default))
        elif name == "hosts":
            lines.append("#[hosts.build1]")
            for field in msgspec.structs.fields(HostSettings):
                lines.append(f"# {_meta(HostSettings, field.name).description}")
                lines.append(f"#{field.name} = {_toml(_HOST_EXAMPLES[field.name])}")
        elif name == "filters":
            lines += ["#[filters]", '#mine = "cwd:/home/dev group:needs-you"']
        elif name == "keys":
            lines.append("#[keys]")
            lines += [f"#{action} = {_toml(shown)}" for action, shown in keys.items()]
        else:
            lines.append(_option(Config, name, default))
    return "\n".join(lines) + "\n"


def _option(struct: type[msgspec.Struct], name: str, default: Any) -> str:
    return f"#{name} = {_toml((_meta(struct, name).examples or [default])[0])}"


def _text(path: Path, *, named: bool) -> str:
    """Return the text of the file, or an empty text if it does not exist: an error only if it is named."""
    shown = clean_line(str(path))
    try:
        return read_text(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        if named:
            raise ConfigError(f"{shown}: no such file (named by AGENTDASH_CONFIG)") from error
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown}: not valid UTF-8") from error
    except OSError as error:
        raise ConfigError(f"{shown}: {error.strerror or error}") from error


def _fields() -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(Config)


def _meta(struct: type[msgspec.Struct], name: str) -> Meta:
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
    return expand_user(value)


def _line(text: str, key: str, start: int = 0) -> int:
    """Return the line number (from 1) of a key or table; the last line if the pattern does not find it."""
    found = re.compile(rf"(?m)^\s*\[?[\"']?{re.escape(key)}[\"']?\s*[]=.]").search(text, start)
    return text.count("\n", 0, found.end() if found else len(text)) + 1


def _toml(value: Any) -> str:
    """Encode a value as TOML; for strings, numbers, booleans and arrays of them JSON is the same."""
    return msgspec.json.encode(value).decode()
