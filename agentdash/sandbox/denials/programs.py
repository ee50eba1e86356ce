"""What programs print besides their own messages: which of them show text from elsewhere."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from agentdash.sandbox.word_sets import word_set

Words = tuple[str, ...]


class Role(StrEnum):
    """What a command can have printed."""

    TOOL = "tool"
    """Only messages that begin with its own name."""
    QUIET = "quiet"
    """No message about a file that it writes: `echo`, `ls`, filters of a pipeline."""
    READER = "reader"
    """The content of files, histories, databases, web pages: what it prints may quote any message."""
    TEST = "test"
    """A test run, which provokes and prints errors on purpose."""
    REMOTE = "remote"
    """Something on another host or in a container."""
    AGENT = "agent"
    """Another coding agent's CLI."""
    PROGRAM = "program"
    """Anything else: messages of its own and of the programs that it starts."""


AGENTS: Final = word_set(
    "opencode claude codex gemini qwen aider goose crush cursor-agent amp copilot droid kilo cline kimi "
    "auggie"
)
_AGENT_PACKAGES: Final = {
    "opencode-ai": "opencode",
    "@anthropic-ai/claude-code": "claude",
    "@openai/codex": "codex",
    "@google/gemini-cli": "gemini",
    "@qwen-code/qwen-code": "qwen",
    "@github/copilot": "copilot",
    "@kilocode/cli": "kilo",
}
"""npm packages of these CLIs, for `npx PACKAGE`."""
_WITHOUT_WORK: Final = word_set("sandbox debug mcp login completion features --version -V --help")
"""Arguments with which these CLIs start no session."""

WRITING_TOOLS: Final = word_set(
    "touch mkdir rmdir rm unlink cp mv ln link install tee dd mktemp truncate mkfifo mknod chmod chown "
    "chgrp setfacl shred split csplit ditto"
)
"""Tools which fail on a file because they write it; where they only read it, they say so (`cannot stat`,
`for reading`)."""
_QUIET: Final = word_set(
    "echo printf cd pushd popd pwd true false : test [ [[ exit return set unset export local declare "
    "typeset readonly shift trap umask ulimit wait sleep read break continue alias type which command "
    "hash shopt setopt let getopts ls stat du df tree wc basename dirname realpath readlink date id "
    "whoami uname hostname nproc seq kill mapfile readarray pgrep ps jobs find fd env printenv file "
    "sha256sum sha1sum md5sum cksum tty locale arch groups uptime free clear"
)
_FILTERS: Final = {
    **dict.fromkeys(
        word_set(
            "cat head tail less more bat batcat nl tac rev cut sort uniq column fold fmt expand strings xxd "
            "hexdump od zcat diff cmp comm paste join pr tr view base64 iconv"
        ),
        0,
    ),
    **dict.fromkeys(word_set("grep egrep fgrep zgrep rg ag ack sed awk gawk mawk jq yq"), 1),
}
"""Programs that show files or their standard input, with the number of arguments before the files."""
_VALUE_OPTIONS: Final = {
    "head": "nc",
    "tail": "ncs",
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg"), "ABCmdDgtTj"),
    "cut": "dfcb",
    "sort": "kt",
    **dict.fromkeys(("awk", "gawk"), "Fv"),
    "ssh": "bcDEeFIiJLlmOopQRSWw",
}
"""Options whose next word is a value, not a file."""
_PATTERN_OPTIONS: Final = ("-e", "-f", "--regexp", "--expression", "--file")

