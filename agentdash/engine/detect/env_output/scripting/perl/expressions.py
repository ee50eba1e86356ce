"""Expressions of Perl, in scalar and in list context."""

from __future__ import annotations

from typing import Any, Final

from tree_sitter import Node

from agentdash.engine.detect.env_output.scripting.grammars import field, named, only_child, text_of
from agentdash.engine.detect.env_output.scripting.perl.calls import Calls
from agentdash.engine.detect.env_output.scripting.perl.library import Handle
from agentdash.engine.detect.env_output.scripting.values import Written
from agentdash.engine.detect.env_output.selections import Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_ENVIRONMENT: Final = "%ENV"


class Expressions(Calls):
    """Expressions of Perl, in scalar and in list context."""

    def value(self, node: Node) -> Any:
        """Return the value of an expression in scalar context."""
        self.step()
        match node.type:
            case "interpolated_string_literal" | "string_literal":
                return self._string(node)
            case "command_string":
                return self.captured(self._string(node))
            case "number":
                text = text_of(node)
                return int(text) if text.isdecimal() else text
            case "autoquoted_bareword" | "bareword":
                return text_of(node)
            case "scalar":
                return self._scalar(text_of(node))
            case "hash_element_expression":
                return self._element(node)
            case "array_element_expression":
                return self._item(node)
            case "parenthesized_expression":
                return self.value(only_child(node))
            case "array":
                values = self._named_list(text_of(node))
                return len(values) if isinstance(values, list) else self.size(values)
            case "hash":
                return self.size(self._mapping(text_of(node)))
            case "anonymous_hash_expression":
                return self._hash_of(node)
            case "anonymous_array_expression":
                return [item for child in named(node) for item in self.list_of(self.values(child))]
            case "refgen_expression":
                return self._mapping(text_of(only_child(node)))
            case "match_regexp":
                return self._matched(self._regex(node), self._scalar("$_"))
            case "substitution_regexp":
                return self._substituted(node, "$_")
            case "assignment_expression":
                return self._assigned(node)
            case "map_grep_expression" | "sort_expression":
                values = self.values(node)
                return self.size(values)
            case _:
                return self._operation(node)

    def values(self, node: Node) -> Any:
        """Return the values of an expression in list context."""
        match node.type:
            case "list_expression":
                return self._flat([self.values(child) for child in named(node)])
            case "parenthesized_expression":
                return self.values(only_child(node)) if named(node) else []
            case "stub_expression":
                return []
            case "quoted_word_list":
                return _words(node)
            case "array":
                return self._named_list(text_of(node))
            case "hash":
                return self.items_of(self._mapping(text_of(node)))
            case "slice_expression":
                mapping = self._mapping("%" + text_of(field(node, "hash"))[1:])
                return [self._at(mapping, key) for key in self.list_of(self.values(named(node)[-1]))]
            case "map_grep_expression":
                return self._map_or_grep(node)
            case "sort_expression":
                return self._sorted(self.values(field(node, "list")), self._compares(node))
            case "command_string":
                written = self.captured(self._string(node))
                return self._lines(written)
            case "conditional_expression":
                return self.values(field(node, self._branch(node)))
            case (
                "func1op_call_expression" | "function_call_expression" | "ambiguous_function_call_expression"
            ):
                found = self._call(node, in_list=True)
                return found if isinstance(found, list | Selection | Lines) else [found]
            case _:
                value = self.value(node)
                return value if isinstance(value, Lines | Written) else [value]

    def _operation(self, node: Node) -> Any:
        match node.type:
            case "conditional_expression":
                return self.value(field(node, self._branch(node)))
            case "binary_expression" | "equality_expression" | "relational_expression":
                return self._binary(node)
            case "lowprec_logical_expression":
                return self._binary(node)
            case "unary_expression" if text_of(field(node, "operator")) in ("!", "not"):
                return not self.holds(field(node, "operand"))
            case "postinc_expression" | "preinc_expression":
                return self._stepped(node)
            case (
                "func1op_call_expression" | "function_call_expression" | "ambiguous_function_call_expression"
            ):
                found = self._call(node, in_list=False)
                return found[-1] if isinstance(found, list) and found else found
            case "function" | "func0op_call_expression":
                name = text_of(node)
                if name in ("print", "say"):
                    return self.printed(name, [self._scalar("$_")], "STDOUT")
                return self.call(name, [], in_list=False)
            case "method_call_expression":
                return self._method(node)
            case "eval_expression":
                return self.evaluated(only_child(node))
            case "anonymous_slice_expression":
                return self._picked(node)
            case "localization_expression" | "variable_declaration":
                self._bind(node, None)
                return None
            case _:
                raise UnknownError

    def _branch(self, node: Node) -> str:
        return "consequent" if self.holds(field(node, "condition")) else "alternative"

    # ------------------------------------------------------------ variables

    def _element(self, node: Node) -> Any:
        key = self.value(field(node, "key"))
        container = node.child_by_field_name("hash")
        if container is None or container.type != "container_variable":
            return self._at(self.value(named(node)[0]), key)
        return self._at(self._mapping("%" + text_of(container)[1:]), key)

    def _at(self, mapping: Any, key: Any) -> Any:
        if isinstance(mapping, Selection):
            return self.item_of(mapping, key)
        if not isinstance(mapping, dict):
            raise UnknownError
        return mapping.get(self.plain(key))

    def _item(self, node: Node) -> Any:
        return self._nth(
            self._named_list("@" + text_of(field(node, "array"))[1:]), self.value(field(node, "index"))
        )

    def _picked(self, node: Node) -> Any:
        """Return what `(…)[index]` gives."""
        *items, place = named(node)
        return self._nth(self._flat([self.values(item) for item in items]), self.value(place))

    def _nth(self, values: Any, index: Any) -> Any:
        if not isinstance(values, list) or not isinstance(index, int):
            raise UnknownError
        return values[index] if -len(values) <= index < len(values) else None

    def evaluated(self, node: Node) -> Any:
        """Run `eval` with a block."""
        raise NotImplementedError

    def _assigned(self, node: Node) -> Any:
        target, right = field(node, "left"), field(node, "right")
        sign = text_of(field(node, "operator"))
        inner = (
            named(target)[-1]
            if target.type in ("variable_declaration", "localization_expression")
            else target
        )
        is_list = inner.type in ("hash", "array", "parenthesized_expression", "slice_expression")
        is_list = is_list or "(" in text_of(target) or target.type == "stub_expression"
        if sign == "=":
            value = self.values(right) if is_list else self.value(right)
            self._bind(target, value)
            return value if not is_list else self.size(value) if not isinstance(value, Written) else None
        before = self.value(target)
        if sign in ("//=", "||="):
            keeps = self.defined(before) if sign == "//=" else self.truth(before)
            value = before if keeps else self.value(right)
        else:
            value = self.computed(sign.removesuffix("="), before, self.value(right))
        self._bind(target, value)
        return value

    def _bind(self, target: Node, value: Any) -> None:
        match target.type:
            case "variable_declaration" | "localization_expression":
                variables = [child for child in named(target) if child.type in ("scalar", "array", "hash")]
                if "(" in text_of(target):
                    self._bind_all(variables, value, is_new=True)
                else:
                    self._bind_one(variables[0], value, is_new=target.type == "variable_declaration")
            case "parenthesized_expression":
                inner = only_child(target)
                self._bind_all(
                    named(inner) if inner.type == "list_expression" else [inner], value, is_new=False
                )
            case "stub_expression":
                pass
            case _:
                self._bind_one(target, value, is_new=False)

    def _bind_all(self, targets: list[Node], value: Any, *, is_new: bool) -> None:
        values = self.list_of(value)
        for number, target in enumerate(targets):
            if target.type == "array":
                self._bind_one(target, values[number:], is_new=is_new)
            else:
                self._bind_one(target, values[number] if number < len(values) else None, is_new=is_new)

    def _bind_one(self, target: Node, value: Any, *, is_new: bool) -> None:
        name = text_of(target)
        match target.type:
            case "scalar":
                if not self.set_special(name, value):
                    self.declare(name, value) if is_new else self._names.__setitem__(name, value)
            case "array":
                value = list(value) if isinstance(value, list) else value
                self.declare(name, value) if is_new else self._names.__setitem__(name, value)
            case "hash" if name != _ENVIRONMENT:
                value = self.hash_of(value)
                self.declare(name, value) if is_new else self._names.__setitem__(name, value)
            case "hash_element_expression":
                mapping = self._mapping("%" + text_of(field(target, "hash"))[1:])
                if not isinstance(mapping, dict):
                    raise UnknownError
                mapping[self.plain(self.value(field(target, "key")))] = value
            case _:
                raise UnknownError

    def _stepped(self, node: Node) -> Any:
        target = field(node, "operand")
        before = self.value(target)
        after = self.computed("+", 0 if before is None else before, 1 if "++" in text_of(node) else -1)
        self._bind(target, after)
        return before if node.type == "postinc_expression" else after

    # ------------------------------------------------------------ operators, calls

    def _binary(self, node: Node) -> Any:
        sign = text_of(field(node, "operator"))
        left, right = field(node, "left"), field(node, "right")
        match sign:
            case "||" | "or":
                value = self.value(left)
                return value if self.truth(value) else self.value(right)
            case "&&" | "and":
                value = self.value(left)
                return self.value(right) if self.truth(value) else value
            case "//":
                value = self.value(left)
                return value if self.defined(value) else self.value(right)
            case "=~" | "!~":
                return self._bound(sign, left, right)
            case "..":
                raise UnknownError
            case _:
                return self.computed(sign, self.value(left), self.value(right))

    def _bound(self, sign: str, left: Node, right: Node) -> Any:
        if right.type == "substitution_regexp" and left.type == "scalar":
            return self._substituted(right, text_of(left))
        if right.type != "match_regexp":
            raise UnknownError
        return self._matched(self._regex(right), self.value(left)) is (sign == "=~")

    def _map_or_grep(self, node: Node) -> Any:
        callback, source = field(node, "callback"), field(node, "list")
        body = callback
        if callback.type == "block":
            body = only_child(only_child(callback))
        values = self.values(source)
        is_map = node.children[0].type == "map"

        def run(item: Any) -> Any:
            def inside() -> Any:
                self.declare("$_", item)
                return self.values(body) if is_map else self.holds(body)

            return self.scoped(inside)

        if not is_map:
            return self.kept(values, run)
        if isinstance(values, Selection | Lines):
            return self.mapped(values, lambda item: self._one_or_pair(run(item)))
        return self._flat([[], *(run(item) for item in self.list_of(values)), []])

    def _compares(self, node: Node) -> bool:
        """Return whether values are sorted as texts."""
        signs = text_of(node).partition("{")[0].strip(" (")
        block = text_of(node).partition("{")[2].partition("}")[0].strip()
        return signs != "sort" or block == "$a cmp $b"

    def _one_or_pair(self, found: Any) -> Any:
        return found[0] if isinstance(found, list) and len(found) == 1 else found

    # ------------------------------------------------------------ what loops read

    def lines_read(self, condition: Node) -> tuple[str, Any] | None:
        """Return the variable and the lines of `while (my $line = <$handle>)`; None for other conditions."""
        name = "$_"
        if condition.type == "assignment_expression":
            target = field(condition, "left")
            name = text_of(named(target)[-1] if target.type == "variable_declaration" else target)
            condition = field(condition, "right")
        if condition.type != "readline_expression":
            return None
        handle = self._names.get(text_of(condition).strip("<>"))
        if not isinstance(handle, Handle):
            raise UnknownError
        return name, self.with_ends(self.entries_of(handle.content, self.record_end), self.record_end)

    def pair_read(self, condition: Node) -> tuple[list[str], Any] | None:
        """Return the variables and the mapping of `while (my ($k, $v) = each %ENV)`; None for others."""
        if condition.type != "assignment_expression":
            return None
        right, target = field(condition, "right"), field(condition, "left")
        if right.type != "func1op_call_expression" or text_of(field(right, "function")) != "each":
            return None
        names = [text_of(child) for child in named(target) if child.type == "scalar"]
        trees = [child for child in named(right) if child.type == "hash"]
        if len(names) != 2 or len(trees) != 1:
            raise UnknownError
        return names, self._mapping(text_of(trees[0]))

    def _lines(self, written: Written) -> Any:
        try:
            return self.with_ends(self.entries_of(written, "\n"), "\n")
        except UnknownError:
            return written  # printed whole


def _words(node: Node) -> list[str]:
    content = node.child_by_field_name("content")
    return [] if content is None else text_of(content).split()
