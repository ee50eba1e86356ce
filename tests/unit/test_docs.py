"""README and the documentation name what there is; generated pages and pictures are current."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest

from agentdash.cli import app
from agentdash.config import THEMES, journal_folder
from agentdash.model.states import State
from agentdash.report.schemas import DOCUMENTS
from agentdash.store import attention, digests, line_file, memory
from agentdash.tui import theme
from docs.make import PAGES, pages
from screenshots.make import PICTURES, Picture, draw, draw_moving

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
PROSE = [ROOT / "README.md", *sorted((ROOT / "docs" / "pages").glob("*.md"))]


def test_length() -> None:
    """README is the front door; everything else is in docs/."""
    assert len(README.splitlines()) <= 120


def test_states() -> None:
    paragraph = README.partition("## What it shows")[2].partition("\n\n## ")[0]
    assert [name for name in re.findall(r"`([\w-]+)`", paragraph) if name in set(State)] == list(State)


def test_supervisor_paragraph() -> None:
    """README and the documentation have the same one."""
    assert f"```markdown\n{(ROOT / 'docs' / 'supervisor.md').read_text('utf-8')}```" in README


@pytest.mark.parametrize("name", sorted(pages()))
def test_generated_pages_are_current(name: str) -> None:
    """Run `python -m docs.make` when a command, key, option or document has changed."""
    assert (PAGES / name).read_text("utf-8") == pages()[name]


def test_files_of_the_state_directory() -> None:
    """SECURITY.md lists each file that is kept there."""
    table = (ROOT / "SECURITY.md").read_text("utf-8").partition("## What it writes")[2].partition("\n## ")[0]
    kept = {memory.NAME, attention.NAME, digests.NAME, f"{journal_folder().name}/"}
    kept |= {"status-*.json", f"status-*{line_file.SUFFIX}"}
    assert {name for name in kept if f"`{name}`" in table} == kept


def code_of(page: Path) -> list[str]:
    """Return the lines of shell blocks and the code spans of a page."""
    text = page.read_text("utf-8")
    blocks = re.findall(r"(?ms)^ *```sh\n(.*?)^ *```", text)
    prose = re.sub(r"(?ms)^ *```.*?^ *```", "", text)
    return [line.strip() for block in blocks for line in block.splitlines()] + [
        " ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)
    ]


def _all(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from _all(command.get_command(context, name) or command)


def test_documents() -> None:
    sources = (
        path.read_text("utf-8")
        for folder in ("documents", "report")
        for path in (ROOT / "agentdash" / folder).rglob("*.py")
    )
    assert {
        name for text in sources for name in re.findall(r'schema: Literal\["agentdash\.([\w-]+)/\d"\]', text)
    } == set(DOCUMENTS)


@pytest.mark.parametrize("page", PROSE, ids=lambda path: path.name)
def test_commands_and_flags_exist(page: Path) -> None:
    """What README and the handwritten pages name is there."""
    lines = [line for line in code_of(page) if re.match(r"(\$ )?agentdash\b", line)]
    context = click.Context(app)
    named = {found[1] for line in lines if (found := re.match(r"(?:\$ )?agentdash ([a-z]\w+)", line))}
    assert named - set(app.list_commands(context)) == set()
    known = {
        opt for command in _all(app) for each in command.params for opt in (*each.opts, *each.secondary_opts)
    }
    listed = {option for line in lines for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line)}
    assert listed - known - {"--help", "--version"} == set()


def test_themes() -> None:
    assert tuple(t.name for t in theme.THEMES) == THEMES


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.file)
@pytest.mark.slow
def test_pictures_are_current(picture: Picture) -> None:
    """Run `python -m screenshots.make` when a screen has changed on purpose."""
    assert (ROOT / "screenshots" / picture.file).read_text("utf-8") == asyncio.run(draw(picture))


@pytest.mark.parametrize(("theme", "file"), [("dark", "moving.svg"), ("light", "moving-light.svg")])
@pytest.mark.slow
def test_moving_picture_is_current(theme: str, file: str) -> None:
    drawn = asyncio.run(draw_moving(theme))
    assert (ROOT / "screenshots" / file).read_text("utf-8") == drawn
    ElementTree.fromstring(drawn)


@pytest.mark.parametrize("page", PROSE, ids=lambda path: path.name)
def test_linked_files_exist(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8"))
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"', page.read_text("utf-8"))
    assert [target for target in (*links, *pictures) if not (page.parent / target).exists()] == []
