"""Constants that a text of code makes of others: joined, cut, decoded, turned around.

Invariant: nothing of the code is run. Each function takes and gives plain constants, bounded in size, and answers None
for what it does not know or what would become too large.
"""

from __future__ import annotations

import ast
import base64
import binascii
import codecs
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

MOST_TEXT = 4_096  # characters of a text that is made
MOST_BITS = 4_096  # of a number
MOST_ITEMS = 256
_DEEPEST = 20

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.BitXor: operator.xor, ast.BitOr: operator.or_, ast.BitAnd: operator.and_, ast.RShift: operator.rshift,
    ast.Div: operator.truediv,
}  # fmt: skip
# Methods of texts and bytes that only turn them into another one.
_METHODS = frozenset({
    "lower", "upper", "title", "swapcase", "capitalize", "casefold", "strip", "lstrip", "rstrip", "replace",
    "removeprefix", "removesuffix", "encode", "decode", "hex", "translate", "split", "format", "join", "zfill",
})  # fmt: skip
_CODECS = frozenset({
    "utf-8", "utf8", "ascii", "latin-1", "latin1", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-7",
    "rot13", "rot_13", "rot-13", "hex", "base64", "unicode_escape", "unicode-escape", "raw_unicode_escape",
    "punycode", "cp1252", "cp500", "idna",
})  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "builtins.chr": chr, "builtins.ord": ord, "builtins.str": str, "builtins.int": int,
    "builtins.bytes": bytes, "builtins.bytearray": bytes, "builtins.len": len, "builtins.hex": hex,
    "builtins.bytes.fromhex": bytes.fromhex, "builtins.bytearray.fromhex": bytes.fromhex,
    "base64.b64decode": base64.b64decode, "base64.urlsafe_b64decode": base64.urlsafe_b64decode,
    "base64.b32decode": base64.b32decode, "base64.b16decode": base64.b16decode,
    "base64.b85decode": base64.b85decode, "base64.a85decode": base64.a85decode,
    "base64.standard_b64decode": base64.standard_b64decode, "base64.decodebytes": base64.decodebytes,
    "binascii.unhexlify": binascii.unhexlify, "binascii.a2b_hex": binascii.unhexlify,
    "binascii.a2b_base64": binascii.a2b_base64,
}  # fmt: skip


def fold_operation(kind: type[ast.operator], left: Any, right: Any) -> Any:
    """Return what an operator makes of two constants, or None."""
    try:
        if isinstance(left, (str, bytes)):
            return _fold_text(kind, left, right)
        if not isinstance(left, (int, float)) or not isinstance(right, (int, float, str, bytes)):
            return None
        if isinstance(right, (str, bytes)):
            return _fold_text(kind, right, left) if kind is ast.Mult else None
        return _fold_numbers(kind, left, right)
    except (ArithmeticError, ValueError, TypeError):
        return None


def _fold_text(kind: type[ast.operator], left: str | bytes, right: Any) -> Any:
    if kind is ast.Add and type(left) is type(right) and len(left) + len(right) <= MOST_TEXT:
        return left + right  # type: ignore[operator]
    if kind is ast.Mult and isinstance(right, int) and 0 <= right * len(left) <= MOST_TEXT:
        return left * right
    if kind is ast.Mod and isinstance(left, str) and isinstance(right, (str, int, tuple)):
        return _formatted(left, right)
    return None


def _formatted(template: str, values: Any) -> str | None:
    """Return a %-format, where no number in it could make it large."""
    if any(character.isdigit() or character == "*" for character in template):
        return None
    made = template % values
    return made if len(made) <= MOST_TEXT else None


def _fold_numbers(kind: type[ast.operator], left: float, right: float) -> Any:
    whole = isinstance(left, int) and isinstance(right, int)
    if kind is ast.Mult:
        if whole and int(left).bit_length() + int(right).bit_length() > MOST_BITS:
            return None
        return left * right
    if kind is ast.Pow:
        if whole and (right < 0 or int(left).bit_length() * right > MOST_BITS):
            return None
        return left**right
    if kind is ast.LShift:
        return int(left) << int(right) if whole and 0 <= right <= MOST_BITS else None
    function = _ARITHMETIC.get(kind)
    return None if function is None else function(left, right)


