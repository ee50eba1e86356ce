"""Sessions of two weeks as they could be anybody's, made of the recordings: for the picture of the library.

States, verdicts and findings are those of the recordings. Prompts, answers, times, models and numbers of
tokens are changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

RECORDINGS: Final = Path(__file__).parents[1] / "tests" / "data" / "recordings"
_VERSIONS: Final = ("0.150.0", "0.169.0")
_PROMPTS: Final = {
    "escalation-refused": ("Publish the package", "Install the git hooks for all users"),
    "full-access": ("Move the fonts into the static folder", "Rename the settings module"),
    "full-access-leaked-flags": ("Fetch the new translations", "Mirror the package index"),
    "kanban-board": ("Run the smoke check and mark the card done", "Close the card of the login bug"),
    "killed-mid-command": ("Wait for the nightly build", "Profile the slow query"),
    "provider-401": ("Explain the retry logic", "Review the open pull request"),
    "provider-500": ("Write tests for the importer", "Find the memory leak in the worker"),
    "provider-quota": ("Summarise the release notes", "Translate the error messages"),
    "read-only": ("Why does test_retry fail now and then?", "Compare the two parsers"),
    "spawn": ("Split the network checks between two agents", "Port the tests to pytest"),
    "spawn-leaked-flags": ("Check all mirrors with two agents", "Try both database drivers"),
    "stream-drops": ("Draft the upgrade guide", "Sort the changelog"),
    "workspace-write": ("Add a dark theme to the site", "Split utils.py by its uses"),
    "workspace-write-network": ("Update the dependencies", "Check the links in the docs"),
}
"""For each recorded scenario the prompt of each version."""
_CHILD_PROMPTS: Final = {
    "[[child_1]] report your sandbox flags": "Check the first half",
    "[[child_2]] report your sandbox flags": "Check the second half",
}
_ANSWERS: Final = {
    "Probe finished.": "Done; the tests pass.",
    "Escalation tried.": "I could not: leaving the sandbox was refused.",
    "child_1 done": "The first half answers.",
    "child_2 failed its network criteria": "The second half does not resolve: no network here.",
    "Both children reported.": "One half answers, the other does not.",
    "mock-model": "gpt-5.2-codex",
}
_FIRST_DAY: Final = datetime(2026, 11, 9, 8, 40, tzinfo=UTC)
_PROJECTS: Final = ("api", "site", "importer", "docs")
_RECORDED_TIME: Final = re.compile(r"2026-11-20T(\d\d:\d\d:\d\d\.\d{3})Z")
_TOKENS: Final = re.compile(r'("(?:\w+_)?tokens":)(\d+)')


def write_sessions(home: Path) -> None:
    """Write the sessions into a Codex home."""
    number = 0
    for position, version in enumerate(_VERSIONS):
        for scenario, prompts in _PROMPTS.items():
            files = sorted((RECORDINGS / version / scenario).glob("*.jsonl"))
            _write_family(files, home, number=number, prompt=prompts[position])
            number += 1


def _write_family(files: list[Path], home: Path, *, number: int, prompt: str) -> None:
    """Write the sessions of one recording, moved in time together."""
    begun = _FIRST_DAY + timedelta(days=number // 2, hours=5 * (number % 2), minutes=number * 17 % 110)
    slower = 90 + 37 * (number % 11)
    project = _PROJECTS[number % 3 + number % 2]
    recorded = _time(min(time for file in files for time in _RECORDED_TIME.findall(file.read_text())))

    def moved(match: re.Match[str]) -> str:
        at = begun + (_time(match[1]) - recorded) * slower
        return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"

    day = home / "sessions" / f"{begun:%Y/%m/%d}"
    day.mkdir(parents=True, exist_ok=True)
    for file in files:
        session = file.stem[len("rollout-2026-11-20T00-00-00-") :]
        written = day / f"rollout-{begun:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"
        text = _rewritten(file.read_text(), moved, prompt=prompt, factor=7 + 13 * (number % 6))
        written.write_text(text.replace("/home/dev/project", f"/home/dev/{project}"))
        os.utime(written, (0, 0))


def _rewritten(text: str, moved: Callable[[re.Match[str]], str], *, prompt: str, factor: int) -> str:
    """Return a rollout with other times, texts and numbers of tokens."""
    text = _RECORDED_TIME.sub(moved, text)
    text = _TOKENS.sub(lambda match: f"{match[1]}{int(match[2]) * factor}", text)
    text = re.sub(r"\[\[[a-z]+\]\] run the recorded scenario", prompt, text)
    for old, new in (*_CHILD_PROMPTS.items(), *_ANSWERS.items()):
        text = text.replace(old, new)
    return text


def _time(text: str) -> datetime:
    return datetime.strptime(f"2026-11-20T{text}+0000", "%Y-%m-%dT%H:%M:%S.%f%z")
