"""What programs print besides their own messages: which of them show text from elsewhere."""

from __future__ import annotations

import itertools
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
            "hexdump od zcat gzcat bzcat xzcat diff cmp comm paste join pr tr view glow base64 iconv "
            "ansi2txt ts look"
        ),
        0,
    ),
    **dict.fromkeys(
        word_set("grep egrep fgrep zgrep rg ag ack ugrep pcregrep sed awk gawk mawk jq yq gron"), 1
    ),
}
"""Programs that show files or their standard input, with the number of arguments before the files."""
_NO_FILES: Final = word_set("tr ts")
_VALUE_OPTIONS: Final = {
    "head": "nc",
    "tail": "ncs",
    "grep": "ABCmdD",
    "egrep": "ABCm",
    "fgrep": "ABCm",
    "rg": "ABCmgtTj",
    "cut": "dfcb",
    "sort": "kt",
    "awk": "Fv",
    "gawk": "Fv",
    "fold": "w",
    "column": "st",
    "od": "AtjN",
    "xxd": "lsc",
    "paste": "d",
    "ssh": "bcDEeFIiJLlmOopQRSWw",
}
"""Options whose next word is a value, not a file."""
_PATTERN_OPTIONS: Final = ("-e", "-f", "--regexp", "--expression", "--file")
_READERS: Final = word_set(
    "man info journalctl dmesg history fc tldr pdftotext lynx w3m links asciinema glab jira pandoc pydoc "
    "pydoc3 perldoc ri lnav fzf sk delta mdcat xmllint xmlstarlet hub stern llm aichat mods sgpt"
)
_READING_SUBCOMMANDS: Final = {
    "git": word_set(
        "log diff show blame annotate grep cat-file reflog shortlog format-patch whatchanged difftool "
        "ls-files ls-tree rev-parse rev-list name-rev describe help range-diff notes diff-tree diff-index"
    ),
    "gh": word_set("issue pr run api release gist search repo"),
    "docker": word_set("logs inspect"),
    "podman": word_set("logs inspect"),
    "kubectl": word_set("logs describe get"),
    "tmux": word_set("capture-pane capturep show-buffer showb"),
    "svn": word_set("log diff cat blame annotate praise propget info list ls status"),
    "hg": word_set("log diff cat annotate blame grep export heads tip status"),
    "npm": word_set("view info show docs explain help"),
    "pip": word_set("show list"),
    "cargo": word_set("tree metadata help search"),
    "systemctl": word_set("status"),
    "apt": word_set("show search changelog policy list"),
    "gcloud": word_set("logging"),
    "ollama": word_set("run show list"),
    "codex": word_set("sandbox debug mcp login completion features"),
    "agentdash": word_set("check status explain sessions replay export wait history"),
}
_READING_WORDS: Final = word_set("log logs diff blame grep cat history")
"""Subcommands which show text in any program that has them."""
_REMOTE_SUBCOMMANDS: Final = {
    "docker": word_set("run compose attach start build buildx"),
    "podman": word_set("run attach start build"),
    "kubectl": word_set("run attach debug"),
    "nerdctl": word_set("run"),
}
_REMOTE_WORDS: Final = word_set("exec ssh shell")
"""Subcommands which start another command somewhere else, in any program that has them."""
_REMOTE: Final = word_set(
    "mosh docker-compose ansible ansible-playbook bwrap firejail unshare nsenter chroot sandbox-exec lxc "
    "machinectl wsl"
)
_FETCHERS: Final = word_set("curl wget http https xh httpie aria2c lynx")
"""They print pages: their own messages begin with their name."""
_REMOTE_READERS: Final = word_set(
    "gh glab hub kubectl stern docker podman npm cargo svn hg jira lynx w3m llm aichat mods sgpt ollama "
    "ansible ansible-playbook"
)
_TEST_PROGRAMS: Final = word_set(
    "pytest doctest py.test nose2 nosetests unittest jest vitest mocha ava tap karma cypress playwright tox "
    "nox rspec minitest cucumber behave ctest phpunit pest bats prove ginkgo gotestsum cargo-nextest hspec "
    "stestr trial green ward hypothesis coverage wdio testcafe"
)
_TEST_WORDS: Final = word_set("test tests t check verify nextest spec testall selftest")
"""Subcommands, scripts and targets that run tests."""
_TEXT_OPTIONS: Final = word_set("--help --manual --explain")
_READING_TASKS: Final = word_set("show logs log cat tail print dump view docs")
_TEST_RUNNERS: Final = word_set(
    "npm yarn pnpm bun deno cargo go mvn mvnw gradle gradlew make gmake just task ninja dotnet swift mix "
    "bazel bazelisk zig rake rails sbt lein flutter dart meson stack cabal composer xcodebuild hatch pdm "
    "rush nx turbo lerna invoke inv dune cmake mise poe doit pixi gulp grunt ant scons "
    "apt apt-get brew dnf gem"
)
_LAUNCHERS: Final = word_set("npx pnpx bunx uvx pipx uv poetry pdm bundle rye pipenv yarn pnpm bun dlx")
_OWN_WORK: Final = word_set(
    "add build ci config download fetch get i init install link list lock mod new pip publish remove restore "
    "search sync uninstall update upgrade vendor venv version"
)
"""Subcommands of package managers that start nothing of the project."""
_LAUNCHER_WORDS: Final = word_set("run exec dlx x tool --yes -y -q --quiet -- -c --with -p --package")
_INTERPRETERS: Final = word_set("python python3 python2 pypy3 node nodejs ruby perl php bun deno bash sh zsh")
_RUNTIMES: Final = word_set("java javac lua tclsh Rscript elixir erl julia groovy scala fish")
_SERVED: Final = word_set("psql mysql mariadb redis-cli mongosh clickhouse-client clickhouse bq")
_QUERIES: Final = _SERVED | word_set("sqlite3 sqlite duckdb")
"""They print what is stored; those above ask a server for it, which no sandbox of the command is around."""
_SERVICES: Final = word_set(
    "kubectl oc helm argocd gcloud az aws vercel netlify heroku flyctl fly doctl sentry-cli circleci bk glab "
    "gh"
)
"""They print what a service has recorded: their own files are in the home directory, or their arguments."""
_GIT_STARTS: Final = word_set(
    "ssh git git-lfs git-remote-https git-remote-http remote sh bash editor vi vim nano"
)
SELF_CONTAINED: Final = {
    "git": _GIT_STARTS,
    "gh": _GIT_STARTS,
    **dict.fromkeys(word_set("scp sftp rsync"), word_set("ssh rsync")),
    **dict.fromkeys(word_set("ssh psql mysql redis-cli sqlite3 dig nslookup"), frozenset()),
    **dict.fromkeys(_FETCHERS, frozenset()),
}
"""Programs which start no others but these, whose messages begin with their names. (A hook of git's may start
any: it is a script, and names itself.)"""
INTERPRETERS: Final = ("python", "pypy", "node", "ruby", "perl", "php", "bun", "deno")
"""How the names of programs that run inline code begin."""


