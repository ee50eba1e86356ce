"""Options from flags, environment variables, file and defaults; problems of a file with their lines."""

from __future__ import annotations

import datetime
import math
import re
from pathlib import Path

import msgspec
import pytest

from agentdash.config import Config, ConfigError, Setting, _convert, default_text, defaults, load, read
from agentdash.config_problems import find_problems
from agentdash.tui.keys import KEYS, KeymapError, keymap, remapped
from tests.unit.test_cli import agentdash

KEYS_BY_ID = {key.id: key.keys for key in KEYS if key.remappable}


def settings(
    tmp_path: Path, text: str, *, flags: dict[str, object] | None = None, **environ: str
) -> dict[str, Setting]:
    (tmp_path / "c.toml").write_text(text)
    config, found = load(flags or {}, {"AGENTDASH_CONFIG": str(tmp_path / "c.toml"), **environ})
    assert {s.name: s.value for s in found} == {name: getattr(config, name) for name in defaults()}
    return {s.name: s for s in found}


def test_precedence_of_flags_environment_and_file(tmp_path: Path) -> None:
    text = '# mine\ncodex_home = "/file"\ntheme = "light"\n'
    file = settings(tmp_path, text)
    assert file["codex_home"] == ("codex_home", Path("/file"), "file", f"{tmp_path}/c.toml:2")
    assert (file["theme"].source, file["theme"].where, file["ascii"].source) == (
        "file",
        f"{tmp_path}/c.toml:3",
        "default",
    )
    assert settings(tmp_path, text, CODEX_HOME="/env")["codex_home"] == (
        "codex_home",
        Path("/env"),
        "env",
        "CODEX_HOME",
    )
    assert settings(tmp_path, text, flags={"codex_home": Path("/flag")}, CODEX_HOME="/env")[
        "codex_home"
    ].value == Path("/flag")


def test_defaults_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    assert load({}, {"AGENTDASH_CONFIG": ""})[0] == Config()
    with pytest.raises(ConfigError, match="no such file"):
        load({}, {"AGENTDASH_CONFIG": str(tmp_path / "nothing")})


def test_default_text_sets_nothing_and_lists_every_option() -> None:
    text = default_text(KEYS_BY_ID)
    assert read(text, Path("x")) == {}
    options = re.sub(r"(?m)^#(?! )", "", text)
    given = read(options, Path("x"))
    assert given.keys() == defaults().keys()
    assert given["keys"] == KEYS_BY_ID
    assert remapped(given["keys"]) == remapped({})


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("a = 1\n[b\n", ["c.toml:2:3: "]),
        ("a =", ["c.toml:1:1: "]),
        ('theme = "dark"\n\nfrob = 1\n', ["c.toml:3:8: frob: unknown option: choose from codex_home, tmux"]),
        ('theem = "dark"', ["c.toml:1:9: theem: unknown option. Did you mean 'theme'?"]),
        (
            'ascii = "yes"\nsessions = -1\n',
            [
                'c.toml:1:9: ascii: expected true or false, got "yes"',
                "c.toml:2:12: sessions: expected a whole number of at least 0, got -1",
            ],
        ),
        ('theme = "pink"', ["c.toml:1:9: theme: expected one of colour-blind, dark, "]),
        ('theme = "drak"', ["c.toml:1:9: theme: ... Did you mean 'dark'?"]),
        ("socket_paths = [1]", ["c.toml:1:16: socket_paths: expected a path in quotes, got 1"]),
        ('record = "~no-such-user/x"', ["c.toml:1:10: record: no home directory ~no-such-user"]),
        ("[keys]\ndown = 1", ["c.toml:2:8: keys.down: expected a text in quotes, got 1"]),
        (
            'tmux = 1\n[notices]\npause = inf\nsound = 1\nbell = ["runing", "asleep-for-ever"]\n',
            [
                "c.toml:1:8: tmux: expected true or false, got 1",
                "c.toml:3:9: notices.pause: expected a number of at least 0 and at most 31,536,000, got ",
                "c.toml:4:9: notices.sound: unknown option: choose from bell, terminal, desktop, pause",
                "c.toml:5:8: notices.bell: ... Did you mean 'running'?",
                "c.toml:5:8: notices.bell: expected one of running, ",
            ],
        ),
        ("[hosts.a]\nshs = 1\n", ["c.toml:2:7: hosts.a.shs: unknown option. Did you mean 'ssh'?"]),
        (
            "hosts = 1\nnotices = { pause = true }",
            ["c.toml:1:9: hosts: expected a table, got 1", "c.toml:2:21: notices.pause: expected a number"],
        ),
        ("notices.pause = true", ["c.toml:1:17: notices.pause: expected a number"]),
        ('"\\u001b[31m" = 1', ["c.toml:1:"]),
    ],
)
def test_problems_have_their_line(text: str, messages: list[str]) -> None:
    with pytest.raises(ConfigError) as problem:
        read(text, Path("c.toml"))
    assert len(problem.value.lines) == len(messages)
    for line, message in zip(problem.value.lines, messages, strict=True):
        start, _, end = message.partition("...")
        assert line.startswith(start)
        assert line.endswith(end)
        assert "\x1b" not in line


