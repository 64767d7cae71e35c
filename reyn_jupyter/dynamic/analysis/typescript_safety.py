"""What TypeScript and JavaScript of a tool do, read from the syntax tree of tree-sitter, with names resolved.

Invariants: as for Python, nothing is run, comments and texts are not read as code, and the time is bounded by the size
of the code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reyn_jupyter.dynamic.analysis.credentials import is_credential
from reyn_jupyter.dynamic.analysis.folding import MOST_TEXT
from reyn_jupyter.dynamic.analysis.safety_rules import (
    HUGE_COUNT,
    HUGE_EXPONENT,
    TYPESCRIPT_MODULES,
    Finding,
)
from reyn_jupyter.dynamic.analysis.typescript_calls import TypeScriptCalls
from reyn_jupyter.dynamic.analysis.typescript_scopes import (
    DISTINCTIVE_OF_DENO,
    SKIPPED,
    TypeScriptFunction,
    TypeScriptScope,
    canonical_name,
)
from reyn_jupyter.dynamic.analysis.typescript_syntax import (
    FUNCTIONS,
    LOOPS,
    is_empty,
    is_false,
    is_true,
    joined,
    parse_typescript,
    text_of,
    unescaped,
)
from reyn_jupyter.dynamic.analysis.values import (
    MOST_ITEMS,
    NOTHING,
    Const,
    Items,
    Ref,
    Value,
    collection,
    item_of,
    number_of,
    plain,
    union,
)
from reyn_jupyter.support.key_shapes import contains_key_shape

if TYPE_CHECKING:
    from tree_sitter import Node

_PASSES = 3


def typescript_findings(code: str) -> list[Finding]:
    """Return what TypeScript or JavaScript does that is worth a word, by line.

    Raises:
        ToolCodeError: as `parse_typescript`.
    """
    return _Reading(parse_typescript(code)).findings()


class _Reading(TypeScriptCalls):
    """One reading of a tree: its nodes, each after its parts, and what each may stand for."""

    # -- what it may stand for -------------------------------------------------------------------------------

    def findings(self) -> list[Finding]:
        for _ in range(_PASSES):
            self._dirty = False
            for kind, node, scope in self._steps:
                step = _STEPS.get(kind)
                if step is not None:
                    step(self, node, scope)
            if not self._dirty:
                break
        for loop in self._loops:
            self._look_at_loop(loop)
        self._look_at_the_rest()
        return sorted(
            (Finding(kind, line, what) for (kind, line), what in self._found.items()),
            key=lambda each: each.line,
        )

    def _look_at_the_rest(self) -> None:
        """Note what needed a look at all of the code: imports without a use, loose names, keys."""
        for module, line in self._imports.items():
            if (whole := TYPESCRIPT_MODULES.get(module)) is not None and module not in self._used:
                self._found.setdefault((whole, line), f"imports {module}")
        for name, line in self._loose if self._mentions_deno else ():
            if name not in self._own_names:
                self._found.setdefault(
                    (DISTINCTIVE_OF_DENO[name], line), f"uses {name} of what is probably Deno"
                )
        if contains_key_shape("\n".join(text for _, text in self._texts)):
            for line, text in self._texts:
                if contains_key_shape(text):
                    self._found.setdefault(("credentials", line), "holds a text of the shape of a key")

    def _read_identifier(self, node: Node, scope: TypeScriptScope) -> None:
        name = text_of(node)
        owner = self._owner(name, scope)
        if owner is None:
            self._mention(node, (Ref(canonical_name(f"globalThis.{name}")),))
        else:
            owner.read.add(name)
            self._mention(node, owner.values[name])

    def _read_member(self, node: Node, scope: TypeScriptScope) -> None:
        base = self._value(node.child_by_field_name("object"))
        name = text_of(node.child_by_field_name("property"))
        self._look_at_property(node, base, name)
        self._mention(node, self._property(base, name))

    def _read_subscript(self, node: Node, scope: TypeScriptScope) -> None:
        base = self._value(node.child_by_field_name("object"))
        self._mention(node, self._by_key(node, base, node.child_by_field_name("index")))

    def _read_string(self, node: Node, scope: TypeScriptScope) -> None:
        raw = node.text.decode(errors="replace")[1:-1] if node.text is not None else ""
        text = unescaped(raw) if "\\" in raw else raw
        self._texts.append((node.start_point.row + 1, text))
        if len(text) <= MOST_TEXT:
            self._set(node, (Const(text),))

    def _read_template(self, node: Node, scope: TypeScriptScope) -> None:
        text = ""
        for part in node.named_children:
            if part.type == "template_substitution":
                piece = plain(self._value(part.named_children[0])) if part.named_children else None
                if not isinstance(piece, (str, int)):
                    return
                text += str(piece)
            else:
                text += text_of(part)
        self._texts.append((node.start_point.row + 1, text))
        if len(text) <= MOST_TEXT:
            self._set(node, (Const(text),))

    def _read_number(self, node: Node, scope: TypeScriptScope) -> None:
        text = text_of(node).replace("_", "").removesuffix("n")
        try:
            number = int(text, 0) if re.match(r"0[xXoObB]", text) else float(text)
        except (ValueError, OverflowError):
            return
        whole = isinstance(number, float) and number.is_integer()
        self._set(node, (Const(int(number) if whole else number),))

    def _read_binary(self, node: Node, scope: TypeScriptScope) -> None:
        left, right = (self._value(node.child_by_field_name(side)) for side in ("left", "right"))
        operator = text_of(node.child_by_field_name("operator"))
        if operator in ("||", "??", "&&"):
            self._set(node, union(left, right))
        elif operator == "+":
            self._set(node, joined(left, right))
        elif operator in ("-", "*", "^", "**"):
            a, b = plain(left), plain(right)
            if operator == "**" and isinstance(b, int) and b >= HUGE_EXPONENT:
                self._note("huge_work", node, f"raises to the power {b:,}")
            elif isinstance(a, int) and isinstance(b, int) and operator != "**":
                made = {"-": a - b, "*": a * b, "^": a ^ b}[operator]
                if abs(made) < 1 << 64:
                    self._set(node, (Const(made),))
            elif (
                operator == "**"
                and isinstance(a, int)
                and isinstance(b, int)
                and 0 <= b < 64
                and abs(a) < 1 << 16
            ):
                self._set(node, (Const(a**b),))

    def _read_ternary(self, node: Node, scope: TypeScriptScope) -> None:
        self._set(
            node,
            union(*(self._value(node.child_by_field_name(each)) for each in ("consequence", "alternative"))),
        )

    def _read_last(self, node: Node, scope: TypeScriptScope) -> None:
        """What stands for its last part: `(0, eval)`."""
        children = [each for each in node.named_children if each.type not in SKIPPED]
        self._set(node, self._value(children[-1]) if children else NOTHING)

    def _read_first(self, node: Node, scope: TypeScriptScope) -> None:
        """What stands for its first part: `x as any`, `x!`, `await x`."""
        children = node.named_children
        self._set(node, self._value(children[0]) if children else NOTHING)

    def _read_array(self, node: Node, scope: TypeScriptScope) -> None:
        values: list[Value] = []
        for each in node.named_children[:MOST_ITEMS]:
            value = self._value(each)
            if each.type == "spread_element":
                inner = self._value(each.named_children[0]) if each.named_children else NOTHING
                values += [item for atom in inner if type(atom) is Items for item in atom.values]
            else:
                values.append(value)
        self._set(node, (collection(values),))

    def _read_object(self, node: Node, scope: TypeScriptScope) -> None:
        keys: list[Any] = []
        values: list[Value] = []
        spread: Value = NOTHING
        for each in node.named_children[:MOST_ITEMS]:
            if each.type == "pair":
                key = self._key(each.child_by_field_name("key"))
                value = each.child_by_field_name("value")
                keys.append(key)
                values.append(self._value(value))
                if key and is_credential(str(key), plain(self._value(value))):
                    self._note("credentials", each, f"gives {key} a value that is written out")
                if key:
                    self._own_names.add(str(key))
            elif each.type == "shorthand_property_identifier":
                keys.append(text_of(each))
                values.append(self._value(each))
            elif each.type == "spread_element" and each.named_children:
                spread = union(spread, self._value(each.named_children[0]))
        self._set(node, union((collection(values, keys),), spread))

    def _read_shorthand(self, node: Node, scope: TypeScriptScope) -> None:
        name = text_of(node)
        owner = self._owner(name, scope)
        self._mention(
            node, owner.values[name] if owner is not None else (Ref(canonical_name(f"globalThis.{name}")),)
        )

    def _read_function(self, node: Node, scope: TypeScriptScope) -> None:
        _, inner = self._functions[node.id]
        body = node.child_by_field_name("body")
        if body is not None and body.type != "statement_block":
            inner.returns = union(inner.returns, self._value(body))
        self._set(node, (TypeScriptFunction(node.id),))
        if node.type == "method_definition":
            name = self._key(node.child_by_field_name("name"))
            self._properties[str(name)] = union(
                self._properties.get(str(name), NOTHING), (TypeScriptFunction(node.id),)
            )

    def _read_parameter(self, node: Node, scope: TypeScriptScope) -> None:
        default = self._value(node.child_by_field_name("value"))
        pattern = node.child_by_field_name("pattern")
        if default:
            self._assign(pattern, default, scope)

    def _read_declarator(self, node: Node, scope: TypeScriptScope) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        self._assign(name, self._value(value), scope)
        if name is not None and is_credential(text_of(name), plain(self._value(value))):
            self._note("credentials", node, f"gives {text_of(name)} a value that is written out")

    def _read_assignment(self, node: Node, scope: TypeScriptScope) -> None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        value = self._value(right)
        if node.type == "augmented_assignment_expression":
            owner = (
                self._owner(text_of(left), scope) if left is not None and left.type == "identifier" else None
            )
            if owner is None or left is None:
                return
            before = owner.values[text_of(left)]
            made = joined(before[-1:], value) if len(value) == 1 else NOTHING
            kept = before if made else tuple(atom for atom in before if type(atom) is not Const)
            owner.values[text_of(left)] = union(kept, made)
            return
        self._assign(left, value, scope)
        self._set(node, value)
        name = text_of(left.child_by_field_name("property") or left) if left is not None else ""
        if is_credential(name, plain(value)):
            self._note("credentials", node, f"gives {name} a value that is written out")

    def _read_for_in(self, node: Node, scope: TypeScriptScope) -> None:
        right = self._value(node.child_by_field_name("right"))
        if text_of(node.child_by_field_name("operator")) == "in":
            self._look_at_unknown_key(node, right)
            return
        items: Value = NOTHING
        for atom in right:
            if type(atom) is Items and atom.keys is None:
                items = union(items, item_of(atom, [], False))
        self._assign(node.child_by_field_name("left"), items, scope)

    def _read_return(self, node: Node, scope: TypeScriptScope) -> None:
        value = self._value(node.named_children[0]) if node.named_children else NOTHING
        place: TypeScriptScope | None = scope
        while place is not None and not place.is_function:
            place = place.parent
        if place is not None:
            place.returns = union(place.returns, value)

    def _read_regex(self, node: Node, scope: TypeScriptScope) -> None:
        pattern = node.child_by_field_name("pattern")
        text = (
            pattern.text.decode(errors="replace") if pattern is not None and pattern.text is not None else ""
        )
        self._look_at_pattern(node, text)

    # -- loops -----------------------------------------------------------------------------------------------

    def _look_at_loop(self, node: Node) -> None:
        condition = node.child_by_field_name("condition")
        if node.type == "for_statement":
            self._look_at_count(node, condition)
        endless = node.type in ("while_statement", "do_statement") and is_true(condition)
        endless = endless or (
            node.type == "for_statement" and (condition is None or is_empty(condition) or is_true(condition))
        )
        if endless and not self._has_way_out(node.child_by_field_name("body")):
            self._note("endless_loop", node, "a loop without a break, return or throw")

    def _look_at_count(self, node: Node, condition: Node | None) -> None:
        while condition is not None and condition.type in (
            "expression_statement",
            "parenthesized_expression",
        ):
            condition = condition.named_children[0] if condition.named_children else None
        if condition is None or condition.type != "binary_expression":
            return
        if text_of(condition.child_by_field_name("operator")) not in ("<", "<="):
            return
        end = number_of(self._value(condition.child_by_field_name("right")))
        if end is not None and end > HUGE_COUNT:
            self._note("huge_work", node, f"counts to {end:,}")

    def _has_way_out(self, body: Node | None) -> bool:
        pending: list[tuple[Node, bool]] = [] if body is None else [(body, True)]
        while pending:
            node, own = pending.pop()
            kind = node.type
            if kind in ("return_statement", "throw_statement", "yield_expression"):
                return True
            if kind == "break_statement" and (own or node.named_children):
                return True
            if kind == "call_expression" and {"Deno.exit", "process.exit"} & set(
                self._paths(node.child_by_field_name("function"))
            ):
                return True
            if kind in FUNCTIONS or kind == "class_body":
                continue
            if kind == "if_statement" and is_false(node.child_by_field_name("condition")):
                alternative = node.child_by_field_name("alternative")
                pending += [(alternative, own)] if alternative is not None else []
                continue
            inner = own and kind not in LOOPS and kind != "switch_statement"
            pending += [(each, inner) for each in node.named_children]
        return False


_STEPS: dict[str, Callable[[_Reading, Node, TypeScriptScope], None]] = {
    "identifier": _Reading._read_identifier,
    "shorthand_property_identifier": _Reading._read_shorthand,
    "member_expression": _Reading._read_member,
    "subscript_expression": _Reading._read_subscript,
    "string": _Reading._read_string,
    "template_string": _Reading._read_template,
    "number": _Reading._read_number,
    "binary_expression": _Reading._read_binary,
    "ternary_expression": _Reading._read_ternary,
    "parenthesized_expression": _Reading._read_last,
    "sequence_expression": _Reading._read_last,
    "type_assertion": _Reading._read_last,
    "as_expression": _Reading._read_first,
    "satisfies_expression": _Reading._read_first,
    "non_null_expression": _Reading._read_first,
    "await_expression": _Reading._read_first,
    "array": _Reading._read_array,
    "object": _Reading._read_object,
    **dict.fromkeys(FUNCTIONS, _Reading._read_function),
    "required_parameter": _Reading._read_parameter,
    "optional_parameter": _Reading._read_parameter,
    "variable_declarator": _Reading._read_declarator,
    "assignment_expression": _Reading._read_assignment,
    "augmented_assignment_expression": _Reading._read_assignment,
    "for_in_statement": _Reading._read_for_in,
    "return_statement": _Reading._read_return,
    "regex": _Reading._read_regex,
    "call_expression": _Reading._read_call,
    "new_expression": _Reading._read_call,
}