def agent_of(name: str, words: Words) -> str | None:
    """Return the coding agent's CLI that a command starts, also through `npx`; None where it starts none
    that works."""
    if name in ("npx", "bunx", "pnpx", "uvx"):
        started = next((word for word in words if not word.startswith("-")), "")
        bare = started[:1] + started[1:].partition("@")[0]
        name = _AGENT_PACKAGES.get(bare, bare)
        words = words[words.index(started) + 1 :] if started else ()
    if name not in AGENTS or (words and words[0] in _READING_SUBCOMMANDS.get(name, ())):
        return None
    return None if any(word in ("--version", "-V", "--help") for word in words) else name


def role_of(name: str, words: Words, *, piped: bool) -> Role:
    """Return what a command can have printed.

    Args:
        name: of the program, without its folder.
        words: its arguments; empty strings for what is known only when it runs.
        piped: whether its standard input is the output of another command.
    """
    if agent_of(name, words):
        return Role.AGENT
    if name in AGENTS and (not words or words[0].startswith("-")):
        return Role.QUIET  # its version, its help
    if name in WRITING_TOOLS:
        return Role.TOOL
    if name in _FILTERS:
        return Role.READER if _shows_files(name, words, piped=piped) else Role.QUIET
    if name in _QUIET:
        return Role.QUIET
    if _asks_for_text(name, words) or _shows_text_by_task(name, words):
        return Role.READER
    subcommand = next((word for word in _after_options(name, words) if word), "")
    if name in _READERS or subcommand in _READING_WORDS or subcommand in _READING_SUBCOMMANDS.get(name, ()):
        return Role.READER
    if (
        name in _REMOTE
        or subcommand in _REMOTE_SUBCOMMANDS.get(name, ())
        or (name == "ssh" and len(_operands(name, words)) > 1)  # a command behind the host
        or _starts_elsewhere(name, words)
    ):
        return Role.REMOTE
    return Role.TEST if _is_test(name, words) else Role.PROGRAM


def _starts_elsewhere(name: str, words: Words) -> bool:
    plain = [word for word in words if word and not word.startswith("-")]
    return not _REMOTE_WORDS.isdisjoint(plain[:3]) and not (is_build_tool(name) or runs_code(name))


def reads_remotely(name: str) -> bool:
    """Return whether a program that shows text gets it over the network."""
    return name in _REMOTE_READERS


def shows_pages(name: str) -> bool:
    """Return whether a program prints what it fetched, besides messages under its own name."""
    return name in _FETCHERS


