"""Denials with a known truth: random operations, run for real in real sandboxes.

`generate(seed, n)` makes probes, `run(probe)` runs one of them and measures which of its operations the
sandbox refused: an operation was denied when the policy forbids it and its effect is absent. What a probe's
output shows of that is compared.

    python -m tests.oracle.denial_probes --seed 1 --count 5000 [--sandbox bwrap|landlock|codex|none]
"""

import argparse
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.sandbox.denials import Denial, find_denials
from tests.live.clis import cache
from tests.live.codex import native_program
from tests.live.programs import run as run_program

SANDBOXES = ("bwrap", "landlock", "codex", "none")
LANDLOCK = Path(__file__).with_name("landlock.py")
_PREPARED = ("ws", "home/.config", "home/.local/share", "out/deep/er", "out/with space", "out/locked")
_TIMEOUT_SECONDS = 20
_REASON = re.compile(
    r"read-only file ?system|permission denied|not permitted|EROFS|readonly database"
    r"|unable to open database|not writable",
    re.IGNORECASE,
)
_NETWORK_REASON = re.compile(
    r"resol|unreachable|connect |name or service|not permitted|EAI_|ENOTFOUND", re.IGNORECASE
)
Done = Callable[[Path], bool]


class Operation(NamedTuple):
    """One operation with its effect.

    Paths are written with the folders `{ws}`, `{home}`, `{out}`; no sandbox lets the last two be written.
    """

    what: str
    script: str
    target: str
    """A path, or a host."""
    name: str
    """Which part of the output shows that this operation failed."""
    before: str = ""
    """The text of the target before; empty if it is not there."""
    done: Done = Path.exists
    """Whether the target shows the effect."""
    files: tuple[tuple[str, str], ...] = ()
    """Other files that are there before."""


