"""Conversations in exports: complete, readable, and inert."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from agentdash.agents.session_logs import reader_of_log, thread_of_log
from agentdash.engine.reduce.fleet import reduce
from agentdash.model.conversation import Conversation, ConversationTurn, Message
from agentdash.model.fleet import Fleet
from agentdash.model.states import State
from agentdash.model.worker import Agent, Assessment, Worker
from agentdash.replay.conversation import ConversationFile
from agentdash.report.exports import ExportReport, markdown, page, quoted
from tests.unit.captures import CHANGE_LOGS
from tests.unit.rollout_files import RECORDINGS, VERSIONS, response
from tests.unit.test_export import ALLOWED, HOSTILE, Page, exported, report_of, session

(LOG,) = (CHANGE_LOGS / "codex-0.169.0").glob("*.jsonl")
BROWSER = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough")
"""Renders as a forge does, which then removes some tags; here none may be active at all."""


def talk(folder: Path, log: Path, name: str = "talk.md", *flags: str) -> str:
    file = folder / name
    done = exported(log, file, *flags)
    assert (done.return_value, done.output) == (0, "")
    return file.read_text("utf-8")


def patch_session(folder: Path) -> Path:
    """Write a session with hostile texts everywhere, also in a patch."""
    message = f"{HOSTILE}\n\n![x](http://x/y.png)"
    log = session(folder, HOSTILE, f"echo {HOSTILE}", HOSTILE, message, HOSTILE)
    patch = f"*** Begin Patch\n*** Add File: {HOSTILE}\n+{HOSTILE}\n+```\n*** End Patch"
    call = response("function_call", name="apply_patch", call_id="c2", arguments=json.dumps({"input": patch}))
    done = response("function_call_output", call_id="c2", output=f"Success. {HOSTILE}")
    lines = log.read_bytes().splitlines()
    log.write_bytes(b"\n".join((*lines[:-1], call, done, lines[-1])) + b"\n")
    return log


def test_talk_has_everything_in_its_order(tmp_path: Path) -> None:
    text = talk(tmp_path, LOG)
    parts = (
        *("> [[go]] change files", "+line three and a half", "`moved.txt → docs/moved.txt` updated +1 -1"),
        *("not updated: failed", "refused by approval", "exit 3, 0.44 s", "Denied: `touch: cannot touch"),
        "> **Done**: `app.py` has changed.",
    )
    places = list(map(text.index, parts))
    assert places == sorted(places)
    assert text.count("<details>") == text.count("</details>") == 6


@pytest.mark.parametrize("log", sorted(CHANGE_LOGS.glob("*/*.jsonl")), ids=lambda log: log.parent.name)
def test_every_cli_has_a_conversation(tmp_path: Path, log: Path) -> None:
    parsed = Page(talk(tmp_path, log, "talk.html"))
    words = " ".join(parsed.words)
    assert parsed.tags <= ALLOWED
    assert "change files" in words
    assert "two <b>three</b>" in words
    assert {"ins", "del", "details", "li"} <= parsed.tags


def test_hostile_texts_are_inert(tmp_path: Path) -> None:
    log = patch_session(tmp_path)
    text = talk(tmp_path, log, "talk.html")
    whole = Page(text)
    assert whole.tags <= ALLOWED
    assert not {name for name in whole.attributes if name.startswith("on") or name == "src"}
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\(", text)
    assert "<script>alert(1)</script>" in "".join(whole.words)
    rendered = Page(BROWSER.render(talk(tmp_path, log, "talk.md")))
    assert rendered.tags <= ALLOWED
    assert not {name for name in rendered.attributes if name.startswith("on") or name == "src"}
    assert "alert(1)" in " ".join(rendered.words)


PIECES = st.sampled_from(
    [
        *("`", "``", "```", "~~~", "\n", "\n\n", "> ", "- ", "1. ", "    ", " ", "\t", "\\", "|", "#"),
        *("<b>", "<img src=x>", "<!--", "-->", "]]>", "<?x?>", "<http://x>", "&lt;", "text"),
        *("!", "[x](y)", "![x](http://y)", "![x][r]", "[r]: http://y"),
    ]
)


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES, max_size=14).map("".join))
def test_no_text_becomes_html_or_an_image(text: str) -> None:
    rendered = Page(BROWSER.render("\n".join(quoted(text))))
    assert not rendered.tags & {"img", "b", "script", "x"}
    message = Message(at=1.0, role="agent", text=text)
    conversation = Conversation(thread="t", turns=(ConversationTurn(number=1, at=1.0, entries=(message,)),))
    worker = Worker("t", "codex-thread", text, Agent("codex"), Assessment(State.COMPLETED, None, why=text))
    report = ExportReport("t", 1.0, 1.0, [worker], [conversation], redacted=False, notes=[], sources="x")
    document = markdown(report, "1")
    assert Page(page(document)).tags <= ALLOWED
    assert not Page(BROWSER.render(document)).tags & {"img", "b", "script", "x"}


# ---------------------------------------------------------------- two readings agree


@pytest.mark.parametrize("version", VERSIONS)
def test_denied_calls_are_those_of_the_ledger(version: str) -> None:
    logs = sorted((RECORDINGS / version).glob("*/*.jsonl"))
    denied = 0
    for log in logs:
        found = {call.id for call in ConversationFile(log).read().calls if call.denial}
        thread = thread_of_log(log) or ""
        events = reader_of_log(log, thread).read(log.read_bytes().splitlines())
        known = reduce(Fleet(), events).threads[thread]
        assert found == {call for entry in known.denials for call in entry.calls}, log
        denied += len(found)
    assert denied >= 2


@pytest.mark.parametrize("log", sorted(CHANGE_LOGS.glob("*/*.jsonl")), ids=lambda log: log.parent.name)
def test_report_and_conversation_have_the_same_calls(log: Path) -> None:
    (conversation,) = report_of(log).conversations
    assert conversation == ConversationFile(log).read()
