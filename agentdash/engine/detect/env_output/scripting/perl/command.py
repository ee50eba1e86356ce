"""Command lines of Perl."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.inputs import input_of
from agentdash.engine.detect.env_output.patterns import Parts, concrete
from agentdash.engine.detect.env_output.scripting.commands import Holes, file_or_input, run_text, versions
from agentdash.engine.detect.env_output.scripting.grammars import parse_program
from agentdash.engine.detect.env_output.scripting.machine import run_all
from agentdash.engine.detect.env_output.scripting.perl.library import MODULES
from agentdash.engine.detect.env_output.scripting.perl.program import Perl
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result
from agentdash.engine.detect.env_output.unknown import UnknownError

_PERL_OPTION: Final = re.compile(
    r"-(?P<letters>[wlnpa]*)(?:0(?P<record>0?|777))?(?P<more>[lnpa]*)(?:F(?P<separator>.+)|(?P<code>[eE]))?"
)


class _PerlOptions(msgspec.Struct):
    """The command line of Perl."""

    letters: str = ""
    separator: str = " "
    is_nul: bool = False
    is_whole: bool = False
    """The input is read as one record."""
    code: Parts | None = None
    files: list[Parts] = []


def _perl_options(call: Call) -> _PerlOptions | None:
    words = list(call.arguments)
    found = _PerlOptions()
    while words and (text := concrete(words[0])) is not None and text.startswith("-") and text != "-":
        words.pop(0)
        module = re.fullmatch(r"-M([A-Za-z]\w*(?:::\w+)*|5)(?:=[\w,]+|\.\d+)?", text)
        if module is not None and (module[1] in MODULES or module[1] == "5"):
            found.letters += {"warnings": "w", "5": "E"}.get(module[1], "")
            continue
        if (match := _PERL_OPTION.fullmatch(text)) is None:
            return None
        found.letters += match["letters"] + match["more"] + (match["code"] or "")
        found.is_whole = found.is_whole or match["record"] == "777"
        found.is_nul = found.is_nul or match["record"] in ("", "0")
        found.separator = match["separator"] or found.separator
        if match["code"]:
            if not words:
                return None
            found.code = words.pop(0)
    if found.code is None:
        found.code = file_or_input(call, words)
        words = []
    found.files = words
    return found


def command(call: Call) -> list[Result]:
    """Return what `perl -e CODE`, `perl -ne CODE` and `perl FILE` write."""
    if found := versions(call, ("-v", "--version")):
        return found
    if (options := _perl_options(call)) is None:
        return UNKNOWN
    return run_text(call, options.code, lambda code, c, holes: _run_perl(options, code, c, holes))


def _run_perl(options: _PerlOptions, code: str, call: Call, holes: Holes) -> list[Result]:
    root = parse_program("perl", code)
    reads = "n" in options.letters or "p" in options.letters
    separator = options.separator.strip("/'\"")
    if (options.files and not reads) or len(separator) != 1:
        raise UnknownError
    content = input_of(call, options.files)

    def run(machine: Perl) -> None:
        machine.warns = "w" in options.letters
        machine.has_say = "E" in options.letters
        machine.ends_lines = "l" in options.letters
        machine.record_end = "\0" if options.is_nul else "\n"
        prints = "p" in options.letters
        if not reads:
            machine.program(root)
        elif options.is_whole:
            machine.over_whole(root, content, prints=prints)
        else:
            between = None if separator == " " else separator
            machine.over_lines(root, content, prints=prints, split=lambda line: line.split(between))

    return run_all(Perl, call, holes, run)
