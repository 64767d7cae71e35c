"""The names of TypeScript code: where each is bound, and what it may stand for.

Invariants: each node comes after its parts; a name that is bound in a scope around it is no global one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from reyn_jupyter.dynamic.analysis.safety_rules import (
    TYPESCRIPT_MODULES,
    TYPESCRIPT_NAMES,
    TYPESCRIPT_PROPERTIES,
    TYPESCRIPT_SENSITIVE,
    ToolCodeError,
)
from reyn_jupyter.dynamic.analysis.typescript_syntax import (
    FUNCTIONS,
    LOOPS,
    parts_of,
    pattern_names,
    text_of,
)
from reyn_jupyter.dynamic.analysis.values import (
    LONGEST_PATH,
    NOTHING,
    Const,
    Items,
    Ref,
    Value,
    item_of,
    plain,
    union,
)

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

_DEEPEST = 400  # levels of the tree
_BLOCKS = frozenset(
    {
        "program",
        "statement_block",
        "for_statement",
        "for_in_statement",
        "switch_body",
        "catch_clause",
        "class_body",
    }
)
# Leaves that stand for something, and what does not.
_READ = frozenset({"identifier", "number", "string", "regex", "shorthand_property_identifier"})
SKIPPED = frozenset({
    "type_annotation", "type_arguments", "type_parameters", "interface_declaration", "type_alias_declaration",
    "comment", "ambient_declaration", "implements_clause", "regex_flags", "property_identifier", "true", "false",
    "null", "this", "undefined", "string_fragment", "escape_sequence", "statement_identifier", "type_identifier",
    "predefined_type", "empty_statement",
})  # fmt: skip
_GLOBALS = frozenset({"globalThis", "window", "self", "global", "frames"})
DISTINCTIVE_OF_DENO = {
    name.removeprefix("Deno."): kind
    for name, kind in TYPESCRIPT_NAMES.items()
    if name.startswith("Deno.")
    and (name.endswith("Sync") or name in ("Deno.Command", "Deno.dlopen", "Deno.writeTextFile"))
}


class TypeScriptFunction(NamedTuple):
    """A function of the code itself, by the id of its node."""

    node: int
    mark: str = "function"


class TypeScriptScope:
    __slots__ = ("is_function", "parent", "read", "returns", "values")

    def __init__(self, is_function: bool, parent: TypeScriptScope | None) -> None:
        self.is_function = is_function
        self.parent = parent
        self.values: dict[str, Value] = {}  # of every name that is bound here
        self.read: set[str] = set()
        self.returns: Value = NOTHING


def canonical_name(path: str) -> str:
    while path.startswith("globalThis."):
        rest = path.removeprefix("globalThis.")
        top = rest.partition(".")[0]
        if top in _GLOBALS:
            path = f"globalThis{rest[len(top) :]}"
        elif f"globalThis.{top}" in TYPESCRIPT_NAMES:
            return path
        else:
            return rest
    return path


def kind_of(path: str) -> str | None:
    if path.endswith("()"):  # what a call gave; the call was mentioned itself
        return None
    kind = TYPESCRIPT_NAMES.get(path.replace("()", ""))
    if kind is None and "()" not in path and path.startswith("node:"):
        kind = TYPESCRIPT_MODULES.get(path.partition(".")[0]) if "." in path else None
    return kind


def module_name(name: str) -> str:
    bare = name.removeprefix("node:").replace("/", ".")
    return f"node:{bare}" if re.fullmatch(r"[a-z0-9_.]+", bare) else name


def words_of_name(path: str) -> str:
    return path.replace("()", "").removeprefix("globalThis.")


class TypeScriptNames:
    """The nodes of a tree in an order in which each comes after its parts, and what names may stand for."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._found: dict[tuple[str, int], str] = {}
        self._values: dict[int, Value] = {}
        self._properties: dict[str, Value] = {}
        self._own_names: set[str] = set()
        self._imports: dict[str, int] = {}
        self._used: set[str] = set()
        self._loose: list[tuple[str, int]] = []
        self._texts: list[tuple[int, str]] = []
        self._loops: list[Node] = []
        self._functions: dict[int, tuple[Node, TypeScriptScope]] = {}
        self._steps: list[tuple[str, Node, TypeScriptScope]] = []
        self._dirty = False
        self._mentions_deno = False
        self._collect(tree.root_node)

    def _collect(self, root: Node) -> None:
        pending: list[tuple[Node, TypeScriptScope, int, bool]] = [
            (root, TypeScriptScope(True, None), 0, False)
        ]
        while pending:
            node, scope, depth, done = pending.pop()
            kind = node.type
            if depth > _DEEPEST:
                raise ToolCodeError("the code is nested too deeply to be read; write it with fewer levels")
            if done or kind in _READ:
                self._steps.append((kind, node, scope))
                continue
            if kind in SKIPPED:
                continue
            inner = scope
            if kind in FUNCTIONS:
                inner = TypeScriptScope(True, scope)
                self._functions[node.id] = node, inner
                self._bind_parameters(node, inner)
                if (name := node.child_by_field_name("name")) is not None:
                    self._own_names.add(text_of(name))
                    if kind != "method_definition":
                        scope.values[text_of(name)] = (TypeScriptFunction(node.id),)
            elif kind in _BLOCKS:
                inner = TypeScriptScope(False, scope)
            if kind in LOOPS:
                self._loops.append(node)
            self._bind(kind, node, inner)
            pending.append((node, inner if kind == "for_in_statement" else scope, depth, True))
            pending += [(child, inner, depth + 1, False) for child in reversed(parts_of(node))]

    def _bind(self, kind: str, node: Node, scope: TypeScriptScope) -> None:
        """Bind the names that a node declares."""
        if kind in ("lexical_declaration", "variable_declaration"):
            while kind == "variable_declaration" and not scope.is_function and scope.parent is not None:
                scope = scope.parent
            for each in node.named_children:
                self._declare(each.child_by_field_name("name"), scope)
        elif kind == "class_declaration":
            self._declare(node.child_by_field_name("name"), scope)
        elif kind == "catch_clause":
            self._declare(node.child_by_field_name("parameter"), scope)
        elif kind == "for_in_statement" and node.child_by_field_name("kind") is not None:
            self._declare(node.child_by_field_name("left"), scope)
        elif kind == "import_statement":
            self._bind_import(node, scope)

    def _bind_parameters(self, node: Node, scope: TypeScriptScope) -> None:
        self._declare(node.child_by_field_name("parameters") or node.child_by_field_name("parameter"), scope)

    def _declare(self, pattern: Node | None, scope: TypeScriptScope) -> None:
        for name in pattern_names(pattern):
            scope.values.setdefault(name, NOTHING)

    def _bind_import(self, node: Node, scope: TypeScriptScope) -> None:
        source = text_of(node.child_by_field_name("source")).strip("'\"")
        line = node.start_point.row + 1
        module = module_name(source)
        if not module.startswith("node:"):
            self._found.setdefault(("dynamic_code", line), f"imports code from {source[:80]}")
        self._imports.setdefault(module, line)
        for clause in node.named_children:
            if clause.type != "import_clause":
                continue
            for each in clause.named_children:
                if each.type == "identifier":
                    scope.values[text_of(each)] = (Ref(module),)
                elif each.type == "namespace_import":
                    scope.values[text_of(each.named_children[0])] = (Ref(module),)
                for specifier in each.named_children if each.type == "named_imports" else ():
                    name = text_of(specifier.child_by_field_name("name"))
                    alias = text_of(specifier.child_by_field_name("alias")) or name
                    scope.values[alias] = (Ref(module if name == "default" else f"{module}.{name}"),)

    def _note(self, kind: str, node: Node, what: str) -> None:
        self._found.setdefault((kind, node.start_point.row + 1), what)

    def _value(self, node: Node | None) -> Value:
        return NOTHING if node is None else self._values.get(node.id, NOTHING)

    def _set(self, node: Node, value: Value) -> None:
        if value:
            self._values[node.id] = value

    def _mention(self, node: Node, value: Value) -> None:
        for atom in value:
            if type(atom) is Ref:
                if atom.path.startswith("Deno"):
                    self._mentions_deno = True
                kind = kind_of(atom.path)
                if kind is not None:
                    self._note(kind, node, f"uses {words_of_name(atom.path)}")
                    self._used.add(atom.path.partition(".")[0])
        self._set(node, value)

    def _constants(self, node: Node | None) -> list[Any]:
        return [atom.value for atom in self._value(node) if type(atom) is Const]

    def _paths(self, node: Node | None) -> list[str]:
        return [atom.path for atom in self._value(node) if type(atom) is Ref]

    def _owner(self, name: str, scope: TypeScriptScope) -> TypeScriptScope | None:
        place: TypeScriptScope | None = scope
        while place is not None and name not in place.values:
            place = place.parent
        return place

    def _add(self, scope: TypeScriptScope, name: str, value: Value) -> None:
        before = scope.values.get(name, NOTHING)
        more = union(before, value)
        if len(more) > len(before):
            scope.values[name] = more
            if name in scope.read:
                self._dirty = True

    def _property(self, base: Value, name: str) -> Value:
        value: Value = NOTHING
        for atom in base:
            if type(atom) is Ref and len(atom.path) < LONGEST_PATH:
                if (name in ("default", "valueOf") and atom.path.startswith("node:")) or name in (
                    "call",
                    "apply",
                    "bind",
                ):
                    value = union(value, (atom,))
                else:
                    value = union(value, (Ref(canonical_name(f"{atom.path}.{name}")),))
            elif type(atom) is Items and atom.keys is not None:
                value = union(value, item_of(atom, [name], False))
            elif type(atom) is TypeScriptFunction and name in ("call", "apply", "bind"):
                value = union(value, (atom,))
        if not any(type(atom) is Ref for atom in base):
            value = union(value, self._properties.get(name, NOTHING))
        return value

    def _look_at_property(self, node: Node, base: Value, name: str) -> None:
        if (kind := TYPESCRIPT_PROPERTIES.get(name)) is not None:
            self._note(kind, node, f"uses {name}")
        if name in DISTINCTIVE_OF_DENO and not base:
            self._loose.append((name, node.start_point.row + 1))

    def _by_key(self, node: Node, base: Value, index: Node | None) -> Value:
        value: Value = NOTHING
        keys = self._constants(index)
        for atom in base:
            if type(atom) is Items and atom.keys is None:
                value = union(value, item_of(atom, [each for each in keys if isinstance(each, int)], False))
            elif type(atom) is Const and isinstance(atom.value, str):
                places = [each for each in keys if isinstance(each, int) and 0 <= each < len(atom.value)]
                value = union(value, tuple(Const(atom.value[each]) for each in places))
        names = [each for each in keys if isinstance(each, str)]
        for name in names:
            self._look_at_property(node, base, name)
            value = union(value, self._property(base, name))
        if not names:
            self._look_at_unknown_key(node, base)
            value = union(
                value,
                tuple(
                    a for atom in base if type(atom) is Items and atom.keys for v in atom.values for a in v
                ),
            )
        return value

    def _look_at_unknown_key(self, node: Node, base: Value) -> None:
        for atom in base:
            if type(atom) is Ref and atom.path in TYPESCRIPT_SENSITIVE:
                self._note(
                    "introspection",
                    node,
                    f"takes a name of {words_of_name(atom.path)} that is made while it runs",
                )

    def _key(self, node: Node | None) -> Any:
        if node is None:
            return None
        if node.type == "computed_property_name":
            return plain(self._value(node.named_children[0])) if node.named_children else None
        return text_of(node).strip("'\"") if node.type != "number" else plain(self._value(node))

    def _assign(self, target: Node | None, value: Value, scope: TypeScriptScope) -> None:
        if target is None or not value:
            return
        if target.type in ("identifier", "shorthand_property_identifier_pattern"):
            owner = self._owner(text_of(target), scope)
            if owner is not None:
                self._add(owner, text_of(target), value)
        elif target.type == "member_expression":
            name = text_of(target.child_by_field_name("property"))
            self._own_names.add(name)
            self._properties[name] = union(self._properties.get(name, NOTHING), value)
        elif target.type in ("object_pattern", "object"):
            self._assign_parts(target, value, scope)
        elif target.type in ("array_pattern", "array"):
            for at, each in enumerate(target.named_children):
                taken: Value = NOTHING
                for atom in value:
                    if type(atom) is Items:
                        taken = union(taken, item_of(atom, [at], False))
                self._assign(each, taken, scope)
        elif target.type in ("assignment_pattern", "rest_pattern") and target.named_children:
            self._assign(target.named_children[0], value, scope)

    def _assign_parts(self, target: Node, value: Value, scope: TypeScriptScope) -> None:
        for each in target.named_children:
            if each.type in ("pair_pattern", "pair"):
                key = self._key(each.child_by_field_name("key"))
                inner = each.child_by_field_name("value")
            elif each.type == "rest_pattern":
                self._assign(each, value, scope)
                continue
            else:
                inner = each.child_by_field_name("left") or each
                key = text_of(inner)
            if key is None:
                self._look_at_unknown_key(each, value)
                continue
            taken = self._property(value, str(key))
            self._mention(each, taken)
            self._assign(inner, taken, scope)
