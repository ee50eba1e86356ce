"""Options from flags, environment variables, file and defaults; problems of a file with their lines."""

import re
from pathlib import Path

import pytest

from agentdash.config import Config, ConfigError, default_text, load, read
from agentdash.tui.keys import KEYS, keymap, remapped, wrong_keys
from tests.unit.test_cli import agentdash

KEYS_BY_ID = {key.id: key.keys for key in KEYS if key.remappable}


def test_precedence_of_flags_environment_and_file(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('# mine\ncodex_home = "/file"\ntheme = "light"\n')
    environ = {"AGENTDASH_CONFIG": str(tmp_path / "c.toml")}
    found = [
        load(flags, environ | more)
        for flags, more in (
            ({}, {}),
            ({}, {"CODEX_HOME": "/env"}),
            ({"codex_home": Path("/flag")}, {"CODEX_HOME": "/env"}),
        )
    ]
    assert [(str(each.codex_home), each.theme) for each in found] == [
        ("/file", "light"),
        ("/env", "light"),
        ("/flag", "light"),
    ]


def test_defaults_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_CONFIG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    assert load({}, {"AGENTDASH_CONFIG": ""}) == Config()
    with pytest.raises(ConfigError, match="no such file"):
        load({}, {"AGENTDASH_CONFIG": str(tmp_path / "nothing")})


def test_default_text_sets_nothing_and_lists_every_option() -> None:
    text = default_text(KEYS_BY_ID)
    assert read(text, Path("x")) == {}
    options = re.sub(r"(?m)^#(?! )", "", text)
    given = read(options, Path("x"))
    assert set(given) == set(Config.__struct_fields__)
    assert given["keys"] == KEYS_BY_ID
    assert remapped(given["keys"]) == remapped({})


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("a = 1\n[b\n", ["c.toml:2:3: "]),
        ('theme = "dark"\n\nfrob = 1\n', ["c.toml:3:8: frob: unknown option: choose from codex_home, tmux"]),
        ('theem = "dark"', ["c.toml:1:9: theem: unknown option. Did you mean 'theme'?"]),
        ('theme = "pink"', ["c.toml:1:9: theme: invalid value 'pink': choose from dark, light, "]),
        ("socket_paths = [1]", ["c.toml:1:16: socket_paths: Expected a path"]),
        ('record = "~no-such-user/x"', ["c.toml:1:10: record: no home directory ~no-such-user"]),
        (
            'tmux = 1\n[notices]\nquiet = "9-5"\nsound = 1\non = ["need-you", "asleep"]\n',
            [
                "c.toml:1:8: tmux: Expected bool, got int",
                'c.toml:3:9: notices.quiet: Expected hours: "22:00-07:00"',
                "c.toml:4:9: notices.sound: unknown option: choose from on, command, text, quiet, bell",
                "c.toml:5:6: notices.on: invalid value 'need-you'. Did you mean 'needs-you'?",
            ],
        ),
        ("[hosts.a]\nshs = 1\n", ["c.toml:2:7: hosts.a.shs: unknown option. Did you mean 'ssh'?"]),
        (
            "hosts = 1\nnotices = { bell = 1 }",
            ["c.toml:1:9: hosts: Expected object, got int", "c.toml:2:20: notices.bell: Expected bool"],
        ),
        ('# theme = "x"\n[colours]\n', ["c.toml:2:10: colours: unknown option: choose from codex_home, "]),
        ('"\\u001b[31m" = 1', ["c.toml:1:"]),
    ],
)
def test_problems_have_their_line(text: str, messages: list[str]) -> None:
    with pytest.raises(ConfigError) as problem:
        read(text, Path("c.toml"))
    assert len(problem.value.args) == len(messages)
    for line, message in zip(problem.value.args, messages, strict=True):
        assert line.startswith(message)
        assert "\x1b" not in line


def test_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('theme = "light"\nfrob = 1\n', "utf-8-sig")
    with pytest.raises(ConfigError, match=r"c\.toml:2:8: frob: unknown option"):
        load({}, {"AGENTDASH_CONFIG": str(file)})
    file.write_text('theme = "light"\n', "utf-8-sig")
    assert load({}, {"AGENTDASH_CONFIG": str(file)}).theme == "light"


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
        ({"suspend": "x"}, "ctrl+z cannot be remapped"),
        ({"down": "ctrl+frob"}, "invalid key 'ctrl+frob'"),
        ({"down": "k"}, "keys.down: k is already assigned to `up`"),
        ({"why": "?"}, "? is already assigned to `help`"),
    ],
)
def test_invalid_keys(keys: dict[str, str], message: str) -> None:
    action, reason = next(wrong_keys(keys))
    assert message in f"keys.{action}: {reason}"


def test_keys_can_be_swapped() -> None:
    assert keymap({"down": "k, f2", "up": "j", "why": "!", "attention": "w"}) == {
        "down": "k,f2",
        "up": "j",
        "why": "exclamation_mark",
        "attention": "w",
    }


@pytest.mark.slow
def test_config_commands(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('theme = "pink"\nfrob = 1\n')
    broken = agentdash("config", "check", AGENTDASH_CONFIG=str(file))
    assert (broken.returncode, broken.stdout, broken.stderr.count("\n")) == (2, "", 2)
    for command in ("status", "demo"):
        refused = agentdash(command, AGENTDASH_CONFIG=str(file))
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
        assert f"{file}:1:9: theme" in refused.stderr
    file.write_text('theme = "light"\n[keys]\nup = "j"\n')
    refused = agentdash("config", "check", AGENTDASH_CONFIG=str(file))
    assert refused.returncode == 2
    assert f"{file}:3:6: keys.up: j is already assigned to `down`" in refused.stderr
    file.write_text(agentdash("config", "default").stdout)
    assert agentdash("config", "check", str(file)).returncode == 0
