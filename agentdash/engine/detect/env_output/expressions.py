"""Print statements of Perl, Ruby, PHP, Lua and jq: texts, variables, defaults, and what joins them."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgspec

from agentdash.engine.detect.env_output.dumps import FLAGS, Dump, Presence, Record, Style
from agentdash.engine.detect.env_output.patterns import ANY, Choice, Hole, Kind, Part, Parts, joined
from agentdash.engine.detect.env_output.placeholders import has_placeholder, refilled, with_placeholders
from agentdash.engine.detect.env_output.regexes import compiled
from agentdash.engine.detect.env_output.streams import Call, Result
from agentdash.engine.detect.env_output.world import shown

_MAX_CODE: Final = 2_000


class UnknownError(Exception):
    """The program does something that is not modelled."""


class Language(msgspec.Struct, frozen=True):
    """What differs between the languages."""

    name: str
    variable: str
    """A regular expression of a variable of the environment; the group `name` is its name."""
    defaults: tuple[str, ...] = ()
    """Operators that give their right side where the left one is unset or false."""
    joins: tuple[str, ...] = ()
    """Operators that join two texts."""
    interpolation: str = ""
    """A regular expression of an expression in a double-quoted text; its group is the expression."""
    unset: str = ""
    """What is printed of an unset variable."""
    code_options: str = ""


PERL: Final = Language(
    name="perl",
    variable=r"\$ENV\{\s*(?P<quoted>['\"]?)(?P<name>\w+)(?P=quoted)\s*\}",
    defaults=("||", "//"),
    joins=(".",),
    interpolation=r"(\$ENV\{\s*['\"]?\w+['\"]?\s*\})",
    code_options="eE",
)
RUBY: Final = Language(
    name="ruby",
    variable=r"ENV\[(?P<quoted>['\"])(?P<name>\w+)(?P=quoted)\]",
    defaults=("||",),
    joins=("+",),
    interpolation=r"#\{([^{}]*)\}",
    code_options="e",
)
PHP: Final = Language(
    name="php",
    variable=r"getenv\(\s*(?P<quoted>['\"])(?P<name>\w+)(?P=quoted)\s*\)",
    defaults=("?:",),
    joins=(".",),
    code_options="r",
)
LUA: Final = Language(
    name="lua",
    variable=r"os\.getenv\(?\s*(?P<quoted>['\"])(?P<name>\w+)(?P=quoted)\s*\)?",
    defaults=(" or ",),
    joins=("..",),
    unset="nil",
    code_options="e",
)
JQ: Final = Language(
    name="jq",
    variable=r"(?:env|\$ENV)(?:\.(?P<name>[A-Za-z_]\w*)|\.?\[\"(?P<name2>\w+)\"\])",
    defaults=("//",),
    joins=("+",),
    interpolation=r"\\\(([^()]*)\)",
    unset="null",
)

_STRING: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`""", re.DOTALL)
_ZERO_IS_FALSE: Final = {"perl": ("||",), "php": ("?:",)}
"""Operators by language for which the text `0` is false."""
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}
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


