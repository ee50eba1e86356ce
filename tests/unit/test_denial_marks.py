"""Outputs that only show text are passed over unread: the denials are those of a full reading."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.sandbox.denials import Denial, find_denials, may_find_denials
from agentdash.sandbox.denials.attribution import origin
from agentdash.sandbox.denials.lines import Lines

DATA = Path(__file__).parents[1] / "data"
HOME = "/home/dev"
CWD = f"{HOME}/project"
POLICY = Policy(filesystem=Filesystem.READ_ONLY, network=Network.OFF, rules=(PolicyRule("/", "read"),))
SHOWING = (
    *("pytest -q | tail -80", "cd sub && go test ./... 2>&1", "cargo test", "npm test 2>&1 | head"),
    *("cat a.log", "git log -p | less", "rg -n denied src", "ls -la; env | sort", "sqlite3 a.db .dump"),
)

WRITING = ("touch a", "make", "cp a b; cat b", "cat $PWD/a", "$PWD/cat a", 'echo "failed: $(cp a /opt 2>&1)"')


def outputs() -> list[str]:
    files = sorted(DATA.glob("denials*.jsonl"))
    cases = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    found = sorted({case["output"] for case in cases})
    # `tar: x: Permission denied`, as of the commands here and of the files of test runs
    renamed = [f"{name}{text[text.find(': ') :]}" for name in ("cat", "tail", "go") for text in found[::7]]
    moved = [text.replace(HOME, f"{HOME}/.cache/pip") for text in found if HOME in text]
    return [*found, *renamed, *moved]


def test_an_output_without_marks_has_no_denial(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = outputs()

    def found() -> list[tuple[Denial, ...]]:
        return [
            find_denials(script, output, exit_code=1, outcome="ended", policy=POLICY, cwd=CWD, home=HOME)
            for number, script in enumerate(SHOWING)
            for output in printed[number % 6 :: 6]
        ]

    quickly = found()
    monkeypatch.setattr(Lines, "may_hold", lambda _lines, _texts: True)
    assert quickly == found()
    assert sum(map(bool, quickly)) > 20


def test_what_only_shows_text_has_no_denial_whatever_the_policy_was() -> None:
    """`may_find_denials` is false only where every reading finds none."""
    none = Policy(Filesystem.UNRESTRICTED, Network.ON, enforced_by="nobody")
    shown = 0
    for number, script in enumerate((*SHOWING, *WRITING)):
        for output in outputs()[number % 6 :: 6]:
            if may_find_denials(script, output):
                continue
            shown += 1
            for exit_code, outcome, policy, cwd in (
                (1, "ended", POLICY, CWD),
                (101, "denied", POLICY, None),
                (0, "ended", none, "/srv"),
            ):
                assert not find_denials(
                    script, output, exit_code=exit_code, outcome=outcome, policy=policy, cwd=cwd
                ), (script, output)
    assert shown > 1_000


def test_a_script_that_may_print_anything_has_no_marks() -> None:
    for script in (
        "make",
        "cat a >b",
        "python3 -c 'print(open(\"a\").read())'",
        "npm view a",
        "cat a | tee b",
    ):
        assert origin(script, CWD, HOME).marks is None, script
    assert origin("cat a", CWD, HOME).marks