def runs_project(name: str, words: Words, raw: str) -> bool:
    """Return whether a program runs code of the project, or answers its queries: that decides what it
    prints."""
    path = raw.partition(" ")[0]
    if ("/" in path and "/bin/" not in path) or name.endswith((".sh", ".py", ".js")):
        return True
    if is_build_tool(name):
        return next((word for word in words if not word.startswith("-")), "") not in _OWN_WORK
    return name in _INTERPRETERS | _QUERIES or name.startswith(INTERPRETERS)


def runs_code(name: str) -> bool:
    """Return whether a program runs code, and words the errors of that itself."""
    return name in _INTERPRETERS | _RUNTIMES or name.startswith(INTERPRETERS)


def starts_tools(name: str, words: Words, raw: str) -> bool:
    """Return whether a program starts simple tools, whose messages begin with their names; an installed one
    that nothing is known of reports its failures itself."""
    return is_build_tool(name) or runs_project(name, words, raw)


def is_build_tool(name: str) -> bool:
    """Return whether a program starts tasks of a project: its own failures have a known form."""
    return name in _TEST_RUNNERS | _LAUNCHERS


def is_served(name: str) -> bool:
    """Return whether a program passes on what a database server reports, of its own files too."""
    return name in _SERVED


def asks_service(name: str) -> bool:
    """Return whether a program prints what a service elsewhere has recorded."""
    return name in _SERVICES


def is_query(name: str) -> bool:
    """Return whether a program prints what a database holds."""
    return name in _QUERIES


def files_shown(name: str, words: Words) -> list[str]:
    """Return the files whose content a filter shows."""
    if name not in _FILTERS or name in _NO_FILES:
        return []
    patterns = 0 if any(word.startswith(_PATTERN_OPTIONS) for word in words) else _FILTERS[name]
    return [word for word in _operands(name, words)[patterns:] if word != "-" and not word.isdecimal()]


def _operands(name: str, words: Words) -> list[str]:
    """Return the arguments that are no options, and no values of options."""
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


def _after_options(name: str, words: Words) -> list[str]:
    """Return the arguments without options before the subcommand (`git -C folder -c a=b log`)."""
    rest = list(words)
    with_value = (
        ("-C", "-c", "--git-dir", "--work-tree")
        if name == "git"
        else ("-n", "--namespace", "--context", "-H", "-L", "-S")
    )
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in with_value else rest[1:]
    return rest


def _is_test(name: str, words: Words) -> bool:
    if name in _TEST_PROGRAMS or _looks_like_test(name):
        return True
    plain = [word for word in words if word and not word.startswith("-")]
    if name in _LAUNCHERS:
        inner = [word for word in plain if word not in _LAUNCHER_WORDS]
        if inner and (inner[0] in _TEST_PROGRAMS or inner[0] in _INTERPRETERS):
            return inner[0] in _TEST_PROGRAMS or _is_test(inner[0], words[words.index(inner[0]) + 1 :])
    if name.startswith(tuple(_INTERPRETERS)):
        if "-m" in words:
            module = words[words.index("-m") + 1 : words.index("-m") + 2]
            return bool(module) and (
                module[0].partition(".")[0] in _TEST_PROGRAMS or module[0] in _TEST_WORDS
            )
        return (
            "--test" in words
            or (bool(plain) and _looks_like_test(plain[0]))
            or plain[:2] == ["manage.py", "test"]
        )
    # `cargo t`; elsewhere the letter is a name
    words_of_task = [word for at, word in enumerate(plain[:3]) if at == 0 or word != "t"]
    return name in _TEST_RUNNERS and any(map(_is_test_word, words_of_task))


def _is_test_word(word: str) -> bool:
    return any(part in _TEST_WORDS for part in word.lower().replace("_", ":").replace("-", ":").split(":"))


def _asks_for_text(name: str, words: Words) -> bool:
    """Return whether an option makes a program print documents, or what it has recorded."""
    if not _TEXT_OPTIONS.isdisjoint(words) or words[:1] == ("help",):
        return True
    if "logs" in words[1:3] and not name.startswith(INTERPRETERS):
        return True  # `nomad alloc logs`
    return name in ("rpm", "dpkg") and re.match(r"-[qslLpS]", "".join(words[:1])) is not None


def _shows_text_by_task(name: str, words: Words) -> bool:
    """Return whether a task runner gets a task which shows text by its name: `make logs`, `npm run show`."""
    plain = [word for word in words if word and not word.startswith("-")]
    return name in _TEST_RUNNERS and not _READING_TASKS.isdisjoint(plain[:2])


def _looks_like_test(path: str) -> bool:
    """Return whether a path is a test's by the customs of its name: `test_x.py`, `x.test.js`, `tests/run`,
    `run_tests.sh`."""
    if not path or "\n" in path or " " in path:
        return False
    parts = path.lower().split("/")
    stem = parts[-1].replace("_", ".").replace("-", ".").split(".")
    return any(part in ("test", "tests", "__tests__", "spec") for part in (*parts[:-1], *stem))


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


# ------------------------------------------------------------
# The files that a command is to write, as its options name them


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
