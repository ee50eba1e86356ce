"""Tests for `agentdash.folders`: the directories are those of `platformdirs`, which Textual needs anyway."""

from pathlib import Path

import platformdirs
import pytest

from agentdash import config, folders


@pytest.mark.parametrize("value", [None, "", "/elsewhere", "relative", "~/in-home"])
def test_folders_are_those_of_platformdirs(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    monkeypatch.delenv("AGENTDASH_CONFIG", raising=False)
    assert folders.state_folder() == platformdirs.user_state_dir("agentdash")
    assert folders.config_folder() == platformdirs.user_config_dir("agentdash")
    assert config.state_folder() == Path(folders.state_folder())
    assert config.config_file() == Path(folders.config_folder(), "config.toml")
