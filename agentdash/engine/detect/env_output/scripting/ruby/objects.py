"""Functions, blocks and classes in programs of Ruby."""

from __future__ import annotations

from typing import Any

from tree_sitter import Node

from agentdash.engine.detect.env_output.scripting.grammars import field, named, text_of
from agentdash.engine.detect.env_output.scripting.ruby.library import Library
from agentdash.engine.detect.env_output.scripting.scopes import Place
from agentdash.engine.detect.env_output.scripting.values import Function, Raised, Symbol
from agentdash.engine.detect.env_output.scripting.variables import Class, Instance
from agentdash.engine.detect.env_output.unknown import UnknownError

_SELF = "@self"
_KEPT = "$%"
"""How the names of variables begin that functions see; constants are capitalized."""


class Objects(Library):
    """Functions, blocks and classes."""

    def body(self, node: Node | None) -> Any:
        """Run the body of something, and return the value of its last statement."""
        raise NotImplementedError

    def define(self, node: Node) -> Symbol:
        """Run `def`."""
        name = text_of(field(node, "name"))
        self.functions[name] = self._function(node)
        return Symbol(name)

    def _function(self, node: Node, owner: Any = None) -> Function:
        body = node.child_by_field_name("body")
        parameters = named(node.child_by_field_name("parameters"))

        def run(arguments: list[Any]) -> Any:
            names = {n: v for n, v in self._names.items() if n[:1] in _KEPT or n[:1].isupper()}
            names |= {} if owner is None else {_SELF: owner}

            def inside() -> Any:
                self._bind_parameters(parameters, arguments)
                return self.body(body)

            return self.returned(Place(names), inside)

        return Function(run)

    # ------------------------------------------------------------ classes

    def define_class(self, node: Node) -> None:
        """Run `class`."""
        name = text_of(field(node, "name"))
        members: dict[str, Any] = {}
        if node.child_by_field_name("superclass") is not None:
            raise UnknownError
        for child in named(node.child_by_field_name("body")):
            match child.type:
                case "method":
                    members[text_of(field(child, "name"))] = child
                case "singleton_method":
                    members["self." + text_of(field(child, "name"))] = child
                case "call" if text_of(field(child, "method")) in ("attr_reader", "attr_accessor"):
                    members |= {text_of(each)[1:]: None for each in named(field(child, "arguments"))}
                case "assignment":
                    self.value(child)
                case "identifier" if text_of(child) in ("private", "public", "protected"):
                    pass
                case _:
                    raise UnknownError
        self._names[name] = Class(name, members)

    def struct(self, node: Node, fields: list[Any]) -> Class:
        """Run `Struct.new` and `Data.define`; the block holds methods."""
        members: dict[str, Any] = {}
        body = node.child_by_field_name("block")
        for child in named(body.child_by_field_name("body")) if body is not None else []:
            if child.type != "method":
                raise UnknownError
            members[text_of(field(child, "name"))] = child
        return Class("Struct", {**{str(self.plain(each)): None for each in fields}, **members})

    def _made(self, made: Class, arguments: list[Any]) -> Instance:
        """Run `new` of a class, or of a structure, whose members are given in their order or by name."""
        found = Instance(made, {})
        if "initialize" in made.members:
            self._function(made.members["initialize"], found).run(arguments)
        elif made.name == "Struct":
            names = [name for name, member in made.members.items() if member is None]
            match arguments:
                case [dict() as pairs]:
                    given = {str(key): value for key, value in pairs.items()}
                case _:
                    given = dict(zip(names, arguments, strict=False))
            found.attributes.update({f"@{name}": given.get(name) for name in names})
        elif arguments:
            raise UnknownError
        return found

    def of_object(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        """Run a method of an object or of a class."""
        match owner:
            case Class(members=members) if f"self.{name}" in members:
                return self._function(members[f"self.{name}"], owner).run(arguments)
            case Class(members=members) if name == "new":
                return self._made(owner, arguments)
            case Instance(of=Class(members=members), attributes=attributes) if name in members:
                if members[name] is None:
                    return attributes.get(f"@{name}")
                return self._function(members[name], owner).run(arguments)
            case _:
                raise UnknownError

    def method(self, owner: Any, name: str, arguments: list[Any], block: Function | None) -> Any:
        """Run a method."""
        if isinstance(owner, Class | Instance) and block is None:
            return self.of_object(owner, name, arguments)
        return super().method(owner, name, arguments, block)

    def text(self, value: Any) -> str:
        """Return a value as Ruby writes it into a text."""
        if isinstance(value, Instance):
            return self.text(self.of_object(value, "to_s", []))
        return super().text(value.text if isinstance(value, Raised) else value)

    def function(self, name: str, arguments: list[Any], block: Function | None) -> Any:
        """Run a function: of the object whose method runs, of the program, or of the library."""
        owner = self._names.get(_SELF)
        members = {} if owner is None else (owner if isinstance(owner, Class) else owner.of).members
        if name == "new" and isinstance(owner, Class):
            return self.of_object(owner, name, arguments)
        if (f"self.{name}" if isinstance(owner, Class) else name) in members:
            return self.of_object(owner, name, arguments)
        return super().function(name, arguments, block)

    def own_variables(self) -> dict[str, Any]:
        """Return the variables of the object whose method runs, or of the program."""
        owner = self._names.get(_SELF)
        return owner.attributes if isinstance(owner, Instance) else self._names

    # ------------------------------------------------------------ blocks

    def block(self, node: Node, parameters: Node | None = None) -> Function:
        """Return a block as a function; `next` gives its value."""
        given = parameters if parameters is not None else node.child_by_field_name("parameters")
        targets = [child for child in named(given) if child.type != "block_parameter"]
        body = node.child_by_field_name("body")
        place = self.place

        def run(arguments: list[Any]) -> Any:
            def inside() -> Any:
                if len(targets) > 1 and len(arguments) == 1 and isinstance(arguments[0], list):
                    self._bind_parameters(targets, arguments[0])
                elif targets:
                    self._bind_parameters(targets, arguments)
                else:
                    for name in ("_1", "it"):
                        self.declare(name, arguments[0] if arguments else None)
                return self.body(body)

            return self.called(place, inside)

        return Function(run)

    def _bind_parameters(self, targets: list[Node], values: list[Any]) -> None:
        for number, target in enumerate(targets):
            given = values[number] if number < len(values) else None
            if target.type == "optional_parameter":
                value = given if number < len(values) else self.value(field(target, "value"))
                self.declare(text_of(field(target, "name")), value)
            elif target.type == "keyword_parameter":
                name = text_of(field(target, "name"))
                pairs = values[-1] if values and isinstance(values[-1], dict) else {}
                default = target.child_by_field_name("value")
                if name not in pairs and default is None:
                    raise UnknownError
                self.declare(name, pairs[name] if name in pairs else self.value(default))
            elif target.type == "destructured_parameter":
                self._bind_parameters(named(target), self.list_of(given))
            elif target.type == "identifier":
                self.declare(text_of(target), given)
            else:
                raise UnknownError