class _Program:
    def __init__(self, language: Language, options: str, call: Call, holes: dict[str, Part]) -> None:
        self._language = language
        self._options = options
        self._call = call
        self._holes = holes
        self._variable = re.compile(language.variable)
        self.is_cut = False
        """Something is in the program that is not modelled; what it prints before is known."""

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
        statements = [part.strip() for part in _split(code, (";", "\n")) if part.strip()]
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
            for each in _split(code, (";", "\n"))
            if each.strip()
            for part in self._statement(each.strip())
        ]

    # ------------------------------------------------------------ loops

    def _loop(self, statement: str) -> list[Part]:
        """Return what a loop prints; nothing for other statements."""
        for pattern in _LOOPS.get(self._language.name, ()):
            if (match := pattern.fullmatch(statement)) is None:
                continue
            groups = match.groupdict()
            body = groups["body"].strip()
            if body.startswith("{"):
                body = body.removeprefix("{").removesuffix("}")
            body = body.strip().rstrip(";")
            if groups.get("words") is not None:
                return [part for word in _listed(groups["words"]) for part in self._round(body, groups, word)]
            return self._over_environment(body, groups)
        return []

    def _round(
        self, body: str, groups: dict[str, str | None], word: str, value: str | None = None
    ) -> list[Part]:
        """Return what one round prints, with the name (and the value) of the variable put into the body."""
        key = groups.get("key") or "$_"
        bound = _bound(
            self._language, body, key, word, groups.get("value") if value is not None else None, value
        )
        return self._statements(bound)

    def _over_environment(self, body: str, groups: dict[str, str | None]) -> list[Part]:
        condition = (
            next((groups[key] for key in sorted(groups) if "condition" in key and groups[key]), None) or ""
        )
        _require_name_tested(groups.get("tested"), condition)
        styles: list[Style] = []
        kept: list[bool] = []
        environment = dict(self._call.environment)
        for name in FLAGS:
            self._call = msgspec.structs.replace(self._call, environment={**environment, name: _LOOP_VALUE})
            line = "".join(str(part) for part in self._round(body, groups, name, _MARK))
            self._call = msgspec.structs.replace(self._call, environment=environment)
            before, mark, after = line.partition(_MARK)
            if (
                not mark
                or _MARK in after
                or name not in before
                or "\n" in before
                or after.find("\n") != len(after) - 1
            ):
                raise UnknownError
            styles.append(Style(prefixes=(before.replace(name, "NAME"),), suffix=after[:-1]))
            kept.append(_holds(condition, name))
        if styles[0] != styles[1]:
            raise UnknownError
        flags = [shown(environment[name] if keep else None) for name, keep in zip(FLAGS, kept, strict=True)]
        return [Dump(shown=(flags[0], flags[1]), style=styles[0])]

    # ------------------------------------------------------------ statements

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
            self._call.environment[name] if _holds(condition, name) and (not names or name in names) else None
            for name in FLAGS
        ]
        flags = [shown(value) for value in values]
        there = [flag.presence is not Presence.ABSENT for flag in flags]
        return Record(shown=(flags[0], flags[1]), required=(there[0], there[1]), indent=indent)

    def _perl(self, statement: str) -> list[Part]:
        if _SILENT_PERL.fullmatch(statement):
            return []
        if match := re.fullmatch(r"printf\s*\(?(.*?)\)?", statement, re.DOTALL):
            return self._printf(match[1])
        match = re.fullmatch(r"(print|say)\b\s*(.*)", statement, re.DOTALL)
        if not match or ("E" not in self._options and match[1] == "say"):
            raise UnknownError
        body = match[2].strip()
        if dumped := _DUMPER.fullmatch(body):
            ends = ("\n",) if match[1] == "say" or "l" in self._options else ()
            return [*self._data_dumper(dumped["condition"] or ""), *ends]
        if body.startswith("(") and _closes(body) == len(body):
            body = body[1:-1]
        if lines := _PERL_LINES.fullmatch(body):
            return self._perl_lines(lines)
        if listed := _JOINED.fullmatch(body):
            return [self._perl_join(listed), *(("\n",) if match[1] == "say" or "l" in self._options else ())]
        out = [self._text(self._value(part)) for part in _split(body, (",",))]
        return [*out, *(("\n",) if match[1] == "say" or "l" in self._options else ())]

    def _perl_lines(self, lines: re.Match[str]) -> list[Part]:
        """Return what `print join "\\n", map { … } keys %ENV` writes."""
        body = f"print {lines['body']}"
        dump = next(p for p in self._over_environment(body, lines.groupdict()) if isinstance(p, Dump))
        return [dump] if True in (dump.required(0), dump.required(1)) else [Choice(((dump,), ("\n",)))]

    def _data_dumper(self, condition: str) -> Parts:
        """Return what Perl's `Data::Dumper` writes of the environment, or of a part of it."""
        values = [self._call.environment[name] if _holds(condition, name) else None for name in FLAGS]
        flags = [shown(value) for value in values]
        style = Style(prefixes=("          'NAME' => '",), suffix="'", closings=(",",))
        lines = Dump(shown=(flags[0], flags[1]), style=style, some=True)
        full = ("$VAR1 = {\n", lines, "        };\n")
        is_filled = any(flag.presence is not Presence.ABSENT for flag in flags)
        return full if is_filled else (Choice((full, ("$VAR1 = {};\n",))),)

    def _perl_join(self, listed: re.Match[str]) -> str:
        """Return what `join ",", map { … } qw(A B)` gives."""
        bodies = [
            _bound(self._language, listed["body"], "$_", word, None, None)
            for word in _listed(listed["words"])
        ]
        separator = self._string(listed["separator"])
        return separator.join(self._text(self._value(body)) for body in bodies)

    def _printf(self, text: str) -> list[Part]:
        template, *arguments = [part.strip() for part in _split(text, (",",))]
        if not _STRING.fullmatch(template):
            raise UnknownError
        pieces = self._string(template).split("%s")
        values = [self._text(self._value(part)) for part in arguments]
        if len(pieces) != len(values) + 1 or any("%" in piece for piece in pieces):
            raise UnknownError
        return [piece + value for piece, value in zip(pieces, [*values, ""], strict=True)]

    def _php(self, statement: str) -> list[Part]:
        if match := re.fullmatch(r"var_dump\((.*)\)", statement, re.DOTALL):
            return [self._dumped(self._value(part)) for part in _split(match[1], (",",))]
        match = re.fullmatch(r"(?:echo|print)\b\s*(.*)", statement, re.DOTALL)
        if not match:
            raise UnknownError
        body = match[1].replace("PHP_EOL", '"\\n"')
        return [self._text(self._value(part)) for part in _split(body, (",",))]

    def _dumped(self, value: Any) -> str:
        if value is None:
            return "bool(false)\n"
        mark = f"Zhole{len(self._holes)}Z"
        self._holes[mark] = Hole(Kind.DIGITS)
        return f'string({mark}) "{value}"\n'

    def _lua(self, statement: str) -> list[Part]:
        if not (match := re.fullmatch(r"print\((.*)\)", statement, re.DOTALL)):
            raise UnknownError
        return ["\t".join(self._text(self._value(part)) for part in _split(match[1], (",",))), "\n"]

    def _ruby(self, statement: str) -> list[Part]:
        if selected := _RUBY_SELECTION.fullmatch(statement):
            condition = (selected["condition"] or "").strip()
            indent = 2 if selected["format"] and "pretty" in selected["format"] else 0
            names = re.findall(r"\w+", selected["names"] or "")
            return [self._environment(condition, indent=indent, names=names), "\n"]
        match = re.fullmatch(r"(puts|print|p)\b\s*(.*)", statement, re.DOTALL)
        if not match:
            raise UnknownError
        arguments = match[2].strip()
        if arguments.startswith("(") and _closes(arguments) == len(arguments):
            arguments = arguments[1:-1]
        out: list[Part] = []
        for part in _split(arguments, (",",)):
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
        if match := _JQ_LINES.fullmatch(code):
            if "r" not in self._options:
                raise UnknownError
            style = Style(prefixes=(f"NAME{_unescaped(match['between'])}",))
            flags = [
                shown(self._call.environment[name] if _holds(match["condition"] or "", name) else None)
                for name in FLAGS
            ]
            return [Dump(shown=(flags[0], flags[1]), style=style)]
        if match := re.fullmatch(r"(?:env|\$ENV)\s*\|\s*(\{.*\}|\[.*\])", code, re.DOTALL):
            code = re.sub(r"(?<![\w.])\.(?=[A-Za-z_])", "env.", match[1])
            if code.startswith("{"):
                code = re.sub(r"(?<=[{,])\s*([A-Za-z_]\w*)\s*(?=[,}])", r"env.\1", code)
        if match := re.fullmatch(r"\{(.*)\}", code, re.DOTALL):
            entries = dict(self._entry(entry) for entry in _split(match[1], (",",)))
            return [json.dumps(entries, indent=indent, separators=separators), "\n"]
        if match := re.fullmatch(r"\[(.*)\]", code, re.DOTALL):
            values = [self._value(part) for part in _split(match[1], (",",))]
            return [json.dumps(values, indent=indent, separators=separators), "\n"]
        out: list[Part] = []
        for part in _split(code, (",",)):
            value = self._value(part)
            out.append(value if "r" in self._options and isinstance(value, str) else json.dumps(value))
            out.append("\n")
        return out

    # ------------------------------------------------------------ expressions

    def _text(self, value: Any) -> str:
        if value is None:
            return self._language.unset
        if isinstance(value, bool):
            return str(value).lower()
        return str(value)

    def _value(self, expression: str) -> Any:
        """Return the value of an expression: a text, None for unset."""
        expression = expression.strip()
        while expression.startswith("(") and _closes(expression) == len(expression):
            expression = expression[1:-1].strip()
        for operator in self._language.defaults:
            parts = _split(expression, (operator,))
            if len(parts) > 1:
                return self._default(operator, parts)
        if self._language.joins:
            parts = _split(expression, self._language.joins)
            if len(parts) > 1:
                return self._joined([self._value(part) for part in parts])
        return self._atom(expression)

    def _default(self, operator: str, parts: list[str]) -> Any:
        value: Any = None
        for number, part in enumerate(parts):
            value = self._value(part)
            if operator in _ZERO_IS_FALSE.get(self._language.name, ()) and has_placeholder(str(value)):
                return self._either(value, self._default(operator, parts[number + 1 :]))
            is_set = value is not None if operator in ("??", "//") else bool(value)
            if operator in _ZERO_IS_FALSE.get(self._language.name, ()) and value == "0":
                is_set = False
            if self._language.name in ("ruby", "lua"):
                is_set = value is not None
            if is_set:
                return value
        return value

    def _either(self, value: Any, default: Any) -> str:
        """Return a word for another value of a flag or a default: the value may be `0`."""
        mark = f"Zhole{len(self._holes)}Z"
        options = tuple(refilled((self._text(each),), self._holes) for each in (value, default))
        self._holes[mark] = Choice(options)
        return mark

    def _joined(self, values: list[Any]) -> str:
        if self._language.name in ("ruby", "jq") and None in values:
            raise UnknownError
        return "".join(self._text(value) for value in values)

    def _atom(self, expression: str) -> Any:
        if match := self._variable.fullmatch(expression):
            return self._read(match)
        if _STRING.fullmatch(expression):
            return self._string(expression)
        if re.fullmatch(r"\d+", expression):
            return expression
        if self._language.name == "ruby" and (
            match := re.fullmatch(r"ENV\.fetch\(\s*(['\"]\w+['\"])\s*,\s*(.*)\)", expression)
        ):
            return self._default("??", [f"ENV[{match[1]}]", match[2]])
        raise UnknownError

    def _read(self, match: re.Match[str]) -> Any:
        groups = match.groupdict()
        name = groups.get("name") or groups.get("name2")
        if name not in FLAGS or name is None:
            mark = f"Zhole{len(self._holes)}Z"
            self._holes[mark] = Hole(Kind.ANY)
            return mark
        value = self._call.environment[name]
        if value is None:
            return None
        if value == _LOOP_VALUE:
            return _MARK
        text = with_placeholders(value, self._holes)
        if text is None:
            raise UnknownError
        return text

    def _string(self, literal: str) -> str:
        quote, body = literal[0], literal[1:-1]
        if quote == "'" and self._language.name != "ruby":
            if "\\" in body:
                raise UnknownError
            return body
        pattern = self._language.interpolation
        if quote == "'":
            pattern = ""
        if not pattern:
            return _unescaped(body)
        out = ""
        for number, piece in enumerate(re.split(pattern, body)):
            if number % 2:
                out += self._text(self._value(piece))
            elif self._language.name == "perl" and re.search(r"[$@]\w", piece):
                raise UnknownError
            else:
                out += _unescaped(piece)
        return out