class Probe(NamedTuple):
    """A script and the operations in it."""

    number: int
    script: str
    sandbox: str
    operations: tuple[Operation, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    setup: str = ""
    """A script that prepares the workspace, run without a sandbox."""


class Truth(NamedTuple):
    """An operation that the sandbox refused."""

    what: str
    target: str
    shown: bool
    """Whether the output shows that it failed."""
    named: bool
    """Whether the output names its target."""


class Result(NamedTuple):
    """What happened, and what was read of it."""

    probe: Probe
    output: str
    truths: list[Truth]
    denials: tuple[Denial, ...]
    false: list[Denial]
    missed: list[Truth]


# ---------------------------------------------------------------- operations


def _word(rng: random.Random) -> str:
    return "".join(rng.choice("abcdefghkmnprstuvwxyz") for _ in range(7))


def _holds(text: str) -> Done:
    return lambda path: path.is_file() and text in path.read_text("utf-8", "replace")


def _gone(path: Path) -> bool:
    return not path.exists()


def _made_beside(path: Path) -> bool:
    return any(each != path for each in path.parent.glob(path.name + "*"))


_NEW: dict[str, Done] = {
    "touch PATH": Path.exists,
    "echo hello > PATH": Path.exists,
    "cat > PATH <<EOF\nhello $HOME\nEOF": Path.exists,
    "mkdir -p PATH/sub/sub": Path.is_dir,
    "ln -s /nowhere PATH": Path.is_symlink,
    "cp {ws}/NAME.src PATH": Path.exists,
    "echo hello | tee PATH": Path.exists,
    "mktemp -d PATH.XXXXXX": _made_beside,
    "tar -cf PATH {ws}/NAME.src": Path.exists,
    "cd FOLDER && echo hi > LAST": Path.exists,
    'for f in PATH; do echo data > "$f"; done': Path.exists,
    "gcc -x c -o PATH - <<< 'int main(){return 0;}'": Path.exists,
    "curl -sS -o PATH file:///etc/hostname": Path.exists,
    "git clone -q {ws} PATH": Path.is_dir,
    "make -f - <<'EOF'\nall:\n\t@touch PATH\nEOF": Path.exists,
    "bash -c 'echo hi > \"$1\"' _ PATH": Path.exists,
    "sqlite3 PATH 'create table t(a)'": lambda p: p.is_file() and p.stat().st_size > 0,
}
"""Scripts that make a target that is not there."""
_CHANGES: dict[str, Done] = {
    "echo hello >> PATH": _holds("hello"),
    "rm PATH": _gone,
    "chmod 600 PATH": lambda p: p.stat().st_mode & 0o777 == 0o600,
    "mv PATH {ws}/NAME.moved": _gone,
    "sed -i 's/before/after/' PATH": _holds("after"),
    "truncate -s 0 PATH": lambda p: p.stat().st_size == 0,
    "find FOLDER -name 'NAME*' -exec rm {} \\;": _gone,
    "printf '%s\\n' PATH | tr -d '\"' | xargs rm": _gone,
}
"""Scripts that change a target that is there."""
_CODE: dict[str, tuple[str, Done]] = {
    "open('TARGET', 'w').write('x')": ("python3", Path.exists),
    "import os; os.makedirs('TARGET/a/b')": ("python3", Path.exists),
    "import shutil; shutil.copy('/etc/hostname', 'TARGET')": ("python3", Path.exists),
    "import logging; logging.basicConfig(filename='TARGET'); logging.error('x')": ("python3", Path.exists),
    "import sqlite3; c = sqlite3.connect('TARGET'); c.execute('create table t(a)')": ("python3", Path.exists),
    "require('fs').writeFileSync('TARGET', 'x')": ("node", Path.exists),
    "require('fs').mkdirSync('TARGET/a/b', {recursive: true})": ("node", Path.exists),
    "require('fs').promises.writeFile('TARGET', 'x')": ("node", Path.exists),
    "open(F, '>', 'TARGET') or die \"Cannot open TARGET: $!\"": ("perl", Path.exists),
}
"""Programs that make a target."""
_FOLDERS = ("{out}", "{out}/deep/er", "{home}", "{home}/.config", "{home}/.local/share", "{ws}/.git/info")
_SPACED = "{out}/with space"


def _path_operation(rng: random.Random) -> Operation:
    name = _word(rng)
    folder = rng.choice((*_FOLDERS, _SPACED))
    last = name + rng.choice((".txt", "", ".log", ".json"))
    target = f"{folder}/{last}"
    files = ((f"{{ws}}/{name}.src", "source\n"),)
    if rng.random() < 0.35:
        code = rng.choice(list(_CODE))
        program, done = _CODE[code]
        code = code.replace("TARGET", target)
        option = "-c" if program == "python3" else "-e"
        script = f"{program} {option} {shlex.quote(code)}"
        if program != "perl" and rng.random() < 0.4:
            file = f"{name}_job.{'py' if program == 'python3' else 'js'}"
            script, files = f"{program} {file}", ((f"{{ws}}/{file}", code + "\n"),)
        return Operation("filesystem", script, target, name, done=done, files=files)
    is_new = rng.random() < 0.65 or folder == _SPACED
    scripts = _NEW if is_new else _CHANGES
    template = rng.choice(list(scripts))
    script = template.replace("PATH", shlex.quote(target)).replace("FOLDER", shlex.quote(folder))
    script = script.replace("NAME", name).replace("LAST", last)
    before = "" if is_new else "before\n"
    return Operation("filesystem", script, target, name, before, scripts[template], files)


_HOSTS = ("example.com", "index.example.org", "github.com", "10.77.0.9", "192.0.2.7")
_REQUESTS = (
    "curl -sS -m 5 URL",
    "wget -T 3 -t 1 URL",
    "git ls-remote https://HOST/a/b.git",
    "ssh -o BatchMode=yes -o ConnectTimeout=3 git@HOST",
    "psql -h HOST -p 5432 -c 'select 1'",
    "pip install --retries 0 --timeout 3 --disable-pip-version-check --index-url https://HOST/simple NAME",
    "npm view --fetch-retries=0 --registry https://HOST/ NAME",
    "python3 -c \"import urllib.request; urllib.request.urlopen('URL', timeout=5)\"",
    "node -e \"fetch('URL').then(r => console.log(r.status))\"",
    "node -e \"require('net').connect(443, 'HOST').on('error', e => { console.error(e.message) })\"",
    "bash -c 'exec 3<>/dev/tcp/HOST/443'",
    "openssl s_client -connect HOST:443 </dev/null",
)


def _network_operation(rng: random.Random) -> Operation:
    host = rng.choice(_HOSTS)
    host = host if host[0].isdigit() else f"{_word(rng)}.{host}"
    script = rng.choice(_REQUESTS).replace("URL", f"https://{host}/{_word(rng)}")
    script = script.replace("HOST", host).replace("NAME", _word(rng))
    return Operation("network", script, host, host, done=lambda _: False)


# ---------------------------------------------------------------- around the operations

_WRAPS: tuple[Callable[[str], str], ...] = (
    *(lambda s: s,) * 3,
    lambda s: f"{s} || true",
    lambda s: f"{s}; echo rc=$?",
    lambda s: f"{{ {s}\n}} 2>&1 | tail -5",
    lambda s: f"( {s}\n) 2>&1 | tee run.log",
    lambda s: f"( {s}\n) >run.log 2>&1; cat run.log",
    lambda s: f"set -e\n{s}",
    lambda s: f"bash -lc {shlex.quote(s)}",
    lambda s: f"( {s}\n) 2>/dev/null || true",
    lambda s: f"{s}\nls -la | head -3",
)
_FILLERS = ("ls", "git status -s | head -2", "echo ok", "touch fine.txt", "mkdir -p build && echo built")
_READS = ("cat README.md", "head -5 README.md", "grep -n sandbox README.md || true", "git log | head -2")


def _denied(rng: random.Random, number: int, sandbox: str) -> Probe:
    count = rng.choices((1, 2, 3), (70, 22, 8))[0]
    make = (_network_operation, _path_operation)
    operations = tuple(rng.choices(make, (3, 7))[0](rng) for _ in range(count))
    parts: list[str] = []
    for operation in operations:
        if rng.random() < 0.4:
            parts.append(rng.choice((*_READS, *_FILLERS)))
        if count > 1:
            parts.append(f"( {operation.script}\n)")  # `cd` and variables of one do not reach the next
        else:
            parts.append(rng.choice(_WRAPS)(operation.script))
    return Probe(number, "\n".join(parts), sandbox, operations)


# ---------------------------------------------------------------- what is no denial

_MESSAGES = (
    "touch: cannot touch '/etc/hosts': Read-only file system",
    "bash: line 1: /var/lib/app/data.db: Permission denied",
    "Error: EACCES: permission denied, mkdir '/root/.cache/uv'",
    "fatal: Unable to create '/srv/r/.git/index.lock': Read-only file system",
    "error connecting to /tmp/tmux-0/default (Operation not permitted)",
    "sqlite3.OperationalError: unable to open database file",
    "curl: (6) Could not resolve host: example.com",
    'Network access to "example.com" was blocked by policy.',
    "bwrap: setting up uid map: Permission denied",
    "Caused by:\n  Read-only file system (os error 30)",
)
"""What documents and logs quote."""
_QUOTING = (
    "cat NAME",
    "sed -n '1,80p' NAME",
    "grep -rn 'file system\\|denied\\|permitted\\|resolve\\|database' .",
    "git log -p --all -- NAME | cat",
    "echo LINE",
    "cat > copy.md <<'EOF'\nTEXTEOF\ncat copy.md",
    "python3 -c 'print(open(\"NAME\").read())'",
    "python3 -m unittest test_mock",
    "find . -name NAME -exec cat {} \\;",
    'x=$(cat NAME); echo "$x"',
)
_ORDINARY = (
    "cat {out}/secret.txt",
    "ls {out}/locked",
    "cp {out}/secret.txt {ws}/NAME",
    "python3 -c \"print(open('{out}/secret.txt').read())\"",
    "node -e \"require('fs').readFileSync('{out}/secret.txt')\"",
    'perl -e \'open(F, "<", "{out}/secret.txt") or die "cannot read {out}/secret.txt: $!"\'',
    "mkdir {ws}/a-NAME && chmod 500 {ws}/a-NAME && touch {ws}/a-NAME/x",
    "echo x > {ws}/NAME && chmod 400 {ws}/NAME && echo y >> {ws}/NAME",
    "touch NAME.sh && ./NAME.sh",
    "touch {ws}/NAME/x/y",
    "python3 -c \"open('{ws}/NAME/x', 'w')\"",
    "curl -sS -m 3 http://127.0.0.1:20202/",
    "git push origin main",
    "chmod 755 /proc/version; echo 1 > /proc/sys/kernel/hostname",
    "tmux -L NAME ls",
)
"""Failures that have nothing to do with a sandbox: but Codex' sandbox refuses sockets to this machine too."""


def _quoted(rng: random.Random, number: int, sandbox: str) -> Probe:
    name = f"{_word(rng)}{rng.choice(('.md', '.log', '.py'))}"
    lines = ["## Troubleshooting", *rng.sample(_MESSAGES, rng.randint(1, 5)), "Then ask for an approval."]
    text = "\n".join(lines[rng.randint(0, 1) :]) + "\n"
    read = rng.choice(_QUOTING).replace("NAME", name).replace("TEXT", text)
    read = read.replace("LINE", shlex.quote(rng.choice(_MESSAGES)))
    around = rng.choice(("{0}", "{0}\nfalse", "touch ok.txt\n{0}", "{0}\necho rc=$?\nexit 1"))
    test = (
        "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n"
        f"        raise OSError(30, 'Read-only file system', '/mnt/{_word(rng)}')\n"
    )
    subject = shlex.quote(f"Fix: {rng.choice(_MESSAGES)}")
    setup = f"git add -A && git commit -qm {subject}; echo >> {name}; git commit -qam more"
    files = ((f"{{ws}}/{name}", text), ("{ws}/test_mock.py", test))
    return Probe(number, around.replace("{0}", read), sandbox, files=files, setup=setup)


def _ordinary(rng: random.Random, number: int, sandbox: str) -> Probe:
    script = rng.choice(_ORDINARY).replace("NAME", _word(rng))
    if sandbox == "codex" and re.search(r"curl|psql|tmux", script):
        script = "false"
    wrap = rng.choice(("{0}", "{0} 2>&1 | tail -5", "{0}; echo rc=$?", "( {0}\n) || true"))
    return Probe(number, wrap.replace("{0}", script), sandbox)


def generate(seed: int, n: int, sandboxes: tuple[str, ...] = ("bwrap", "landlock", "none")) -> list[Probe]:
    """Return `n` probes: about half of them with operations that a sandbox refuses."""
    rng = random.Random(seed)
    weights = [1 if sandbox == "none" else 5 for sandbox in sandboxes]
    makers = (_denied, _quoted, _ordinary)
    return [
        rng.choices(makers, (55, 30, 15))[0](rng, number, rng.choices(sandboxes, weights)[0])
        for number in range(n)
    ]


# ---------------------------------------------------------------- running them


def run(probe: Probe, base: Path, codex: Path | None = None) -> Result:
    """Run a probe in folders of its own, and judge what is read of its output.

    Args:
        probe: what is run.
        base: not in a temporary directory, which Codex's sandbox lets be written.
        codex: its program.
    """
    base.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix=f"p{probe.number}-", dir=base))
    try:
        _prepare(probe, root)
        script, policy, home = _filled(probe.script, root), _policy(probe, root), f"{root}/home"
        limit = ["timeout", "-k", "1", str(_TIMEOUT_SECONDS)]
        command = [*limit, *_sandboxed(probe, root, codex), "bash", "-c", script]
        code, output = _bash(command, root)
        denials = find_denials(
            script, output, exit_code=code, outcome="ended", policy=policy, cwd=f"{root}/ws", home=home
        )
        truths = list(_truths(probe, output, root)) if probe.sandbox != "none" else []
        unfit = [each for each in denials if not any(_fits(each, truth) for truth in truths)]
        false = [each for each in unfit if not _is_own_file(each, probe, root)]
        named = [each for each in denials if each.target is not None]
        missed = [
            truth
            for truth in truths
            if truth.shown and not any(_fits(each, truth) for each in (named if truth.named else denials))
        ]
        return Result(probe, output, truths, denials, false, missed)
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", str(root)], check=False, capture_output=True)
        shutil.rmtree(root, ignore_errors=True)


