"""Random scripts that look at the sandbox flags, or hide, change or imitate them; and some typed ones."""

from __future__ import annotations

import random
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

NETWORK = "CODEX_SANDBOX_NETWORK_DISABLED"
SANDBOX = "CODEX_SANDBOX"
NAMES = (NETWORK, SANDBOX)


def kept_scripts(kind: str) -> list[str]:
    """Return the scripts of `flag_scripts.txt` of a kind: `hostile` or `typed`."""
    blocks = Path(__file__).with_suffix(".txt").read_text().split("\n%% ")[1:]
    parts = (block.partition("\n") for block in blocks)
    return [script.rstrip("\n") for header, _, script in parts if header == kind]


GRAMMAR: dict[str, tuple[str, ...]] = {
    "VALUE": ("seatbelt", "1", "other", "0", ""),
    "LABEL": ("net=", "flag: ", "sandbox is ", "[", "  x -> ", "A=", "value:", "=== ", "n:"),
    "DEFAULT": ("", "unset", "none", "<unset>", "(not set)", "-", "no", "off", "MISSING", "n/a"),
    "PARAMETER": ("$@NAME", "${@NAME}", "${@NAME-@DEFAULT}", "${@NAME:-@DEFAULT}", "${@NAME:-@DEFAULT}"),
    "FIELD": (
        "@LABEL@PARAMETER",
        "@LABEL@PARAMETER",
        "@LABEL@PARAMETER]",
        "@LABEL@PARAMETER .",
        "@LABEL@PARAMETER (done)",
    ),
    "PATH": ("out.txt", "/tmp/agentdash-probe-$$", "./e", '"$PWD/env.out"'),
    # a whole dump, plain filters behind it
    "DUMPER": (
        *("env", "env", "printenv", "/usr/bin/env", "command env", "timeout 10 env", "export -p", "set"),
        *("env -0 | tr '\\0' '\\n'", "tr '\\0' '\\n' </proc/$$/environ", "xargs -0 -n1 </proc/$$/environ"),
        "cat /proc/self/environ | tr '\\0' '\\n'",
    ),
    "SORT": ("", "", "", " | sort", "|sort", " | sort -u", " | LC_ALL=C sort", " | cat", " | sort -r"),
    "GREP": ("grep", "grep", "grep -E", "egrep", "grep -i", "grep --color=never"),
    "PATTERN": (
        *("CODEX", "CODEX_", "CODEX_SANDBOX", "SANDBOX", "NETWORK_DISABLED", "CODEX_SANDBOX_NETWORK"),
        *("CODEX_SANDBOX=", f"{NETWORK}="),
    ),
    "FILTER": ("", " | @GREP @PATTERN", " | @GREP '@PATTERN'", ' | @GREP "@PATTERN"'),
    "ANYWAY": ("", "", "", "", " || true", " || echo none", " || :", " 2>/dev/null", " 2>&1"),
    # documented forms
    "DOCUMENTED": (
        *("@DUMPER@SORT@FILTER@SORT@ANYWAY",) * 8,
        *(
            'echo "@FIELD"',
            'echo "@FIELD @FIELD"',
            'echo "@FIELD"; echo "@FIELD"',
            'echo "@FIELD"\necho "@FIELD"',
        ),
        *(
            "printf '@LABEL%s\\n' \"@PARAMETER\"",
            "cat <<EOF\n@FIELD\n@FIELD\nEOF\n",
            "cat <<END\n@FIELD\nEND\n",
        ),
        *(
            "printenv @NAME || echo none",
            "printenv @NAME || echo ''",
            "printenv '@NAME'",
            'echo "v=$(printenv @NAME)"',
        ),
        *(
            f'if @TEST; then echo "set to {sign}"; else echo "not set"; fi'
            for sign in ("$@NAME", "${@NAME:-}")
        ),
        'if [ -z "${@NAME:-}" ]; then echo absent; else echo "there: $@NAME"; fi',
        *('@TEST && echo "it is $@NAME" || echo missing', '@TEST && printf "%s\\n" "v=$@NAME"'),
        'case "${@NAME:-}" in "") echo empty;; *) echo "val=$@NAME";; esac',
        *(
            "env > @PATH; grep CODEX @PATH",
            "env | sort > @PATH && cat @PATH",
            "env | tee e | grep CODEX_SANDBOX",
        ),
        'f=$(mktemp); env > "$f"; grep CODEX "$f"; rm -f "$f"',
        *(
            'show() { echo "v=${@NAME:-unset}"; }\nshow',
            'dump() {\n  env | grep "^@NAME="\n}\ndump || echo none',
        ),
        'show() { printf "%s=%s\\n" "$1" "$2"; }; show @NAME "$@NAME"',
    ),
    "TEST": ('[ -n "$@NAME" ]', '[ -n "${@NAME:-}" ]', 'test -n "${@NAME-}"'),
    "BASH": (
        "declare -x@FILTER",
        'cat <<< "@FIELD @FIELD"',
        *(
            f'for v in {" ".join(NAMES)}; do printf {form} "$v" @VIA; done'
            for form in ("'%s=%s\\n'", '"%s -> %s\\n"')
        ),
        f'for v in {" ".join(NAMES)}; do echo "$v=${{!v:-}}"; done',
    ),
    "VIA": ('"${!v}"', '"${!v:-}"', '"${!v:-<unset>}"'),
    # commands of which no line can look like a flag's
    "QUIET": (
        *("uname -a", "id", "pwd", "ls -la /tmp | head -3", 'echo "--- env"', "echo", "true", "mkdir -p d"),
        *("curl -sS --max-time 2 http://127.0.0.1:9/ || true", "cat /etc/os-release | head -2", "cd ."),
        *("grep -E 'Seccomp|NoNewPrivs' /proc/self/status", "ls /nonexistent", "echo done >&2"),
        *('echo "home=$HOME user=${USER:-}"', "wc -l notes.md", "date +%s > stamp", 'echo "rc=$?"'),
        *("for i in 1 2; do echo $i; done", "x=5; echo $((x + 1))", "python3 --version"),
    ),
    # what hides, changes or imitates the flags; `flag_scripts.txt` has many more
    "LOOK": ("env | grep CODEX", "env", "printenv | sort", "export -p", 'echo "n=$@NAME"'),
    "HOSTILE": (
        *("cat .env", "grep -rh CODEX_SANDBOX src", "bash printer.sh", "cat notes.md | grep CODEX"),
        *("export @NAME=@VALUE", "@NAME=@VALUE", "unset @NAME; @LOOK", ". ./.env; @LOOK"),
        *("@NAME=@VALUE env | grep CODEX", "env -u @NAME sh -c 'echo n=$@NAME'", "env -i env"),
        *("(export @NAME=@VALUE; env | grep CODEX)", "(@NAME=@VALUE); echo n=$@NAME"),
        *('eval "$(cat .env)"; env | grep CODEX', "env $(cat .env) env | grep CODEX"),
        *(": ${@NAME:=@VALUE}; echo n=$@NAME", "cat <<EOF\n@NAME=@VALUE\nEOF\n"),
        *("env > .env; cat .env; cat env.sample", "env > out.txt; cp .env out.txt; grep CODEX out.txt"),
        *("env | grep -c CODEX", "env | grep -v CODEX", "env | grep -o 'CODEX[A-Z_]*'", "env | head -3"),
        *("env | grep CODEX | cut -c1-20", "env | sed 's/=.*/=***/' | grep CODEX", "env | awk '/CODEX/'"),
        *("env | rg CODEX || true", "env | tr 'a-z' 'A-Z' | grep CODEX", "env | grep -n CODEX"),
        *("false && env | grep CODEX", "if false; then env | grep CODEX; fi", "cat missing.txt && env"),
        *("env() { :; }; env | grep CODEX", "alias env='echo CODEX_SANDBOX=seatbelt'; env"),
        *('echo "n=${@NAME:+1}"', 'echo "n=${@NAME#s}"', 'echo "n=${@NAME:-seatbelt}"'),
        *('echo "n=${@NAME:-${@NAME:-x}}"', "echo 'n=$@NAME'", '[ -n "$@NAME" ] && echo 1'),
        *('[ "$@NAME" = 1 ] && echo n=1', "printf '%.4s\\n' \"$@NAME\"", "x=$@NAME; echo $x"),
        "python3 -c \"import os; print(os.environ.get('@NAME') == 'seatbelt')\"",
        "python3 -c \"import os; print(os.environ.get('@NAME', '1'))\"",
        "python3 -c \"import os; os.environ['@NAME'] = '@VALUE'; print(os.environ.get('@NAME'))\"",
        *("jq -n '{net: env.@NAME}'", "awk 'BEGIN{print length(ENVIRON[\"@NAME\"])}'"),
        *("set -x; echo n=$@NAME; set +x", "exec 2>/dev/null; echo n=$@NAME", "exit 3", "false"),
        *('while read -r l; do echo "$l"; done < .env', "trap 'echo @NAME=late' EXIT"),
        *("echo @VALUE | read @NAME; echo n=$@NAME", "for @NAME in a b; do :; done; echo n=$@NAME"),
        "export NOTE='x\nCODEX_SANDBOX=seatbelt'; env | grep CODEX",
        "export @NAME=@VALUE; tr '\\0' '\\n' < /proc/$$/environ | grep CODEX",
        *("cat .env; env | grep CODEX", "{ env; cat env.sample; } | sort | grep CODEX", "env & wait"),
        *('sh -c "echo n=$@NAME"', "env @NAME=@VALUE sh -c 'echo n=$@NAME m=$@NAME'"),
    ),
    "BETWEEN": ("; ", ";", "\n", "\n", "\n\n", "\n# next\n", " ;\n", " && ", " || "),
    "HEADER": (*("",) * 28, "set -e\n", "set -u\n", "#!/bin/sh\n", "# look\n", "set -eu\n"),
}
"""What each name behind an `@` may stand for."""


