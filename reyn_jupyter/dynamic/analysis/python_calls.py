"""Calls in Python code: what each gives, and what of it is worth a word.

Invariant: as for `python_safety`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any

from reyn_jupyter.dynamic.analysis.folding import (
    fold_call,
    fold_method,
)
from reyn_jupyter.dynamic.analysis.python_scopes import (
    Atom,
    Getter,
    PythonFunction,
    PythonNames,
    PythonScope,
    called,
    canonical,
    iterated,
    words_of,
)
from reyn_jupyter.dynamic.analysis.regex_shape import has_nested_quantifiers
from reyn_jupyter.dynamic.analysis.safety_rules import (
    DISTINCTIVE,
    HUGE_COUNT,
    HUGE_ITEMS,
    LONG_SLEEP,
    PYTHON_ATTRIBUTES,
    SENSITIVE_MODULES,
)
from reyn_jupyter.dynamic.analysis.values import (
    MOST_ITEMS,
    NOTHING,
    Const,
    Items,
    Ref,
    Value,
    as_value,
    collection,
    method_of_items,
    plain,
    union,
)

_URL_READERS = frozenset(
    {"read_csv", "read_json", "read_html", "read_excel", "read_parquet", "read_xml", "scan_csv"}
)
_WRITING_FLAGS = frozenset(
    f"os.O_{name}" for name in ["WRONLY", "RDWR", "CREAT", "APPEND", "TRUNC", "EXCL", "TMPFILE"]
)
_FOLDED = frozenset({
    "builtins.chr", "builtins.ord", "builtins.str", "builtins.int", "builtins.bytes", "builtins.bytearray",
    "builtins.len", "builtins.hex", "builtins.bytes.fromhex", "builtins.bytearray.fromhex", "base64.b64decode",
    "base64.urlsafe_b64decode", "base64.b32decode", "base64.b16decode", "base64.b85decode", "base64.a85decode",
    "base64.standard_b64decode", "base64.decodebytes", "binascii.unhexlify", "binascii.a2b_hex",
    "binascii.a2b_base64", "codecs.decode", "codecs.encode",
})  # fmt: skip


_OPENERS = (
    "codecs.open", "gzip.open", "bz2.open", "lzma.open", "zipfile.ZipFile", "tarfile.open", "tarfile.TarFile",
    "aiofiles.open", "wave.open", "os.fdopen", "gzip.GzipFile", "bz2.BZ2File", "lzma.LZMAFile",
)  # fmt: skip
_ALLOCATORS = (
    "builtins.bytes", "builtins.bytearray", "numpy.zeros", "numpy.ones", "numpy.empty", "numpy.full", "numpy.arange",
    "math.factorial",
)  # fmt: skip
_PATTERN_TAKERS = tuple(
    f"re.{name}"
    for name in ("compile", "match", "search", "fullmatch", "findall", "finditer", "sub", "subn", "split")
)


class PythonCalls(PythonNames):
    """Names, and what calls give."""

    def _read_call(self, node: Any, scope: PythonScope) -> None:
        arguments = [self._value(each.value if isinstance(each, ast.Starred) else each) for each in node.args]
        for keyword in node.keywords:
            if keyword.arg is not None:
                self._look_for_credential(keyword.value, keyword.arg, keyword.value)
        value: Value = NOTHING
        for atom in self._value(node.func):
            if type(atom) is PythonFunction:
                self._pass_arguments(atom, node, arguments)
            value = union(value, self._result(atom, arguments, node, scope))
        if type(node.func) is ast.Attribute:
            value = union(value, self._method(node, node.func, arguments, scope))
        self._mention_result(node, value)

    def _mention_result(self, node: Any, value: Value) -> None:
        # What a call gives was mentioned where it was named, unless the call itself looked it up.
        for atom in value:
            if type(atom) is Ref and not atom.path.endswith("()"):
                self._mention_path(node, atom.path)
        self._set(node, value)

    def _pass_arguments(self, function: PythonFunction, node: Any, arguments: list[Value]) -> None:
        parameters = self._bind_arguments(function, arguments)
        if function.node.args.vararg is not None and len(arguments) > len(parameters):
            rest = collection(tuple(arguments[len(parameters) :][:MOST_ITEMS]))
            self._add(function.scope, function.node.args.vararg.arg, (rest,))
        for keyword in node.keywords:
            if keyword.arg is not None:
                self._add(function.scope, keyword.arg, self._value(keyword.value))

    def _bind_arguments(self, function: PythonFunction, arguments: list[Value]) -> list[str]:
        parameters = [each.arg for each in (*function.node.args.posonlyargs, *function.node.args.args)]
        for name, value in zip(parameters, arguments, strict=False):
            self._add(function.scope, name, value)
        return parameters

    def _result(self, atom: Atom, arguments: list[Value], node: Any, scope: PythonScope) -> Value:
        if type(atom) is PythonFunction:
            return atom.scope.returns
        if type(atom) is Getter and arguments:
            return self._taken(atom, arguments[0], node)
        if type(atom) is not Ref:
            return NOTHING
        path = atom.path
        handler = _CALLS.get(path)
        if handler is not None and isinstance(node, ast.Call):
            made = handler(self, node, arguments, scope)
            if made is not None:
                return made
        folded = fold_call(path, [plain(each) for each in arguments]) if path in _FOLDED else None
        if folded is not None:
            return as_value(folded)
        return called((atom,))

    def _taken(self, getter: Getter, value: Value, node: Any) -> Value:
        """Return what an attribute getter takes of a value, or the method that it calls gives."""
        for name in getter.names:
            value = self._attribute(value, name)
        if not getter.calls:
            return value
        for each in value:
            if type(each) is Ref:
                self._mention_path(node, each.path)
        return called(value)

    def _method(
        self, node: Any, function: ast.Attribute, arguments: list[Value], scope: PythonScope
    ) -> Value:
        """Return what a method gives whose receiver says more than its name."""
        name = function.attr
        receiver = self._value(function.value)
        value: Value = NOTHING
        for atom in receiver:
            if type(atom) is Const:
                if isinstance(atom.value, str) and name in ("format", "format_map"):
                    self._look_at_format(node, atom.value)
                value = union(
                    value, as_value(fold_method(atom.value, name, [plain(each) for each in arguments]))
                )
            elif type(atom) is Items:
                value = union(value, method_of_items(atom, name, [plain(each) for each in arguments]))
            elif type(atom) is Ref and name in ("get", "pop", "setdefault", "__getitem__") and node.args:
                value = union(value, self._item_of(node, atom.path, node.args[0], scope))
            elif type(atom) is Ref and name in ("__getattribute__", "__getattr__") and node.args:
                # `os.__getattribute__(name)`, or `object.__getattribute__(os, name)`
                whose, key = (arguments[0], node.args[1]) if len(node.args) > 1 else ((atom,), node.args[0])
                value = union(value, self._attributes_by_name(node, whose, key))
        if name == "open" and Ref("pathlib.Path()") in receiver:
            self._look_at_mode(node, 0)
        elif name == "open" and not receiver:
            first = self._constant(node.args[0]) if node.args else None
            if isinstance(first, str) and re.fullmatch("[rbt+]*[wax+][bt+]*", first):
                self._look_at_mode(node, 0)
        if name in _URL_READERS and self._imported & {"pandas", "polars"}:
            first = self._constant(node.args[0]) if node.args else None
            if isinstance(first, str) and re.match(r"(?:https?|ftp|s3|gs)://", first):
                self._note("network", node, f"reads {first[:60]}")
        return value

    def _look_at_format(self, node: Any, template: str) -> None:
        if any(
            name in template
            for name in ("__globals__", "__subclasses__", "__builtins__", "__class__", "__init__")
        ):
            self._note("introspection", node, "a format looks into an object by its special attributes")

    def _attributes_by_name(
        self, node: Any, base: Value, key: ast.AST | None, paths: Sequence[str] = ()
    ) -> Value:
        """Return what getattr gives, and note where it is made while the code runs."""
        names = [each for each in self._constants(key) if isinstance(each, str)]
        if not names:
            where = next(
                (a.path for a in base if type(a) is Ref and a.path.replace("()", "") in SENSITIVE_MODULES),
                None,
            )
            if where is not None:
                self._note(
                    "introspection", node, f"takes a name of {words_of(where)} that is made while it runs"
                )
            return NOTHING
        value: Value = NOTHING
        for name in names:
            for each in name.split(".")[:1]:
                if (kind := PYTHON_ATTRIBUTES.get(each)) is not None:
                    self._note(kind, node, f"uses {each}")
                if not base and each in DISTINCTIVE:
                    self._loose.append((each, node.lineno))
            reached = base
            for each in name.split("."):
                reached = self._attribute(reached, each)
            value = union(value, reached)
        return value

    def _look_at_mode(self, node: Any, position: int) -> None:
        mode = node.args[position] if len(node.args) > position else None
        if any(isinstance(each, ast.Starred) for each in node.args[: position + 1]):
            mode = node.args[0]
        mode = next((each.value for each in node.keywords if each.arg == "mode"), mode)
        if mode is None:
            if any(each.arg is None for each in node.keywords):
                self._note("write_files", node, "opens a file in a mode that is made while it runs")
            return
        modes = [each for each in self._constants(mode) if isinstance(each, str)]
        if not modes:
            self._note("write_files", node, "opens a file in a mode that is made while it runs")
        for each in modes:
            if set(each) & set("wax+"):
                self._note("write_files", node, f"opens a file in the mode {each[:8]!r}")

    # -- handlers of calls, by resolved name -----------------------------------------------------------------

    def _call_open(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        self._look_at_mode(node, 1)
        return None

    def _call_os_open(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        flags = (
            node.args[1]
            if len(node.args) > 1
            else next((e.value for e in node.keywords if e.arg == "flags"), None)
        )
        if flags is None:
            return None
        paths = {path for each in ast.walk(flags) for path in self._paths(each)}
        known = any(path.startswith("os.O_") for path in paths) or 0 in self._constants(flags)
        if not known or paths & _WRITING_FLAGS:
            self._note("write_files", node, "opens a file for writing")
        return None

    def _call_sqlite(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        if not node.args or self._constant(node.args[0]) != ":memory:":
            self._note("write_files", node, "opens a database, which it may change")
        return None

    def _call_getattr(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        if len(node.args) < 2:
            if node.args and isinstance(node.args[0], ast.Starred):
                items = [atom for atom in arguments[0] if type(atom) is Items and len(atom.values) >= 2]
                for atom in items:
                    return self._attribute(atom.values[0], str(plain(atom.values[1])))
            return None
        value = self._attributes_by_name(node, arguments[0], node.args[1])
        return union(value, arguments[2]) if len(arguments) > 2 else value or None

    def _call_setattr(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        if len(node.args) > 2:
            for name in self._constants(node.args[1]):
                if isinstance(name, str):
                    self._attributes[name] = union(self._attributes.get(name, NOTHING), arguments[2])
        return NOTHING

    def _call_import(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        names = [str(each) for each in self._constants(node.args[0])] if node.args else []
        names += [
            str(each) for key in node.keywords if key.arg == "name" for each in self._constants(key.value)
        ]
        whole = "builtins.__import__" not in self._paths(node.func) or any(
            len(each) > 0 for each in arguments[3:4]
        )
        value: Value = NOTHING
        for name in names:
            self._imported.add(name.partition(".")[0])
            path = name if whole else name.partition(".")[0]
            value = union(value, (Ref(canonical(path)),))
        return value

    def _call_vars(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        if not arguments:
            return (Ref("builtins.vars()"),)
        return tuple(Ref(f"{atom.path}.__dict__") for atom in arguments[0] if type(atom) is Ref)

    def _call_getter(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        calls = "operator.methodcaller" in self._paths(node.func)
        names = self._constants(node.args[0]) if node.args else []
        return tuple(Getter(tuple(str(name).split(".")), calls) for name in names)

    def _call_first(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        """A call that gives its first argument back, near enough: partial, iter, list, sorted, staticmethod."""
        return arguments[0] if arguments else NOTHING

    def _call_items(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        items = self._items(node.args[0]) if node.args else None
        if items is None:
            return arguments[0] if arguments else NOTHING
        if "builtins.reversed" in self._paths(node.func):
            items = items[::-1]
        return (collection(tuple(as_value(each) for each in items)),)

    def _call_map(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        made: Value = NOTHING
        items = self._items(node.args[1]) if len(node.args) > 1 else None
        for atom in arguments[0] if arguments else NOTHING:
            if (
                type(atom) is Ref
                and items is not None
                and (folded := [fold_call(atom.path, [each]) for each in items])
            ):
                made = union(made, (collection(tuple(as_value(each) for each in folded)),))
            elif type(atom) in (PythonFunction, Getter):
                rest = [iterated(each) for each in arguments[1:]]
                if type(atom) is PythonFunction:
                    for name, value in zip((each.arg for each in atom.node.args.args), rest, strict=False):
                        self._add(atom.scope, name, value)
                made = union(made, (collection((self._result(atom, rest, node, scope),)),))
        return made

    def _call_reduce(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        """`functools.reduce(getattr, ["system"], os)`"""
        if len(node.args) < 2 or "builtins.getattr" not in self._paths(node.args[0]):
            return None
        names = self._items(node.args[1]) or []
        value = arguments[2] if len(arguments) > 2 else NOTHING
        for atom in arguments[1] if not value else NOTHING:
            if type(atom) is Items and atom.values:
                value, names = atom.values[0], [plain(each) for each in atom.values[1:]]
        for name in names:
            value = self._attribute(value, str(name))
        return value

    def _call_next(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        return iterated(arguments[0]) if arguments else NOTHING

    def _call_range(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        ends = [self._constant(each) for each in node.args]
        if ends and len(ends) <= 3 and all(type(each) is int for each in ends) and [*ends, 1, 1][2] != 0:
            try:
                numbers = range(*ends)
                size = max(0, -((numbers.stop - numbers.start) // -numbers.step))
            except (ValueError, OverflowError):
                return NOTHING
            if size > HUGE_COUNT:
                self._note("huge_work", node, f"counts {size:,} numbers")
            elif size <= MOST_ITEMS:
                return (collection(tuple((Const(each),) for each in numbers)),)
        return NOTHING

    def _call_sleep(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        seconds = [
            each
            for each in (self._constants(node.args[0]) if node.args else [])
            if isinstance(each, (int, float))
        ]
        if any(each > LONG_SLEEP for each in seconds):
            self._note("huge_work", node, f"sleeps for {max(seconds):,} seconds")
        return NOTHING

    def _call_allocation(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        sizes = [each for each in (self._constants(node.args[0]) if node.args else []) if type(each) is int]
        if node.args and (items := self._items(node.args[0])) and type(plain(arguments[0])) is tuple:
            total = 1
            for each in items:
                total *= each if type(each) is int and abs(each) < 1 << 64 else 1
            if any(path.startswith("numpy.") for path in self._paths(node.func)):
                sizes.append(total)
        if any(each >= HUGE_ITEMS for each in sizes):
            self._note("huge_work", node, f"makes {max(sizes):,} items at once")
        return None

    def _call_regex(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        pattern = (
            node.args[0] if node.args else next((e.value for e in node.keywords if e.arg == "pattern"), None)
        )
        for each in self._constants(pattern):
            text = each.decode("latin-1") if isinstance(each, bytes) else each
            if isinstance(text, str) and has_nested_quantifiers(text):
                self._note(
                    "regex_backtracking", node, f"the pattern {text[:60]!r} repeats what repeats already"
                )
        return None

    def _call_iter(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        return (Ref("builtins.iter()"),) if len(node.args) == 2 else (arguments[0] if arguments else NOTHING)

    def _call_yaml(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        loaders = [*node.args[1:2], *(each.value for each in node.keywords if each.arg == "Loader")]
        if not any("Safe" in path for each in loaders for path in self._paths(each)):
            self._note("deserialization", node, "uses yaml.load with a loader that is not safe")
        return None

    def _call_numpy_load(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        if any(
            each.arg == "allow_pickle" and self._constant(each.value) is not False for each in node.keywords
        ):
            self._note("deserialization", node, "uses numpy.load with pickles")
        return None

    def _call_timeit(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        if any(isinstance(plain(each), str) for each in arguments) or not arguments:
            self._note("dynamic_code", node, "uses timeit, which runs a text as code")
        return None

    def _call_code(self, node: Any, arguments: list[Value], scope: PythonScope) -> Value | None:
        self._note("dynamic_code", node, "makes a function or code of parts")
        return None


_CALLS: dict[str, Callable[[PythonCalls, Any, list[Value], PythonScope], Value | None]] = {
    "builtins.open": PythonCalls._call_open,
    **dict.fromkeys(
        _OPENERS,
        PythonCalls._call_open,
    ),
    "os.open": PythonCalls._call_os_open,
    "sqlite3.connect": PythonCalls._call_sqlite,
    "duckdb.connect": PythonCalls._call_sqlite,
    "builtins.getattr": PythonCalls._call_getattr,
    "inspect.getattr_static": PythonCalls._call_getattr,
    "builtins.setattr": PythonCalls._call_setattr,
    "builtins.__import__": PythonCalls._call_import,
    "importlib.__import__": PythonCalls._call_import,
    "importlib.import_module": PythonCalls._call_import,
    "builtins.vars": PythonCalls._call_vars,
    "operator.attrgetter": PythonCalls._call_getter,
    "operator.methodcaller": PythonCalls._call_getter,
    "functools.partial": PythonCalls._call_first,
    "functools.wraps": PythonCalls._call_first,
    "functools.cache": PythonCalls._call_first,
    "builtins.staticmethod": PythonCalls._call_first,
    "builtins.classmethod": PythonCalls._call_first,
    "functools.reduce": PythonCalls._call_reduce,
    **dict.fromkeys(
        (f"builtins.{name}" for name in ("list", "tuple", "set", "sorted", "reversed", "frozenset")),
        PythonCalls._call_items,
    ),
    "builtins.map": PythonCalls._call_map,
    "builtins.next": PythonCalls._call_next,
    "builtins.max": PythonCalls._call_next,
    "builtins.min": PythonCalls._call_next,
    "builtins.iter": PythonCalls._call_iter,
    "builtins.range": PythonCalls._call_range,
    "time.sleep": PythonCalls._call_sleep,
    "asyncio.sleep": PythonCalls._call_sleep,
    **dict.fromkeys(
        _ALLOCATORS,
        PythonCalls._call_allocation,
    ),
    **dict.fromkeys(
        _PATTERN_TAKERS,
        PythonCalls._call_regex,
    ),
    "types.FunctionType": PythonCalls._call_code,
    "types.CodeType": PythonCalls._call_code,
    "yaml.load": PythonCalls._call_yaml,
    "yaml.load_all": PythonCalls._call_yaml,
    "numpy.load": PythonCalls._call_numpy_load,
    "timeit.timeit": PythonCalls._call_timeit,
    "timeit.repeat": PythonCalls._call_timeit,
    "timeit.Timer": PythonCalls._call_timeit,
}