def fold_method(receiver: Any, name: str, arguments: Sequence[Any]) -> Any:
    """Return what a method of a constant text gives, or None.

    >>> fold_method("", "join", [("ev", "al")]), fold_method(b"os", "decode", [])
    ('eval', 'os')
    """
    if name not in _METHODS or not isinstance(receiver, (str, bytes)):
        return None
    try:
        if name in ("encode", "decode") and arguments and str(arguments[0]).lower() not in _CODECS:
            return None
        if name == "format" and any(
            character.isdigit() and len(str(receiver)) > 64 for character in str(receiver)
        ):
            return None
        if name == "format" and (":" in str(receiver) or "." in str(receiver)):
            return None
        if name == "zfill":
            return None
        if name == "join":
            parts = list(arguments[0]) if arguments else []
            if sum(map(len, parts)) + len(receiver) * len(parts) > MOST_TEXT:
                return None
        if name == "replace" and len(receiver) * max(1, len(arguments[1])) > 8 * MOST_TEXT:
            return None
        return _bounded(getattr(receiver, name)(*arguments))
    except Exception:  # noqa: BLE001 - codecs and formats raise whatever they like
        return None


def fold_call(path: str, arguments: Sequence[Any]) -> Any:
    """Return what a pure function of the standard library gives for constants, or None.

    >>> fold_call("builtins.chr", [101]), fold_call("codecs.decode", ["riny", "rot13"])
    ('e', 'eval')
    """
    try:
        if path in ("codecs.decode", "codecs.encode"):
            name = str(arguments[1]).lower() if len(arguments) > 1 else "utf-8"
            function = codecs.decode if path == "codecs.decode" else codecs.encode
            return _bounded(function(arguments[0], name)) if name in _CODECS else None
        if path in ("builtins.bytes", "builtins.bytearray") and arguments and isinstance(arguments[0], int):
            return None
        if path in ("builtins.str", "builtins.bytes") and len(arguments) > 1:
            return fold_method(arguments[0], "decode" if path == "builtins.str" else "encode", arguments[1:])
        function = _FUNCTIONS[path]
        return _bounded(function(*arguments))
    except Exception:  # noqa: BLE001 - as above
        return None


def _bounded(value: Any) -> Any:
    if isinstance(value, bytearray):
        value = bytes(value)
    if isinstance(value, (str, bytes)):
        return value if len(value) <= MOST_TEXT else None
    if isinstance(value, list):
        return tuple(value) if len(value) <= MOST_ITEMS else None
    return value if isinstance(value, (int, float)) else None


def fold_expression(
    node: ast.expr, names: Mapping[str, Any], path_of: Callable[[ast.expr], str | None], depth: int = 0
) -> Any:
    """Return the value of an expression over constants, or None: the element of a comprehension, say.

    Args:
        node: the expression.
        names: what its names stand for.
        path_of: gives the resolved name of what is called.
        depth: how deep it lies already.
    """
    if depth > _DEEPEST:
        return None

    def fold(inner: ast.expr) -> Any:
        return fold_expression(inner, names, path_of, depth + 1)

    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return names.get(name)
        case ast.BinOp(left=left, op=op, right=right):
            return fold_operation(type(op), fold(left), fold(right))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = fold(operand)
            return -value if isinstance(value, (int, float)) else None
        case ast.Subscript(value=value, slice=ast.Slice() as cut):
            return fold_slice(fold(value), cut, fold)
        case ast.Subscript(value=value, slice=index):
            return fold_item(fold(value), fold(index))
        case ast.Call(func=ast.Attribute(value=receiver, attr=name), args=args) if not path_of(node.func):
            return fold_method(fold(receiver), name, [fold(each) for each in args])
        case ast.Call(func=function, args=args):
            path = path_of(function)
            return fold_call(path, [fold(each) for each in args]) if path else None
    return None


def fold_item(value: Any, index: Any) -> Any:
    """Return one item of a constant, or None."""
    if not isinstance(value, (str, bytes, tuple)) or not isinstance(index, int):
        return None
    return value[index] if -len(value) <= index < len(value) else None


def fold_slice(value: Any, cut: ast.Slice, fold: Callable[[ast.expr], Any]) -> Any:
    """Return a slice of a constant, or None."""
    if not isinstance(value, (str, bytes, tuple)):
        return None
    ends = [None if each is None else fold(each) for each in (cut.lower, cut.upper, cut.step)]
    missing = any(
        end is None and each is not None
        for end, each in zip(ends, (cut.lower, cut.upper, cut.step), strict=True)
    )
    if missing or ends[2] == 0 or not all(end is None or isinstance(end, int) for end in ends):
        return None
    return value[slice(*ends)]
