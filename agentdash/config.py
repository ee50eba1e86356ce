"""The configuration: command-line flags over environment variables over `config.toml` over defaults.

`Config` is the one table of options; defaults, comments and validation of the file are derived from it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_type_hints

import msgspec
from msgspec import Meta

from agentdash import folders
from agentdash.files import expand_user, read_text
from agentdash.model.limits import STALLED_AFTER_S
from agentdash.model.sanitize import clean_line
from agentdash.model.suggestions import suggest

Theme = Literal["dark", "light", "high-contrast", "colour-blind", "terminal"]
THEMES: Final[tuple[str, ...]] = get_args(Theme)
"""Names of `tui.theme.THEMES`, repeated here because this module must not import Textual."""
_MAX_SECONDS: Final = 365 * 86_400.0
"""A year: also keeps out `inf`."""
_ENVIRONMENT_VARIABLES: Final = {"codex_home": "CODEX_HOME", "claude_home": "CLAUDE_CONFIG_DIR"}
"""Options that can also be set by an environment variable: paths."""


def described(text: str, *examples: Any, **limits: Any) -> Meta:
    """Return what the printed file says of an option, with an example, and the limits of its values."""
    return Meta(description=text, examples=list(examples) or None, **limits)


Occasion = Literal["needs-you", "done", "mismatch", "stalled", "limit", "threshold"]
QUIET_HOURS: Final = r"(?:[01]\d|2[0-3]):[0-5]\d-(?:[01]\d|2[0-3]):[0-5]\d"


class NoticeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a user away from the screen is told, and how; by default nothing."""

    on: Annotated[
        tuple[Occasion, ...], described(f"What to tell of a worker: {', '.join(get_args(Occasion))}.")
    ] = ("needs-you",)
    command: Annotated[
        tuple[str, ...],
        described(
            "A program that gets each notice as one JSON document on its standard input.",
            ["/home/dev/bin/tell-me"],
        ),
    ] = ()
    text: Annotated[
        bool, described("Whether that document has names, prompts and messages; else as `--redact` leaves.")
    ] = False
    quiet: Annotated[
        Annotated[str, Meta(pattern=f"^{QUIET_HOURS}$")] | None,
        described(
            "Hours, by the local clock, after which one notice tells of all that still holds.", "22:00-07:00"
        ),
    ] = None
    bell: Annotated[bool, described("Whether to ring the bell of the dashboard's terminal.")] = False
    terminal: Annotated[
        bool, described("Whether to send a notification to the dashboard's terminal (OSC 9 and 777).")
    ] = False

    @property
    def is_wanted(self) -> bool:
        """Whether anything is told in any way."""
        return bool(self.on and (self.command or self.bell or self.terminal))


class ThresholdSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a worker is marked for, and told of on the occasion `threshold`; by default nothing."""

    context: Annotated[
        Annotated[float, Meta(gt=0, le=100)] | None, described("Percent of the context window.", 80)
    ] = None
    cost: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        described("US dollars that a session has cost at list prices.", 5),
    ] = None
    cost_day: Annotated[
        Annotated[float, Meta(gt=0)] | None, described("The same of the present day, UTC.", 20)
    ] = None
    stalled: Annotated[
        Annotated[float, Meta(gt=0)] | None, described("Minutes without a sign of life while it runs.", 15)
    ] = None
    failing: Annotated[
        Annotated[int, Meta(ge=2)] | None,
        described("Times that one and the same call has failed in a row.", 4),
    ] = None


NO_THRESHOLDS: Final = ThresholdSettings()


class HostSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How another host is reached, and where agentdash is there: by ssh, unless another way is given."""

    ssh: Annotated[
        str | None,
        described(
            "What ssh connects to: [USER@]HOST[:PORT]; else its name here.", "me@build1.example.com:2222"
        ),
    ] = None
    container: Annotated[
        str | None,
        described(
            "A container, for `docker exec` or `podman exec`: NAME, docker:NAME or podman:NAME.", "devbox"
        ),
    ] = None
    carrier: Annotated[
        str | None,
        described(
            "Any other command that runs a shell line there: {}, or else `sh -c LINE` at its end.",
            "kubectl exec -i devbox -- sh -c {}",
        ),
    ] = None
    command: Annotated[
        str, described("agentdash there, as a shell would find it.", "~/.local/bin/agentdash")
    ] = "agentdash"

    @property
    def kind(self) -> Literal["ssh", "container", "carrier"]:
        """Return how it is reached."""
        return "carrier" if self.carrier else "container" if self.container else "ssh"


