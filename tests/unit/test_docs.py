"""README lists exactly the commands, options, keys, states, findings and themes; its pictures are current."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest

from agentdash.agents.knowledge import knowledge_table
from agentdash.cli import app
from agentdash.config import THEMES, defaults
from agentdash.model.findings import FINDING_KINDS, FindingKind, findings_table
from agentdash.model.states import State
from agentdash.report.schemas import DOCUMENTS
from agentdash.tui import theme
from agentdash.tui.keys import GROUPS, KEYS
from screenshots.make import PICTURES, Picture, draw, draw_moving

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def keys_table() -> str:
    rows = [
        f"| {', '.join(f'`{k}`' for k in key.shown)} | {key.help} |"
        for group in GROUPS
        for key in KEYS
        if key.group == group
    ]
    return "\n".join(["| key | does |", "|---|---|", *rows])


def test_keys() -> None:
    """README has a copy of the table of `tui.keys`."""
    assert keys_table() in README


def test_states() -> None:
    assert re.findall(
        r"^\| `([\w-]+)` \| ", README.partition("## States")[2].partition("\n## ")[0], re.MULTILINE
    ) == [str(s) for s in State]


def test_findings() -> None:
    """Paste `findings_table()` into the README when a kind has changed."""
    assert list(FINDING_KINDS) == list(FindingKind)
    assert findings_table() in README


def test_worker_clis() -> None:
    """Paste `knowledge_table()` into the README when a CLI is known better, or a version was tested."""
    assert knowledge_table() in README


def _all(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from _all(command.get_command(context, name) or command)


def test_documents() -> None:
    (listed,) = re.findall(r"the JSON Schema of a document: (.*) \|", README)
    assert set(re.findall(r"`([\w-]+)`", listed)) == set(DOCUMENTS)
    sources = (
        path.read_text("utf-8")
        for path in (ROOT / "agentdash" / "report").rglob("*.py")
        if path.stem != "published"
    )
    assert {
        name for text in sources for name in re.findall(r'schema: Literal\["agentdash\.([\w-]+)/1"\]', text)
    } == set(DOCUMENTS)


def test_options() -> None:
    (listed,) = re.findall(r"(?s)^Options: (.*?) with other", README, re.MULTILINE)
    assert re.findall(r"`([\w-]+)`", listed) == list(defaults())


def test_commands_and_flags() -> None:
    context = click.Context(app)
    commands = {name: app.get_command(context, name) for name in app.list_commands(context)}
    assert set(re.findall(r"^\| `agentdash (\w+)", README, re.MULTILINE)) == set(commands)
    known = {
        opt
        for command in _all(app)
        for p in command.params
        if not getattr(p, "hidden", False)
        for opt in (*p.opts, *p.secondary_opts)
    }
    listed = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", re.sub(r"(?:pip|python3|venv|uvx).*", "", README)))
    assert listed - known == set()
    assert {o for o in known if o.startswith("--")} - listed - {"--version", "--help", "--speed"} == set()


def test_themes() -> None:
    assert tuple(t.name for t in theme.THEMES) == THEMES
    assert all(f"`{name}`" in README for name in THEMES)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.name)
@pytest.mark.slow
def test_pictures_are_current(picture: Picture) -> None:
    """Run `python -m screenshots.make` when a screen has changed on purpose."""
    assert (ROOT / "screenshots" / f"{picture.name}.svg").read_text("utf-8") == asyncio.run(draw(picture))


@pytest.mark.slow
def test_moving_picture_is_current() -> None:
    drawn = asyncio.run(draw_moving())
    assert (ROOT / "screenshots" / "moving.svg").read_text("utf-8") == drawn
    ElementTree.fromstring(drawn)


def test_linked_files_exist() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert targets
    for target in targets:
        assert (ROOT / target).exists(), target