_MARK: Final = "Zhole9999Z"
"""Stands for the value of any variable in a loop over the environment."""
_LOOP_VALUE: Final[Parts] = (Hole(Kind.OTHER, key="value of the loop"),)
_JQ_LINES: Final = re.compile(
    r"(?:env|\$ENV)\s*\|\s*to_entries(?:\[\]|\s*\|\s*\.\[\])\s*\|\s*"
    r"(?:select\(\s*\.key\s*\|\s*(?P<condition>[^()]*\([^()]*\))\s*\)\s*\|\s*)?"
    r"(?:\"\\\(\.key\)(?P<between>[^\"\\]*)\\\(\.value\)\")"
)
_JOINED: Final = re.compile(
    r"join\s*\(?\s*(?P<separator>'[^'\\]*'|\"(?:[^\"\\]|\\.)*\")\s*,\s*map\s*\{(?P<body>.*)\}\s*"
    r"(?P<words>qw\s*[(/\[{][\w\s]*[)/\]}]|\([^()]*\))\s*\)?",
    re.DOTALL,
)
_RUBY_SELECTION: Final = re.compile(
    r"(?:puts|p)\s*\(?\s*(?P<format>JSON\.(?:pretty_)?generate\()?\s*ENV(?:\.to_h)?"
    r"(?:\.(?:select|filter)\s*\{\s*\|\s*(?P<key>\w+)\s*,?\s*\w*\s*\|\s*(?P<condition>[^{}]*)\}"
    r"|\.slice\((?P<names>[^()]*)\))?(?:\.inspect)?\s*\)?\s*\)?"
)
_SILENT_PERL: Final = re.compile(r"use (?:strict|warnings|Data::Dumper)|\$Data::Dumper::Sortkeys\s*=\s*1")
_PERL_LINES: Final = re.compile(
    r"join\s*\(?\s*(?:\"\\n\"|\$/)\s*,\s*map\s*\{\s*(?P<body>\"[^\"]*\")\s*\}\s*(?:sort\s+)?"
    r"(?:grep\s*(?:\{\s*(?P<condition>/[^/]*/i?)\s*\}|(?P<condition2>/[^/]*/i?)\s*,))?\s*(?:sort\s+)?keys\s*\(?%ENV\)?\s*\)?"
)
_DUMPER: Final = re.compile(
    r"(?:Data::Dumper->)?Dumper\s*\(?\s*(?:\\%ENV|\+?\{\s*map\s*\{\s*\(?\s*\$_\s*(?:=>|,)\s*\$ENV\{\s*\$_\s*\}"
    r"\s*\)?\s*\}\s*(?:sort\s+)?(?:grep\s*(?:\{\s*(?P<condition>/[^/]*/)\s*\})\s*)?(?:sort\s+)?keys\s*\(?%ENV\)?"
    r"\s*\})\s*\)?"
)
_PERL_KEYS: Final = (
    r"(?:sort\s+)?(?:grep\s*(?:\{\s*(?P<condition>/[^/]*/)\s*\}|(?P<condition2>/[^/]*/)\s*,))?"
    r"\s*(?:sort\s+)?keys\s*\(?%ENV\)?"
)
_LOOPS: Final = {
    "perl": (
        re.compile(
            r"(?P<body>(?:print|say)\b.*?)\s+for(?:each)?\s+(?P<words>qw\s*[(/\[{][\w\s]*[)/\]}]|\([^()]*\))",
            re.DOTALL,
        ),
        re.compile(
            r"for(?:each)?\s*(?:my\s+(?P<key>\$\w+)\s*)?\(?(?P<words>qw\s*[(/\[{][\w\s]*[)/\]}]|\(['\"][^()]*\))\)?"
            r"\s*\{(?P<body>[^;]*?);?\s*\}",
            re.DOTALL,
        ),
        re.compile(
            r"while\s*\(\s*my\s*\(\s*(?P<key>\$\w+)\s*,\s*(?P<value>\$\w+)\s*\)\s*=\s*each\s*\(?\s*%ENV\s*\)?\s*\)\s*"
            r"\{\s*(?P<body>(?:print|say)\b[^;]*?)(?:\s+if\s+(?P<condition>(?P=key)\s*=~\s*/[^/]*/i?))?\s*;?\s*\}",
            re.DOTALL,
        ),
        re.compile(rf"(?P<body>(?:print|say)\b.*?)\s+for(?:each)?\s+\(?{_PERL_KEYS}\)?", re.DOTALL),
        re.compile(
            rf"for(?:each)?\s*(?:my\s+(?P<key>\$\w+)\s*)?\(\s*{_PERL_KEYS}\s*\)\s*\{{"
            r"(?:\s*next\s+unless\s+(?:\$\w+\s*=~\s*)?(?P<condition4>/[^/]*/)\s*;)?(?P<body>[^;]*?)"
            r"(?:\s+if\s+(?:\$\w+\s*=~\s*)?(?P<condition3>/[^/]*/))?\s*;?\s*\}",
            re.DOTALL,
        ),
    ),
    "lua": (
        re.compile(
            r"for\s+\w+\s*,\s*(?P<key>\w+)\s+in\s+ipairs\s*\(?\s*(?P<words>\{[^{}]*\})\s*\)?\s+do\s+(?P<body>.*?)\s+end",
            re.DOTALL,
        ),
    ),
    "ruby": (
        re.compile(
            r"ENV\.(?:sort\.|to_a\.)?each(?:_pair)?\s*(?:do|\{)\s*\|\(?(?P<key>\w+),\s*(?P<value>\w+)\)?\|\s*"
            r"(?P<body>puts\b.*?)(?:\s+if\s+(?P<condition>(?P=key)\.(?:start_with|include)\?\(?\s*['\"]\w+['\"]\s*\)?"
            r"|(?P=key)\s*=~\s*/[^/]*/i?|(?P=key)\.match\?\(/[^/]*/i?\)))?"
            r"\s*(?:\}|end)",
            re.DOTALL,
        ),
        re.compile(
            r"%w[\[({](?P<words>[\w\s]*)[\])}]\.each\s*(?:do|\{)\s*\|(?P<key>\w+)\|\s*"
            r"(?P<body>(?:puts|print|p)\b.*?)\s*(?:\}|end)",
            re.DOTALL,
        ),
    ),
}
"""Loops over listed names (`words`) or over the environment, with the condition on the name."""


