"""Secrets on their way into a program that reads one from its standard input.

A reader is known by its name, or by an option (`sudo -S`, `passwd`, `--password-stdin`). What feeds it is the
secret: the words of an `echo` or `printf` before the pipe, a here-string, the lines of a here-document, the
argument of `communicate`. Quotation marks may be nested and escaped: `bash -lc "…"`, `ssh host '…'`, JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agentdash.model.patterns import Pattern

FEED_LITERALS: Final = (
    *("echo", "print", "write-output", "<<", "communicate(", "input=", "stdin.write(", "send"),
    *("responder", "| convertto-"),
)
"""One of these is in the lower case of every text with a secret that is fed."""
_REACH: Final = 600
"""Characters of a command that are looked at: hostile texts must not take long."""
_MAX_DOCUMENT_CHARS: Final = 4_000
"""Of a here-document."""


def _quoted(name: str) -> str:
    """Return the pattern of a quoted text at any depth of quoting; the name is that of its mark's group."""
    return rf"(?P<{name}>'\\+''|'\\*\"'\\*\"'|\\*[\"'])(?>(?:(?!(?P={name}))[\s\S]){{0,400}})(?P={name})"


def _word(name: str) -> str:
    """Return the pattern of a word of a command."""
    return rf"(?:{_quoted(name)}|\$\([^()\n]{{0,200}}+\)|`[^`\n]{{0,200}}+`|\\[^\n\"']|[^\s;&|<>()'\"`\\])+"


# ---------------------------------------------------------------- readers

_BEGIN: Final = r"(?:(?<![\w.-])|(?<=\\n))"
"""Where a command may begin: also behind the escape of a line break."""
_GAP: Final = r"[\s\"',\\]+"
"""Between words, also those of a vector of arguments in Python or JSON."""
_SUDO: Final = (
    rf"{_BEGIN}sudo(?>(?:{_GAP}(?!-[A-Za-z]*S|--stdin)"
    rf"(?:-\w*[ugpCDhRrtTU]{_GAP}(?!-)[^\s\"',]+|-[\w-]+(?:=\S*)?|\w+=\S*))*)"
    rf"{_GAP}(?:-[A-Za-z]*S|--stdin\b)"
)
_NAME: Final = r"(?:password|passphrase|passwd|pass|token|secret|key|pin|auth)"
_READER: Final = Pattern(
    rf"(?P<line>{_SUDO}|{_BEGIN}su(?=\s))"
    r"|(?<!getent )(?:(?<![\w./-])|(?<=bin/)|(?<=\\n))(?:(?:ch|smb|ldap|slap|k|mk)?passwd"
    r"|cryptsetup|kinit|sshpass|systemd-creds|secret-tool|keyring|zfs\s+load-key|wg\s+(?:set|pubkey)|pass\s+insert|htpasswd\s+-\w*i)(?![\w.=:/-])"
    rf"|{_NAME}(?:-?file)?[-_](?:on-)?(?:stdin|fd)\b"
    rf"|{_NAME}(?:-?file|-string)?[\s=]+(?:(?:-|(?:file://)?/dev/stdin)(?![\w/-])|(?=<[(<]))"
    r"|\s-pass(?:in|out|word)?[\s=]+(?:stdin|fd:)|--askpass[\s=]+stdin|--with-token\b|\s--?secret(?=\s|\Z)"
    r"|\b(?:secrets?|kv|credentials?|env)[\s:]+(?:versions\s+)?(?:create|set|put|add|import|update|write)\b"
    r"|\bcreate\s+secret\b|\bauth\s+login\b|\boperator\s+unseal\b"
    r"|\b(?:vault|cargo|npm|az|op|bw|lpass|heroku|docker|podman|helm|oras|registry)\s+(?:login|unlock|signin)\b"
    r"|\b(?i:convertto-securestring)\b"
)
"""A program that reads a secret from its standard input; in the group `line`, one that reads it first."""
_ASKING: Final = Pattern(
    rf"{_BEGIN}(?:(?:mysql|mariadb)\w*\b[^|;&\n]{{0,200}}?\s-p(?=\s|\Z)|psql\b[^|;&\n]{{0,200}}?\s-W\b"
    r"|base64\b(?!\s+-[-dD]))"
)
"""A program that may read a password: a word with a digit counts as one; prose and SQL don't."""
_PASSWORD: Final = Pattern(r"[\"'\\]*(?=[^\s\d]*\d)(?=[^\sA-Za-z]*[A-Za-z])\S{6,}")
_PIPELINE: Final = Pattern(rf"(?:{_quoted('mark')}|[^;&\n\"'\\>]++|\\[\s\S]|&>|>&?)*")
"""The rest of a pipeline."""


