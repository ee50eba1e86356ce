"""Which arguments a version of Codex takes, against the real programs.

A program that takes them fails at its configuration file next, with another exit code: nothing is started.
"""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path
from typing import Final

import pytest

from agentdash.agents.codex.config.argv import OPTIONS, refusal
from tests.live.codex import native_program
from tests.live.patience import scaled

VERSIONS: Final = tuple(os.environ.get("AGENTDASH_MATRIX_VERSIONS", "0.130.0,0.169.0,0.171.0").split(","))
NAMED: Final = (
    "exec x",
    "exec --bogus x",
    "exec -s read-only -s read-only x",
    "-s read-only exec -s workspace-write x",
    "-a never exec --yolo x",
    "exec --yolo=1 x",
    "exec x y",
    "hello exec --json",
    "exec hello resume --last",
    "-i a exec --json",
    "exec -i a resume --last",
    "exec resume -i a b",
    "exec fork -i a b",
    "exec -C -5 x",
    "exec -- x y",
    "exec -s=read-only x",
    "exec --sand read-only",
    "exec -c x",
    "exec -p a.b x",
    "resume a b c",
    "--full-auto",
)
_VALUES: Final = {"setting": ("a=1", "a"), "path": ("x",), "paths": ("x",), "text": ("x",), "": ()}
_REFUSED: Final = 2
"""Exit code of arguments that are refused."""


def random_arguments(chance: random.Random) -> list[str]:
    """Return one to three options, on the levels of `codex` and of a subcommand."""
    level = chance.choice(["", "exec", "exec", "exec resume", "exec fork", "resume", "fork"]).split()
    words = [[], *([word] for word in level)]
    for option in chance.choices(OPTIONS, k=chance.randint(1, 3)):
        if option.concern in ("help", "config"):
            continue
        value = chance.choice([*option.choices, *_VALUES[option.takes], ""])
        given = [chance.choice(option.names), *([value] if value else [])]
        chance.choice(words).extend(given)
    return [word for part in words for word in part]


@pytest.mark.parametrize("version", VERSIONS)
def test_arguments(version: str, tmp_path: Path) -> None:
    binary, chance = native_program(version), random.Random(version)
    (tmp_path / "config.toml").write_text("this is no TOML", "utf-8")
    environment = os.environ | {"CODEX_HOME": str(tmp_path), "HOME": str(tmp_path)}
    cases = [*(words.split() for words in NAMED), *(random_arguments(chance) for _ in range(20))]
    wrong = []
    for args in cases:
        done = subprocess.run(
            [str(binary), *args],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=scaled(60),
        )
        found = refusal(args, int(version.split(".")[1]))
        is_refused = done.returncode == _REFUSED or "-c overrides" in done.stderr
        if (found is not None) is not is_refused:
            wrong.append((args, found, done.returncode, done.stderr[:160]))
    assert wrong == []
