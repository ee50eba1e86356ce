"""Random scripts that look at the sandbox flags, or hide, change or imitate them; and some typed ones."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable
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


@dataclass
class Draft:
    """A script that is being made."""

    shell: str
    flags: dict[str, str]


@dataclass
class Maker:
    """Makes statements at random."""

    random: random.Random
    draft: Draft

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def name(self) -> str:
        return self.random.choice(NAMES)

    # ------------------------------------------------------------ documented forms

    def dump(self) -> str:
        """A whole dump, plain filters behind it."""
        shell = self.draft.shell
        dumpers = [
            *("env", "env", "printenv", "/usr/bin/env", "command env", "timeout 10 env", "export -p", "set"),
            *(
                "env -0 | tr '\\0' '\\n'",
                "tr '\\0' '\\n' </proc/$$/environ",
                "xargs -0 -n1 </proc/$$/environ",
            ),
            "cat /proc/self/environ | tr '\\0' '\\n'",
        ]
        text = self.pick(*dumpers, *(("declare -x",) if shell == "bash" else ()))
        if self.chance(0.3):
            text += self.pick(" | sort", "|sort", " | sort -u", " | LC_ALL=C sort", " | cat")
        if self.chance(0.6):
            text += self.plain_grep()
        if self.chance(0.3):
            text += self.pick(" | sort", " | sort -r")
        if self.chance(0.25):
            text += self.pick(" || true", " || echo none", " || :", " 2>/dev/null", " 2>&1")
        return text

    def plain_grep(self) -> str:
        """A grep that shows what it matches."""
        grep = self.pick("grep", "grep", "grep -E", "egrep", "grep -i", "grep --color=never")
        pattern = self.pick(
            *("CODEX", "CODEX_", "CODEX_SANDBOX", "SANDBOX", "NETWORK_DISABLED", "CODEX_SANDBOX_NETWORK"),
            *("CODEX_SANDBOX=", f"{NETWORK}="),
        )
        quote = self.pick("", "'", '"')
        return f" | {grep} {quote}{pattern}{quote}"

    def label(self) -> str:
        return self.pick("net=", "flag: ", "sandbox is ", "[", "  x -> ", "A=", "value:", "=== ", "n:")

    def parameter(self, name: str) -> str:
        default = self.pick("", "unset", "none", "<unset>", "(not set)", "-", "no", "off", "MISSING", "n/a")
        operator = self.pick("-", ":-")
        return self.pick(
            f"${name}", f"${{{name}}}", f"${{{name}{operator}{default}}}", f"${{{name}{operator}{default}}}"
        )

    def printed(self) -> str:
        """`echo` or `printf` of one or both flags, with labels."""
        names = self.pick("one", "both")
        chosen = list(NAMES) if names == "both" else [self.name()]
        self.random.shuffle(chosen)
        tail = self.pick("", "", "]", " .", " (done)")
        fields = [f"{self.label()}{self.parameter(n)}{tail}" for n in chosen]
        form = self.pick("echo", "echo", "printf", "heredoc", "echo lines", "herestring")
        if form == "echo":
            return f'echo "{" ".join(fields)}"'
        if form == "echo lines":
            return self.pick("; ", "\n").join(f'echo "{f}"' for f in fields)
        if form == "heredoc":
            mark = self.pick("EOF", "END", "X")
            return f"cat <<{mark}\n" + "\n".join(fields) + f"\n{mark}\n"
        if form == "herestring" and self.draft.shell != "dash":
            return f'cat <<< "{" ".join(fields)}"'
        template = " ".join(f"{self.label()}%s" for _ in chosen)
        values = " ".join(f'"{self.parameter(n)}"' for n in chosen)
        return f"printf '{template}\\n' {values}"

    def printenv(self) -> str:
        """`printenv` with names: of unset flags it prints nothing, so only values count."""
        name = self.name()
        if self.chance(0.4):
            word = self.pick("none", "unset", "'not set'", "''")
            return f"printenv {name} || echo {word}"
        return self.pick(f"printenv {name}", f"printenv '{name}'", f'echo "v=$(printenv {name})"')

    def indirect(self) -> str:
        """A loop over names with `${!v}`: bash only."""
        if self.draft.shell != "bash":
            return self.printed()
        template = self.pick("'%s=%s\\n'", '"%s -> %s\\n"')
        value = self.pick('"${!v}"', '"${!v:-}"', '"${!v:-<unset>}"')
        body = self.pick(f'printf {template} "$v" {value}', f'echo "$v={value[1:-1]}"')
        return f"for v in {' '.join(NAMES)}; do {body}; done"

    def tested(self) -> str:
        """Branches on whether a flag is there, that print it or a word."""
        name = self.name()
        test = self.pick(f'[ -n "${name}" ]', f'[ -n "${{{name}:-}}" ]', f'test -n "${{{name}-}}"')
        no_test = self.pick(f'[ -z "${name}" ]', f'[ -z "${{{name}:-}}" ]')
        return self.pick(
            f'if {test}; then echo "set to ${name}"; else echo "not set"; fi',
            f'if {no_test}; then echo absent; else echo "there: ${name}"; fi',
            f'{test} && echo "it is ${name}" || echo missing',
            f'if {test}\nthen\n  printf "%s\\n" "v=${name}"\nelse\n  echo "v is unset"\nfi',
            f'case "${{{name}:-}}" in "") echo empty;; *) echo "val=${name}";; esac',
        )

    def filed(self) -> str:
        """A dump by way of a file."""
        path = self.pick("out.txt", "/tmp/agentdash-probe-$$", "./e", '"$PWD/env.out"')
        return self.pick(
            f"env > {path}; grep CODEX {path}",
            f"env | sort > {path} && cat {path}",
            f"env | tee {path} | grep CODEX_SANDBOX",
            f"env >{path}\ngrep -E '^CODEX_SANDBOX' {path}\nrm -f {path}",
            'f=$(mktemp); env > "$f"; grep CODEX "$f"; rm -f "$f"',
        )

    def function(self) -> str:
        """A function that is called."""
        name = self.name()
        return self.pick(
            f'show() {{ echo "v=${{{name}:-unset}}"; }}\nshow',
            f'show() {{ printf "%s=%s\\n" "$1" "$2"; }}; show {name} "${name}"',
            f'dump() {{\n  env | grep "^{name}="\n}}\ndump || echo none',
        )

    def documented(self) -> str:
        makers: list[tuple[Callable[[], str], int]] = [
            (self.dump, 8),
            (self.printed, 8),
            (self.printenv, 3),
            (self.indirect, 3),
            (self.tested, 3),
            (self.filed, 1),
            (self.function, 1),
        ]
        make = self.random.choices([m for m, _ in makers], [w for _, w in makers])[0]
        text = make()
        return self.wrapped(text) if self.chance(0.15) else text

    def wrapped(self, text: str) -> str:
        """The same statement in a group, a subshell, or another shell."""
        kind = self.pick("group", "subshell", "nested", "nested", "stderr", "substitution")
        body = text if text.endswith("\n") else text + "\n"
        if kind == "group":
            return "{\n" + body + "}" + self.pick("", " 2>&1")
        if kind == "subshell":
            return "(\n" + body + ")"
        if kind == "nested":
            shell = "bash" if self.draft.shell == "bash" else self.pick("sh", self.draft.shell)
            if "/proc/$$" in text or (shell == "sh" and self.draft.shell != "dash"):
                shell = self.draft.shell
            prefix = self.pick("", "timeout 20 ") if self.chance(0.2) else ""
            return f"{prefix}{shell} {self.pick('-c', '-lc')} {shlex.quote(text)}"
        if kind == "stderr" and not any(mark in text for mark in ("\n", "|", ";", "2>")):
            return text + " >&2"
        if kind == "substitution" and "<<" not in text and "`" not in text:
            return f'echo "$({text})"'
        return text

    # ------------------------------------------------------------ neighbours

    def quiet(self) -> str:
        """Commands of which no line can look like a flag's."""
        return self.pick(
            *(
                "uname -a",
                "id",
                "pwd",
                "ls -la /tmp | head -3",
                'echo "--- env"',
                "echo",
                "true",
                "mkdir -p d",
            ),
            *("curl -sS --max-time 2 http://127.0.0.1:9/ || true", "cat /etc/os-release | head -2", "cd ."),
            *("grep -E 'Seccomp|NoNewPrivs' /proc/self/status", "ls /nonexistent", "echo done >&2"),
            *('echo "home=$HOME user=${USER:-}"', "wc -l notes.md", "date +%s > stamp", 'echo "rc=$?"'),
            *("for i in 1 2; do echo $i; done", "x=5; echo $((x + 1))", "python3 --version"),
        )

    def hostile(self) -> str:
        """Things that hide, change or imitate the flags; `flag_scripts.txt` has many more."""
        name, other = self.name(), self.name()
        value = self.pick("seatbelt", "1", "other", "0", "")
        dump = self.pick("env | grep CODEX", "env", "printenv | sort", "export -p", f'echo "n=${name}"')
        return self.pick(
            *("cat .env", "grep -rh CODEX_SANDBOX src", "bash printer.sh", "cat notes.md | grep CODEX"),
            *(f"export {name}={value}", f"{name}={value}", f"unset {name}; {dump}", f". ./.env; {dump}"),
            *(f"{name}={value} env | grep CODEX", f"env -u {name} sh -c 'echo n=${name}'", "env -i env"),
            *(f"(export {name}={value}; env | grep CODEX)", f"({name}={value}); echo n=${name}"),
            *('eval "$(cat .env)"; env | grep CODEX', "env $(cat .env) env | grep CODEX"),
            *(f": ${{{name}:={value}}}; echo n=${name}", f"cat <<EOF\n{name}={value}\nEOF\n"),
            *("env > .env; cat .env; cat env.sample", "env > out.txt; cp .env out.txt; grep CODEX out.txt"),
            *("env | grep -c CODEX", "env | grep -v CODEX", "env | grep -o 'CODEX[A-Z_]*'", "env | head -3"),
            *("env | grep CODEX | cut -c1-20", "env | sed 's/=.*/=***/' | grep CODEX", "env | awk '/CODEX/'"),
            *("env | rg CODEX || true", "env | tr 'a-z' 'A-Z' | grep CODEX", "env | grep -n CODEX"),
            *("false && env | grep CODEX", "if false; then env | grep CODEX; fi", "cat missing.txt && env"),
            *("env() { :; }; env | grep CODEX", "alias env='echo CODEX_SANDBOX=seatbelt'; env"),
            *(f'echo "n=${{{name}:+1}}"', f'echo "n=${{{name}#s}}"', f'echo "n=${{{name}:-seatbelt}}"'),
            *(f'echo "n=${{{name}:-${{{other}:-x}}}}"', f"echo 'n=${name}'", f'[ -n "${name}" ] && echo 1'),
            *(f'[ "${name}" = 1 ] && echo n=1', f"printf '%.4s\\n' \"${name}\"", f"x=${name}; echo $x"),
            f"python3 -c \"import os; print(os.environ.get('{name}') == 'seatbelt')\"",
            f"python3 -c \"import os; print(os.environ.get('{name}', '1'))\"",
            f"python3 -c \"import os; os.environ['{name}'] = '{value}'; print(os.environ.get('{name}'))\"",
            *(f"jq -n '{{net: env.{name}}}'", f"awk 'BEGIN{{print length(ENVIRON[\"{name}\"])}}'"),
            *(f"set -x; echo n=${name}; set +x", f"exec 2>/dev/null; echo n=${name}", "exit 3", "false"),
            *('while read -r l; do echo "$l"; done < .env', f"trap 'echo {name}=late' EXIT"),
            *(
                f"echo {value} | read {name}; echo n=${name}",
                f"for {name} in a b; do :; done; echo n=${name}",
            ),
            "export NOTE='x\nCODEX_SANDBOX=seatbelt'; env | grep CODEX",
            f"export {name}={value}; tr '\\0' '\\n' < /proc/$$/environ | grep CODEX",
            *("cat .env; env | grep CODEX", "{ env; cat env.sample; } | sort | grep CODEX", "env & wait"),
            *(f'sh -c "echo n=${name}"', f"env {other}={value} sh -c 'echo n=${name} m=${other}'"),
        )

    # ------------------------------------------------------------ whole scripts

    def script(self) -> str:
        statements = [
            self.documented() for _ in range(self.random.choices((0, 1, 2, 3), (10, 50, 30, 10))[0])
        ]
        statements += [self.quiet() for _ in range(self.random.choices((0, 1, 2, 4), (35, 30, 25, 10))[0])]
        hostile = self.random.choices((0, 1, 2), (60, 30, 10))[0] if statements else 1
        statements += [self.hostile() for _ in range(hostile)]
        self.random.shuffle(statements)
        text = ""
        for number, statement in enumerate(statements):
            last = number == len(statements) - 1
            text += statement
            if not last:
                text += "" if statement.endswith("\n") else self.separator()
        header = ""
        if self.chance(0.15):
            header = self.pick("set -e\n", "set -u\n", "#!/bin/sh\n", "# look\n", "set -euo pipefail\n")
            if "pipefail" in header and self.draft.shell == "dash":
                header = "set -eu\n"
        if self.chance(0.05):
            text = f"{self.draft.shell} -c {shlex.quote(text)}"
        return header + text

    def separator(self) -> str:
        """What stands between two statements."""
        return self.pick("; ", ";", "\n", "\n", "\n\n", "\n# next\n", " ;\n", " && ", " || ")