def _reader(text: str, start: int, stop: int, fed: str = "") -> re.Match[str] | None:
    """Return the first reader in a part of the text, of what is fed to it."""
    found = _READER.search(text, max(0, start), stop)
    return found or (_ASKING.search(text, max(0, start), stop) if _PASSWORD.fullmatch(fed) else None)


# ---------------------------------------------------------------- what is fed

_FEEDING: Final = Pattern(
    rf"{_BEGIN}(?:echo|printf|print|Write-Output)(?=[\s(])|(?:^|(?<=[;&(=\"'])|(?<=\\n))[^\S\n]*(?=[\"'])",
    re.MULTILINE,
)
"""Where a command that feeds another may begin: a quoted text is one in PowerShell."""
_WORDS: Final = rf"(?P<words>(?:(?:\\*\n|[^\S\n])+{_word('word')})+)"
_FED: Final = Pattern(
    rf"\w[\w-]*(?:{_WORDS}|\((?P<call>{_quoted('called')})\))|[^\S\n]*(?P<alone>{_quoted('mark')})"
)
_PIPE: Final = Pattern(
    r"(?>(?:\s*\d?>+&?\s*[\w/.-]+)*)"
    r"(?:\s*(?:;|&&|\|\||\n)[^|\n]{0,200}?(?:[)}]|\bdone\b))?"
    r"[)}\"'\\\s;]*\|&?(?!\|)\s*+(?!(?:e?grep|rg|sed|awk|jq)\b)"
)
"""From what is printed into another command, also out of a group or a loop, up to that command."""
_SUBSTITUTED: Final = Pattern(rf"<\(\s*(?P<verb>echo|printf){_WORDS}\s*\)")
_WORD: Final = Pattern(_word("mark"))
_HERE: Final = Pattern(
    rf"<<<\s*(?P<text>\$?{_quoted('mark')}|[^\s;&|'\"<>()\\]+)"
    r"|(?<!<)<<-?\s*(?P<around>'\\+''|'\\*\"'\\*\"'|\\*[\"']|)(?P<tag>[A-Za-z_]\w*)(?P=around)"
)
_BREAK: Final = Pattern(r"\n|\\+n")
_INPUT: Final = Pattern(
    rf"(?:\binput\s*=|\bcommunicate\(|\bstdin\.write\()\s*[bruf]{{0,2}}(?P<text>{_quoted('mark')})"
)
_ANSWER: Final = Pattern(
    r"(?:assword|assphrase|asscode|\bPIN\b)[\s\S]{0,160}?(?:\b|(?<=\\n))(?:(?:exp_)?send(?:line)?\b"
    rf"(?:\s*\(|\s+(?:--\s+)?)|response\s*=)\s*[bruf]{{0,2}}(?P<text>{_quoted('mark')})"
)
"""What a script of `expect`, or one with `pexpect`, sends when it was asked."""
_HARMLESS: Final = Pattern(r"-\w{1,3}|--|y|yes|n|no|true|false", re.IGNORECASE)
_NO_SECRET: Final = Pattern(
    r"[\w.@-]+:(?=\\*[\"']?\$)|\$(?:env:)?\w+|\$\{[^}\n]*\}|\$\([^()\n]*\)|`[^`\n]*`|%\w+%|\{\{[^}\n]*\}\}"
    r"|<[\w -]+>|\\+[nrt]|[\s\"'\\:.…*]"
)
"""Parts of a word that contain no secret: references, placeholders, the user before them."""