def _listed(words: str) -> list[str]:
    """Return the names in `["A", "B"]`, `qw(A B)` or `("A", "B")`."""
    names = re.findall(r"\w+", words.removeprefix("qw"))
    if not names or len(names) > 20:
        raise UnknownError
    return names


def _bound(
    language: Language, body: str, key: str, name: str, value_name: str | None, value: str | None
) -> str:
    """Return the body of a loop with the variables of the loop replaced."""
    match language.name:
        case "perl":
            of_name = re.escape(key)
            body = re.sub(rf"\$ENV\{{\s*{of_name}\s*\}}", f"$ENV{{{name}}}", body)
            names = (
                [(of_name, name)] if value_name is None else [(of_name, name), (re.escape(value_name), value)]
            )
            for pattern, text in names:
                body = _STRING.sub(lambda s, p=pattern, t=text: re.sub(rf"{p}(?!\w)", t or "", s[0]), body)  # type: ignore[misc]
                body = re.sub(rf"{pattern}(?!\w)", f"'{text}'", body)
            return body
        case "lua":
            body = re.sub(rf"os\.getenv\(\s*{key}\s*\)", f"os.getenv('{name}')", body)
            return _outside_strings(body, {key: f"'{name}'"})
        case "ruby":
            body = re.sub(rf"ENV\[\s*{key}\s*\]", f"ENV['{name}']", body)
            body = re.sub(rf"ENV\.fetch\(\s*{key}\s*,", f"ENV.fetch('{name}',", body)
            return _outside_strings(
                body, {key: f"'{name}'"} | ({} if value_name is None else {value_name: f"'{value}'"})
            )
        case _:
            raise UnknownError


