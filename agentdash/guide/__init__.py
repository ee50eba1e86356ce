"""What each state and each kind of finding means, and what to do: sections of two Markdown files.

The documentation shows the files as pages; `agentdash explain NAME` prints a section.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

PAGES: Final = ("states.md", "findings.md")
_LINE_BREAK: Final = re.compile(r"(?<!\n)\n(?!\n)")
"""A line break within a paragraph."""
_ROW: Final = re.compile(r"```text\n.*?```\n\n", re.DOTALL)
"""How it looks in the list: for pages alone."""
_SECTION: Final = re.compile(r"(?ms)^## `([\w-]+)`\n\n(.*?)(?=^## |\Z)")


def sections() -> dict[str, str]:
    """Return the text of each section, in Markdown, by the name of its state or kind of finding.

    A paragraph is one line: where it breaks depends on the width of what shows it.
    """
    texts = (_ROW.sub("", Path(__file__).with_name(page).read_text("utf-8")) for page in PAGES)
    return {
        name: _LINE_BREAK.sub(" ", text.strip()) for page in texts for name, text in _SECTION.findall(page)
    }