def fed_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of secrets that are fed to programs, with the quotation marks around them."""
    is_read = _READER.search(text) is not None or _ASKING.search(text) is not None
    fed = (*_piped(text), *_substituted(text), *_here(text), *_written(text)) if is_read else ()
    for start, stop in (*fed, *_answered(text)):
        word = text[start:stop]
        if not _HARMLESS.fullmatch(word) and _NO_SECRET.sub("", word):
            yield start, stop


def _piped(text: str) -> Iterator[tuple[int, int]]:
    arguments: set[int] = set()
    """Where words begin that another command prints: none of them is a command."""
    for feeding in _FEEDING.finditer(text):
        begin = feeding.start()
        fed = None if begin in arguments else _FED.match(text, begin, begin + _REACH)
        if fed is None or fed.lastgroup is None:
            continue
        group = next(name for name in ("words", "call", "alone") if fed[name] is not None)
        words = list(_words(text, *fed.span(group), feeding[0])) if group == "words" else [fed.span(group)]
        arguments.update(start for start, _ in words)
        pipe = _PIPE.match(text, fed.end(), fed.end() + _REACH)
        end = pipe and _PIPELINE.match(text, pipe.end(), pipe.end() + _REACH)
        said = " ".join(text[slice(*word)] for word in words if text[word[0]] != "-")
        if pipe and end and _reader(text, pipe.end(), end.end(), said) is not None:
            yield from words


def _substituted(text: str) -> Iterator[tuple[int, int]]:
    for fed in _SUBSTITUTED.finditer(text):
        if _reader(text, _command(text, fed.start()), fed.start()) is not None:
            yield from _words(text, *fed.span("words"), fed["verb"])


def _words(text: str, start: int, stop: int, verb: str) -> Iterator[tuple[int, int]]:
    """Yield the words of a command that prints them, without the format of `printf`."""
    words = list(_WORD.finditer(text, start, stop))
    is_format = verb == "printf" and len(words) > 1 and "%" in words[0][0]
    yield from (word.span() for word in words[is_format:])


def _here(text: str) -> Iterator[tuple[int, int]]:
    after = 0
    for here in _HERE.finditer(text):
        if here.start() < after:
            continue
        fed = here["text"] or ""
        end = _PIPELINE.match(text, here.end(), here.end() + _REACH)
        reader = _reader(text, _command(text, here.start()), here.start(), fed)
        reader = reader or (end and _reader(text, here.end(), end.end(), fed))
        if reader is None:
            continue
        lines = [here.span("text")] if fed else _document(text, here, only_first=reader["line"] is not None)
        yield from lines
        after = max((stop for _, stop in lines), default=0)


def _command(text: str, at: int) -> int:
    """Return where the command before a position begins; behind a group or a quoted script, its line."""
    start = max(0, at - _REACH)
    before = text[start:at].replace("\\\n", "  ").replace(">&", ">>")
    is_group = before.rstrip(" \t\x1f012>&").endswith(("'", '"', ")", "}", "done"))
    return start + 1 + max(before.rfind(each) for each in ("\n" if is_group else "\n;&|"))


def _document(text: str, here: re.Match[str], *, only_first: bool) -> list[tuple[int, int]]:
    """Return the lines of a here-document, or those that are as its first."""
    first_break = _BREAK.search(text, here.end(), here.end() + _REACH)
    if first_break is None:
        return []
    is_escaped = first_break[0] != "\n"
    limit = min(len(text), first_break.end() + _MAX_DOCUMENT_CHARS)
    end = re.compile(rf"(?:\n|\\+n)[ \t]*{here['tag']}(?!\w)").search(text, first_break.start(), limit)
    line = re.compile(r"(?:(?!\\+n)[^\n])+" if is_escaped else r"[^\n]+")
    lines = list(line.finditer(text, first_break.end(), end.start() if end else limit))
    return [each.span() for each in lines if not only_first or each[0] == lines[0][0]]


def _written(text: str) -> Iterator[tuple[int, int]]:
    for written in _INPUT.finditer(text):
        if _reader(text, written.start() - _REACH, written.start()) is not None:
            yield written.span("text")


def _answered(text: str) -> Iterator[tuple[int, int]]:
    for answer in _ANSWER.finditer(text):
        script = text[max(0, answer.start() - _REACH) : answer.end()]
        if any(word in script for word in ("expect", "spawn", "Responder")):
            yield answer.span("text")