_QUERIES: Final = word_set("psql mysql mariadb redis-cli mongosh clickhouse-client bq sqlite3 sqlite duckdb")
_READERS: Final = _QUERIES | word_set(
    "man info journalctl dmesg history fc tldr pdftotext lynx w3m jira pandoc pydoc pydoc3 perldoc delta "
    "xmllint stern llm kubectl oc helm argocd gcloud az aws vercel netlify heroku flyctl fly doctl "
    "sentry-cli circleci bk glab gh gunzip csvcut"
)
"""They print what is stored in a database, or what a service has recorded."""
_READING_WORDS: Final = word_set("log logs diff blame grep cat history show describe view inspect info help")
"""Subcommands and tasks which show text in any program that has them."""
_READING_SUBCOMMANDS: Final = {
    "git": word_set("annotate cat-file reflog shortlog format-patch notes ls-files rev-parse rev-list"),
    "tmux": word_set("capture-pane capturep show-buffer showb"),
    "apt": word_set("search changelog policy list"),
    "pip": word_set("list"),
    "cargo": word_set("search metadata tree"),
    "systemctl": word_set("status"),
    "agentdash": word_set("check status explain sessions replay export wait"),
}
_REMOTE_WORDS: Final = word_set("exec ssh shell")
"""Subcommands which start another command somewhere else, in any program that has them."""
_CONTAINERS: Final = word_set("docker podman nerdctl")
_CONTAINER_WORDS: Final = word_set("run attach start compose build buildx")
_REMOTE: Final = word_set(
    "docker-compose mosh ansible ansible-playbook bwrap firejail unshare nsenter chroot sandbox-exec lxc "
    "machinectl wsl"
)
FETCHERS: Final = word_set("curl wget http https xh httpie aria2c lynx")
"""They print pages: their own messages begin with their name."""
_TEST_PROGRAMS: Final = word_set(
    "pytest doctest py.test nose2 nosetests unittest jest vitest mocha ava tap karma cypress playwright tox "
    "nox rspec minitest cucumber behave ctest phpunit pest bats prove ginkgo gotestsum cargo-nextest "
    "coverage"
)
_TEST_WORDS: Final = word_set("test tests t check verify nextest spec testall selftest")
"""Subcommands, scripts and targets that run tests."""
BUILD_TOOLS: Final = word_set(
    "npm npx yarn pnpm pnpx bun bunx deno cargo go mvn mvnw gradle gradlew make gmake just task ninja dotnet "
    "swift mix bazel bazelisk zig rake rails sbt lein flutter dart meson stack cabal composer xcodebuild "
    "hatch pdm mise uv uvx pip pipx poetry bundle rye pipenv nx turbo invoke cmake gulp grunt ant scons brew "
    "apt apt-get dnf gem"
)
"""They install packages and start tasks of a project: their own failures have a known form."""
_OWN_WORK: Final = word_set(
    "add build ci config download fetch get i init install link list lock mod new pip publish remove restore "
    "search sync uninstall update upgrade vendor venv version"
)
"""Subcommands of build tools that start nothing of the project."""
_LAUNCHING_WORDS: Final = word_set("run exec dlx x tool")
INTERPRETERS: Final = ("python", "pypy", "node", "ruby", "perl", "php", "bun", "deno")
"""How the names of programs that run inline code begin."""
SHELLS: Final = frozenset(("bash", "sh", "zsh", "dash", "ash", "ksh", "fish", "busybox"))
_GIT_STARTS: Final = word_set("ssh git git-lfs git-remote-https git-remote-http remote sh bash vi vim nano")
SELF_CONTAINED: Final = {
    "git": _GIT_STARTS,
    **dict.fromkeys(word_set("scp sftp rsync"), word_set("ssh rsync")),
    **dict.fromkeys(word_set("ssh dig nslookup") | FETCHERS, frozenset()),
}
"""Programs which start no others but these, whose messages begin with their names. (A hook of git's may start
any: it is a script, and names itself.)"""


def agent_of(name: str, words: Words) -> str | None:
    """Return the coding agent's CLI that a command starts, also through `npx`; None where it starts none
    that works."""
    if name in ("npx", "bunx", "pnpx", "uvx"):
        started = next((word for word in words if not word.startswith("-")), "")
        bare = started[:1] + started[1:].partition("@")[0]
        name = _AGENT_PACKAGES.get(bare, bare)
        words = words[words.index(started) + 1 :] if started else ()
    return name if name in AGENTS and _WITHOUT_WORK.isdisjoint(words) else None


