"""Which programs are started, and with which variables."""

import os
from pathlib import Path

import pytest

from agentdash.programs import environment, find_program


def make(folder: Path, name: str = "git") -> str:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)
    return str(folder)


def test_a_program_of_a_worker_is_not_found(
    program_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, own = program_folder / "workspace", make(program_folder / "home" / "bin")
    places = {
        "below /tmp": make(tmp_path / "bin"),
        "the workspace": make(workspace / "bin"),
        "node_modules": make(program_folder / "other" / "node_modules" / ".bin"),
        "a virtual environment": make(program_folder / "venv" / "bin"),
        "relative": "bin",
        "empty": "",
    }
    monkeypatch.chdir(workspace)
    environ = {"HOME": str(program_folder / "home"), "VIRTUAL_ENV": str(program_folder / "venv")}
    for name, place in places.items():
        path = os.pathsep.join((place, own))
        assert find_program("git", environ | {"PATH": path}) == f"{own}/git", name
        assert environment("git", environ | {"PATH": path})["PATH"] == own, name
    with pytest.raises(FileNotFoundError, match="which a worker may have put there"):
        find_program("git", environ | {"PATH": places["the workspace"]})
    monkeypatch.chdir(program_folder / "home")  # `~/.local/bin` counts in the home too
    assert find_program("git", environ | {"PATH": own}) == f"{own}/git"


@pytest.mark.parametrize(
    ("program", "kept"),
    [
        ("tmux", {"LC_ALL", "TMUX"}),
        ("git", {"LC_ALL"}),
        ("ssh", {"LC_ALL", "SSH_AUTH_SOCK"}),
        ("docker", {"LC_ALL", "SSH_AUTH_SOCK", "DOCKER_HOST"}),
        ("kubectl", {"LC_ALL", "TMUX", "SSH_AUTH_SOCK", "DOCKER_HOST", "OPENAI_API_KEY"}),
    ],
)
def test_variables_are_passed_on_by_name(program: str, kept: set[str]) -> None:
    names = ("LC_ALL", "TMUX", "SSH_AUTH_SOCK", "DOCKER_HOST", "OPENAI_API_KEY")
    assert environment(program, dict.fromkeys(names, "x")).keys() - {"PATH"} == kept
