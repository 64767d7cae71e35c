"""The syntax of a tool's code in TypeScript or JavaScript: whether it is one, its names and texts, what constants give.

Invariant: nothing is run, and nothing recurses. The parser comes with the extra `typescript`, as Deno does.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from reyn_jupyter.dynamic.analysis.folding import MOST_TEXT
from reyn_jupyter.dynamic.analysis.safety_rules import (
    ToolCodeError,
)
from reyn_jupyter.dynamic.analysis.values import (
    MOST_ITEMS,
    NOTHING,
    Const,
    Items,
    Value,
    as_value,
    collection,
    plain,
    union,
)
from reyn_jupyter.support.optional_modules import is_importable

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Tree

_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|(\r\n|.))", re.DOTALL)
_PLAIN_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "0": "\0",
    "\n": "",
    "\r\n": "",
}
FUNCTIONS = frozenset({
    "function_declaration", "function_expression", "arrow_function", "method_definition", "generator_function",
    "generator_function_declaration",
})  # fmt: skip
LOOPS = frozenset({"while_statement", "do_statement", "for_statement", "for_in_statement"})
_NAMELESS = frozenset({"import_statement", "export_specifier"})
_NAMED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("variable_declarator", "class_declaration", "class"), ("name",)),
    **dict.fromkeys(FUNCTIONS, ("name", "parameter")),
    **dict.fromkeys(("required_parameter", "optional_parameter"), ("pattern",)),
}


@cache
def _language() -> Language:
    import tree_sitter
    import tree_sitter_typescript

    return tree_sitter.Language(tree_sitter_typescript.language_typescript())


def parse_typescript(code: str) -> Tree:
    """Return the syntax tree of a tool's code.

    Raises:
        ToolCodeError: it is neither TypeScript nor JavaScript, defines no `execute`, or one that takes more than the
            parameters; or the parser is not installed.
    """
    if not is_importable("tree_sitter") or not is_importable("tree_sitter_typescript"):
        raise ToolCodeError("TypeScript cannot be read here: pip install 'reyn-jupyter[typescript]'")
    import tree_sitter

    tree = tree_sitter.Parser(_language()).parse(code.encode(errors="replace"))
    if tree.root_node.has_error:
        line = _line_of_error(tree.root_node)
        raise ToolCodeError(f"line {line} is no TypeScript", line)
    _check_execute(tree.root_node)
    return tree


def _line_of_error(root: Node) -> int:
    node = root
    while True:
        if node.is_error or node.is_missing:
            return node.start_point.row + 1
        inner = next((each for each in node.children if each.has_error or each.is_missing), None)
        if inner is None:
            return node.start_point.row + 1
        node = inner


def _check_execute(root: Node) -> None:
    found: tuple[Node, Node] | None = None
    for child in root.named_children:
        statement = child
        if child.type == "export_statement":
            statement = child.child_by_field_name("declaration") or child
        if statement.type in FUNCTIONS and text_of(statement.child_by_field_name("name")) == "execute":
            found = statement, statement
        for each in statement.named_children if statement.type.endswith("_declaration") else ():
            value = each.child_by_field_name("value")
            if (
                text_of(each.child_by_field_name("name")) == "execute"
                and value is not None
                and value.type in FUNCTIONS
            ):
                found = each, value
    if found is None:
        raise ToolCodeError("the code defines no function execute(params) at its top level", 1)
    node, function = found
    line = node.start_point.row + 1
    if "generator" in function.type:
        raise ToolCodeError(f"line {line}: execute yields; a tool returns one result", line)
    parameters = function.child_by_field_name("parameters")
    needed = [
        each
        for each in (parameters.named_children if parameters is not None else ())
        if each.type == "required_parameter"
        and each.child_by_field_name("value") is None
        and not any(inner.type == "rest_pattern" for inner in each.children)
    ]
    if len(needed) > 1:
        raise ToolCodeError(
            f"line {line}: execute takes one argument, the parameters: function execute(params)", line
        )


def text_of(node: Node | None) -> str:
    if node is None or node.text is None:
        return ""
    text = node.text.decode(errors="replace")
    return unescaped(text) if "\\" in text else text


def unescaped(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if code:
            return chr(min(int(code, 16), 0x10FFFF))
        return _PLAIN_ESCAPES.get(match[4], match[4])

    return _ESCAPE.sub(character, text)


def pattern_names(pattern: Node | None) -> Iterator[str]:
    """Give the names that a pattern binds: of parameters, declarations and catch clauses."""
    pending = [] if pattern is None else [pattern]
    while pending:
        node = pending.pop()
        if node.type in ("identifier", "shorthand_property_identifier_pattern", "type_identifier"):
            yield text_of(node)
        elif node.type in ("required_parameter", "optional_parameter"):
            inner = node.child_by_field_name("pattern")
            pending += [inner] if inner is not None else []
        elif node.type in ("assignment_pattern", "object_assignment_pattern"):
            left = node.child_by_field_name("left")
            pending += [left] if left is not None else []
        elif node.type == "pair_pattern":
            value = node.child_by_field_name("value")
            pending += [value] if value is not None else []
        elif node.type in ("formal_parameters", "object_pattern", "array_pattern", "rest_pattern"):
            pending += node.named_children


def parts_of(node: Node) -> list[Node]:
    """Return the parts of a node, but for a name that is only declared there."""
    kind = node.type
    if kind in _NAMELESS:
        return []
    children = node.named_children
    if kind in _NAMED:
        names = {each.id for field in _NAMED[kind] if (each := node.child_by_field_name(field)) is not None}
        children = [each for each in children if each.id not in names or each.type != "identifier"]
    return children


def joined(left: Value, right: Value) -> Value:
    made: Value = NOTHING
    for one in left:
        for other in right:
            if type(one) is Const and type(other) is Const:
                a, b = one.value, other.value
                if isinstance(a, str) or isinstance(b, str):
                    text = f"{a}{b}"
                    made = union(made, (Const(text),) if len(text) <= MOST_TEXT else NOTHING)
                elif isinstance(a, int) and isinstance(b, int):
                    made = union(made, (Const(a + b),))
    return made


def text_method(atom: Any, name: str, arguments: list[Any]) -> Value:
    """Return what a method of a constant text, or of a list of texts, gives."""
    if type(atom) is Items and atom.keys is None:
        items = plain((atom,))
        if name == "reverse":
            return (collection(atom.values[::-1]),)
        if name == "concat" and items is not None:
            return (collection([*atom.values, *(as_value(each) for each in arguments)]),)
        if name == "join" and items and all(isinstance(each, str) for each in items):
            separator = str(arguments[0]) if arguments else ","
            text = separator.join(items)
            return (Const(text),) if len(text) <= MOST_TEXT else NOTHING
        return NOTHING
    if type(atom) is not Const or not isinstance(atom.value, str) or any(each is None for each in arguments):
        return NOTHING
    text = atom.value
    made: Any = None
    if name == "split" and arguments:
        parts = text.split(arguments[0]) if arguments[0] else list(text)
        return (collection([as_value(each) for each in parts[:MOST_ITEMS]]),)
    if name in ("toLowerCase", "toUpperCase", "trim", "toString"):
        made = {"toLowerCase": text.lower(), "toUpperCase": text.upper(), "trim": text.strip()}.get(
            name, text
        )
    elif name == "concat":
        made = text + "".join(map(str, arguments))
    elif name in ("slice", "substring") and all(isinstance(each, int) for each in arguments):
        made = text[slice(*(arguments or [0]), *([None] if len(arguments) == 1 else []))]
    elif (
        name in ("replace", "replaceAll")
        and len(arguments) == 2
        and all(isinstance(each, str) for each in arguments)
    ):
        made = (
            text.replace(arguments[0], arguments[1], -1 if name == "replaceAll" else 1)
            if arguments[0]
            else None
        )
    elif (
        name in ("charAt", "at")
        and arguments
        and isinstance(arguments[0], int)
        and -len(text) <= arguments[0] < len(text)
    ):
        made = text[arguments[0]]
    return (Const(made),) if isinstance(made, str) and len(made) <= MOST_TEXT else NOTHING


def decoded(text: Any) -> Value:
    if not isinstance(text, str) or len(text) > MOST_TEXT:
        return NOTHING
    try:
        return (Const(base64.b64decode(text).decode("latin-1")),)
    except ValueError:
        return NOTHING


def is_empty(node: Node) -> bool:
    return node.type == "empty_statement"


def is_true(node: Node | None) -> bool:
    while node is not None and node.type in ("parenthesized_expression", "expression_statement"):
        node = node.named_children[0] if node.named_children else None
    if node is None:
        return False
    if node.type == "number":
        return text_of(node).strip("0._xn") != ""
    if node.type == "unary_expression" and text_of(node.child_by_field_name("operator")) == "!":
        return is_false(node.child_by_field_name("argument"))
    return (
        node.type == "true"
        or node.type in ("array", "object")
        or (node.type == "string" and len(text_of(node)) > 2)
    )


def is_false(node: Node | None) -> bool:
    while node is not None and node.type == "parenthesized_expression":
        node = node.named_children[0] if node.named_children else None
    if node is None:
        return False
    return node.type in ("false", "null", "undefined") or (
        node.type == "number" and text_of(node).strip("0.") == ""
    )
