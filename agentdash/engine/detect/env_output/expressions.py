"""Print statements of Perl, Ruby, PHP, Lua and jq: texts, variables, defaults, and what joins them."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.dumps import FLAGS, Dump, Presence, Style
from agentdash.engine.detect.env_output.expression_forms import (
    DUMPER,
    JOINED,
    JQ_LINES,
    PERL_LINES,
    RUBY_SELECTION,
    SILENT_PERL,
    closes,
    split,
    unescaped,
)
from agentdash.engine.detect.env_output.expression_loops import (
    LOOPS,
    STRING,
    Language,
    UnknownError,
    bound_body,
    holds,
    listed_names,
    require_name_tested,
)
from agentdash.engine.detect.env_output.expression_values import (
    LOOP_VALUE,
    MARK,
    Values,
)
from agentdash.engine.detect.env_output.patterns import ANY, Choice, Hole, Kind, Part, Parts, joined
from agentdash.engine.detect.env_output.records import Record
from agentdash.engine.detect.env_output.streams import Call, Result
from agentdash.engine.detect.env_output.world import shown

_MAX_CODE: Final = 2_000


_BLANK: Final = re.compile(r"\s*")


def run_code(language: Language, code: str, options: str, call: Call, holes: dict[str, Part]) -> list[Result]:
    """Return the results of a program. Raises `UnknownError` for what is not modelled."""
    if len(code) > _MAX_CODE:
        raise UnknownError
    program = _Program(language, options, call, holes)
    out = joined(program.run(code))
    if program.is_cut:
        return [Result(out=out, err=(ANY,), status=None)]
    return [Result(out=out)]


class _Program(Values):
    """A run of a program under one hypothesis."""

    def run(self, code: str) -> list[Part]:
        """Return what the program prints."""
        name = self._language.name
        if name == "jq":
            inner = re.sub(r"\\\(([^()]*)\)", lambda part: part[0].replace('"', "'"), code.strip())
            return self._jq(inner)
        if name == "ruby":  # quotes within `"#{…}"`
            if not re.search(r"\\|'[^']*#\{", code):
                code = re.sub(r"#\{[^{}]*\}", lambda expression: expression[0].replace('"', "'"), code)
            code = re.sub(r'(ENV\[|ENV\.fetch\(\s*)"(\w+)"', r"\1'\2'", code)
        out: list[Part] = []
        statements = [part.strip() for part in split(code, (";", "\n")) if part.strip()]
        while statements:
            statement = statements.pop(0)
            try:
                out += self._loop(statement) or self._statement(statement)
            except UnknownError:
                self.is_cut = True
                return [*out, ANY]
        return out

    def _statements(self, code: str) -> list[Part]:
        """Return what the body of a loop prints."""
        return [
            part
            for each in split(code, (";", "\n"))
            if each.strip()
            for part in self._statement(each.strip())
        ]

    def _loop(self, statement: str) -> list[Part]:
        """Return what a loop prints; nothing for other statements."""
        for pattern in LOOPS.get(self._language.name, ()):
            if (match := pattern.fullmatch(statement)) is None:
                continue
            groups = match.groupdict()
            body = groups["body"].strip()
            if body.startswith("{"):
                body = body.removeprefix("{").removesuffix("}")
            body = body.strip().rstrip(";")
            if groups.get("words") is not None:
                return [
                    part for word in listed_names(groups["words"]) for part in self._round(body, groups, word)
                ]
            return self._over_environment(body, groups)
        return []

    def _round(
        self, body: str, groups: dict[str, str | None], word: str, value: str | None = None
    ) -> list[Part]:
        """Return what one round prints, with the name (and the value) of the variable put into the body."""
        key = groups.get("key") or "$_"
        bound = bound_body(
            self._language, body, key, word, groups.get("value") if value is not None else None, value
        )
        return self._statements(bound)

    def _over_environment(self, body: str, groups: dict[str, str | None]) -> list[Part]:
        condition = (
            next((groups[key] for key in sorted(groups) if "condition" in key and groups[key]), None) or ""
        )
        require_name_tested(groups.get("tested"), condition)
        styles: list[Style] = []
        kept: list[bool] = []
        environment = dict(self._call.environment)
        for name in FLAGS:
            self._call = msgspec.structs.replace(self._call, environment={**environment, name: LOOP_VALUE})
            line = "".join(str(part) for part in self._round(body, groups, name, MARK))
            self._call = msgspec.structs.replace(self._call, environment=environment)
            before, mark, after = line.partition(MARK)
            if (
                not mark
                or MARK in after
                or name not in before
                or "\n" in before
                or after.find("\n") != len(after) - 1
            ):
                raise UnknownError
            styles.append(Style(prefixes=(before.replace(name, "NAME"),), suffix=after[:-1]))
            kept.append(holds(condition, name))
        if styles[0] != styles[1]:
            raise UnknownError
        flags = [shown(environment[name] if keep else None) for name, keep in zip(FLAGS, kept, strict=True)]
        return [Dump(shown=(flags[0], flags[1]), style=styles[0])]

    def _statement(self, statement: str) -> list[Part]:
        match self._language.name:
            case "perl":
                return self._perl(statement)
            case "ruby":
                return self._ruby(statement)
            case "php":
                return self._php(statement)
            case _:
                return self._lua(statement)

    def _entry(self, entry: str) -> tuple[str, Any]:
        """Return the key and the value of an entry of an object."""
        if match := self._variable.fullmatch(entry.strip()):  # `{A}` after `const {A} = process.env`
            return match.groupdict().get("name") or "", self._read(match)
        key, colon, inner = entry.partition(":")
        if not colon or not re.fullmatch(r"\s*['\"]?[\w-]+['\"]?\s*", key):
            raise UnknownError
        return key.strip().strip("'\""), self._value(inner)

    def _environment(self, condition: str = "", *, indent: int = 0, names: list[str] | None = None) -> Record:
        values = [
            self._call.environment[name] if holds(condition, name) and (not names or name in names) else None
            for name in FLAGS
        ]
        flags = [shown(value) for value in values]
        there = [flag.presence is not Presence.ABSENT for flag in flags]
        return Record(shown=(flags[0], flags[1]), required=(there[0], there[1]), indent=indent)

    def _perl(self, statement: str) -> list[Part]:
        if SILENT_PERL.fullmatch(statement):
            return []
        if match := re.fullmatch(r"printf\s*\(?(.*?)\)?", statement, re.DOTALL):
            return self._printf(match[1])
        match = re.fullmatch(r"(print|say)\b\s*(.*)", statement, re.DOTALL)
        if not match or ("E" not in self._options and match[1] == "say"):
            raise UnknownError
        body = match[2].strip()
        if dumped := DUMPER.fullmatch(body):
            ends = ("\n",) if match[1] == "say" or "l" in self._options else ()
            return [*self._data_dumper(dumped["condition"] or ""), *ends]
        if body.startswith("(") and closes(body) == len(body):
            body = body[1:-1]
        if lines := PERL_LINES.fullmatch(body):
            return self._perl_lines(lines)
        if listed := JOINED.fullmatch(body):
            return [self._perl_join(listed), *(("\n",) if match[1] == "say" or "l" in self._options else ())]
        out = [self._text(self._value(part)) for part in split(body, (",",))]
        return [*out, *(("\n",) if match[1] == "say" or "l" in self._options else ())]

    def _perl_lines(self, lines: re.Match[str]) -> list[Part]:
        """Return what `print join "\\n", map { … } keys %ENV` writes."""
        body = f"print {lines['body']}"
        dump = next(p for p in self._over_environment(body, lines.groupdict()) if isinstance(p, Dump))
        return [dump] if True in (dump.required(0), dump.required(1)) else [Choice(((dump,), ("\n",)))]

    def _data_dumper(self, condition: str) -> Parts:
        """Return what Perl's `Data::Dumper` writes of the environment, or of a part of it."""
        values = [self._call.environment[name] if holds(condition, name) else None for name in FLAGS]
        flags = [shown(value) for value in values]
        style = Style(prefixes=("          'NAME' => '",), suffix="'", closings=(",",))
        lines = Dump(shown=(flags[0], flags[1]), style=style, some=True)
        full = ("$VAR1 = {\n", lines, "        };\n")
        is_filled = any(flag.presence is not Presence.ABSENT for flag in flags)
        return full if is_filled else (Choice((full, ("$VAR1 = {};\n",))),)

    def _perl_join(self, listed: re.Match[str]) -> str:
        """Return what `join ",", map { … } qw(A B)` gives."""
        bodies = [
            bound_body(self._language, listed["body"], "$_", word, None, None)
            for word in listed_names(listed["words"])
        ]
        separator = self._string(listed["separator"])
        return separator.join(self._text(self._value(body)) for body in bodies)

    def _printf(self, text: str) -> list[Part]:
        template, *arguments = [part.strip() for part in split(text, (",",))]
        if not STRING.fullmatch(template):
            raise UnknownError
        pieces = self._string(template).split("%s")
        values = [self._text(self._value(part)) for part in arguments]
        if len(pieces) != len(values) + 1 or any("%" in piece for piece in pieces):
            raise UnknownError
        return [piece + value for piece, value in zip(pieces, [*values, ""], strict=True)]

    def _php(self, statement: str) -> list[Part]:
        if match := re.fullmatch(r"var_dump\((.*)\)", statement, re.DOTALL):
            return [self._dumped(self._value(part)) for part in split(match[1], (",",))]
        match = re.fullmatch(r"(?:echo|print)\b\s*(.*)", statement, re.DOTALL)
        if not match:
            raise UnknownError
        body = match[1].replace("PHP_EOL", '"\\n"')
        return [self._text(self._value(part)) for part in split(body, (",",))]

    def _dumped(self, value: Any) -> str:
        if value is None:
            return "bool(false)\n"
        mark = f"Zhole{len(self._holes)}Z"
        self._holes[mark] = Hole(Kind.DIGITS)
        return f'string({mark}) "{value}"\n'

    def _lua(self, statement: str) -> list[Part]:
        if not (match := re.fullmatch(r"print\((.*)\)", statement, re.DOTALL)):
            raise UnknownError
        return ["\t".join(self._text(self._value(part)) for part in split(match[1], (",",))), "\n"]

    def _ruby(self, statement: str) -> list[Part]:
        if selected := RUBY_SELECTION.fullmatch(statement):
            condition = (selected["condition"] or "").strip()
            indent = 2 if selected["format"] and "pretty" in selected["format"] else 0
            names = re.findall(r"\w+", selected["names"] or "")
            return [self._environment(condition, indent=indent, names=names), "\n"]
        match = re.fullmatch(r"(puts|print|p)\b\s*(.*)", statement, re.DOTALL)
        if not match:
            raise UnknownError
        arguments = match[2].strip()
        if arguments.startswith("(") and closes(arguments) == len(arguments):
            arguments = arguments[1:-1]
        out: list[Part] = []
        for part in split(arguments, (",",)):
            is_inspected = part.strip().endswith(".inspect")
            value = self._value(part.strip().removesuffix(".inspect"))
            if match[1] == "p" or is_inspected:
                written = "nil" if value is None else json.dumps(value, ensure_ascii=False)
                out += [written, *(("\n",) if match[1] != "print" else ())]
            else:
                out += [self._text(value), *(("\n",) if match[1] == "puts" else ())]
        return out

    def _jq(self, code: str) -> list[Part]:
        if code in ("env", "$ENV"):
            return [self._environment(indent=0 if "c" in self._options else 2), "\n"]
        selected = re.fullmatch(
            r"(?:env|\$ENV)\s*\|\s*(?:with_entries\(|to_entries\s*\|\s*map\()\s*select\(\s*\.key\s*\|\s*"
            r"(?P<condition>[^()]*\([^()]*\))\s*\)\s*\)(?:\s*\|\s*from_entries)?",
            code,
        )
        if selected:
            layout = 0 if "c" in self._options else 2
            return [self._environment(selected["condition"], indent=layout), "\n"]
        indent = None if "c" in self._options else 2
        separators = (",", ":") if "c" in self._options else None
        if match := JQ_LINES.fullmatch(code):
            if "r" not in self._options:
                raise UnknownError
            style = Style(prefixes=(f"NAME{unescaped(match['between'])}",))
            flags = [
                shown(self._call.environment[name] if holds(match["condition"] or "", name) else None)
                for name in FLAGS
            ]
            return [Dump(shown=(flags[0], flags[1]), style=style)]
        if match := re.fullmatch(r"(?:env|\$ENV)\s*\|\s*(\{.*\}|\[.*\])", code, re.DOTALL):
            code = re.sub(r"(?<![\w.])\.(?=[A-Za-z_])", "env.", match[1])
            if code.startswith("{"):
                code = re.sub(r"(?<=[{,])\s*([A-Za-z_]\w*)\s*(?=[,}])", r"env.\1", code)
        if match := re.fullmatch(r"\{(.*)\}", code, re.DOTALL):
            entries = dict(self._entry(entry) for entry in split(match[1], (",",)))
            return [json.dumps(entries, indent=indent, separators=separators), "\n"]
        if match := re.fullmatch(r"\[(.*)\]", code, re.DOTALL):
            values = [self._value(part) for part in split(match[1], (",",))]
            return [json.dumps(values, indent=indent, separators=separators), "\n"]
        out: list[Part] = []
        for part in split(code, (",",)):
            value = self._value(part)
            out.append(value if "r" in self._options and isinstance(value, str) else json.dumps(value))
            out.append("\n")
        return out