class Config(msgspec.Struct, frozen=True):
    """All options. In the printed file an option has its description as comment and its example as value."""

    codex_home: Annotated[Path | None, described("The Codex home to watch.", "~/.codex")] = None
    """None: `$CODEX_HOME`, or `~/.codex`."""
    tmux: Annotated[bool, described("Whether to watch tmux.")] = True
    socket_names: Annotated[
        tuple[str, ...], described("Further tmux servers by name, as for `tmux -L`.", ["work"])
    ] = ()
    socket_paths: Annotated[
        tuple[Path, ...], described("Further tmux servers by socket, as for `tmux -S`.", ["/tmp/other"])  # noqa: S108
    ] = ()
    ascii: Annotated[bool, described("Whether to draw with plain ASCII characters.")] = False
    theme: Annotated[Theme | None, described(f"Colours: {', '.join(THEMES)}.", "dark")] = None
    """None: `$TEXTUAL_THEME`, or `dark`."""
    title: Annotated[
        bool, described("Whether the title of the terminal shows how many workers need you, and run.")
    ] = True
    record: Annotated[
        Path | None,
        described(
            "Where to record panes, processes and screens for `agentdash replay`.", "~/agentdash-journal"
        ),
    ] = None
    """None: no recording."""
    sessions: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        described("How many of the newest sessions to read at first, and some of the last day; 0: all."),
    ] = 50
    """Older ones are read when they change. None: all."""
    publish: Annotated[
        bool, described("Whether the dashboard writes the status file that sandboxed agents read.")
    ] = True
    claude_home: Annotated[
        Path | None, described("The configuration directory of Claude Code to watch.", "~/.claude")
    ] = None
    """None: `$CLAUDE_CONFIG_DIR`, or `~/.claude`."""
    stalled_after: Annotated[
        float,
        described(
            "Seconds without output, CPU and I/O after which a running worker counts as stalled.",
            gt=0,
            le=_MAX_SECONDS,
        ),
    ] = STALLED_AFTER_S
    debug_log: Annotated[
        Path | None,
        described(
            "Where to append tracebacks, restarts of sources and slow steps.",
            "~/.local/state/agentdash/debug.log",
        ),
    ] = None
    """None: no debug log."""
    ssh_config: Annotated[
        Path | None, described("Configuration file for ssh, as for `ssh -F`.", "~/.ssh/agentdash_config")
    ] = None
    """None: ssh's own."""
    notices: Annotated[
        NoticeSettings, described("Notices for a user away from the screen; none by default.")
    ] = NoticeSettings()
    thresholds: Annotated[
        ThresholdSettings, described("What workers are marked for; nothing by default.")
    ] = NO_THRESHOLDS
    hosts: Annotated[
        dict[str, HostSettings], described("Other hosts to watch: a table for each, by its name here.")
    ] = {}
    filters: Annotated[
        dict[str, str],
        described("Filters by a name: `@mine` stands for it in a filter of the list or the library."),
    ] = {}
    keys: Annotated[dict[str, str], described("Keys of an action by its id, separated by commas.")] = {}


class Problem(NamedTuple):
    """One mistake in the file."""

    line: int
    """From 1."""
    column: int
    """From 1."""
    message: str

    def at(self, path: Path) -> str:
        """Return the message behind its place: `config.toml:3:9: ...`."""
        return f"{clean_line(str(path))}:{self.line}:{self.column}: {self.message}"


class ConfigError(Exception):
    """The configuration is invalid; `args` has one message for each problem, with file and line."""


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


