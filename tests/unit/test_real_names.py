"""The name of a session is what its user asked, whatever stands around that in the records."""

import json

import pytest

from agentdash.agents.claude.transcript.reader import TranscriptReader
from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.agents.gemini import GeminiFacts
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.thread_worker import TERMINAL_ANSWER
from agentdash.model.fleet import Fleet
from agentdash.model.thread import Thread

_INPUT = "## User Input\n\n```text\n{}\n```\n\nYou **MUST** consider the user input before proceeding.\n"
_OLD_INPUT = (
    "The user input to `/specify` can be typed - you **MUST** consider it before proceeding (if not empty)."
    "\n\nUser input:\n\n{}\n\nGiven the description, do this:\n"
)
_IDE = "# Context from my IDE setup:\n\n## "
_FILES = "# Files mentioned by the user:\n\n## "
_REQUEST = "## My request for Codex:\n"
_OUTLINE = "\n## Outline\n\n1. Run the script.\n"


def codex_prompt(text: str) -> str | None:
    message = {"type": "user_message", "message": text}
    record = {"timestamp": "2026-04-10T10:00:04.000Z", "type": "event_msg", "payload": message}
    return reduce(Fleet(), RolloutReader("t").read([json.dumps(record).encode()])).threads["t"].prompt


def claude_prompt(*texts: str) -> str | None:
    content = [{"type": "text", "text": text} for text in texts]
    record = {
        "type": "user",
        "cwd": "/w",
        "sessionId": "s",
        "timestamp": "2026-04-01T10:00:00.000Z",
        "message": {"role": "user", "content": content if len(texts) > 1 else texts[0]},
    }
    return reduce(Fleet(), TranscriptReader("t").read([json.dumps(record).encode()])).threads["t"].prompt


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"{_IDE}Open tabs:\n- a.py\n\n{_REQUEST}fix it\n", "fix it"),
        (f"\n{_FILES}a: /w/a\n\n{_REQUEST}fix it\n", "fix it"),
        (f"{_FILES}a: c:/a\n\n{_REQUEST}fix it".replace("\n", "\r\n"), "fix it"),
        (f"{_IDE}Active selection of the file:\n{_REQUEST}old\n\n{_REQUEST}fix it", "fix it"),
        (_INPUT.format("add a login page") + _OUTLINE, "add a login page"),
        ("---\ndescription: x\n---\n\n" + _INPUT.format("add a login page"), "add a login page"),
        (_INPUT.format("add\na page").replace("```text", "~~~").replace("```", "~~~"), "add\na page"),
        (_OLD_INPUT.format("add a login page"), "add a login page"),
        (_INPUT.format("") + _OUTLINE, _OUTLINE.strip()),
        (_OLD_INPUT.format(""), "Given the description, do this:"),
        # controls: what people write themselves stays
        ("why does it print ## My request for Codex: twice", None),
        (f"# Plan\n\nfirst this\n\n{_REQUEST}no header of an IDE", None),
        ("## User Input\n\n```text\nabc\n```\n\nwhy is this refused?", None),
        ("fix the form.\n\n" + _INPUT.format("abc"), None),
    ],
)
def test_prompt_of_codex(text: str, name: str | None) -> None:
    assert codex_prompt(text) == (name or text.strip())


_OPENED = "<ide_opened_file>The user opened the file /w/a.ts in the IDE.</ide_opened_file>"
_SELECTED = "<ide_selection>The user selected the lines 1 to 2:\na\nb\n</ide_selection>"


@pytest.mark.parametrize(
    ("texts", "name"),
    [
        ((_OPENED, "fix it"), "fix it"),
        ((f"{_OPENED}\nfix it",), "fix it"),
        (("fix it", _SELECTED), "fix it"),
        (("<command-message>specify is running…</command-message>\n<command-name>/specify</command-name>\n"
          "<command-args>add a page</command-args>",), "/specify add a page"),
        (("<command-message>init</command-message>\n<command-name>/init</command-name>",), "/init"),
        # controls
        (("what is <ide_selection>a</ide_selection>?",), "what is <ide_selection>a</ide_selection>?"),
        (("<ide>fix</ide> it",), "<ide>fix</ide> it"),
        (("<command-name>/clear</command-name>\n<command-message>clear</command-message>",), None),
        (("<system-reminder>x</system-reminder>",), None),
        ((_OPENED,), None),
    ],
)  # fmt: skip
def test_prompt_of_claude(texts: tuple[str, ...], name: str | None) -> None:
    assert claude_prompt(*texts) == name


@pytest.mark.parametrize(
    ("parent", "name"), [("a", None), ("b", "Unknown skill: usage"), (None, "Unknown skill: usage")]
)
def test_what_claude_code_answers_to_a_command_of_its_own(parent: str | None, name: str | None) -> None:
    caveat = "<local-command-caveat>Caveat: These messages are of local commands.</local-command-caveat>"
    records = [
        {"uuid": "a", "isMeta": True, "message": {"role": "user", "content": caveat}},
        {"uuid": "b", "parentUuid": parent, "message": {"role": "user", "content": "Unknown skill: usage"}},
    ]
    common = {"type": "user", "timestamp": "2026-04-10T10:00:04.000Z", "sessionId": "t", "version": "2.1.90"}
    lines = [json.dumps(common | record).encode() for record in records]
    thread = reduce(Fleet(threads={"t": Thread("t")}), TranscriptReader("t").read(lines)).threads["t"]
    assert (thread.prompt, thread.turn is None) == (name, name is None)


def test_chats_have_the_same_names() -> None:
    facts = GeminiFacts()
    facts.add({"type": "user", "content": f"{_OPENED}\n{_INPUT.format('add a page')}"})
    assert facts.chat("").name == "add a page"


@pytest.mark.parametrize(
    ("title", "is_answer"),
    [
        ("Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA", True),
        ("Ga=d", True),
        ("Go=fix the build", False),
        ("G", False),
    ],
)
def test_title_that_a_terminal_was_asked(title: str, *, is_answer: bool) -> None:
    assert (TERMINAL_ANSWER.fullmatch(title) is not None) is is_answer
