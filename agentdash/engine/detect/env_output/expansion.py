"""Expand the words of a script under a hypothesis."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.arithmetic import evaluated, sets_flag
from agentdash.engine.detect.env_output.braces import braced
from agentdash.engine.detect.env_output.dumps import FLAG_STEM, FLAGS
from agentdash.engine.detect.env_output.emptiness import is_many, is_set
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    Choice,
    Hole,
    Kind,
    Names,
    Parts,
    Words,
    concrete,
    joined,
    unlike,
)
from agentdash.engine.detect.env_output.splitting import (
    has_bare_index,
    is_listing,
    is_of_lines,
    may_break,
    split_substitution,
    split_text,
)
from agentdash.engine.detect.env_output.streams import FAILED, Stream
from agentdash.engine.detect.env_output.text_operators import operated_text
from agentdash.engine.detect.env_output.world import State, UnreadableError
from agentdash.engine.detect.env_output.zsh import ALL_NAMES, IS_SET, IS_SET_OF
from agentdash.sandbox.shell import (
    Opaque,
    Parameter,
    Piece,
    ProcessSubstitution,
    Script,
    Substitution,
    Text,
    Word,
)

_SPECIAL: Final[dict[str, Hole]] = {
    "?": Hole(Kind.DIGITS),
    "#": Hole(Kind.DIGITS),
    "!": Hole(Kind.DIGITS),
    "0": Hole(Kind.QUIET_LINE),
    "-": Hole(Kind.QUIET_LINE),
}
_UNSET_MESSAGES: Final[tuple[Parts, ...]] = (
    ("unbound variable",),
    ("parameter not set",),
    ("parameter null or not set",),
    ("parameter not set or null",),
)
_VALUE_LIKE: Final = re.compile(r"\d*|true|false|yes|on|enabled|disabled|other", re.IGNORECASE)
"""Defaults that a variable can hold as well: where one is printed, it is not known which it is."""
_MAX_OPTIONS: Final = 16
"""Values that a variable may have which are expanded one by one."""
_NAME: Final = re.compile(r"[A-Za-z_]\w*|\d+")
QUOTES: Final = "\"'"


class AbortedError(Exception):
    """The shell ends at an expansion: `${X:?}`, or an unset variable under `set -u`."""

    def __init__(self, name: str, message: Parts = ()) -> None:
        super().__init__(name)
        self.name = name
        self.messages: tuple[Parts, ...] = (message, *_UNSET_MESSAGES)


class Expander:
    """Expands words; keeps the state, which `${X:=…}` changes, and the errors of substitutions."""

    def __init__(self, state: State, substitute: Callable[..., tuple[Parts, Stream, int | None]]) -> None:
        self.state = state
        self.errors: Stream = ()
        self.status: int | None = 0
        """The exit code of the last substitution, 0 without one."""
        self.may_end: AbortedError | None = None
        """An expansion at which the shell ends, or not."""
        self.bashism = False
        """An expansion was used that some shells end at."""
        self.is_of_bash = False
        """An expansion was used that all shells but bash end at."""
        self._substitute = substitute

    def substitute_untrimmed(self, script: Script) -> tuple[Parts, Stream]:
        """Return what a script writes to standard output and to standard error."""
        return self._substitute(script, self.state, trims=False)[:2]

    def word(self, word: Word) -> Parts:
        """Return a word as one string."""
        if self.state.dialect != "bash" and has_bare_index(word):
            raise UnreadableError  # an element of an array in zsh
        return joined(part for piece in word.pieces for part in self._piece(piece))

    def fields(self, word: Word) -> list[Parts]:
        """Return the arguments that a word becomes."""
        if (elements := self._elements(word)) is not None:
            return list(elements)
        if self.state.dialect in ("bash", "zsh") and word.literal_but_braces and (found := braced(word.text)):
            return [(text,) for text in found]
        if self.state.dialect == "dash" and word.literal_but_braces and braced(word.text):
            return [(word.text,)]
        parts = self.word(word)
        quoted = any(isinstance(p, Text) or p.quoted for p in word.pieces)
        if not quoted and parts == ():
            return []
        unquoted = "".join(p.text if not p.quoted else "\0" for p in word.pieces if isinstance(p, Text))
        if unquoted.startswith("~"):
            return [(Hole(Kind.QUIET_LINE),)]
        if re.search(r"[*?]", unquoted):
            if self.state.dialect not in ("bash", "dash"):
                self.may_end = AbortedError("", ("no matches found: ", Hole(Kind.QUIET_LINE)))
            return [(Choice((parts, (Hole(Kind.QUIET),))),)]
        if re.search(r"\{[^{}]*(?:,|\.\.)[^{}]*\}", unquoted):
            return [(ANY,)]
        text = concrete(parts)
        if may_break(word.pieces, text, self.state):
            return [(ANY,)]
        if text is None and any(self._is_split(piece) for piece in word.pieces):
            return split_substitution(parts, self.state, word.pieces)
        if text is not None and not all(isinstance(p, Text) or p.quoted for p in word.pieces):
            if len(word.pieces) > 1:
                return [parts]
            if is_of_lines(word.pieces):
                return [(line,) for line in text.split("\n") if line]
            is_parameter = not isinstance(word.pieces[0], Substitution)
            return [(field,) for field in split_text(text, self.state, is_parameter=is_parameter)]
        return [parts]

    def _is_split(self, piece: Piece) -> bool:
        """Return whether the shell splits what an expansion gives."""
        if piece.quoted or not isinstance(piece, Parameter):
            return isinstance(piece, Substitution) and not piece.quoted
        return self.state.dialect == "bash" and is_listing(self._value(piece.name))

    def is_list(self, word: Word) -> bool:
        """Return whether a word is `"${name[@]}"` of known elements: each is one argument, whatever it is."""
        elements = self._elements(word)
        return elements is not None and not any(map(is_many, elements))

    def _elements(self, word: Word) -> tuple[Parts, ...] | None:
        """Return what `"${name[@]}"` and `"$@"` become; None for other words."""
        match word.pieces:
            case (Parameter(name=name, index="[@]" | "[*]"), *_) if self._has_keys(name):
                raise UnreadableError  # in an order that is not known
            case (Parameter(name=name, index="[@]" | "[*]", prefix="", operator="", quoted=quoted, raw=raw),):
                return self.state.array(name) if "[@]" in raw or not quoted else None
            case (Parameter(name=name, index=None, prefix="", operator="", quoted=False),) if (
                self.state.dialect == "zsh" and self.state.array(name) is not None
            ):
                return self.state.array(name)
            case (Parameter(name="@", index=None, prefix="", operator="", quoted=True),):
                return self.state.array("@")
            case (Parameter(name=name, index="[@]" | "[*]", prefix="!", operator=""),):
                self._need_bash()
                elements = self.state.array(name)
                return None if elements is None else tuple((str(n),) for n in range(len(elements)))
            case (Parameter(name=name, index=None, prefix="!", operator="@" | "*"),):
                return self._names_with(name)
            case _:
                return None

    def _names_with(self, start: str) -> tuple[Parts, ...]:
        """Return what `${!name@}` becomes: the names of variables that begin so."""
        if not self.state.is_rewritten:
            self._need_bash()
        start = "" if start == ALL_NAMES else start
        present = [name.startswith(start) and self.state.value(name) is not None for name in FLAGS]
        if start.startswith(FLAG_STEM):
            return tuple((name,) for name, is_there in sorted(zip(FLAGS, present, strict=True)) if is_there)
        return ((Words((Names((present[0], present[1])),)),),)

    def _piece(self, piece: Piece) -> Parts:
        match piece:
            case Text(text=text):
                return (text,) if text else ()
            case Parameter():
                return self._parameter(piece)
            case Substitution(script=script):
                parts, errors, self.status = self._substitute(script, self.state)
                self.errors += errors
                if self.state.dialect != "dash":  # `"$(…) $?"`
                    same = self.state.dialect or self.status == self.state.status
                    self.state = msgspec.structs.replace(self.state, status=self.status if same else None)
                return parts
            case ProcessSubstitution(direction=">"):
                raise UnreadableError
            case ProcessSubstitution(script=script):
                content, errors = self.substitute_untrimmed(script)
                self.errors += errors
                path: Parts = (Hole(Kind.QUIET_LINE, key=f"process {piece.raw}"),)
                self.state = self.state.with_process(path, content)
                return path
            case Opaque(raw=raw):
                if raw.startswith("$((") and raw.endswith("))"):
                    number, self.state = evaluated(raw[3:-2], self.state)
                    if number is not None:
                        return (str(number),)
                if raw.startswith("$((") and self.state.nounset:
                    self._note_unset_in(raw)
                if not raw.startswith("$((") or "=" in raw or "++" in raw or "--" in raw:
                    return (ANY,)
                return (Choice((("-", Hole(Kind.DIGITS)), (Hole(Kind.DIGITS),))),)

    def _note_unset_in(self, arithmetic: str) -> None:
        """Note a variable in `$((…))` that may be unset."""
        for name in re.findall(r"(?<![\w$])[A-Za-z_]\w*", arithmetic):
            value = self.state.value(name)
            if value is None or (len(value) == 1 and isinstance(value[0], Hole) and value[0].key == name):
                self.may_end = AbortedError(name)

    def _parameter(self, parameter: Parameter) -> Parts:
        name = parameter.name
        if parameter.index:
            return self._element(parameter)
        if name in self.state.references:
            self._need_bash()
            name = concrete(self._value(name) or ()) or ""
        if name == "*" and not parameter.prefix and not parameter.operator:
            return self._listed(self.state.array("@"))
        if parameter.prefix == "!":
            self.bashism = True
            self.is_of_bash = not name.startswith(ALL_NAMES) and not self.state.is_rewritten
            target = concrete(self._value(name) or (ANY,))
            if target is None or not _NAME.fullmatch(target) or parameter.operator in ("@", "*"):
                return (ANY,)
            name = target
        value = self._value(name)
        if parameter.prefix == "#":
            if value is None and self.state.nounset:
                raise AbortedError(name)
            return self._length(value)
        return self._operated(parameter, name, value)

    def _has_keys(self, name: str) -> bool:
        return any(variable.startswith(f"{name}[") for variable, _ in self.state.variables)

    def key(self, index: str) -> str | None:
        """Return the key of an element as written: a word, or a variable that holds one."""
        text = index.strip().strip(QUOTES)
        if match := re.fullmatch(r"\$\{?(\w+)\}?", text):
            return concrete(self.state.value(match[1]) or (ANY,))
        return text if re.fullmatch(r"[\w.-]+", text) else None

    def _need_bash(self) -> None:
        """Note an expansion at which other shells end: behind it, the shell is bash."""
        self.bashism = self.is_of_bash = True
        self.state = msgspec.structs.replace(self.state, dialect=self.state.dialect or "bash")

    def _element(self, parameter: Parameter) -> Parts:
        """Return `${name[number]}`; the first number is 0 in bash and 1 in zsh, dash has no elements."""
        if sets_flag(parameter.index or ""):
            raise UnreadableError
        self.bashism = self.bashism or self.state.dialect not in ("bash", "zsh")
        if not parameter.prefix and (key := self.key((parameter.index or "")[1:-1])) is not None:
            name = f"{parameter.name}[{key}]"
            if name in dict(self.state.variables):
                return self._operated(parameter, name, self.state.value(name))
        elements = self.state.array(parameter.name)
        if parameter.prefix == "#" and parameter.index in ("[@]", "[*]"):
            counted = elements is not None and not any(map(is_many, elements))
            return (str(len(elements or ())),) if counted else (Hole(Kind.DIGITS),)
        index = (parameter.index or "")[1:-1].strip()
        if index == "*" and not parameter.prefix and parameter.operator.lstrip(":") in ("", "-", "+", "?"):
            is_unset = elements == () and parameter.operator != ""
            return self._operated(parameter, parameter.name, None if is_unset else self._listed(elements))
        if match := re.fullmatch(r"\$\{?(\w+)\}?|([A-Za-z_]\w*)", index):
            index = concrete(self.state.value(match[1] or match[2]) or (ANY,)) or ""
        if elements is None or not index.isdecimal() or parameter.prefix not in ("", "!"):
            return (ANY,)
        at = int(index)
        if parameter.prefix:
            self._need_bash()
            name = concrete(elements[at] if at < len(elements) else ()) or ""
            return self._operated(parameter, name, self._value(name)) if _NAME.fullmatch(name) else (ANY,)
        if parameter.operator:
            return (ANY,)
        found = [elements[n] if 0 <= n < len(elements) else () for n in (at, at - 1)]
        if self.state.dialect == "zsh":
            return found[1]
        if self.state.dialect == "bash" or found[0] == found[1]:
            return found[0]
        return (Choice((found[0], found[1])),)

    def _listed(self, elements: tuple[Parts, ...] | None) -> Parts:
        """Return elements with the first character of `IFS` between them."""
        separators = concrete(dict(self.state.variables).get("IFS", (" ",)) or ())
        if elements is None or separators is None or any(map(is_many, elements)):
            return (ANY,)
        return joined(
            part
            for number, each in enumerate(elements)
            for part in ((separators[:1],) if number else ()) + each
        )

    def _value(self, name: str) -> Parts | None:
        if name.startswith(IS_SET_OF):
            name = IS_SET + (concrete(self.state.value(name.removeprefix(IS_SET_OF)) or ()) or "")
        if name.startswith(IS_SET):
            return self._is_set(name.removeprefix(IS_SET))
        if name == "$":
            return (Hole(Kind.DIGITS, key=f"shell {self.state.level}"),)
        if name == "?" and self.state.status not in (None, FAILED):
            return (str(self.state.status),)
        arguments = self.state.array("@")
        if name == "#" and arguments is not None and not any(map(is_many, arguments)):
            return (str(len(arguments)),)
        if name == "0" and "0" in dict(self.state.variables):
            return self.state.value(name)
        return (_SPECIAL[name],) if name in _SPECIAL else self.state.value(name)

    def _is_set(self, name: str) -> Parts:
        value = self.state.value(name)
        if value is None or name in FLAGS:
            return (str(int(value is not None)),)
        return (Choice((("0",), ("1",))),)

    def _length(self, value: Parts | None) -> Parts:
        text = concrete(value or ())
        return (str(len(text)),) if text is not None else (Hole(Kind.DIGITS),)

    def _operated(self, parameter: Parameter, name: str, value: Parts | None) -> Parts:
        operator = parameter.operator
        match value:
            case (Choice(options=options),) if len(options) <= _MAX_OPTIONS:
                return (Choice(tuple(self._operated(parameter, name, option) for option in options)),)
            case _:
                pass
        if value is None and self.state.nounset and operator and operator[-1] not in "-=+?":
            raise AbortedError(name)
        if operator == "@" and parameter.raw.endswith("@A}") and name in FLAGS:
            self.bashism = self.is_of_bash = True
            exported = "declare -x " if name in self.state.exported else ""
            return () if value is None else (f"{exported}{name}='", *unlike(value, "'"), "'")
        if operator == "@" and parameter.raw.endswith("@Q}"):
            self.bashism = self.is_of_bash = True
            return () if value is None else ("'", *unlike(value, "'"), "'")
        if operator in ("", ":"):
            if value is None and self.state.nounset:
                raise AbortedError(name)
            match value:
                case (Hole(key=key),) if key == name and self.state.nounset and name not in FLAGS:
                    self.may_end = AbortedError(name)
                case _:
                    pass
            if not operator or not value:
                return value or ()
            return operated_text(value, parameter)
        if operator[-1] not in "-=+?":
            if operator[0] not in "#%" and self.state.dialect == "dash":
                raise AbortedError(name, ("Bad substitution",))
            of_both = "#%/" if self.state.dialect == "zsh" else "#%"
            self.bashism = self.bashism or operator[0] not in of_both
            return operated_text(value, parameter) if value else ()
        counts = is_set(value, counts_empty=not operator.startswith(":"))
        match operator[-1]:
            case "-":
                return self._default(parameter, value, counts)
            case "=":
                result = self._default(parameter, value, counts)
                if counts is not True:
                    self.state = self.state.with_variable(name, result)
                return result
            case "+":
                alternative = self._argument(parameter)
                return alternative if counts else () if counts is False else (Choice((alternative, ())),)
            case _:
                if counts is False:
                    raise AbortedError(name, self._argument(parameter))
                return value or ()

    def _default(self, parameter: Parameter, value: Parts | None, counts: bool | None) -> Parts:
        if counts is False:
            return self._argument(parameter)
        if counts is True and value is not None:
            default = concrete(self._argument(parameter))
            return value if default is None or _VALUE_LIKE.fullmatch(default) else unlike(value, default)
        return (Choice((value or (), self._argument(parameter))),)

    def _argument(self, parameter: Parameter) -> Parts:
        if parameter.argument is None:
            return (ANY,)
        return self.word(parameter.argument)
