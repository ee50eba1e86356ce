"""Denials with a known truth: random operations, run for real in real sandboxes.

`generate(seed, n)` makes probes, `Lab.run(probe)` runs one of them and measures which of its operations the
sandbox refused: an operation was denied when the policy forbids it and its effect is absent. What a probe's
output shows of that is compared by `judge`.

    python -m tests.oracle.denial_probes --seed 1 --count 5000 [--sandbox bwrap|landlock|codex|none]
"""

from __future__ import annotations

import argparse
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.sandbox.denials import Denial, find_denials

SANDBOXES = ("bwrap", "landlock", "codex", "none")
_TIMEOUT_SECONDS = 20
_REASON = re.compile(
    r"read-only file ?system|permission denied|not permitted|EROFS|readonly database"
    r"|unable to open database|not writable",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Operation:
    """One operation with its effect.

    Paths are written with the folders `{ws}`, `{home}`, `{out}`; no sandbox lets the last two be written.
    """

    what: str
    script: str
    target: str | None
    """A path, or a host."""
    name: str
    """Which part of the output shows that this operation failed."""
    before: tuple[tuple[str, str], ...] = ()
    """Files that are there before."""
    done: Callable[[Path], bool] = lambda path: path.exists()
    """Whether the target shows the effect."""


@dataclass(frozen=True)
class Probe:
    """A script and the operations in it."""

    number: int
    kind: str
    script: str
    sandbox: str
    shell: str = "bash"
    read_only: bool = False
    operations: tuple[Operation, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    setup: str = ""
    """A script that prepares the workspace, run without a sandbox."""


@dataclass(frozen=True)
class Truth:
    """An operation that the sandbox refused."""

    what: str
    target: str | None
    shown: bool
    """Whether the output shows that it failed."""
    named: bool
    """Whether the output names its target."""


@dataclass
class Result:
    """What happened, and what was read of it."""

    probe: Probe
    output: str
    exit_code: int
    truths: tuple[Truth, ...]
    denials: tuple[Denial, ...]
    false: list[Denial] = field(default_factory=list)
    missed: list[Truth] = field(default_factory=list)


# ---------------------------------------------------------------- operations


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("abcdefghkmnprstuvwxyz") for _ in range(7))


def _folder(rng: random.Random) -> str:
    return rng.choice(
        (
            "{out}",
            "{out}/deep/er",
            "{home}",
            "{home}/.config",
            "{home}/.local/share",
            "{out}/with space",
            "{ws}/.git/info",
        )
    )


def _text_is(text: str) -> Callable[[Path], bool]:
    return lambda path: path.is_file() and text in path.read_text("utf-8", "replace")


def _gone(path: Path) -> bool:
    return not path.exists()


def _path_operation(rng: random.Random) -> Operation:
    name = _word(rng)
    ending = rng.choice((".txt", "", ".log", ".json", ".md"))
    target = f"{_folder(rng)}/{name}{ending}"
    path = shlex.quote(target)
    there = ((target, "before\n"),)
    source = ((f"{{ws}}/{name}.src", "source\n"),)
    quoted = f'"{target}"'
    choices: list[tuple[str, tuple[tuple[str, str], ...], Callable[[Path], bool]]] = [
        (f"touch {path}", (), Path.exists),
        (f"echo hello > {path}", (), Path.exists),
        (f"printf 'a\\nb\\n' > {quoted}", (), Path.exists),
        (f"echo hello >> {path}", there, _text_is("hello")),
        (f": > {path}", there, lambda p: p.stat().st_size == 0),
        (f"cat <<'EOF' > {path}\nhello\nworld\nEOF", (), Path.exists),
        (f"cat > {path} <<EOF\nhello $HOME\nEOF", (), Path.exists),
        (f"mkdir {path}", (), Path.is_dir),
        (f"mkdir -p {path}/sub/sub", (), Path.is_dir),
        (f"rm {path}", there, _gone),
        (f"rm -f {path}", there, _gone),
        (f"rm -rf {path}", there, _gone),
        (f"unlink {path}", there, _gone),
        (f"chmod 600 {path}", there, lambda p: p.stat().st_mode & 0o777 == 0o600),
        (f"chmod +x {path}", there, lambda p: bool(p.stat().st_mode & 0o100)),
        (f"ln -s /nowhere {path}", (), Path.is_symlink),
        (f"ln {{ws}}/{name}.src {path}", source, Path.exists),
        (f"cp {{ws}}/{name}.src {path}", source, Path.exists),
        (f"cp -v {{ws}}/{name}.src {path}", there + source, _text_is("source")),
        (f"mv {{ws}}/{name}.src {path}", source, Path.exists),
        (f"mv {path} {{ws}}/{name}.moved", there, _gone),
        (f"mv {path} {path}.renamed", there, _gone),
        (f"echo hello | tee {path}", (), Path.exists),
        (f"echo hello | tee -a {path} >/dev/null", there, _text_is("hello")),
        (f"sed -i 's/before/after/' {path}", there, _text_is("after")),
        (f"dd if=/dev/zero of={path} bs=1 count=4", (), Path.exists),
        (f"truncate -s 0 {path}", there, lambda p: p.stat().st_size == 0),
        (f"install -m 644 {{ws}}/{name}.src {path}", source, Path.exists),
        (f"mktemp -d {path}.XXXXXX", (), lambda p: any(p.parent.glob(p.name + ".*"))),
        (f"mktemp {path}.XXXXXX", (), lambda p: any(p.parent.glob(p.name + ".*"))),
        (f"rmdir {path}", ((target + "/", ""),), _gone),
        (f"sort -o {path} {{ws}}/{name}.src", source, Path.exists),
        (f"tar -cf {path} {{ws}}/{name}.src", source, Path.exists),
        (f"gzip -k {path}", there, lambda p: Path(f"{p}.gz").exists()),
        (f"split -l 1 {{ws}}/{name}.src {path}", source, lambda p: Path(f"{p}aa").exists()),
        (f"find {path} -delete", there, _gone),
        (f"find {shlex.quote(target.rpartition('/')[0])} -name '{name}*' -exec rm {{}} \\;", there, _gone),
        (
            f"ls {path} >/dev/null; printf '%s\\n' {path} | xargs rm" if " " not in target else f"rm {path}",
            there,
            _gone,
        ),
        (f"cd {shlex.quote(target.rpartition('/')[0])} && touch {name}{ending}", (), Path.exists),
        (f"cd {shlex.quote(target.rpartition('/')[0])} && echo hi > {name}{ending}", (), Path.exists),
        (f'F={path}; touch "$F"', (), Path.exists),
        (f'D={shlex.quote(target.rpartition("/")[0])}\nmkdir "$D/{name}{ending}"', (), Path.is_dir),
        (f'for f in {path}; do echo data > "$f"; done', (), Path.exists),
        (f"gcc -x c -o {path} - <<< 'int main(){{return 0;}}'", (), Path.exists),
        (f"openssl rand -out {path} 4", (), Path.exists),
        (f"curl -sS -o {path} file:///etc/hostname", (), Path.exists),
        (f"patch {path} <<'EOF'\n--- a\n+++ b\n@@ -1 +1 @@\n-before\n+after\nEOF", there, _text_is("after")),
        (f"git init -q {path}", (), Path.is_dir),
        (f"git clone -q {{ws}} {path}", (), Path.is_dir),
        (f"git config -f {path} user.name me", (), Path.exists),
        (f"make -f - <<'EOF'\nall:\n\t@touch {path}\nEOF", (), Path.exists),
        (f"bash -c 'echo hi > \"$1\"' _ {path}", (), Path.exists),
        (f"sh -c {shlex.quote(f'echo hi > {path}')}", (), Path.exists),
        (f'awk \'BEGIN {{ print "x" > "{target}" }}\'', (), Path.exists),
    ]
    if rng.random() < 0.45:
        choices = _program_writes(name, target, path, there)
    script, before, done = rng.choice(choices)
    return Operation("filesystem", script, target, name, before, done)


def _program_writes(
    name: str, target: str, path: str, there: tuple[tuple[str, str], ...]
) -> list[tuple[str, tuple[tuple[str, str], ...], Callable[[Path], bool]]]:
    """Write by programs, inline and in files of the workspace."""
    python = {
        f"open('{target}', 'w').write('x')": ((), Path.exists),
        f"open('{target}', 'a').write('hello')": (there, _text_is("hello")),
        f"import pathlib; pathlib.Path('{target}').write_text('x')": ((), Path.exists),
        f"import pathlib; pathlib.Path('{target}').mkdir()": ((), Path.is_dir),
        f"import os; os.makedirs('{target}/a/b')": ((), Path.is_dir),
        f"import os; os.remove('{target}')": (there, _gone),
        f"import os; os.rename('{target}', '{target}.new')": (there, _gone),
        f"import os; os.chmod('{target}', 0o600)": (there, lambda p: p.stat().st_mode & 0o777 == 0o600),
        f"import shutil; shutil.copy('/etc/hostname', '{target}')": ((), Path.exists),
        f"import json; json.dump(dict(a=1), open('{target}', 'w'))": ((), Path.exists),
        f"import logging; logging.basicConfig(filename='{target}'); logging.error('x')": ((), Path.exists),
        f"import shelve; shelve.open('{target}')": ((), lambda p: any(p.parent.glob(p.name + "*"))),
        f"import sqlite3; c = sqlite3.connect('{target}.db'); c.execute('create table t(a)')": (
            (),
            lambda p: Path(f"{p}.db").exists(),
        ),
    }
    node = {
        f"require('fs').writeFileSync('{target}', 'x')": ((), Path.exists),
        f"require('fs').appendFileSync('{target}', 'hello')": (there, _text_is("hello")),
        f"require('fs').mkdirSync('{target}')": ((), Path.is_dir),
        f"require('fs').mkdirSync('{target}/a/b', {{recursive: true}})": ((), Path.is_dir),
        f"require('fs').unlinkSync('{target}')": (there, _gone),
        f"require('fs').renameSync('{target}', '{target}.new')": (there, _gone),
        f"require('fs').promises.writeFile('{target}', 'x')": ((), Path.exists),
        f"require('fs').createWriteStream('{target}').write('x')": ((), Path.exists),
    }
    perl = {
        f"open(F, '>', '{target}') or die \"Cannot open {target}: $!\"": ((), Path.exists),
        f"mkdir '{target}' or die \"mkdir {target}: $!\\n\"": ((), Path.is_dir),
        f"unlink '{target}' or warn \"{target}: $!\"": (there, _gone),
    }
    made = [(f"python3 -c {shlex.quote(code)}", before, done) for code, (before, done) in python.items()]
    made += [(f"python3 - <<'EOF'\n{code}\nEOF", before, done) for code, (before, done) in python.items()]
    made += [
        (f"python3 {name}_job.py", (*before, (f"{{ws}}/{name}_job.py", code + "\n")), done)
        for code, (before, done) in python.items()
    ]
    made += [(f"node -e {shlex.quote(code)}", before, done) for code, (before, done) in node.items()]
    made += [
        (f"node {name}.js", (*before, (f"{{ws}}/{name}.js", code + "\n")), done)
        for code, (before, done) in node.items()
    ]
    made += [(f"perl -e {shlex.quote(code)}", before, done) for code, (before, done) in perl.items()]
    made += [
        (
            f"bash {name}.sh",
            ((f"{{ws}}/{name}.sh", f"#!/bin/bash\nset -e\necho start\necho x > {path}\n"),),
            Path.exists,
        ),
        (f"make -f {name}.mk", ((f"{{ws}}/{name}.mk", f"all:\n\tmkdir {path}\n"),), Path.is_dir),
        (f"sqlite3 {path} 'create table t(a)'", (), lambda p: p.is_file() and p.stat().st_size > 0),
        (
            f"sqlite3 {path}.db 'create table t(a); insert into t values(1);'",
            (),
            lambda p: Path(f"{p}.db").exists(),
        ),
    ]
    return made


_HOSTS = (
    "example.com",
    "index.example.org",
    "api.openai.com",
    "registry.example.org",
    "github.com",
    "10.77.0.9",
    "192.0.2.7",
    "storage.googleapis.com",
)


def _network_operation(rng: random.Random) -> Operation:
    name = rng.choice(_HOSTS)
    is_address = name[0].isdigit()
    host = name if is_address else f"{_word(rng)}.{name}"
    url = f"https://{host}/{_word(rng)}"
    port = rng.choice((80, 443, 5432, 8080))
    python = (
        f"import urllib.request; urllib.request.urlopen('{url}', timeout=5)",
        f"import socket; socket.create_connection(('{host}', {port}), 3)",
        *(() if is_address else (f"import socket; print(socket.getaddrinfo('{host}', {port}))",)),
        f"import http.client; c = http.client.HTTPSConnection('{host}', timeout=3); c.request('GET', '/')",
        f"import socket; s = socket.socket(); s.settimeout(3); s.connect(('{host}', {port}))",
        f"import asyncio; asyncio.run(asyncio.open_connection('{host}', {port}))",
    )
    node = (
        f"fetch('{url}').then(r => console.log(r.status))",
        f"require('https').get('{url}').on('error', e => {{ console.error(e); process.exit(1) }})",
        f"require('net').connect({port}, '{host}').on('error', e => {{ console.error(e.message); "
        f"process.exit(1) }})",
        *(() if is_address else (f"require('dns').promises.lookup('{host}').then(console.log)",)),
        *(() if is_address else (f"require('dns').lookup('{host}', (e, a) => {{ if (e) throw e; }})",)),
    )
    script = rng.choice(
        (
            f"curl -sS -m 5 {url}",
            f"curl -m 5 {url}",
            f"curl -fsSL --max-time 5 {url} -o page.html",
            f"curl -sS -m 5 -X POST -d a=b http://{host}:{port}/x",
            f"wget -q -O - {url}" if rng.random() < 0.1 else f"wget -T 3 -t 1 {url}",
            f"wget -nv -T 3 -t 1 -O page.html {url}",
            f"git ls-remote https://{host}/a/b.git",
            f"git clone -q https://{host}/a/b.git",
            f"git fetch https://{host}/a/b.git main",
            f"ssh -o BatchMode=yes -o ConnectTimeout=3 git@{host}",
            f"ssh -o BatchMode=yes -o ConnectTimeout=3 {host} uptime",
            f"GIT_SSH_COMMAND='ssh -o BatchMode=yes -o ConnectTimeout=3' git clone -q git@{host}:a/b.git",
            f"scp -o BatchMode=yes -o ConnectTimeout=3 README.md {host}:/tmp/x",
            f"psql -h {host} -p 5432 -c 'select 1'",
            f"psql postgresql://u@{host}:{port}/db -c 'select 1'",
            f"pip install --retries 0 --timeout 3 --disable-pip-version-check --index-url "
            f"https://{host}/simple {_word(rng)}",
            f"npm view --fetch-retries=0 --registry https://{host}/ {_word(rng)}",
            f"npm install --fetch-retries=0 --registry https://{host}/ {_word(rng)}",
            *(f"python3 -c {shlex.quote(code)}" for code in python),
            *(f"node -e {shlex.quote(code)}" for code in node),
            f'perl -MIO::Socket::INET -e \'IO::Socket::INET->new(PeerAddr => "{host}:{port}", Timeout => '
            f'3) or die "connect to {host}: $@"\'',
            f"bash -c 'exec 3<>/dev/tcp/{host}/{port}'",
            f"openssl s_client -connect {host}:443 </dev/null",
        )
    )
    return Operation("network", script, host, host, done=lambda _: False)


# ---------------------------------------------------------------- around the operations

_WRAPS: tuple[Callable[[str], str], ...] = (
    *(lambda s: s,) * 4,
    lambda s: f"{s} || true",
    lambda s: f"{s}; echo rc=$?",
    lambda s: f"( {s}) 2>&1",
    lambda s: f"{{ {s}\n}} 2>&1 | tail -5",
    lambda s: f"{{ {s}\n}} 2>&1 | tail -n 20",
    lambda s: f"( {s}\n) 2>&1 | head -20",
    lambda s: f"( {s}\n) 2>&1 | head -c 4000",
    lambda s: f"( {s}\n) 2>&1 | tee run.log",
    lambda s: f"( {s}\n) 2>&1 | cat",
    lambda s: f"( {s}\n) |& tail -8",
    lambda s: f"( {s}\n) 2>&1 | grep -v '^nothing'",
    lambda s: f"( {s}\n) 2>&1 | sed 's/^/  /'",
    lambda s: f"( {s}\n) 2>&1 | sed -n '1,40p'",
    lambda s: f"( {s}\n) >run.log 2>&1; cat run.log",
    lambda s: f"( {s}\n) >run.log 2>&1 || tail -n 30 run.log",
    lambda s: f"( {s}\n) && echo done",
    lambda s: f"if ! ( {s}\n); then echo failed; fi",
    lambda s: f'out=$( {s}\n2>&1); echo "$out"' if "\n" in s else f'out=$( {s} 2>&1); echo "$out"',
    lambda s: f"set -e\n{s}",
    lambda s: f"set -euo pipefail\n( {s}\n) 2>&1 | tail -4",
    lambda s: f'set +e\n{s}\nrc=$?\necho "exit: $rc"\nexit 0',
    lambda s: f"bash -lc {shlex.quote(s)}",
    lambda s: f"bash -c {shlex.quote(s)} 2>&1 | tail -3",
    lambda s: f"timeout 30 bash -c {shlex.quote(s)}; echo rc=$?",
    lambda s: f"( {s}\n) 2>/dev/null || true",
    lambda s: f"time ( {s}\n)",
    lambda s: f"{s}\nls -la | head -3",
    lambda s: f"pwd; {s}",
    lambda s: f"echo '== step 1 =='\n{s}\necho '== step 2 =='",
)

_FILLERS = (
    "ls",
    "pwd",
    "git status -s | head -2",
    "echo ok",
    "true",
    "date +%s >/dev/null",
    "touch fine.txt",
    "mkdir -p build && echo built",
    "wc -l README.md",
)
_READS = (
    "cat README.md",
    "head -5 README.md",
    "sed -n '1,20p' notes.md",
    "grep -n sandbox README.md || true",
    "git log --oneline | head -2",
)


def _denied(rng: random.Random, number: int, sandbox: str) -> Probe:
    count = rng.choices((1, 2, 3), (70, 22, 8))[0]
    operations = tuple(
        _network_operation(rng) if rng.random() < 0.3 else _path_operation(rng) for _ in range(count)
    )
    parts: list[str] = []
    for operation in operations:
        if rng.random() < 0.15:
            parts.append(rng.choice(_READS))
        elif rng.random() < 0.25:
            parts.append(rng.choice(_FILLERS))
        script = operation.script
        wrap = rng.choice(_WRAPS) if count == 1 or rng.random() < 0.5 else (lambda s: s)
        if count > 1 and "set -e" in wrap("x"):
            wrap = _WRAPS[0]
        if count > 1:
            script = f"( {script}\n)"  # `cd` and variables of one do not reach the next
        parts.append(wrap(script))
    if rng.random() < 0.2:
        parts.append(rng.choice(_FILLERS))
    script = rng.choice(
        ("\n", "; ", "\n\n") if not any("\n" in part for part in parts) else ("\n", "\n\n")
    ).join(parts)
    shell = (
        rng.choices(("bash", "sh"), (85, 15))[0]
        if not re.search(r"\|&|<<<|pipefail|/dev/tcp|\btime \(", script)
        else "bash"
    )
    return Probe(number, "denied", script, sandbox, shell, operations=operations)


# ---------------------------------------------------------------- what is no denial


def message(rng: random.Random) -> str:
    """Return a line as programs print it when a sandbox refuses: what documents and logs quote."""
    path = rng.choice(
        (
            "/etc/hosts",
            "/usr/local/lib/x.so",
            "/root/.cache/uv",
            "/home/dev/.npm/_logs",
            "/var/lib/app/data.db",
            "/opt/tool/bin",
        )
    )
    reason = rng.choice(
        ("Read-only file system", "Permission denied", "Operation not permitted", "read-only file system")
    )
    host = rng.choice(("example.com", "index.example.org", "registry.example.org"))
    return rng.choice(
        (
            f"touch: cannot touch '{path}': {reason}",
            f"mkdir: cannot create directory ‘{path}’: {reason}",
            f"bash: line 1: {path}: {reason}",
            f"sh: 1: cannot create {path}: {reason}",
            f"OSError: [Errno 30] Read-only file system: '{path}'",
            f"PermissionError: [Errno 13] Permission denied: '{path}'",
            f"Error: EROFS: read-only file system, open '{path}'",
            f"Error: EACCES: permission denied, mkdir '{path}'",
            f"fatal: Unable to create '{path}/.git/index.lock': {reason}",
            f"open {path}: read-only file system",
            f"error: failed to create file `{path}`: Read-only file system (os error 30)",
            "error connecting to /tmp/tmux-0/default (Operation not permitted)",
            "sqlite3.OperationalError: unable to open database file",
            "sqlite3.OperationalError: attempt to write a readonly database",
            f"curl: (6) Could not resolve host: {host}",
            f"fatal: unable to access 'https://{host}/x.git/': Could not resolve host: {host}",
            f"npm error code EAI_AGAIN\nnpm error request to https://{host}/x failed, reason: getaddrinfo "
            f"EAI_AGAIN {host}",
            "socket.gaierror: [Errno -3] Temporary failure in name resolution",
            f"ssh: Could not resolve hostname {host}: Temporary failure in name resolution",
            f'Network access to "{host}" was blocked by policy.',
            "bwrap: setting up uid map: Permission denied",
            "thread 'main' (4711) panicked at linux-sandbox/src/linux_run_main.rs:391:9:",
            "PermissionError: [Errno 1] Operation not permitted",
            f"E   PermissionError: [Errno 13] Permission denied: '{path}'",
            f"cp: cannot create regular file '{path}': {reason}",
            f"zsh:1: operation not permitted: {path}",
            f"Caused by:\n  {reason} (os error 30)",
            f"tee: {path}: {reason}",
            f"rm: cannot remove '{path}': {reason}",
        )
    )


def _document(rng: random.Random) -> str:
    lines: list[str] = []
    for _ in range(rng.randint(1, 6)):
        lines += rng.choice(
            (
                ["## Troubleshooting", ""],
                ["If you see", ""],
                ["```"],
                ["Some prose about the sandbox and its rules."],
                [],
            )
        )
        lines.append(message(rng))
        lines += rng.choice((["```"], [""], ["Then ask for an approval."], []))
    return "\n".join(lines) + "\n"


def _quoted(rng: random.Random, number: int, sandbox: str) -> Probe:
    name = f"{_word(rng)}{rng.choice(('.md', '.log', '.txt', '.py'))}"
    text = _document(rng)
    line = rng.choice([line for line in text.splitlines() if line.strip()])
    echo = message(rng).splitlines()[0]
    test = (
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
        f"        raise OSError(30, 'Read-only file system', '/mnt/{_word(rng)}')\n"
    )
    read = rng.choice(
        (
            f"cat {name}",
            f"head -40 {name}",
            f"tail -n 40 {name}",
            f"sed -n '1,80p' {name}",
            "grep -rn 'file system\\|denied\\|permitted\\|resolve\\|database' .",
            f"grep -n '' {name}",
            f"grep -h '' {name}",
            f"nl -ba {name}",
            f"cat {name} | head -60",
            f"awk '{{print}}' {name}",
            f"git log -p --all -- {name} | cat",
            f"git show HEAD:{name}",
            "git log",
            f"git diff HEAD~1 -- {name}",
            f"tac {name}",
            f'while read -r l; do echo "$l"; done < {name}; cat {name}',
            f"cat -n {name} | sed -n '1,30p'",
            f"echo {shlex.quote(echo)}",
            f"printf '%s\\n' {shlex.quote(echo)}",
            f"cat <<'EOF'\n{text}EOF",
            f"cat > copy.md <<'EOF'\n{text}EOF\ncat copy.md",
            f"tee copy.md <<'EOF'\n{text}EOF",
            f"python3 -c {shlex.quote(f'print({line!r})')}",
            "python3 -m unittest test_mock 2>&1 | tail -20",
            "python3 -m unittest test_mock",
            f"diff /dev/null {name}",
            f"find . -name '{name}' -exec cat {{}} \\;",
            f"find . -name '{name}' | xargs cat",
            f"bash -c 'cat {name}'",
            f'x=$(cat {name}); echo "$x"',
            f"jq -R . {name}" if shutil.which("jq") else f"cat {name}",
            f"less {name} | cat",
            f"strings {name}" if shutil.which("strings") else f"cat {name}",
            f"sort {name} | uniq -c",
        )
    )
    around = rng.choice(
        (
            "{0}",
            "{0}",
            "{0}; false",
            "{0} && exit 3",
            "ls; {0}",
            "touch ok.txt; {0}",
            "mkdir -p out && {0}",
            "{0}\necho rc=$?\nexit 1",
        )
    )
    if "<<" in read:
        around = rng.choice(("{0}", "{0}\nfalse", "touch ok.txt\n{0}"))
    script = around.replace("{0}", read)
    subject = shlex.quote(f"Fix: {line}")
    commit = f"git add -A && git commit -qm {subject}; echo >> {name}; git commit -qam more"
    files = ((f"{{ws}}/{name}", text), ("{ws}/test_mock.py", test))
    return Probe(number, "quoted", script, sandbox, files=files, setup=commit)


def _ordinary(rng: random.Random, number: int, sandbox: str) -> Probe:
    """Make a failure that has nothing to do with a sandbox."""
    name = _word(rng)
    port = rng.randint(20000, 60000)
    script = rng.choice(
        (
            f"cat {{ws}}/{name}",
            "cat {out}/secret.txt",
            "ls {out}/locked",
            "head -1 {out}/secret.txt 2>&1 | tail -1",
            "grep -r x {out}",
            "find {out} -name '*.txt'",
            "du -sh {out}/locked; stat {out}/nothing",
            f"cp {{out}}/secret.txt {{ws}}/{name}",
            f"wc -l {{out}}/secret.txt; tar -cf {name}.tar {{out}}/secret.txt",
            "python3 -c \"print(open('{out}/secret.txt').read())\"",
            "node -e \"require('fs').readFileSync('{out}/secret.txt')\"",
            "node -e \"require('fs').readdirSync('{out}/locked')\"",
            "python3 -c \"import os; print(os.listdir('{out}/locked'))\"",
            'perl -e \'open(F, "<", "{out}/secret.txt") or die "cannot read {out}/secret.txt: $!"\'',
            "cd {out}/locked && ls",
            f"mkdir {{ws}}/a-{name} && chmod 500 {{ws}}/a-{name} && touch {{ws}}/a-{name}/x",
            f"echo x > {{ws}}/{name} && chmod 400 {{ws}}/{name} && echo y >> {{ws}}/{name}",
            f"touch {name}.sh && ./{name}.sh",
            "{out}/plain.sh",
            f"touch {{ws}}/{name}/x/y",
            f"mkdir {{ws}}/{name}/x/y",
            f"rm {{ws}}/{name}; rmdir {{ws}}/{name}",
            f"python3 -c \"open('{{ws}}/{name}/x', 'w')\"",
            f"node -e \"require('fs').writeFileSync('{{ws}}/{name}/x', '')\"",
            f"sqlite3 {{ws}}/{name}/x.db 'create table t(a)'",
            f"python3 -c \"import sqlite3; sqlite3.connect('{{ws}}/{name}/x.db')\"",
            f"sqlite3 {{ws}}/{name}.db 'select * from nothing'",
            f"curl -sS -m 3 http://127.0.0.1:{port}/",
            f"curl -sS -m 3 http://localhost:{port}/ || echo down",
            f"wget -q -O- -T 2 -t 1 http://127.0.0.1:{port}/; wget -nv -T 2 -t 1 http://[::1]:{port}/",
            f"psql -h 127.0.0.1 -p {port} -c 'select 1'",
            f"ssh -o BatchMode=yes -p {port} 127.0.0.1",
            f"git -C {{ws}}/{name} status",
            "git push origin main",
            f"git checkout {name}",
            "chmod 755 /proc/version; echo 1 > /proc/sys/kernel/hostname",
            f"echo x > /sys/kernel/{name}",
            "kill -0 1; mount -t tmpfs x /mnt; dmesg | tail -1",
            f"npm run {name}",
            f"make {name}",
            "cargo --version; false",
            f"python3 -c 'import {name}'",
            "docker ps",
            f"tmux -L {name} ls",
            "exit 3",
        )
    )
    if sandbox == "codex" and re.search(r"curl|wget|psql|ssh|docker|tmux", script):
        script = "false"  # Codex' sandbox refuses sockets to this machine as well
    if sandbox == "none" and re.search(r"mount|/proc|/sys|dmesg", script):
        script = "true"
    wrap = rng.choice(
        (
            lambda s: s,
            lambda s: f"{s} 2>&1 | tail -5",
            lambda s: f"{s}; echo rc=$?",
            lambda s: f"( {s}\n) || true",
        )
    )
    return Probe(number, "ordinary", wrap(script), sandbox)


def generate(seed: int, n: int, sandboxes: tuple[str, ...] = ("bwrap", "landlock", "none")) -> list[Probe]:
    """Return `n` probes: about half of them with operations that a sandbox refuses."""
    rng = random.Random(seed)
    probes: list[Probe] = []
    for number in range(n):
        sandbox = rng.choices(sandboxes, [1 if s == "none" else 5 for s in sandboxes])[0]
        make = rng.choices((_denied, _quoted, _ordinary), (55, 30, 15))[0]
        probes.append(make(rng, number, sandbox))
    return probes


# ---------------------------------------------------------------- running them


class Lab:
    """Runs probes, each in folders of its own below `base`, which is not in a temporary directory (Codex'
    sandbox lets those be written)."""

    def __init__(self, base: Path, codex: Path | None = None) -> None:
        self.base = base
        self.codex = codex
        base.mkdir(parents=True, exist_ok=True)

    def run(self, probe: Probe) -> Result:
        root = Path(tempfile.mkdtemp(prefix=f"p{probe.number}-", dir=self.base))
        try:
            return self._run(probe, root)
        finally:
            subprocess.run(["chmod", "-R", "u+rwx", str(root)], check=False, capture_output=True)
            shutil.rmtree(root, ignore_errors=True)

    def _run(self, probe: Probe, root: Path) -> Result:
        folders = {"ws": root / "ws", "home": root / "home", "out": root / "out"}
        for folder in (*folders.values(), root / "tmp", root / "codex"):
            folder.mkdir()
        texts = {name: str(path) for name, path in folders.items()}
        self._prepare(probe, folders, texts)
        script = _filled(probe.script, texts)
        process = subprocess.run(
            [
                "timeout",
                "-k",
                "1",
                str(_TIMEOUT_SECONDS),
                *self._sandboxed(probe, root, [probe.shell, "-c", script]),
            ],
            cwd=folders["ws"],
            env=_environment(root),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_SECONDS + 10,
            check=False,
        )
        output = process.stdout.decode("utf-8", "replace")
        policy = _policy(probe, root)
        truths = tuple(_truths(probe, output, texts)) if probe.sandbox != "none" else ()
        denials = find_denials(
            script,
            output,
            exit_code=process.returncode,
            outcome="ended",
            policy=policy,
            cwd=texts["ws"],
            home=texts["home"],
        )
        return judge(Result(probe, output, process.returncode, truths, denials), root)

    def _prepare(self, probe: Probe, folders: dict[str, Path], texts: dict[str, str]) -> None:
        ws, home, out = folders["ws"], folders["home"], folders["out"]
        for folder in (
            home / ".config",
            home / ".local/share",
            out / "deep/er",
            out / "with space",
            out / "locked",
        ):
            folder.mkdir(parents=True)
        (ws / "README.md").write_text("# A project\n\nIt has a sandbox.\n")
        (ws / "notes.md").write_text("notes\n")
        (ws / "package.json").write_text('{"name": "probe", "version": "1.0.0"}\n')
        (out / "secret.txt").write_text("secret\n")
        (out / "plain.sh").write_text("echo hi\n")
        subprocess.run(
            ["git", "-c", "init.defaultBranch=main", "init", "-q"],
            cwd=ws,
            env=_environment(ws.parent),
            check=True,
            capture_output=True,
        )
        (ws / ".git/info").mkdir(exist_ok=True)
        commit = "git add -A && git -c user.name=a -c user.email=a@b commit -qm start"
        subprocess.run(
            ["bash", "-c", commit], cwd=ws, env=_environment(ws.parent), check=True, capture_output=True
        )
        for path, text in (
            *probe.files,
            *(file for operation in probe.operations for file in operation.before),
        ):
            file = Path(_filled(path, texts))
            file.parent.mkdir(parents=True, exist_ok=True)
            if path.endswith("/"):
                file.mkdir()
            else:
                file.write_text(_filled(text, texts))
        if probe.setup:
            subprocess.run(
                ["bash", "-c", probe.setup],
                cwd=ws,
                env=_environment(ws.parent),
                check=False,
                capture_output=True,
            )
        (out / "locked").chmod(0)
        (out / "secret.txt").chmod(0)

    def _sandboxed(self, probe: Probe, root: Path, command: list[str]) -> list[str]:
        ws = str(root / "ws")
        if probe.sandbox == "bwrap":
            binds = [
                "--bind",
                ws,
                ws,
                "--ro-bind",
                f"{ws}/.git",
                f"{ws}/.git",
                *("--bind", str(root / "tmp"), str(root / "tmp")),
            ]
            isolation = [
                "--unshare-user",
                "--unshare-pid",
                "--unshare-net",
                "--cap-drop",
                "ALL",
                "--die-with-parent",
            ]
            return [
                "bwrap",
                "--ro-bind",
                "/",
                "/",
                "--dev",
                "/dev",
                *binds,
                "--proc",
                "/proc",
                *isolation,
                "--",
                *command,
            ]
        drop = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]
        if probe.sandbox == "landlock":
            helper = str(Path(__file__).with_name("landlock.py"))
            return ["unshare", "-n", *drop, sys.executable, helper, f"{ws}:{root / 'tmp'}", *command]
        if probe.sandbox == "codex":
            assert self.codex is not None
            return [str(self.codex), "sandbox", "-c", 'sandbox_mode="workspace-write"', "--", *command]
        return [*drop, *command]


