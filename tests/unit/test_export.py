"""Exports: complete, inert (no markup of the session is active), and free of redacted words."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from agentdash.agents.session_logs import reader_of_log, thread_of_log
from agentdash.cli import app
from agentdash.engine.reduce.fleet import reduce
from agentdash.model.conversation import Conversation, ConversationTurn, Message
from agentdash.model.fleet import Fleet
from agentdash.model.states import State
from agentdash.model.worker import Agent, Assessment, Worker
from agentdash.replay.conversation import ConversationFile
from agentdash.replay.family import Family
from agentdash.replay.streams import family_stream
from agentdash.report.exports import ExportReport, build_report, cell, code, markdown, page, quoted
from agentdash.report.redact import Scrubber
from tests.unit.captures import CHANGE_LOGS
from tests.unit.rollout_files import RECORDINGS, THREAD, VERSIONS, answer, call, event, files, line, meta

SPAWN = files("0.114.0", "spawn-leaked-flags")[0]
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "h4", "h5", "h6", "p", "hr", "br"),
    *("ul", "ol", "li", "pre", "code", "span", "table", "thead", "tbody", "tr", "th", "td", "blockquote"),
    *("strong", "em", "a", "details", "summary", "ins", "del", "b"),
}


def report_of(*paths: Path, redact: bool = False) -> ExportReport:
    thread = paths[0].stem[-36:]
    scrubber = Scrubber() if redact else None
    return build_report(thread, family_stream(Family(thread, paths)), ended=True, scrubber=scrubber)


def exported(target: Path | str, file: Path, *flags: str) -> Result:
    return CliRunner().invoke(
        app, ["replay", str(target), "--export", str(file), *flags], standalone_mode=False
    )


class Page(HTMLParser):
    """Tags, attributes and text of a page, as a browser parses it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def is_inert(self) -> bool:
        runs = {name for name in self.attributes if name.startswith("on") or name == "src"}
        return self.tags <= ALLOWED and not runs and "javascript" not in str(self.attributes)


HOSTILE = (
    "<script>alert(1)</script> ``` | [x](javascript:alert(1)) <img src=x onerror=alert(1)> &lt; \"' <!-- -->"
)


def session(folder: Path, prompt: str, command: str, output: str, message: str, error: str = "") -> Path:
    """Write a rollout of one turn, and return its path."""
    failed = {"error": {"message": error, "codex_error_info": "usage_limit_exceeded"}} if error else {}
    policy = {"cwd": "/home/mallory/api", "approval_policy": "never", "sandbox_policy": {"type": "read-only"}}
    lines = (
        meta(cwd="/home/mallory/api", cli_version="0.169.0"),
        event("task_started", turn_id="t"),
        line("turn_context", policy),
        event("user_message", message=prompt),
        call("exec_command", {"cmd": command}),
        answer(f"Exit code: 1\nOutput:\n{output}\n"),
        event("agent_message", message=message),
        event("task_complete", turn_id="t", last_agent_message=message, **failed),
    )
    path = folder / f"rollout-2026-11-20T19-59-47-{THREAD}.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


# ---------------------------------------------------------------- the report


def test_end_of_a_thread_that_may_go_on_has_settled() -> None:
    (path,) = files("0.169.0", "full-access")
    found = build_report("x", family_stream(Family(path.stem[-36:], (path,))), ended=False)
    assert [worker.state for worker in found.workers] == [State.COMPLETED]


# ---------------------------------------------------------------- escaping


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<details><summary><code><img src=x></code> ok</summary>",
        "<details><summary><code>x</code> ok</summary><img src=x>",
        "![x](http://y)",
        "[x](javascript:alert(1))",
    ],
)
def test_page_lets_no_other_html_through(text: str) -> None:
    """Whatever the Markdown has: the tags of a folded call alone."""
    parsed = Page(page(f"# x\n\n{text}\n"))
    assert parsed.is_inert()
    assert not parsed.tags & {"details", "b"}


@pytest.mark.parametrize("text", ["`", "``", "a`b``c", "`x", "x`", "a|b", "", "two\nlines"])
def test_code_spans(text: str) -> None:
    span = code(text)
    ticks = re.match("`*", span)[0]
    assert "\n" not in span
    assert not re.search(r"(?<!\\)\|", cell(text))
    assert cell(text).replace(r"\|", "|") == span
    assert not text or (
        span.endswith(ticks) and ticks not in re.findall("`+", span[len(ticks) : -len(ticks)])
    )


# ---------------------------------------------------------------- redaction


def test_redaction_keeps_commands_states_and_findings(tmp_path: Path) -> None:
    denied = "touch: cannot touch '/srv/board.db': Read-only file system\nseen1\nCODEX_SANDBOX=seen2"
    path = session(tmp_path, "please hunter2000", "touch /srv/board.db; env", denied, "said3")
    text = markdown(report_of(path, redact=True), "1")
    plain = markdown(report_of(path), "1")
    for word in ("hunter2000", "seen1", "seen2", "said3"):
        assert word in plain
        assert word not in text
    assert "touch /srv/board.db" in text
    assert "denied-filesystem" in text
    out = tmp_path / "r.html"
    assert exported(path, out, "--redact").exception is None
    assert "mallory" in plain
    assert "mallory" not in out.read_text()


# ---------------------------------------------------------------- the command


@pytest.mark.parametrize("name", ["r.html", "r.md"])
def test_existing_file_is_overwritten_only_with_force(tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    assert exported(SPAWN, out).exception is None
    first = out.read_bytes()
    assert len(first) > 4_000
    refused = exported(SPAWN, out)
    assert "file exists" in str(refused.exception)
    assert out.read_bytes() == first
    assert exported(SPAWN, out, "--force").exception is None


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([str(SPAWN), "--export", "x.pdf"], "invalid suffix: choose from .html, .md"),
        ([str(SPAWN), "--export", "/dev/null/x.html"], "Not a directory"),
        (["--export", "x.html"], "needs a THREAD or FILE"),
    ],
)
def test_invalid_arguments_are_one_line(arguments: list[str], why: str) -> None:
    done = CliRunner().invoke(app, ["replay", *arguments], standalone_mode=False)
    assert why in str(done.exception)
    assert "\n" not in str(done.exception)


# ---------------------------------------------------------------- conversations

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
    edit = call("apply_patch", {"input": patch}, id_="c2")
    done = answer(f"Success. {HOSTILE}", id_="c2")
    lines = log.read_bytes().splitlines()
    log.write_bytes(b"\n".join((*lines[:-1], edit, done, lines[-1])) + b"\n")
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
    assert report_of(log).conversations == [ConversationFile(log).read()]


def test_hostile_texts_are_inert(tmp_path: Path) -> None:
    log = patch_session(tmp_path)
    text = talk(tmp_path, log, "talk.html")
    whole = Page(text)
    assert whole.is_inert()
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\(", text)
    assert "<script>alert(1)</script>" in "".join(whole.words)
    rendered = Page(BROWSER.render(talk(tmp_path, log, "talk.md")))
    assert rendered.is_inert()
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
@example("- <!--\n    ")
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
