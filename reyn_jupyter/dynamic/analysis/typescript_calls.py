"""Calls in TypeScript code: what each gives, and what of it is worth a word.

Invariant: as for `typescript_safety`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reyn_jupyter.dynamic.analysis.regex_shape import has_nested_quantifiers
from reyn_jupyter.dynamic.analysis.safety_rules import (
    HUGE_ITEMS,
    LONG_SLEEP,
)
from reyn_jupyter.dynamic.analysis.typescript_scopes import (
    TypeScriptFunction,
    TypeScriptNames,
    TypeScriptScope,
    kind_of,
    module_name,
    words_of_name,
)
from reyn_jupyter.dynamic.analysis.typescript_syntax import (
    decoded,
    text_method,
    text_of,
)
from reyn_jupyter.dynamic.analysis.values import (
    LONGEST_PATH,
    MOST_ATOMS,
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

if TYPE_CHECKING:
    from tree_sitter import Node

_SIZED = frozenset({
    "Array", "ArrayBuffer", "SharedArrayBuffer", "Uint8Array", "Int8Array", "Uint16Array", "Int32Array",
    "Uint32Array", "Float32Array", "Float64Array", "BigInt64Array", "Buffer.alloc",
})  # fmt: skip
_LISTERS = frozenset({
    "Object.values", "Object.entries", "Object.keys", "Reflect.ownKeys", "Object.getOwnPropertyNames",
})  # fmt: skip
_COPIES = frozenset({"Object.assign", "Object.freeze", "Object.create", "structuredClone", "Promise.resolve"})
_WRITING_OPTIONS = frozenset({"write", "append", "create", "createNew", "truncate"})


class TypeScriptCalls(TypeScriptNames):
    """Names, and what calls give."""

    def _read_call(self, node: Node, scope: TypeScriptScope) -> None:
        called = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        listed = node.child_by_field_name("arguments")
        if called is None:
            return
        if listed is not None and listed.type == "template_string":
            self._set(node, self._value(called))
            return
        arguments = listed.named_children if listed is not None else []
        values = [self._value(each) for each in arguments]
        value: Value = NOTHING
        if called.type == "import":
            self._read_import(node, values)
            return
        for atom in self._value(called):
            if type(atom) is TypeScriptFunction:
                value = union(value, self._enter(atom, values, called))
            elif type(atom) is Ref:
                value = union(value, self._result(node, atom.path, arguments, values))
        member = called
        while member.type == "parenthesized_expression" and member.named_children:
            member = member.named_children[0]
        if member.type in ("member_expression", "subscript_expression"):
            value = union(value, self._method(node, member, arguments, values))
        self._mention_made(node, value)

    def _mention_made(self, node: Node, value: Value) -> None:
        for atom in value:
            if (
                type(atom) is Ref
                and not atom.path.endswith("()")
                and (kind := kind_of(atom.path)) is not None
            ):
                self._note(kind, node, f"uses {words_of_name(atom.path)}")
        self._set(node, value)

    def _read_import(self, node: Node, values: list[Value]) -> None:
        self._note("dynamic_code", node, "imports a module while it runs")
        names = [atom.value for value in values[:1] for atom in value if type(atom) is Const]
        self._set(node, tuple(Ref(module_name(str(name))) for name in names))

    def _enter(self, function: TypeScriptFunction, values: list[Value], called: Node) -> Value:
        node, scope = self._functions[function.node]
        parameters = node.child_by_field_name("parameters")
        single = node.child_by_field_name("parameter")
        if text_of(called.child_by_field_name("property")) == "call":
            values = values[1:]
        if single is not None and values:
            self._assign(single, values[0], scope)
        elif parameters is not None:
            for each, value in zip(parameters.named_children, values, strict=False):
                self._assign(each.child_by_field_name("pattern") or each, value, scope)
        return scope.returns

    def _result(self, node: Node, path: str, arguments: list[Node], values: list[Value]) -> Value:
        first = values[0] if values else NOTHING
        if path == "globalThis.require":
            return tuple(Ref(module_name(str(atom.value))) for atom in first if type(atom) is Const)
        if path in ("Reflect.get", "Object.getOwnPropertyDescriptor") and len(arguments) > 1:
            return self._by_key(node, first, arguments[1])
        if path in _COPIES:
            return tuple(atom for value in values for atom in value)[:MOST_ATOMS]
        if path == "atob":
            return decoded(plain(first))
        if path in ("String.fromCharCode", "String.fromCodePoint"):
            return self._characters(arguments, values)
        self._look_at_call(node, path, arguments, values)
        return (Ref(f"{path}()"),) if len(path) < LONGEST_PATH else NOTHING

    def _characters(self, arguments: list[Node], values: list[Value]) -> Value:
        codes = [plain(value) for value in values]
        if len(arguments) == 1 and arguments[0].type == "spread_element" and arguments[0].named_children:
            given = plain(self._value(arguments[0].named_children[0]))
            codes = list(given) if isinstance(given, tuple) else [None]
        if all(isinstance(each, int) and 0 <= each < 0x110000 for each in codes):
            return (Const("".join(map(chr, codes))),)
        return NOTHING

    def _look_at_call(self, node: Node, path: str, arguments: list[Node], values: list[Value]) -> None:
        first = values[0] if values else NOTHING
        if path in _LISTERS:
            self._look_at_unknown_key(node, first)
        elif path == "RegExp" and isinstance(plain(first), str):
            self._look_at_pattern(node, plain(first))
        elif path in _SIZED and (size := number_of(first)) is not None and size >= HUGE_ITEMS:
            self._note("huge_work", node, f"makes {size:,} items at once")
        elif path in ("setTimeout", "node:timers.setTimeout") and len(values) > 1:
            self._look_at_wait(node, arguments[0], values[1])
        elif path in ("Deno.open", "Deno.openSync") and len(arguments) > 1:
            self._look_at_open(node, values[1])

    def _look_at_wait(self, node: Node, function: Node, delay: Value) -> None:
        """Note a long wait for nothing: `setTimeout(resolve, 60000)`. One that aborts something is no wait."""
        milliseconds = number_of(delay)
        if milliseconds is not None and milliseconds > LONG_SLEEP * 1000 and function.type == "identifier":
            self._note("huge_work", node, f"waits for {milliseconds / 1000:,.0f} seconds")

    def _look_at_open(self, node: Node, options: Value) -> None:
        keys = {key for atom in options if type(atom) is Items and atom.keys for key in atom.keys}
        if keys & _WRITING_OPTIONS or not keys:
            self._note("write_files", node, "opens a file for writing")

    def _method(self, node: Node, member: Node, arguments: list[Node], values: list[Value]) -> Value:
        base = self._value(member.child_by_field_name("object"))
        names = [text_of(member.child_by_field_name("property"))]
        if member.type == "subscript_expression":
            names = [
                each for each in self._constants(member.child_by_field_name("index")) if isinstance(each, str)
            ]
        value: Value = NOTHING
        for name in names:
            if name == "constructor" and arguments and node.type == "call_expression":
                self._note(
                    "dynamic_code", node, "makes a function of a text, by the constructor of functions"
                )
            if (
                name == "repeat"
                and (size := number_of(values[0] if values else NOTHING)) is not None
                and size >= HUGE_ITEMS
            ):
                self._note("huge_work", node, f"repeats a text {size:,} times")
            for atom in base:
                value = union(value, text_method(atom, name, [plain(each) for each in values]))
            if name in ("map", "forEach", "reduce", "filter", "find", "flatMap", "then") and values:
                items = [
                    item_of(atom, [], False) for atom in base if type(atom) is Items and atom.keys is None
                ] or [base]
                for function in values[0]:
                    if type(function) is TypeScriptFunction:
                        value = union(value, (collection([self._enter(function, items, member)]),))
            elif name in ("get", "at", "pop", "shift"):
                for atom in base:
                    if type(atom) is Items:
                        value = union(value, item_of(atom, [], False))
        return value

    def _look_at_pattern(self, node: Node, pattern: str) -> None:
        if has_nested_quantifiers(pattern):
            self._note(
                "regex_backtracking", node, f"the pattern {pattern[:60]!r} repeats what repeats already"
            )