def _bash(command: list[str], root: Path) -> tuple[int, str]:
    """Run a command in the workspace; return its exit code and what it wrote."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(root / "home"),
        "TMPDIR": str(root / "tmp"),
        "LANG": "C.UTF-8",
        "CODEX_HOME": str(root / "codex"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "NO_UPDATE_NOTIFIER": "1",
        **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "a"),
        **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "a@b"),
    }
    done = run_program(command, cwd=root / "ws", env=environment, stderr=subprocess.STDOUT, errors="replace")
    return done.returncode, done.stdout


def _prepare(probe: Probe, root: Path) -> None:
    for folder in (*_PREPARED, "tmp", "codex"):
        (root / folder).mkdir(parents=True)
    files = {"{ws}/README.md": "# A project\n\nIt has a sandbox.\n", "{ws}/package.json": "{}\n"}
    files |= {"{out}/secret.txt": "secret\n", **dict(probe.files)}
    for operation in probe.operations:
        files |= dict(operation.files)
        files |= {operation.target: operation.before} if operation.before else {}
    late = {name: text for name, text in files.items() if "/.git/" in name}
    for name, text in files.items() - late.items():
        Path(_filled(name, root)).write_text(_filled(text, root))
    setup = "git -c init.defaultBranch=main init -q; mkdir -p .git/info; git add -A; git commit -qm start"
    for script in (setup, probe.setup):
        _bash(["bash", "-c", script], root)
    for name, text in late.items():
        Path(_filled(name, root)).write_text(text)
    for closed in ("out/locked", "out/secret.txt"):
        (root / closed).chmod(0)


def _sandboxed(probe: Probe, root: Path, codex: Path | None) -> list[str]:
    ws, tmp = root / "ws", root / "tmp"
    if probe.sandbox == "bwrap":
        binds = f"--ro-bind / / --dev /dev --bind {ws} {ws} --ro-bind {ws}/.git {ws}/.git --bind {tmp} {tmp}"
        isolation = "--unshare-user --unshare-pid --unshare-net --cap-drop ALL --die-with-parent"
        return f"bwrap {binds} --proc /proc {isolation} --".split()
    if probe.sandbox == "codex":
        return [str(codex), "sandbox", "-c", 'sandbox_mode="workspace-write"', "--"]
    drop = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"]
    if probe.sandbox == "landlock":
        return ["unshare", "-n", *drop, sys.executable, str(LANDLOCK), f"{ws}:{tmp}"]
    return drop


def _filled(text: str, root: Path) -> str:
    """Return a text with the folders that `{ws}`, `{home}`, `{out}` stand for."""
    return re.sub(r"\{(ws|home|out)\}", lambda match: f"{root}/{match[1]}", text)


def _policy(probe: Probe, root: Path) -> Policy:
    if probe.sandbox == "none":
        return Policy(filesystem=Filesystem.UNRESTRICTED, network=Network.ON, enforced_by="nobody")
    writable = (f"{root}/ws", "/tmp", f"{root}/tmp")
    rules = [PolicyRule("/", "read"), *(PolicyRule(path, "write") for path in writable)]
    if probe.sandbox != "landlock":
        rules.append(PolicyRule(f"{root}/ws/.git", "read"))
    return Policy(filesystem=Filesystem.WORKSPACE, network=Network.OFF, rules=tuple(rules))


def _truths(probe: Probe, output: str, root: Path) -> Iterator[Truth]:
    for operation in probe.operations:
        target = _filled(operation.target, root)
        is_file = operation.what == "filesystem"
        if is_file and ((probe.sandbox == "landlock" and "/.git/" in target) or operation.done(Path(target))):
            continue
        reason = _REASON if is_file else _NETWORK_REASON
        named = any(operation.name in line and reason.search(line) for line in output.splitlines())
        shown = named or (len(probe.operations) == 1 and reason.search(output) is not None)
        yield Truth(operation.what, target, shown, named)


def _fits(denial: Denial, truth: Truth) -> bool:
    """Return whether a denial is of an operation: of its target, or of what is as near to that as a message
    gets: its parent that is missing, its lock, its temporary file."""
    found = denial.target
    if denial.what != truth.what or found is None or denial.what == "network":
        return denial.what == truth.what and found in (None, truth.target)
    is_beside = Path(found).parent == Path(truth.target).parent
    return truth.target.startswith(f"{found}/") or found.startswith(truth.target) or is_beside


def _is_own_file(denial: Denial, probe: Probe, root: Path) -> bool:
    """Return whether a denial is of a file that the tools of a probe write besides."""
    target = denial.target or ""
    if target.startswith(f"{root}/ws/.git/"):
        return "git" in probe.script and probe.sandbox in ("bwrap", "codex")
    kept = tuple(f"{root}/home/{name}/" for name in (".npm", ".ssh", ".cache"))
    return target.startswith(kept) and probe.sandbox != "none"


def run_all(probes: list[Probe]) -> list[Result]:
    """Run probes side by side."""
    codex = native_program() if any(probe.sandbox == "codex" for probe in probes) else None
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda probe: run(probe, cache() / "denials", codex), probes))


def summary(results: list[Result]) -> str:
    """Return the figures of a run as one line."""
    shown = sum(truth.shown for r in results for truth in r.truths)
    missed, false = sum(len(r.missed) for r in results), sum(len(r.false) for r in results)
    return f"{len(results)} probes: {shown} denials shown, {missed} missed, {false} false"


def main() -> None:
    """Run probes of a seed, and print those that were read wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--sandbox", choices=SANDBOXES)
    given = parser.parse_args()
    sandboxes = (given.sandbox,) if given.sandbox else ("bwrap", "landlock", "none")
    results = run_all(generate(given.seed, given.count, sandboxes))
    for result in [r for r in results if r.false or r.missed][:20]:
        probe = result.probe
        found = f"FALSE {result.false}\nMISSED {result.missed}\nFOUND {result.denials}\n"
        head = f"--- {probe.number} {probe.sandbox}\n{probe.script}\nOUTPUT:\n{result.output[-900:]}\n"
        sys.stdout.write(head + found)
    sys.stdout.write(f"seed {given.seed}: {summary(results)}\n")


if __name__ == "__main__":
    main()