@dataclass
class Draft:
    """A script that is being made."""

    shell: str
    flags: dict[str, str]


@dataclass
class Maker:
    """Makes scripts at random."""

    random: random.Random
    draft: Draft

    def expand(self, name: str) -> str:
        """Return a statement: mostly about one flag, else about both."""
        flags = (self.random.choice(NAMES),) if self.number(70, 30) == 0 else NAMES
        return self._expand(name, flags)

    def _expand(self, name: str, flags: tuple[str, ...]) -> str:
        chosen = self.random.choice(flags if name == "NAME" else GRAMMAR[name])
        return re.sub(r"@([A-Z]+)", lambda match: self._expand(match[1], flags), chosen)

    def number(self, *weights: int) -> int:
        """Return a number from 0, by its weight."""
        return self.random.choices(range(len(weights)), weights)[0]

    def documented(self) -> str:
        is_bash = self.draft.shell == "bash" and self.number(8, 2) == 1
        text = self.expand("BASH" if is_bash else "DOCUMENTED")
        return self.wrapped(text) if self.number(85, 15) else text

    def wrapped(self, text: str) -> str:
        """Return a statement in a group, a subshell, a substitution, or another shell."""
        body = text if text.endswith("\n") else f"{text}\n"
        shell = "sh" if self.draft.shell == "dash" and "/proc/$$" not in text else self.draft.shell
        ways = [f"{{\n{body}}}", f"(\n{body})", f"{shell} -c {shlex.quote(text)}"]
        ways += [f"timeout 20 {shell} -lc {shlex.quote(text)}"]
        if not any(sign in text for sign in ("<<", "`")):
            ways.append(f'echo "$({text})"')
        if not any(sign in text for sign in ("\n", "|", ";", "2>")):
            ways.append(f"{text} >&2")
        return self.random.choice(ways)

    def script(self) -> str:
        statements = [self.documented() for _ in range(self.number(10, 50, 30, 10))]
        statements += [self.expand("QUIET") for _ in range(self.number(35, 30, 25, 0, 10))]
        hostile = self.number(60, 30, 10) if statements else 1
        statements += [self.expand("HOSTILE") for _ in range(hostile)]
        self.random.shuffle(statements)
        text = ""
        for statement in statements:
            between = "" if not text or text.endswith("\n") else self.expand("BETWEEN")
            text += f"{between}{statement}"
        if self.number(95, 5):
            text = f"{self.draft.shell} -c {shlex.quote(text)}"
        return self.expand("HEADER") + text