def load(flags: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> Config:
    """Return the configuration in force.

    Args:
        flags: values of the flags that were given, by option name.

    Raises:
        ConfigError: the file cannot be read or is invalid.
    """
    variables = {
        name: _of_variable(variable, environ)
        for name, variable in _ENVIRONMENT_VARIABLES.items()
        if environ.get(variable)
    }
    return Config(**{**file_options(environ), **variables, **flags})


def file_options(environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the options that the file sets, by name; none if it does not exist, unless it was named.

    Raises:
        ConfigError: the file cannot be read or is invalid.
    """
    path = config_file(environ)
    shown = clean_line(str(path))
    try:
        return read(read_text(path), path)
    except (FileNotFoundError, NotADirectoryError) as error:
        if environ.get("AGENTDASH_CONFIG"):
            raise ConfigError(f"{shown}: no such file (named by AGENTDASH_CONFIG)") from error
        return {}
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown}: not valid UTF-8") from error
    except OSError as error:
        raise ConfigError(f"{shown}: {error.strerror or error}") from error


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
    if problems := sorted(_problems(table, Config, (), text)):
        raise ConfigError(*(problem.at(path) for problem in problems))
    found = {name: _convert(value, _type_of(Config, name)) for name, value in table.items()}
    return {**found, "sessions": None} if found.get("sessions") == 0 else found


def _problems(
    table: Mapping[str, Any], options: type[msgspec.Struct], above: tuple[str, ...], text: str
) -> Iterator[Problem]:
    """Yield the mistakes of a table of the file, the first one of each option.

    Args:
        options: what it may set, and the type of each option.
        above: the names of the tables that it is in.
        text: of the file, for the places.
    """
    for name, value in table.items():
        path = (*above, name)
        shown = clean_line(".".join(path))
        if name not in options.__struct_fields__:
            known = suggest(name, options.__struct_fields__)
            yield Problem(*place_of(text, path), f"{shown}: unknown option{known}")
            continue
        kind = _type_of(options, name)
        if isinstance(value, dict) and name in ("notices", "thresholds"):
            settings = NoticeSettings if name == "notices" else ThresholdSettings
            yield from _problems(value, settings, path, text)
        elif isinstance(value, dict) and name == "hosts":
            for host, settings in value.items():
                if isinstance(settings, dict):
                    yield from _problems(settings, HostSettings, (*path, host), text)
                else:
                    yield Problem(*place_of(text, (*path, host)), f"{shown}.{clean_line(host)}: not a table")
        else:
            try:
                _convert(value, kind)
            except msgspec.ValidationError as error:
                yield Problem(*place_of(text, path), f"{shown}: {_in_words(error, kind)}")


def _in_words(error: msgspec.ValidationError, kind: Any) -> str:
    """Return what is wrong with a value of an option, and what may stand there."""
    message = str(error).partition(" - at `$")[0].replace("`", "").replace(" | null", "")
    wrong = re.fullmatch(r"Invalid enum value '?(.*?)'?", message)
    if "matching regex" in message:
        return 'Expected hours: "22:00-07:00"'
    choices = THEMES if kind == _type_of(Config, "theme") else get_args(Occasion)
    return clean_line(message if wrong is None else f"invalid value {wrong[1]!r}{suggest(wrong[1], choices)}")


def place_of(text: str, path: Sequence[str]) -> tuple[int, int]:
    """Return line and column of the value of a key; where it is not found, of the innermost table that is."""
    offset = 0
    for name in path:
        key = rf"(?:^[ \t]*\[?[ \t]*|(?<=[.{{,])[ \t]*)[\"']?{re.escape(name)}[\"']?[ \t]*[]=.][ \t]*"
        if (found := re.compile(key, re.MULTILINE).search(text, offset)) is None:
            break
        offset = found.end()
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def _syntax_problem(error: Exception, text: str, path: Path) -> str:
    """Return the message of a TOML syntax error; before Python 3.14 its place is only in the text."""
    file = clean_line(str(path))
    found = re.search(r"(.*) \(at line (\d+), column (\d+)\)", str(error))
    if found is not None:
        return f"{file}:{found[2]}:{found[3]}: {clean_line(found[1])}"
    last = text.count("\n") + 1
    return f"{file}:{last}:1: {clean_line(str(error).partition(' (')[0])}"  # "(at end of document)"


def default_text(keys: Mapping[str, str]) -> str:
    """Return the text of a file with every option, its description, and its default commented out.

    Args:
        keys: the default keys of every action, by its id.
    """
    lines = [
        "# Options of agentdash. A line commented out shows the default, or an example if there is none."
    ]
    for name, default in msgspec.structs.asdict(Config()).items():
        lines += ["", f"# {_meta(Config, name).description}"]
        if isinstance(default, msgspec.Struct) or name == "hosts":
            settings = HostSettings if name == "hosts" else type(default)
            lines.append("#[hosts.build1]" if name == "hosts" else f"#[{name}]")
            for field in msgspec.structs.fields(settings):
                lines.append(f"# {_meta(settings, field.name).description}")
                lines.append(_option(settings, field.name, field.default))
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


def _meta(struct: type[msgspec.Struct], name: str) -> Meta:
    return next(
        m
        for m in get_type_hints(struct, include_extras=True)[name].__metadata__
        if isinstance(m, Meta) and m.description
    )


def _type_of(struct: type[msgspec.Struct], name: str) -> Any:
    return next(field.type for field in msgspec.structs.fields(struct) if field.name == name)


def _convert(value: Any, kind: Any) -> Any:
    return msgspec.convert(value, kind, dec_hook=_path)


def _path(kind: type, value: Any) -> Any:
    if kind is not Path:
        raise NotImplementedError(kind)
    if not isinstance(value, str):
        raise msgspec.ValidationError("Expected a path")
    try:
        return expand_user(value)
    except OSError as error:
        raise msgspec.ValidationError(error.strerror) from error


def _toml(value: Any) -> str:
    """Encode a value as TOML; for strings, numbers, booleans and arrays of them JSON is the same."""
    return msgspec.json.encode(value).decode()