def _filled(text: str, folders: dict[str, str]) -> str:
    """Return a text with the folders that `{ws}`, `{home}`, `{out}` stand for."""
    return re.sub(r"\{(ws|home|out)\}", lambda match: folders[match[1]], text)


def _environment(root: Path) -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(root / "home"),
        "TMPDIR": "/tmp" if not (root / "tmp").exists() else str(root / "tmp"),
        "LANG": "C.UTF-8",
        "CODEX_HOME": str(root / "codex"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
        "NO_UPDATE_NOTIFIER": "1",
    }


def _policy(probe: Probe, root: Path) -> Policy:
    if probe.sandbox == "none":
        return Policy(filesystem=Filesystem.UNRESTRICTED, network=Network.ON, enforced_by="nobody")
    ws = str(root / "ws")
    rules = [
        PolicyRule("/", "read"),
        PolicyRule(ws, "write"),
        PolicyRule("/tmp", "write"),
        PolicyRule(str(root / "tmp"), "write"),
    ]
    if probe.sandbox != "landlock":
        rules.append(PolicyRule(f"{ws}/.git", "read"))
    return Policy(filesystem=Filesystem.WORKSPACE, network=Network.OFF, rules=tuple(rules))


def _truths(probe: Probe, output: str, texts: dict[str, str]) -> Iterator[Truth]:
    for operation in probe.operations:
        if operation.what == "network":
            named = any(operation.name in line and _NET_REASON.search(line) for line in output.splitlines())
            shown = named or (len(probe.operations) == 1 and _NET_REASON.search(output) is not None)
            yield Truth("network", operation.target, shown, named)
            continue
        assert operation.target is not None
        path = Path(_filled(operation.target, texts))
        allowed = probe.sandbox == "landlock" and "/.git/" in str(path)
        if allowed or operation.done(path):
            continue
        named = any(operation.name in line and _REASON.search(line) for line in output.splitlines())
        yield Truth(
            "filesystem",
            str(path),
            named or (len(probe.operations) == 1 and bool(_REASON.search(output))),
            named,
        )


