"""Functions, variables and classes in programs of PHP."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from tree_sitter import Node

from agentdash.engine.detect.env_output.scripting.grammars import field, named, text_of
from agentdash.engine.detect.env_output.scripting.php.library import Library
from agentdash.engine.detect.env_output.scripting.scopes import Place
from agentdash.engine.detect.env_output.scripting.values import Function
from agentdash.engine.detect.env_output.scripting.variables import Class, Instance
from agentdash.engine.detect.env_output.unknown import UnknownError


class Objects(Library):
    """Functions, variables and classes."""

    @abstractmethod
    def block(self, node: Node) -> None:
        """Run a block, or a statement."""

    # ------------------------------------------------------------ functions

    def define(self, node: Node) -> None:
        """Define a function or a class."""
        if node.type == "class_declaration":
            self._define_class(node)
            return
        self.functions[text_of(field(node, "name")).lower()] = self.function(node, captures=False)

    def function(self, node: Node, *, captures: bool, owner: Any = None) -> Function:
        """Return a function of the program; `owner` is the object that it is a method of."""
        parameters = named(field(node, "parameters"))
        body = field(node, "body")
        captured = self._captures(node) if captures else {}

        def run(arguments: list[Any]) -> Any:
            names = {**captured, **({} if owner is None else {"$this": owner})}

            def inside() -> Any:
                for number, parameter in enumerate(parameters):
                    name = text_of(field(parameter, "name"))
                    default = parameter.child_by_field_name("default_value")
                    if number < len(arguments):
                        self._names[name] = arguments[number]
                    else:
                        self._names[name] = None if default is None else self.value(default)
                    if parameter.type == "property_promotion_parameter":
                        owner.attributes[name[1:]] = self._names[name]
                return self.value(body) if node.type == "arrow_function" else self.block(body)

            return self.returned(Place(names), inside)

        return Function(run)

    def _captures(self, node: Node) -> dict[str, Any]:
        """Return the variables that a function without a name has from where it is defined."""
        if node.type == "arrow_function":
            return dict(self._names)
        used = next((child for child in named(node) if child.type == "anonymous_function_use_clause"), None)
        if used is None:
            return {}
        if "&" in text_of(used):
            raise UnknownError
        return {name: self._names[name] for name in map(text_of, named(used))}

    def bind(self, target: Node, value: Any) -> None:
        """Give a value to a variable, an item or an attribute."""
        match target.type:
            case "variable_name":
                name = text_of(target)
                if name in ("$_SERVER", "$_ENV", "$GLOBALS"):
                    raise UnknownError
                self._names[name] = value
            case "list_literal":
                for each, inner in zip(named(target), self.list_of(value), strict=False):
                    self.bind(each, inner)
            case "member_access_expression":
                owner = self.value(field(target, "object"))
                if not isinstance(owner, Instance):
                    raise UnknownError
                owner.attributes[text_of(field(target, "name"))] = value
            case "subscript_expression":
                self._put(named(target), value)
            case _:
                raise UnknownError

    def _put(self, nodes: list[Node], value: Any) -> None:
        owner = self.value(nodes[0])
        if isinstance(owner, list) and not owner and len(nodes) > 1:
            owner = {}  # PHP has one type for both
            self.bind(nodes[0], owner)
        if isinstance(owner, list) and len(nodes) == 1:
            owner.append(value)
        elif isinstance(owner, dict) and len(nodes) > 1:
            owner[self.plain(self.value(nodes[1]))] = value
        else:
            raise UnknownError

    # ------------------------------------------------------------ classes

    def _define_class(self, node: Node) -> None:
        members: dict[str, Any] = {}
        if any(child.type in ("base_clause", "class_interface_clause") for child in named(node)):
            raise UnknownError
        for child in named(field(node, "body")):
            match child.type:
                case "method_declaration":
                    members[text_of(field(child, "name"))] = child
                case "property_declaration" | "const_declaration":
                    for each in named(child):
                        if each.type in ("property_element", "const_element"):
                            members[text_of(named(each)[0]).lstrip("$")] = self.value(named(each)[-1])
                case _:
                    raise UnknownError
        self._classes[text_of(field(node, "name"))] = Class(text_of(field(node, "name")), members)

    def of_objects(self, node: Node) -> Any:
        """Return what an expression with an object or a class gives."""
        given = node.child_by_field_name("arguments") or next(
            (child for child in named(node) if child.type == "arguments"), None
        )
        arguments = [self.value(each) for each in named(given)]
        if node.type == "object_creation_expression":
            return self._made(text_of(named(node)[0]), arguments)
        if node.type in ("scoped_call_expression", "class_constant_access_expression"):
            return self._of_class(node, arguments)
        owner, name = self.value(field(node, "object")), text_of(field(node, "name"))
        if not isinstance(owner, Instance):
            raise UnknownError
        if owner.of is None and name in owner.attributes:  # an exception
            return owner.attributes[name]
        if node.type == "member_access_expression":
            if name not in owner.attributes:
                raise UnknownError
            return owner.attributes[name]
        return self.function(owner.of.members[name], captures=False, owner=owner).run(arguments)

    def _made(self, name: str, arguments: list[Any]) -> Instance:
        if name == "stdClass":
            return Instance(Class(name, {}), {})
        made = self._classes[name]
        values = {key: value for key, value in made.members.items() if not hasattr(value, "type")}
        found = Instance(made, values)
        if "__construct" in made.members:
            self.function(made.members["__construct"], captures=False, owner=found).run(arguments)
        return found

    def _of_class(self, node: Node, arguments: list[Any]) -> Any:
        scope = node.child_by_field_name("scope") or named(node)[0]
        this = self._names.get("$this")
        made = this.of if text_of(scope) in ("self", "static") and this else self._classes.get(text_of(scope))
        name = text_of(node.child_by_field_name("name") or named(node)[-1])
        if made is None or name not in made.members:
            raise UnknownError
        if node.type == "class_constant_access_expression":
            return made.members[name]
        return self.function(made.members[name], captures=False, owner=this or Instance(made, {})).run(
            arguments
        )
