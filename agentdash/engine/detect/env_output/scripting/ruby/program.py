"""Programs in Ruby: statements and expressions."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from tree_sitter import Node

from agentdash.engine.detect.env_output.patterns import Parts
from agentdash.engine.detect.env_output.scripting.grammars import field, named, only_child, text_of
from agentdash.engine.detect.env_output.scripting.ruby.literals import Literals
from agentdash.engine.detect.env_output.scripting.values import (
    LEAVING,
    ExitError,
    FailedError,
    Function,
    LastError,
    NextError,
    Pattern,
    Raised,
    ReturnError,
    Symbol,
)
from agentdash.engine.detect.env_output.unknown import UnknownError

_ABOVE: Final = {"KeyError": "IndexError", "NoMethodError": "NameError"}
"""Classes of exceptions below `StandardError`, and those between."""
_BLOCKS: Final = ("then", "do", "body_statement", "block_body", "begin", "program")


class Ruby(Literals):
    """A run of a program in Ruby."""

    def program(self, root: Node) -> None:
        """Run a program."""
        self._sequence(named(root))

    def over_lines(self, root: Node, content: Parts) -> None:
        """Run a program for each line of its input, as `-n` does."""

        def run(line: str) -> None:
            self._names["$_"] = line
            with suppress(NextError):
                self._sequence(named(root))

        self.out += self.changed_lines(content, run)

    # ------------------------------------------------------------ statements

    def _sequence(self, nodes: list[Node]) -> Any:
        """Run statements, and return the value of the last one."""
        value: Any = None
        for node in nodes:
            value = value if node.type == "heredoc_body" else self.value(node)
        return value

    def body(self, node: Node | None) -> Any:
        """Run the body of something, and return the value of its last statement."""
        if node is None:
            return None
        if node.type not in _BLOCKS:
            return self.value(node)
        children = named(node)
        handlers = [child for child in children if child.type == "rescue"]
        if any(child.type == "else" for child in children):
            raise UnknownError
        statements = [child for child in children if child.type not in ("rescue", "ensure")]
        if not (last := next((child for child in children if child.type == "ensure"), None)):
            return self._guarded(statements, handlers)
        try:
            value = self._guarded(statements, handlers)
        except (FailedError, *LEAVING):
            self._sequence(named(last))
            raise
        except ExitError as ended:
            raise UnknownError from ended
        self._sequence(named(last))
        return value

    def _guarded(self, statements: list[Node], handlers: list[Node]) -> Any:
        try:
            return self._sequence(statements)
        except FailedError as failed:
            return self._rescued(handlers, failed)

    def _rescued(self, handlers: list[Node], failed: FailedError) -> Any:
        for handler in handlers:
            classes = handler.child_by_field_name("exceptions")
            if self._handles([text_of(each) for each in named(classes)] if classes else [], failed.kind):
                variable = handler.child_by_field_name("variable")
                if variable is not None:
                    error = Raised(self.word_of_error() if failed.text is None else failed.text)
                    self._names[text_of(only_child(variable))] = error
                return self.body(handler.child_by_field_name("body"))
        raise failed

    def _handles(self, names: list[str], kind: str) -> bool:
        """Return whether `rescue` is for an exception; without a class it is for most."""
        if not names or {"StandardError", "Exception", kind, _ABOVE.get(kind)} & {*names}:
            return True
        return kind == "" and self.decide()

    def value(self, node: Node) -> Any:
        """Return the value of an expression or a statement."""
        self.step()
        match node.type:
            case "string" | "string_array" | "symbol_array" | "subshell" | "heredoc_beginning" | "regex":
                return self._literal(node)
            case "chained_string":
                return "".join(self.text(self.value(child)) for child in named(node))
            case "simple_symbol":
                return Symbol(text_of(node)[1:])
            case "integer":
                return int(text_of(node))
            case "nil" | "true" | "false":
                return {"nil": None, "true": True, "false": False}[node.type]
            case "instance_variable":
                return self.own_variables().get(text_of(node))
            case "self":
                return self._names["@self"]
            case "identifier" | "constant" | "global_variable" | "scope_resolution":
                return self._named(text_of(node))
            case "parenthesized_statements" | "begin" | "then" | "body_statement":
                return (
                    self.body(node)
                    if node.type != "parenthesized_statements"
                    else self._sequence(named(node))
                )
            case "array":
                return [item for child in named(node) for item in self._items(child)]
            case "hash":
                return self._hash(node)
            case "element_reference":
                owner, *keys = named(node)
                return self.at(self.value(owner), [self.value(key) for key in keys])
            case "call":
                return self._call(node)
            case "lambda":
                return self.block(field(node, "body"), node.child_by_field_name("parameters"))
            case _:
                return self._statement(node)

    def _statement(self, node: Node) -> Any:
        match node.type:
            case "if" | "unless" | "elsif":
                return self._if(node)
            case "if_modifier" | "unless_modifier":
                if self.holds(field(node, "condition")) is (node.type == "if_modifier"):
                    return self.value(field(node, "body"))
                return None
            case "conditional":
                holds = self.holds(field(node, "condition"))
                return self.value(field(node, "consequence" if holds else "alternative"))
            case "rescue_modifier":
                try:
                    return self.value(field(node, "body"))
                except FailedError:
                    return self.value(field(node, "handler"))
            case "for":
                return self._for(node)
            case "while" | "until":
                return self._while(node)
            case "method":
                return self.define(node)
            case "class":
                return self.define_class(node)
            case "case":
                return self._case(node)
            case "next":
                raise NextError
            case "break":
                raise LastError
            case "return":
                arguments = named(node)
                raise ReturnError(self.value(named(arguments[0])[0]) if arguments else None)
            case "assignment" | "operator_assignment":
                return self._assigned(node)
            case "binary":
                return self._binary(node)
            case "unary" if text_of(field(node, "operator")) in ("!", "not"):
                return not self.truth(self.value(field(node, "operand")))
            case "empty_statement":
                return None
            case _:
                raise UnknownError

    def holds(self, condition: Node) -> bool:
        """Return whether a condition holds; a regular expression alone is compared with the line read."""
        value = self.value(condition)
        if isinstance(value, Pattern):
            return self.matches(value, self._names.get("$_"))
        return self.truth(value)

    def _if(self, node: Node) -> Any:
        holds = self.holds(field(node, "condition"))
        if holds is (node.type != "unless"):
            return self.body(node.child_by_field_name("consequence"))
        other = node.child_by_field_name("alternative")
        if other is None:
            return None
        return self._if(other) if other.type == "elsif" else self._sequence(named(other))

    def _case(self, node: Node) -> Any:
        subject = self.value(field(node, "value"))
        for child in named(node):
            if child.type == "else":
                return self._sequence(named(child))
            patterns = [self.value(only_child(each)) for each in child.children_by_field_name("pattern")]
            if child.type == "when" and any(self._fits(subject, each) for each in patterns):
                return self.body(field(child, "body"))
        return None

    def _fits(self, subject: Any, pattern: Any) -> bool:
        if isinstance(pattern, Pattern):
            return isinstance(subject, str) and self.matches(pattern, subject)
        return self.equal(subject, pattern)

    def _for(self, node: Node) -> None:
        pattern, body = field(node, "pattern"), field(node, "body")

        def run(item: Any) -> None:
            self._bind(pattern, item)
            self._sequence(named(body))

        self.each(self.iterable(self.value(only_child(field(node, "value")))), run)

    def _while(self, node: Node) -> None:
        test, body = field(node, "condition"), named(field(node, "body"))
        self.repeat(lambda: self.holds(test) is (node.type == "while"), lambda: self._sequence(body))

    # ------------------------------------------------------------ variables

    def _bind(self, target: Node, value: Any) -> None:
        match target.type:
            case "identifier" | "constant" | "global_variable":
                self._names[text_of(target)] = value
            case "instance_variable":
                self.own_variables()[text_of(target)] = value
            case "left_assignment_list":
                values = self.list_of(value)
                for number, each in enumerate(named(target)):
                    self._bind(each, values[number] if number < len(values) else None)
            case "element_reference":
                owner, key = named(target)
                self.put(self.value(owner), self.value(key), value)
            case _:
                raise UnknownError

    def _assigned(self, node: Node) -> Any:
        target, right = field(node, "left"), field(node, "right")
        if node.type == "assignment":
            if right.type == "right_assignment_list":
                value: Any = [self.value(child) for child in named(right)]
            else:
                value = self.value(right)
            self._bind(target, value)
            return value
        sign = text_of(field(node, "operator")).removesuffix("=")
        before = self._names.get(text_of(target)) if target.type == "identifier" else self.value(target)
        if sign == "||":
            value = before if self.truth(before) else self.value(right)
        else:
            value = self.computed(sign, before, self.value(right))
        self._bind(target, value)
        return value

    def _named(self, name: str) -> Any:
        if name in self._names:
            return self._names[name]
        return self.constant(name)

    # ------------------------------------------------------------ operators, calls

    def _binary(self, node: Node) -> Any:
        sign = text_of(field(node, "operator"))
        left, right = field(node, "left"), field(node, "right")
        value = self.value(left)
        match sign:
            case "||" | "or":
                return value if self.truth(value) else self.value(right)
            case "&&" | "and":
                return self.value(right) if self.truth(value) else value
            case "<<" if isinstance(value, str) and left.type == "identifier":
                self._names[text_of(left)] = value + self.text(self.value(right))
                return self._names[text_of(left)]
            case "=~" | "!~":
                other = self.value(right)
                pattern, text = (other, value) if isinstance(other, Pattern) else (value, other)
                if not isinstance(pattern, Pattern):
                    raise UnknownError
                return (text is not None and self.matches(pattern, text)) is (sign == "=~")
            case _:
                return self.computed(sign, value, self.value(right))

    def _call(self, node: Node) -> Any:
        receiver = node.child_by_field_name("receiver")
        method = node.child_by_field_name("method")
        name = "call" if method is None else text_of(method)
        if receiver is not None and (text_of(receiver), name) in (("Struct", "new"), ("Data", "define")):
            given = [each for each in named(node.child_by_field_name("arguments")) if each.type != "pair"]
            return self.struct(node, [self.value(each) for each in given])
        arguments, block = self._arguments(node)
        if receiver is None:
            return self.function(name, arguments, block)
        owner = self.value(receiver)
        if owner is None and text_of(field(node, "operator")) == "&.":
            return None
        return self.method(owner, name, arguments, block)

    def _arguments(self, node: Node) -> tuple[list[Any], Function | None]:
        arguments: list[Any] = []
        pairs: dict[Any, Any] = {}
        inner = node.child_by_field_name("block")
        block = None if inner is None else self.block(inner)
        for child in named(node.child_by_field_name("arguments")):
            match child.type:
                case "heredoc_body":
                    pass
                case "pair":
                    pairs[self._key(field(child, "key"))] = self._pair_value(child)
                case "block_argument":
                    block = self._of_symbol(self.value(only_child(child)))
                case _:
                    arguments += self._items(child)
        return ([*arguments, pairs] if pairs else arguments), block

    def _of_symbol(self, value: Any) -> Function:
        """Return `&:name` as a block."""
        if isinstance(value, Function):
            return value
        if not isinstance(value, Symbol):
            raise UnknownError
        return Function(lambda arguments: self.method(arguments[0], str(value), arguments[1:], None))
