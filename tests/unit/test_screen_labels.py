"""The sandbox that Codex states on its screen, against the policies of the thread."""

from __future__ import annotations

import pytest

from agentdash.agents.codex.adapter import screen_label
from agentdash.engine.judge.findings.requests import label_findings
from agentdash.model.events import LabelRead
from agentdash.model.pane import ScreenLabel
from agentdash.model.policy import Filesystem, Network
from tests.unit.test_request_findings import FULL, READ_ONLY, WORKSPACE, thread

THREAD = "01a20389-6dab-7641-822b-abdb43ebf893"
HEADER = """\
OpenAI Codex v0.130.0
--------
workdir: /w
model: mock-model
approval: never
sandbox: {}
reasoning effort: none
session id: 01a20389-6dab-7641-822b-abdb43ebf893
--------
user
"""
STATUS = """\
│  >_ OpenAI Codex (v0.130.0)                     │
│  Model:                mock-model               │
│  Permissions:          {}                       │
│  Session:              01a20389-6dab-7641-822b-abdb43ebf893                │
"""
READ, WORK, ALL = Filesystem.READ_ONLY, Filesystem.WORKSPACE, Filesystem.UNRESTRICTED


def label(text: str, words: str) -> ScreenLabel | None:
    return screen_label(text.format(words).split("\n"))


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        (HEADER, "read-only", (READ, Network.UNKNOWN, ())),
        (HEADER, "danger-full-access", (ALL, Network.ON, ())),
        (HEADER, "workspace-write [workdir, /tmp, $TMPDIR, /x y]", (WORK, Network.OFF, ("/tmp", "/x y"))),
        (STATUS, "Read Only (on-request)", (READ, Network.UNKNOWN, ())),
        (STATUS, "Workspace [/var/tmp] (Ask for approval)", (WORK, Network.OFF, ("/var/tmp",))),
        (STATUS, "Custom (danger-full-access, on-request)", (ALL, Network.ON, ())),
        (STATUS, "Custom (workspace with network access, Ask for approval)", (WORK, Network.ON, ())),
    ],
)
def test_words(text: str, words: str, expected: tuple[Filesystem, Network, tuple[str, ...]]) -> None:
    found = label(text, words)
    assert found is not None
    assert (found.filesystem, found.network, found.roots) == expected
    assert (found.thread, found.is_fixed) == (THREAD, text is HEADER)


def test_wrapped_header() -> None:
    lines = HEADER.format("workspace-write [workdir, /tm\np, /x]").split("\n")
    found = screen_label(lines)
    assert found is not None
    assert found.roots == ("/tmp", "/x")


@pytest.mark.parametrize(
    "text",
    [
        HEADER.format("something-new"),
        HEADER.format("read-only").replace("session id", "session"),
        HEADER.format("read-only").replace("--------", "", 1),
        STATUS.format("Read Only (on-request)").replace("Session:", "Sessions:"),
        "the README says: sandbox: danger-full-access\nsession id: " + THREAD,
    ],
)
def test_anything_else_is_no_label(text: str) -> None:
    assert screen_label(text.split("\n")) is None


def kinds(words: str, *policies: object, text: str = HEADER, at: float = 15.0) -> list[str]:
    found = label(text, words)
    assert found is not None
    read = LabelRead(at=at, label=found)
    return [finding.kind for finding in label_findings(thread(*policies), read)]


def test_what_no_policy_of_the_thread_is() -> None:
    assert kinds("workspace-write [workdir, /var/tmp]", (10.0, WORKSPACE)) == ["label-wrong"]
    assert kinds("danger-full-access", (10.0, READ_ONLY)) == ["label-wrong"]


def test_what_the_thread_has_or_had() -> None:
    assert kinds("workspace-write [workdir, /w]", (10.0, WORKSPACE)) == []
    assert kinds("read-only", (10.0, READ_ONLY), (20.0, FULL)) == []
    assert kinds("danger-full-access", (10.0, READ_ONLY), (20.0, FULL)) == []
    assert kinds("read-only") == []


def test_status_counts_once_a_later_turn_has_stated_its_policy() -> None:
    """0.130 states a choice by `/permissions` in its next turn: until then its log is old."""
    assert kinds("No Sandbox (x)", (10.0, READ_ONLY), text=STATUS) == []
    assert kinds("No Sandbox (x)", (10.0, READ_ONLY), (20.0, FULL), text=STATUS) == []
    assert kinds("No Sandbox (x)", (10.0, READ_ONLY), (20.0, READ_ONLY), text=STATUS) == ["label-wrong"]
