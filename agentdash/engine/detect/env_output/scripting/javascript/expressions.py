"""Expressions of JavaScript under a hypothesis."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final

from agentdash.engine.detect.env_output.dumps import FLAGS
from agentdash.engine.detect.env_output.patterns import ANY
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.scripting.javascript.calls import Calls
from agentdash.engine.detect.env_output.scripting.javascript.expression_syntax import ASYNC, Tree
from agentdash.engine.detect.env_output.scripting.javascript.promises import Promise
from agentdash.engine.detect.env_output.scripting.javascript.values import (
    NULL,
    QUIET_VALUES,
    TEXT_METHODS,
    Caught,
    Class,
    Null,
    Pairs,
)
from agentdash.engine.detect.env_output.scripting.values import (
    UNKNOWABLE,
    Builtin,
    Count,
    FailedError,
    Function,
    Method,
    Pattern,
    Various,
    Written,
)
from agentdash.engine.detect.env_output.scripting.variables import Instance
from agentdash.engine.detect.env_output.selections import Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError
from agentdash.engine.detect.word_sets import word_set

_GLOBALS: Final = word_set(
    "process console JSON Object require String Boolean Array Map Set Error Number parseInt Math Date RegExp "
    "Promise Reflect"
)
_CONSTANTS: Final = {"undefined": None, "null": NULL, "true": True, "false": False}


def _has_try(tree: object) -> bool:
    return isinstance(tree, tuple | list) and (tree[:1] == ("try",) or any(map(_has_try, tree)))


class Expressions(Calls):
    """Expressions of JavaScript under a hypothesis."""

    exit_code = 0
    item_at: tuple[str, str, Any] = ("", "", None)
    """The list of variables that a loop goes over, the name of its index, and the item there."""

    @abstractmethod
    def block(self, statements: tuple[Tree, ...]) -> None:
        """Run statements."""

    def value(self, tree: Tree) -> Any:
        """Return the value of an expression."""
        self.step()
        match tree:
            case ("text", text) | ("number", text):
                return text
            case ("template", *parts):
                return "".join(self.text(self.value(part)) for part in parts)
            case ("regex", source, flags):
                return self.pattern(source.replace("\\/", "/"), flags.replace("g", ""))
            case ("name", name):
                return self._named(name)
            case ("member", ("name", owner), ("name", key)) if (owner, key) == self.item_at[:2]:
                return self.item_at[2]
            case ("member", owner, key):
                return self._member(self.value(owner), self.value(key))
            case ("maybe", owner, key):
                found = self.value(owner)
                return None if found in (None, NULL) else self._member(found, self.value(key))
            case ("call", function, arguments):
                return self.call(self.value(function), self._arguments(arguments))
            case ("maybe call", function, arguments):
                found = self.value(function)
                return None if found in (None, NULL) else self.call(found, self._arguments(arguments))
            case ("new", made, arguments):
                return self._new(self.value(made), self._arguments(arguments))
            case ("list", items):
                return self._arguments(items)
            case ("object", entries):
                return self._object(entries)
            case ("arrow", parameters, body):
                return self.function(parameters, body)
            case ("choice", test, first, second):
                return self.value(first if self.holds(test) else second)
            case ("unary", "delete", ("member", owner, key)):
                return self._deleted(self.value(owner), self.value(key))
            case ("unary", sign, inner):
                return self._unary(sign, self.value(inner))
            case ("binary", sign, left, right):
                return self._binary(sign, left, right)
            case ("step", sign, target, is_before):
                before = self.value(target)
                after = self._assign(target, self.counted(sign[0], before, 1))
                return after if is_before else before
            case ("assign", sign, target, value):
                return self._assigned(sign, target, value)
            case _:
                raise UnknownError

    # ------------------------------------------------------------ names, functions, classes

    def _named(self, name: str) -> Any:
        if name in self._names:
            return self._names[name]
        if name in _CONSTANTS:
            return _CONSTANTS[name]
        if name not in _GLOBALS:
            raise UnknownError
        return Builtin(name)

    def bind(self, pattern: Tree, value: Any) -> None:
        """Declare the names of a pattern."""
        match pattern:
            case ("name", name):
                self.declare(name, value)
            case ("default", inner, default):
                self.bind(inner, self.value(default) if value is None else value)
            case ("list", patterns) if isinstance(value, list):
                for number, inner in enumerate(patterns):
                    if inner[0] == "rest":
                        self.bind(inner[1], value[number:])
                    else:
                        self.bind(inner, value[number] if number < len(value) else None)
            case ("object", keys):
                for key, inner in keys:
                    self.bind(inner, self._member(value, key))
            case _:
                raise UnknownError

    def function(self, parameters: tuple[Tree, ...], body: tuple[Tree, ...], this: Any = None) -> Function:
        """Return a function of the program; `this` is what a method of it belongs to."""

        place = self.place

        def run(arguments: list[Any]) -> Any:
            def inside() -> None:
                if this is not None:
                    self.declare("this", this)
                for number, (pattern, default) in enumerate(parameters):
                    if pattern[0] == "rest":
                        self.bind(pattern[1], arguments[number:])
                        continue
                    given = arguments[number] if number < len(arguments) else None
                    self.bind(
                        pattern, self.value(default) if given is None and default is not None else given
                    )
                self.block(body)

            return self.returned(place, inside)

        started = run
        if _has_try(body):  # what its ways have in common is enough
            started = lambda arguments: self.in_each_way(lambda: run(arguments))  # noqa: E731
        if body[:1] == (ASYNC,):
            return Function(lambda arguments: self.promised(lambda: started(arguments)))
        return Function(started)

    def _new(self, made: Any, arguments: list[Any]) -> Any:
        if isinstance(made, Builtin):
            return self.call(made, arguments)
        if not isinstance(made, Class):
            raise UnknownError
        found = Instance(made, {})

        def fill() -> None:
            self.declare("this", found)
            for name, value in made.fields:
                found.attributes[name] = None if value is None else self.value(value)

        self.scoped(fill)
        if ("function", "constructor") in made.members:
            self.method_of(made.members["function", "constructor"], found).run(arguments)
        return found

    def _of_class(self, owner: Any, members: dict[tuple[str, str], Tree], prefix: str, name: str) -> Any:
        """Return what a getter of a class gives, or a method."""
        if (f"{prefix}get", name) in members:
            return self.method_of(members[f"{prefix}get", name], owner).run([])
        if (f"{prefix}function", name) in members:
            return self.method_of(members[f"{prefix}function", name], owner)
        return None

    def method_of(self, member: Tree, owner: Any) -> Function:
        """Return a function of a class with what it belongs to."""
        parameters, body = member
        return self.function(parameters, body, owner)

    # ------------------------------------------------------------ objects

    def _arguments(self, trees: tuple[Tree, ...]) -> Any:
        found: list[Any] = []
        for tree in trees:
            if tree[0] != "spread":
                found.append(self.value(tree))
                continue
            values = self.value(tree[1])
            if isinstance(values, Selection | Lines | Various) and len(trees) == 1:
                return values
            found += self.list_of(values)
        return found

    def _object(self, entries: tuple[Tree, ...]) -> Any:
        result: dict[str, Any] = {}
        for entry in entries:
            if entry[0] == "spread":
                spread = self.merged(result, [self._attributes(self.value(entry[1]))])
                if spread is not result:
                    if len(entries) > 1:
                        raise UnknownError
                    return spread
                continue
            key = self.value(entry[1])
            result[self.plain(str(key))] = self.value(entry[2])
        return result

    def _member(self, owner: Any, key: Any) -> Any:
        match owner:
            case None | Null():
                raise FailedError("TypeError")
            case Builtin(name="process") if key == "env":
                return Selection((True, True))
            case Builtin(name=name) if f"{name}.{key}" in QUIET_VALUES:
                return self.quiet()
            case Builtin(name=name):
                return "\n" if f"{name}.{key}" == "os.EOL" else Builtin(f"{name}.{self.plain(key)}")
            case Instance(of=made, attributes=attributes):
                return attributes[key] if key in attributes else self._of_class(owner, made.members, "", key)
            case Class(members=members, fields=fields):
                found = next((value for name, value in fields if name == f"static {key}"), None)
                return self.value(found) if found else self._of_class(owner, members, "static ", key)
            case _ if key in ("length", "size"):
                return self.size(owner)
            case Promise():
                return Method(owner, key)
            case Caught() if key not in owner:
                return self.word(ANY)
            case Selection(items=False) if key not in ("hasOwnProperty", "get", "has"):
                return self.item_of(owner, key)
            case list() if isinstance(key, int) and not isinstance(owner, Pairs):
                return owner[key] if 0 <= key < len(owner) else None
            case dict() if self.plain(key) in owner or key != "hasOwnProperty":
                return owner.get(self.plain(key))
            case str() if self.hole(owner) is not None and key not in TEXT_METHODS:
                return UNKNOWABLE  # an attribute of a value that is not known
            case str() | list() | dict() | Selection() | Pattern() | Lines() | Written() | int() | Count():
                return Method(owner, key)
            case _:
                raise UnknownError

    def _assigned(self, sign: str, target: Tree, value: Tree) -> Any:
        if sign == "=":
            return self._assign(target, self.value(value))
        before = self.value(target)
        match sign:
            case "||=":
                keeps = self.truth(before)
            case "&&=":
                keeps = not self.truth(before)
            case "??=":
                keeps = before is not NULL and self.defined(before)
            case "-=":
                return self._assign(target, self.counted("-", before, self.value(value)))
            case _:
                return self._assign(target, self._sum(before, self.value(value)))
        return before if keeps else self._assign(target, self.value(value))

    def _assign(self, target: Tree, value: Any) -> Any:
        match target:
            case ("name", name):
                self._names[name] = value
            case ("member", owner, key):
                found, name = self._attributes(self.value(owner)), self.value(key)
                if found == Builtin("process") and name == "exitCode" and type(value) is int:
                    self.exit_code = value
                    return value
                if not isinstance(found, dict):
                    raise UnknownError
                found[self.plain(str(name))] = value
            case _:
                raise UnknownError
        return value

    # ------------------------------------------------------------ operators

    def _deleted(self, owner: Any, key: Any) -> bool:
        if isinstance(owner, dict):
            owner.pop(self.plain(key), None)
        elif not isinstance(owner, Selection) or key in FLAGS:
            raise UnknownError
        return True

    def _unary(self, sign: str, value: Any) -> Any:
        if sign == "!":
            return not self.truth(value)
        if sign == "typeof" and (value is None or isinstance(value, str)):
            return "string" if self.defined(value) else "undefined"
        if sign == "void":
            return None
        if sign == "await":
            return self.awaited(value)
        if sign in ("+", "-") and type(value) is int:
            return value if sign == "+" else -value
        raise UnknownError

    def _binary(self, sign: str, left_tree: Tree, right_tree: Tree) -> Any:
        left = self.value(left_tree)
        match sign:
            case "||":
                return left if self.truth(left) else self.value(right_tree)
            case "&&":
                return self.value(right_tree) if self.truth(left) else left
            case "??":
                return left if left is not NULL and self.defined(left) else self.value(right_tree)
            case _:
                pass
        right = self.value(right_tree)
        match sign:
            case "+":
                return self._sum(left, right)
            case "===" | "!==":
                return self.equal(left, right) is (sign == "===")
            case "==" | "!=":
                return self._alike(left, right) is (sign == "==")
            case "in":
                return self.has(right, left)
            case "-":
                return self.counted(sign, left, right)
            case "<" | ">" | "<=" | ">=":
                return self.ordered(sign, left, right)
            case _:
                raise UnknownError

    def _sum(self, left: Any, right: Any) -> Any:
        if isinstance(left, str) or isinstance(right, str) or isinstance(left, Written | Lines):
            return self.text(left) + self.text(right)
        return self.counted("+", left, right)

    def equal(self, left: Any, right: Any) -> bool:
        """Return the truth of `===`."""
        if isinstance(left, list | dict) or isinstance(right, list | dict):
            if {type(left), type(right)} & {type(None), Null}:
                return False
            raise UnknownError  # two objects are never the same, one is
        return super().equal(left, right)

    def _alike(self, left: Any, right: Any) -> bool:
        """Return the truth of `==`."""
        for value, other in ((left, right), (right, left)):
            if value is None or value is NULL:
                return other is NULL or not self.defined(other)
            if isinstance(value, str) and isinstance(other, int) and not isinstance(other, bool):
                if has_placeholder(self.actual(value)):
                    return self.decide()
                return value.strip() == str(other)
        if isinstance(left, bool) is not isinstance(right, bool):
            raise UnknownError
        return self.equal(left, right)