def test_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('theme = "light"\nfrob = 1\n', "utf-8-sig")
    with pytest.raises(ConfigError, match=r"c\.toml:2:8: frob: unknown option"):
        load({}, {"AGENTDASH_CONFIG": str(file)})
    file.write_text('theme = "light"\n', "utf-8-sig")
    assert load({}, {"AGENTDASH_CONFIG": str(file)})[0].theme == "light"


@pytest.mark.parametrize("variable", ["CODEX_HOME", "CLAUDE_CONFIG_DIR", "AGENTDASH_CONFIG"])
def test_unknown_home_directory_is_named(variable: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{variable}: no home directory ~no-such-user$"):
        load({}, {variable: "~no-such-user/x"})


def test_sessions_zero_means_all() -> None:
    assert read("sessions = 0", Path("x")) == {"sessions": None}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"fly": "x"}, "keys.fly: unknown action: choose from down, up"),
        ({"qit": "x"}, "keys.qit: unknown action. Did you mean 'quit'?"),
        ({"quit": ""}, "keys.quit: invalid key ''"),
        ({"quit-now": "x"}, "ctrl+q cannot be remapped"),
        ({"down": "ctrl+frob"}, "invalid key 'ctrl+frob'"),
        ({"down": "k"}, "keys.down: k is already assigned to `up`"),
        ({"why": "?"}, "? is already assigned to `help`"),
        ({"why": "x", "help": "x"}, "x is already assigned to"),
    ],
)
def test_invalid_keys(keys: dict[str, str], message: str) -> None:
    with pytest.raises(KeymapError, match=re.escape(message)):
        remapped(keys)


def test_keys_can_be_swapped() -> None:
    assert keymap({"down": "k, f2", "up": "j", "why": "!", "mismatch": "w"}) == {
        "down": "k,f2",
        "up": "j",
        "why": "exclamation_mark",
        "mismatch": "w",
    }


@pytest.mark.slow
def test_config_commands(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('theme = "pink"\nfrob = 1\n')
    broken = agentdash("config", "check", AGENTDASH_CONFIG=str(file))
    assert (broken.returncode, broken.stdout, broken.stderr.count("\n")) == (2, "", 2)
    for command in (["status"], ["demo"]):
        refused = agentdash(*command, AGENTDASH_CONFIG=str(file))
        assert (refused.returncode, refused.stderr.count("\n"), f"{file}:1:9: theme" in refused.stderr) == (
            2,
            1,
            True,
        )
    file.write_text('theme = "light"\n[keys]\nup = "j"\n')
    refused = agentdash("config", "check", AGENTDASH_CONFIG=str(file))
    assert (
        refused.returncode,
        f"{file}:3:6: keys.up: j is already assigned to `down`" in refused.stderr,
    ) == (
        2,
        True,
    )
    file.write_text(agentdash("config", "default").stdout)
    assert agentdash("config", "check", str(file)).returncode == 0


VALUES = [
    True,
    1,
    -1,
    0.5,
    math.inf,
    math.nan,
    "x",
    "dark",
    [],
    [1],
    ["a"],
    ["running"],
    {},
    {"a": 1},
    {"a": "b"},
    {"a": {}},
    datetime.date(2026, 1, 1),
]


@pytest.mark.parametrize("name", defaults())
@pytest.mark.parametrize("value", VALUES, ids=str)
def test_problems_are_found_where_a_value_cannot_be_converted(name: str, value: object) -> None:
    try:
        _convert(name, value)
        is_valid = True
    except msgspec.ValidationError:
        is_valid = False
    assert (find_problems({name: value}, "", Config) == []) is is_valid
