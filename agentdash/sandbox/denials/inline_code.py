"""What inline code of interpreters does with files, as far as its calls show it."""

from __future__ import annotations

import re
from typing import Final

from agentdash.sandbox.denials.programs import INTERPRETERS, Words

WRITING_CODE: Final = re.compile(
    r"""open\([^)]*,\s*(?:mode\s*=\s*)?['"][rb+t]*[wax]|\.write_(?:text|bytes)\(|writeFile"""
    r"|appendFile|[wW]riteStream|FileHandler|basicConfig\(|makedirs|mkdir|\.touch\("
    r"|File\.(?:write|open\([^)]*['\"][wa])|os\.(?:WriteFile|Create|rename|remove|unlink|replace|symlink"
    r"|chmod)|shutil\.|fs::write|File::create"
    r"|open\([^)]*['\"]\+?>|rename|unlink|rmSync|copyFile|\.to_(?:csv|json|parquet)\(|json\.dump\(|\.save\("
)
"""Calls in inline code which write files."""
_READING_CODE: Final = re.compile(
    r"\.read\(|readfile\(|fpassthru\(|\bfile\(|createReadStream|io\.lines|strerror"
    r"|(?<![\w.])open\([^,()]*\)|json\.load\(|JSON\.load|load_file|require\(['\"][^'\"]+\.json['\"]\)"
    r"|<\$?\w*>\s*[);]"
    r"|\bhelp\(|__doc__|read_text\(|readFile|readlines|\bin open\(|fileinput"
    r"|File\.(?:read|foreach)|IO\.read|slurp|file_get_contents"
)
_READING_OPTIONS: Final = re.compile(r"-\w*[np]\w*e")
"""`perl -ne`, `ruby -pe`: they go through the lines of files."""

_IN_PLACE: Final = re.compile(r"-[lnp]*i\S*")
"""`perl -pi -e`: they write the files."""


def shows_files_by_code(name: str, words: Words, code: str) -> bool:
    """Return whether an interpreter runs inline code that reads files: it may print what it reads."""
    if not name.startswith(INTERPRETERS):
        return False
    if name.startswith(("perl", "ruby")) and any(_IN_PLACE.fullmatch(word) for word in words):
        return False
    if words[:2] in (("-m", "json.tool"), ("-m", "pydoc")) or any(
        _READING_OPTIONS.fullmatch(w) for w in words
    ):
        return True
    inline = any(word in ("-c", "-e", "-p", "-") for word in words) or "\n" in code
    return inline and _READING_CODE.search(code) is not None and WRITING_CODE.search(code) is None