def role_of(name: str, words: Words, *, piped: bool) -> Role:
    """Return what a command can have printed.

    Args:
        name: of the program, without its folder.
        words: its arguments; empty strings for what is known only when it runs.
        piped: whether its standard input is the output of another command.
    """
    if agent_of(name, words):
        return Role.AGENT
    if name in WRITING_TOOLS:
        return Role.TOOL
    if name in _FILTERS:
        return Role.READER if _shows_files(name, words, piped=piped) else Role.QUIET
    if name in _QUIET:
        return Role.QUIET
    if _shows_text(name, words):
        return Role.READER
    if name in _REMOTE or _starts_elsewhere(name, words):
        return Role.REMOTE
    return Role.TEST if _is_test(name, words) else Role.PROGRAM


def _shows_text(name: str, words: Words) -> bool:
    """Return whether a program prints documents, or what it or others have recorded."""
    if name in _READERS | AGENTS or "--help" in words:
        return True
    plain = _without_options(name, words)
    if name.startswith(INTERPRETERS):
        return False
    begin = plain[: 2 if name in BUILD_TOOLS else 1]  # `make logs`, `npm run show`
    return not (_READING_WORDS | _READING_SUBCOMMANDS.get(name, frozenset())).isdisjoint(begin)


def _starts_elsewhere(name: str, words: Words) -> bool:
    if name == "ssh":
        return len(_operands(name, words)) > 1  # a command behind the host
    if name in _CONTAINERS and not _CONTAINER_WORDS.isdisjoint(_without_options(name, words)[:1]):
        return True
    runs_here = name in BUILD_TOOLS | SHELLS or name.startswith(INTERPRETERS)
    return not runs_here and not _REMOTE_WORDS.isdisjoint(_without_options(name, words)[:3])


def runs_project(name: str, words: Words, raw: str) -> bool:
    """Return whether a program runs code of the project, which decides what it prints."""
    path = raw.partition(" ")[0]
    if ("/" in path and "/bin/" not in path) or name.endswith((".sh", ".py", ".js")):
        return True
    if name in BUILD_TOOLS:
        return next((word for word in words if not word.startswith("-")), "") not in _OWN_WORK
    return name in SHELLS or name.startswith(INTERPRETERS)


def files_shown(name: str, words: Words) -> list[str]:
    """Return the files whose content a filter shows."""
    if name not in _FILTERS or name == "tr":
        return []
    patterns = 0 if any(word.startswith(_PATTERN_OPTIONS) for word in words) else _FILTERS[name]
    return [word for word in _operands(name, words)[patterns:] if word != "-" and not word.isdecimal()]


def is_filter(name: str) -> bool:
    """Return whether a program shows files, or its standard input, and nothing else."""
    return name in _FILTERS


def _operands(name: str, words: Words) -> list[str]:
    """Return the arguments that are neither options nor values of options."""
    found: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.startswith("-") and len(word) > 1:
            skip = len(word) == 2 and word[1] in _VALUE_OPTIONS.get(name, "")
        else:
            found.append(word)
    return found


def _shows_files(name: str, words: Words, *, piped: bool) -> bool:
    if name == "sed" and any(word.startswith(("-i", "--in-place")) for word in words):
        return False
    return not piped or bool(files_shown(name, words))


def _without_options(name: str, words: Words) -> list[str]:
    """Return the arguments without options (`git -C folder -c a=b log`)."""
    rest = list(words)
    with_value = ("-C", "-c", "--git-dir", "--work-tree") if name == "git" else ("-n", "-H", "-L", "-S")
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in with_value else rest[1:]
    return [word for word in rest if word and not word.startswith("-")]