_NET_REASON = re.compile(
    r"resol|unreachable|connect |name or service|not permitted|EAI_|ENOTFOUND", re.IGNORECASE
)


def _is_about(found: str, truth: str) -> bool:
    """Whether a path is the target, or as near to it as a message gets: its parent that is missing, its
    lock, its temporary file."""
    return (
        found == truth
        or truth.startswith(found + "/")
        or found.startswith(truth)
        or Path(found).parent == Path(truth).parent
    )


def probe_uses(probe: Probe, *names: str) -> bool:
    """Whether one of these programs is in the script."""
    return any(re.search(rf"\b{name}\b", probe.script) for name in names)


def judge(result: Result, root: Path) -> Result:
    """Fill in which denials are false, and which truths were missed."""
    for denial in result.denials:
        truths = [t for t in result.truths if t.what == denial.what]
        if denial.what == "filesystem":
            fits = any(denial.target is None or _is_about(denial.target, t.target or "") for t in truths)
            own = denial.target is not None and denial.target.startswith(
                (f"{root}/home/.npm/", f"{root}/home/.ssh/", f"{root}/home/.cache/")
            )
            if (
                denial.target
                and denial.target.startswith(f"{root}/ws/.git/")
                and probe_uses(result.probe, "git")
            ):
                own, fits = (
                    True,
                    result.probe.sandbox in ("bwrap", "codex"),
                )  # every git command writes in there
            if not fits and not (
                own and probe_uses(result.probe, "npm", "ssh", "pip") and result.probe.sandbox != "none"
            ):
                result.false.append(denial)  # these tools also fail on their own files in the home directory
        elif not any(denial.target is None or denial.target == t.target for t in truths):
            result.false.append(denial)
    for truth in result.truths:
        if not truth.shown:
            continue
        of_kind = [d for d in result.denials if d.what == truth.what]
        if truth.what == "network":
            found = any(d.target == truth.target or (d.target is None and not truth.named) for d in of_kind)
        else:
            found = any(
                (d.target is not None and _is_about(d.target, truth.target or ""))
                or (d.target is None and not truth.named)
                for d in of_kind
            )
        if not found:
            result.missed.append(truth)
    return result