def _outside_strings(code: str, names: dict[str, str]) -> str:
    """Replace identifiers outside of strings, and in the expressions of template strings."""
    pattern = re.compile(r"(?<![\w.])(" + "|".join(map(re.escape, names)) + r")(?!\w)")

    def replaced(text: str) -> str:
        return pattern.sub(lambda match: names[match[1]], text)

    out = ""
    at = 0
    for match in _STRING.finditer(code):
        out += replaced(code[at : match.start()])
        literal = match[0]
        if literal.startswith('"') and "#{" in literal:
            literal = re.sub(r"#\{([^{}]*)\}", lambda inner: "#{" + replaced(inner[1]) + "}", literal)
        if literal.startswith("`"):
            literal = re.sub(r"\$\{([^{}]*)\}", lambda inner: "${" + replaced(inner[1]) + "}", literal)
        out += literal
        at = match.end()
    return out + replaced(code[at:])


def _require_name_tested(tested: str | None, condition: str) -> None:
    """Raise `UnknownError` where a filter tests something else than the name of a variable."""
    name = re.escape(tested or "")
    if tested and not re.match(rf"{name}\.|.*\.test\({name}\)$", condition.strip()):
        raise UnknownError


def _holds(condition: str, name: str) -> bool:
    """Return whether a condition on a name holds."""
    condition = condition.strip()
    if not condition:
        return True
    if match := re.fullmatch(r"(?:\$?\w+\s*=~\s*|\w+\.match\?\()?/([^/]*)/(i?)\)?", condition):
        pattern = compiled(match[1], "perl", ignores_case=match[2] == "i")
        if pattern is None:
            raise UnknownError
        return pattern.search(name) is not None
    match = re.fullmatch(
        r"(?:\w+\.)?(startsWith|startswith|start_with\?|includes?\??|test|contains)"
        r"(?:\(\s*|\s+)['\"]\^?([\w]+)['\"]\s*\)?",
        condition,
    )
    if match is None:
        match = re.fullmatch(r"/(?P<regex>[\w^$]+)/\.test\(\w+\)", condition)
        if match is None:
            raise UnknownError
        return re.search(match["regex"], name) is not None
    at_start = match[1].lower().startswith("start") or (match[1] == "test" and "^" in condition)
    return name.startswith(match[2]) if at_start else match[2] in name


def _unescaped(text: str) -> str:
    if re.search(r"\\[^ntr\\'\"`$@]", text):
        raise UnknownError
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text, flags=re.DOTALL)


def _split(text: str, separators: tuple[str, ...]) -> list[str]:
    """Return the parts between separators that stand outside of strings and brackets."""
    parts: list[str] = []
    depth = start = at = 0
    while at < len(text):
        char = text[at]
        if char in "'\"`" and (match := _STRING.match(text, at)):
            at = match.end()
            continue
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        found = next((s for s in separators if depth == 0 and s and text.startswith(s, at)), None)
        if found:
            parts.append(text[start:at])
            at += len(found)
            start = at
        else:
            at += 1
    return [*parts, text[start:]]


def _closes(text: str) -> int:
    """Return the offset behind the bracket that closes the first one."""
    depth = at = 0
    while at < len(text):
        if text[at] in "'\"`" and (match := _STRING.match(text, at)):
            at = match.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            break
    return at
