"""Render an exported Markdown document as one HTML page: it has no scripts and loads nothing.

Foreign text is inert in the document already. Here nothing relies on that: of HTML only the tags of a folded
call are let through, images are text, and the page forbids browsers to load or run anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

_FOLDED: Final = re.compile(r"<details><summary><code>[^<>]*</code>[^<>]*</summary>|</details>")
"""All the HTML of a document: the begin and the end of a call of a conversation."""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_DIFF_TAGS: Final = {"+": "ins", "-": "del", "@": "b"}


def page(markdown: str) -> str:
    """Return a Markdown document as an HTML page."""
    style = Path(__file__).with_name("export.css").read_text("utf-8")
    title = markdown.partition("\n")[0].strip("# `")
    parts = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{style}</style></head><body>",
        _parser().render(markdown),
        "</body></html>\n",
    )
    return "\n".join(parts)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True}).enable("table").disable("image")
    parser.add_render_rule("html_block", _html)
    parser.add_render_rule("html_inline", _html)
    parser.add_render_rule("fence", _fence)
    return parser


def _html(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _environment: Any) -> str:
    content = tokens[index].content
    return content if _FOLDED.fullmatch(content.strip()) else escape(content)


def _fence(_renderer: Any, tokens: Sequence[Token], index: int, _options: Any, _environment: Any) -> str:
    """Return a fenced block; a diff with its lines marked as added and removed."""
    token = tokens[index]
    if token.info.strip() != "diff":
        return f"<pre><code>{escape(token.content)}</code></pre>\n"
    lines = token.content.rstrip("\n").split("\n")
    marked = (f"<{tag}>{escape(line)}</{tag}>" for line in lines for tag in (_tag(line),))
    return f'<pre class="diff">{"".join(marked)}</pre>\n'


def _tag(line: str) -> str:
    return _DIFF_TAGS.get(line[:1], "span")