def _is_test(name: str, words: Words) -> bool:
    if name in _TEST_PROGRAMS or _looks_like_test(name):
        return True
    plain = [word for word in words if word and not word.startswith("-")]
    if name.startswith(INTERPRETERS) or name in SHELLS:
        if "-m" in words:
            module = "".join(words[words.index("-m") + 1 :][:1])
            return module.partition(".")[0] in _TEST_PROGRAMS | _TEST_WORDS
        if name not in BUILD_TOOLS:
            return "--test" in words or (bool(plain) and _looks_like_test(plain[0])) or "test" in plain[1:2]
    if name not in BUILD_TOOLS:
        return False
    started = [word for word in plain if word not in _LAUNCHING_WORDS]
    if started and started[0].startswith(INTERPRETERS):
        return _is_test(started[0], words[words.index(started[0]) + 1 :])
    if not _TEST_PROGRAMS.isdisjoint(started[:1]):
        return True
    # `cargo t`; elsewhere the letter is a name
    return any(_is_test_word(word) for at, word in enumerate(plain[:3]) if at == 0 or word != "t")


def _is_test_word(word: str) -> bool:
    return any(part in _TEST_WORDS for part in re.split(r"[_:-]", word.lower()))


def _looks_like_test(path: str) -> bool:
    """Return whether a path is a test's by the customs of its name: `test_x.py`, `x.test.js`, `tests/run`,
    `run_tests.sh`."""
    if "\n" in path or " " in path:
        return False
    *folders, file = path.lower().split("/")
    parts = (*folders, *re.split(r"[_.-]", file))
    return any(part in ("test", "tests", "__tests__", "spec") for part in parts)


# ------------------------------------------------------------
# What inline code of interpreters does with files, as far as its calls show it


WRITING_CODE: Final = re.compile(
    r"""open\([^)]*,\s*(?:mode\s*=\s*)?['"][rb+t]*[wax]|\.write_(?:text|bytes)\(|writeFile"""
    r"|appendFile|[wW]riteStream|FileHandler|basicConfig\(|makedirs|mkdir|\.touch\("
    r"|File\.(?:write|open\([^)]*['\"][wa])|os\.(?:WriteFile|Create|rename|remove|unlink|replace|symlink"
    r"|chmod)|shutil\.|fs::write|File::create"
    r"|open\([^)]*['\"]\+?>|rename|unlink|rmSync|copyFile|\.to_(?:csv|json|parquet)\(|json\.dump\(|\.save\("
)
"""Calls in inline code which write files."""
_READING_CODE: Final = re.compile(
    r"\.read\(|readfile\(|fpassthru\(|\bfile\(|createReadStream|io\.lines"
    r"|(?<![\w.])open\([^,()]*\)|json\.load\(|JSON\.load|load_file|require\(['\"][^'\"]+\.json['\"]\)"
    r"|<\$?\w*>\s*[);]|strerror"
    r"|\bhelp\(|__doc__|read_text\(|readFile|readlines|\bin open\(|fileinput"
    r"|File\.(?:read|foreach)|IO\.read|slurp|file_get_contents"
)


def shows_files_by_code(name: str, words: Words, code: str) -> bool:
    """Return whether an interpreter runs inline code that reads files: it may print what it reads."""
    if not name.startswith(INTERPRETERS):
        return False
    if words[:2] in (("-m", "json.tool"), ("-m", "pydoc")):
        return True
    by_line = any(re.fullmatch(r"-\w*[np]\w*e", word) for word in words)  # `perl -ne`
    if by_line and not any(re.fullmatch(r"-[lnp]*i\S*", word) for word in words):  # `perl -pi -e` writes
        return True
    inline = any(word in ("-c", "-e", "-p", "-") for word in words) or "\n" in code
    return inline and _READING_CODE.search(code) is not None and WRITING_CODE.search(code) is None
