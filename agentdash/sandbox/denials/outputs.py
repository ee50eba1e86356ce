"""The files that a command is to write, as its options name them."""

from __future__ import annotations

import itertools
import re
from typing import Final

from agentdash.sandbox.denials.programs import Words
from agentdash.sandbox.word_sets import word_set

_OUTPUT_OPTIONS: Final = word_set(
    "-o -O -out --output --out --outfile --output-file --log-file --output-document"
)


def output_files(name: str, words: Words) -> list[str]:
    """Return the files that a command is to write by its options: `-o FILE`, `--output=FILE`, `tar -cf
    FILE`."""
    if name == "curl":
        return _curl_files(words)
    files: list[str] = []
    for word, following in zip(words, (*words, "")[1:], strict=True):
        option, assigned, value = word.partition("=")
        if assigned and option in _OUTPUT_OPTIONS:
            files.append(value)
        elif (
            word in _OUTPUT_OPTIONS
            or (name, word) == ("javac", "-d")
            or (name == "tar" and re.fullmatch(r"-?\w*[cru]\w*f", word))
        ):
            files.append(following)
    if name in ("git", "hg") and words[:1] in (("clone",), ("init",)):
        files += [word for word in words[1:] if not word.startswith("-")][-1:]
    return [file for file in files if file]


def files_of_options(words: Words) -> list[str]:
    """Return the absolute paths that options have as their values: `--junitxml=/srv/report.xml`. Operands
    are none: test runners read them."""
    values = (word.partition("=")[2] if "=" in word else word for word in words if word.startswith("-"))
    following = (second for first, second in itertools.pairwise(words) if first.startswith("-"))
    return [value for value in (*values, *following) if value.startswith("/") and len(value) > 4]


def _curl_files(words: Words) -> list[str]:
    """Return the files that curl is to write: `-sSo FILE`, `-oFILE`, `--output FILE`, `-O URL`."""
    files: list[str] = []
    folder = ""
    for word, following in zip(words, (*words, "")[1:], strict=True):
        if word == "--output-dir":
            folder = f"{following}/"
        elif word == "--output":
            files.append(following)
        elif option := re.match(r"-[A-Za-z#]*?o(.*)", word or ""):
            files.append(option[1] or following)
    if any(re.match(r"-[A-Za-z#]*O|--remote-name", word or "") for word in words):
        files += [word.rpartition("/")[2] for word in words if word and "://" in word]
    return [folder + file for file in files if file]