def run_all(lab: Lab, probes: list[Probe], workers: int = 2) -> list[Result]:
    """Run probes side by side."""
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lab.run, probes))


def summary(results: list[Result]) -> str:
    """Return the figures of a run as one line."""
    kinds = Counter(r.probe.kind for r in results)
    shown = sum(truth.shown for r in results for truth in r.truths)
    missed = sum(len(r.missed) for r in results)
    false = sum(len(r.false) for r in results)
    found = 100 * (shown - missed) / shown if shown else 100.0
    return (
        f"{len(results)} probes {dict(kinds)}: {shown} denials shown, {missed} missed ({found:.1f} % found), "
        f"{false} false"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--sandbox", choices=SANDBOXES)
    parser.add_argument("--codex", type=Path)
    parser.add_argument("--base", type=Path, default=Path.home() / ".cache" / "agentdash-tests" / "denials")
    parser.add_argument("--show", type=int, default=20)
    options = parser.parse_args()
    sandboxes = (options.sandbox,) if options.sandbox else ("bwrap", "landlock", "none")
    results = run_all(Lab(options.base, options.codex), generate(options.seed, options.count, sandboxes))
    for result in [r for r in results if r.false or r.missed][: options.show]:
        probe = result.probe
        sys.stdout.write(
            f"--- {probe.number} {probe.kind} {probe.sandbox} exit {result.exit_code}\n{probe.script}\n"
            f"OUTPUT:\n{result.output[-900:]}\nFALSE {result.false}\nMISSED {result.missed}\n"
            f"FOUND {result.denials}\n"
        )
    sys.stdout.write(f"seed {options.seed}: {summary(results)}\n")


if __name__ == "__main__":
    main()
