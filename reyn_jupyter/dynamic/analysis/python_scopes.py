"""The names of Python code: where each is bound, and what it may stand for.

Invariants: each node comes after its parts; what a name stands for only grows, but for a text that is added to; a name
that is surely bound where it is read is no builtin.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from reyn_jupyter.dynamic.analysis.credentials import is_credential
from reyn_jupyter.dynamic.analysis.python_syntax import (
    LOOPS,
    SKIPPED,
    declarations,
    fields_of,
)
from reyn_jupyter.dynamic.analysis.safety_rules import (
    LENT_MODULES,
    PYTHON_ALIASES,
    PYTHON_MODULES,
    PYTHON_NAMES,
    SENSITIVE_MODULES,
    python_kind,
)
from reyn_jupyter.dynamic.analysis.values import (
    LONGEST_PATH,
    MOST_ITEMS,
    NOTHING,
    Const,
    Items,
    Ref,
    Value,
    as_value,
    collection,
    union,
)

_BUILTINS: dict[str, Value] = {
    **{name: (Ref(f"builtins.{name}"),) for name in (*dir(builtins), "breakpoint", "__loader__", "__spec__")},
    "__builtins__": (Ref("builtins"),),
}
_TELLING_BUILTINS = frozenset(
    f"builtins.{name}"
    for name in (
        "getattr",
        "setattr",
        "vars",
        "globals",
        "locals",
        "open",
        "map",
        "type",
        "object",
        "chr",
        "bytes",
    )
)
# Modules and classes from which a way leads to what is worth a word.
_LEADING = (
    LENT_MODULES
    | SENSITIVE_MODULES
    | {"sys.modules"}
    | frozenset(
        path[: match.start()]
        for path in (*PYTHON_NAMES, *(f"{module}." for module in PYTHON_MODULES))
        for match in re.finditer(r"\.", path)
    )
)
_NAMESPACES = frozenset({"builtins.globals()", "builtins.locals()", "builtins.vars()"})
_PATH_MAKERS = frozenset({
    "absolute", "resolve", "joinpath", "with_name", "with_suffix", "with_stem", "expanduser", "relative_to",
    "readlink", "rename", "replace", "cwd", "home", "parent",
})  # fmt: skip
_PATH_LISTERS = frozenset({"iterdir", "glob", "rglob", "parents"})


class PythonFunction(NamedTuple):
    """A function of the code itself."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: PythonScope


class Getter(NamedTuple):
    """What `operator.attrgetter` or `methodcaller` gave."""

    names: tuple[str, ...]
    calls: bool


Atom = Ref | Const | Items | PythonFunction | Getter


class PythonScope:
    """Names of a module, class, function or comprehension, and what each may stand for."""

    __slots__ = ("bound", "certain", "elsewhere", "kind", "parent", "read", "returns", "values")

    def __init__(self, kind: str, parent: PythonScope | None) -> None:
        self.kind = kind
        self.parent = parent
        self.values: dict[str, Value] = {}
        self.bound: set[str] = set()
        self.certain: dict[str, int] = {}  # name → line of a statement of a module that surely binds it
        self.elsewhere: dict[str, PythonScope] = {}  # declared global or nonlocal
        self.read: set[str] = set()
        self.returns: Value = NOTHING


_Step = tuple[Any, PythonScope, bool]


class PythonNames:
    """The nodes of a tree in an order in which each comes after its parts, and what names may stand for."""

    def __init__(self, tree: ast.Module) -> None:
        self._module = PythonScope("module", None)
        self._found: dict[tuple[str, int], str] = {}
        self._values: dict[int, Value] = {}
        self._attributes: dict[str, Value] = {}  # what was set as an attribute of anything
        self._own_names: set[str] = set()  # functions and attributes that the code defines itself
        self._imported: set[str] = set()  # top-level modules
        self._import_lines: dict[str, int] = {}
        self._used_modules: set[str] = set()
        self._star: list[str] = []
        self._loose: list[tuple[str, int]] = []
        self._texts: list[Any] = []
        self._loops: list[Any] = []
        self._inner: dict[int, PythonScope] = {}  # scopes of functions, classes and comprehensions
        self._dirty = False  # something came to a name after it was read
        self._dirty_texts = False  # a constant did, which matters only where names are made of texts
        self._takes_names = False
        self._steps: list[tuple[ast.AST, PythonScope]] = []
        self._collect(tree)

    # -- what there is ---------------------------------------------------------------------------------------

    def _collect(self, tree: ast.Module) -> None:
        """Put the nodes into their order, open scopes, and bind what is bound without a look at values."""
        steps = self._steps
        pending: list[tuple[Any, PythonScope, bool]] = [(tree, self._module, False)]
        for statement in tree.body:
            self._bind_certainly(statement)
        docstrings: set[int] = set()
        while pending:
            node, scope, done = pending.pop()
            kind = type(node)
            if done:
                steps.append((node, scope))
                continue
            if kind is ast.Name:
                if type(node.ctx) is ast.Load:
                    steps.append((node, scope))
                else:
                    self._bind_name(scope, node.id, type(node.ctx) is ast.Del)
                continue
            if kind is ast.Constant:
                if type(node.value) in (str, bytes) and id(node) not in docstrings:
                    self._texts.append(node)
                continue
            if kind is ast.Expr and type(node.value) is ast.Constant:
                docstrings.add(id(node.value))
            opener = _OPENERS.get(kind)
            pending += reversed(opener(self, node, scope) if opener is not None else self._enter(node, scope))

    def _enter(self, node: Any, scope: PythonScope) -> list[_Step]:
        """Return the parts of a node and the node, in their order."""
        kind = type(node)
        if kind in _BINDERS:
            _BINDERS[kind](self, node, scope)
        if kind in LOOPS:
            self._loops.append(node)
        steps: list[_Step] = []
        for field in fields_of(kind):
            child = getattr(node, field, None)
            if type(child) is list:
                steps += [(each, scope, False) for each in child if isinstance(each, ast.AST)]
            elif isinstance(child, ast.AST) and not isinstance(child, SKIPPED):
                steps.append((child, scope, False))
        # A loop binds its target before its body is read, and a match its names before its cases are.
        places = {ast.For: 2, ast.AsyncFor: 2, ast.Match: 1}
        steps.insert(places.get(kind, len(steps)), (node, scope, True))
        return steps

    def _bind_certainly(self, statement: ast.stmt) -> None:
        names: list[str] = []
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names = [name]
            case ast.Assign(targets=targets):
                names = [each.id for each in targets if isinstance(each, ast.Name)]
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names = [each.asname or each.name.partition(".")[0] for each in aliases]
        for name in names:
            self._module.certain.setdefault(name, statement.lineno)

    def _bind_name(self, scope: PythonScope, name: str, deleted: bool = False) -> PythonScope:
        while scope.kind == "comprehension" and scope.parent is not None and name not in scope.bound:
            scope = scope.parent  # a walrus; what a comprehension itself binds is bound already
        scope = scope.elsewhere.get(name, scope)
        scope.bound.add(name)
        if deleted:
            scope.certain[name] = 1 << 30
        return scope

    def _open_function(self, node: Any, scope: PythonScope) -> list[_Step]:
        inner = self._inner[id(node)] = PythonScope("function", scope)
        arguments = node.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        extra = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
        inner.bound.update(each.arg for each in (*parameters, *extra))
        annotations = [each.annotation for each in (*parameters, *extra) if each.annotation is not None]
        outside = [
            *arguments.defaults,
            *(each for each in arguments.kw_defaults if each is not None),
            *annotations,
        ]
        if isinstance(node, ast.Lambda):
            body: list[ast.AST] = [node.body]
        else:
            body = list(node.body)
            outside += node.decorator_list + ([node.returns] if node.returns is not None else [])
            target = self._bind_name(scope, node.name)
            self._add(target, node.name, (PythonFunction(node, inner),))
            self._own_names.add(node.name)
            for statement in declarations(node.body):
                for name in statement.names:
                    where = self._module if isinstance(statement, ast.Global) else owner_of(scope, name)
                    inner.elsewhere[name] = where
                    where.bound.add(name)
        steps: list[_Step] = [(each, scope, False) for each in outside]
        steps.append((arguments, inner, True))
        steps += [(each, inner, False) for each in body]
        steps.append((node, scope, True))
        return steps

    def _open_class(self, node: Any, scope: PythonScope) -> list[_Step]:
        inner = self._inner[id(node)] = PythonScope("class", scope)
        self._bind_name(scope, node.name)
        outside = [*node.decorator_list, *node.bases, *(each.value for each in node.keywords)]
        steps = [(each, scope, False) for each in outside] + [(each, inner, False) for each in node.body]
        return [*steps, (node, scope, True)]

    def _open_comprehension(self, node: Any, scope: PythonScope) -> list[_Step]:
        inner = self._inner[id(node)] = PythonScope("comprehension", scope)
        steps: list[_Step] = []
        for generator in node.generators:
            inner.bound.update(each.id for each in ast.walk(generator.target) if isinstance(each, ast.Name))
            steps += [(generator.iter, inner, False), (generator, inner, True)]
            steps += [(each, inner, False) for each in generator.ifs]
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        return [*steps, *((each, inner, False) for each in elements), (node, scope, True)]

    def _bind_import(self, node: Any, scope: PythonScope) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self._imported.add(top)
            self._import_lines.setdefault(alias.name, node.lineno)
            name = alias.asname or top
            path = alias.name if alias.asname else top
            self._add(self._bind_name(scope, name), name, (Ref(canonical(path)),))

    def _bind_import_from(self, node: Any, scope: PythonScope) -> None:
        module = node.module or ""
        self._imported.add(module.partition(".")[0])
        for alias in node.names:
            if alias.name == "*":
                self._star.append(canonical(module))
                self._import_lines.setdefault(module, node.lineno)
                continue
            name = alias.asname or alias.name
            # Also a module that another one imports: `from shutil import os`.
            value = attribute_of(canonical(module), alias.name) or (Ref(canonical(f"{module}.{alias.name}")),)
            path = value[0].path
            self._imported.add(alias.name)  # it may be a module
            self._import_lines.setdefault(path, node.lineno)
            self._add(self._bind_name(scope, name), name, value)

    def _bind_handler(self, node: Any, scope: PythonScope) -> None:
        name = getattr(node, "name", None) or getattr(node, "rest", None)
        if name:
            self._bind_name(scope, name)

    # -- what it may stand for -------------------------------------------------------------------------------

    def _note(self, kind: str, node: Any, what: str) -> None:
        self._found.setdefault((kind, node.lineno), what)

    def _add(self, scope: PythonScope, name: str, value: Value) -> None:
        """Let a name stand for more."""
        if not value:
            return
        before = scope.values.get(name, NOTHING)
        more = union(before, value)
        if len(more) > len(before):
            scope.values[name] = more
            if name in scope.read:
                fresh = more[len(before) :]
                self._dirty = self._dirty or any(map(is_telling, fresh))
                self._dirty_texts = self._dirty_texts or any(
                    type(atom) is Const and isinstance(atom.value, (str, bytes)) for atom in fresh
                )

    def _value(self, node: ast.AST | None) -> Value:
        if type(node) is ast.Constant:
            return (Const(node.value),)
        return self._values.get(id(node), NOTHING)

    def _set(self, node: ast.AST, value: Value) -> None:
        if value:
            self._values[id(node)] = value

    def _constant(self, node: ast.AST | None) -> Any:
        """Return the one constant that a node stands for, or None."""
        value = self._value(node)
        return value[0].value if len(value) == 1 and type(value[0]) is Const else None

    def _constants(self, node: ast.AST | None) -> list[Any]:
        return [atom.value for atom in self._value(node) if type(atom) is Const]

    def _paths(self, node: ast.AST | None) -> list[str]:
        return [atom.path for atom in self._value(node) if type(atom) is Ref]

    def _mention(self, node: Any, value: Value) -> Value:
        """Note what a node mentions, and let it stand for that."""
        for atom in value:
            if type(atom) is Ref:
                self._mention_path(node, atom.path)
        self._set(node, value)
        return value

    def _mention_path(self, node: Any, path: str) -> None:
        kind = python_kind(path)
        if kind is not None:
            self._note(kind, node, f"uses {words_of(path)}")
            self._used_modules.update(prefixes(path))
        elif path == "builtins" and type(node) is ast.Name and node.id == "__builtins__":
            self._note("introspection", node, "uses __builtins__")

    def _lookup(self, name: str, scope: PythonScope, line: int) -> Value:
        value: Value = NOTHING
        place: PythonScope | None = scope.elsewhere.get(name, scope)
        while place is not None:
            if name in place.bound and (place.kind != "class" or place is scope):
                place.read.add(name)
                found = place.values.get(name, NOTHING)
                value = union(value, found) if value else found
                if place.kind == "function" or place.kind == "comprehension":
                    return value
                if place.kind == "module" and place.certain.get(name, 1 << 30) <= line:
                    return value
            place = place.elsewhere.get(name) if name in place.elsewhere else place.parent
        for module in self._star:
            if python_kind(f"{module}.{name}") is not None or name in LENT_MODULES:
                value = union(value, (Ref(canonical(f"{module}.{name}")),))
        if name in _BUILTINS:
            value = union(value, _BUILTINS[name])
        return value

    def _attribute(self, base: Value, attr: str) -> Value:
        value: Value = NOTHING
        for atom in base:
            if type(atom) is Ref:
                value = union(value, attribute_of(atom.path, attr))
            elif type(atom) is PythonFunction and attr in ("__call__", "__func__", "__wrapped__"):
                value = union(value, (atom,))
        return value

    def _item_of(self, node: Any, path: str, key: ast.AST, scope: PythonScope) -> Value:
        """Return what a key of a namespace stands for: globals(), a module's __dict__, sys.modules, __builtins__."""
        holder = path.removesuffix(".__dict__") if path.endswith(".__dict__") else ""
        if path in _NAMESPACES or path in ("sys.modules", "builtins"):
            holder = path
        if not holder:
            return NOTHING
        keys = [each for each in self._constants(key) if isinstance(each, str)]
        if not keys:
            if holder in SENSITIVE_MODULES or holder == "sys.modules" or holder in _NAMESPACES:
                self._note(
                    "introspection", node, f"takes a name of {words_of(holder)} that is made while it runs"
                )
            return NOTHING
        value: Value = NOTHING
        for name in keys:
            if holder == "sys.modules":
                value = union(value, (Ref(canonical(name)),))
            elif holder in _NAMESPACES:
                if name == "__builtins__":
                    self._note("introspection", node, "uses __builtins__")
                value = union(value, self._lookup(name, scope, 1 << 29))
            else:
                value = union(value, attribute_of(holder, name))
        return value

    def _items(self, node: ast.AST) -> list[Any] | None:
        """Return the constants that something gives one by one, or None."""
        value = self._value(node)
        if len(value) != 1:
            return None
        atom = value[0]
        if (
            type(atom) is Const
            and isinstance(atom.value, (str, bytes, tuple))
            and len(atom.value) <= MOST_ITEMS
        ):
            return list(atom.value)
        if type(atom) is Items and all(len(each) == 1 and type(each[0]) is Const for each in atom.values):
            return [each[0].value for each in atom.values]
        return None

    def _look_for_credential(self, value: ast.AST, name: str, node: Any) -> None:
        if name and is_credential(name, self._constant(value)):
            self._note("credentials", node, f"gives {name} a value that is written out")


_BINDERS: dict[type, Callable[[PythonNames, Any, PythonScope], None]] = {
    ast.Import: PythonNames._bind_import,
    ast.ImportFrom: PythonNames._bind_import_from,
    ast.ExceptHandler: PythonNames._bind_handler,
    ast.MatchAs: PythonNames._bind_handler,
    ast.MatchStar: PythonNames._bind_handler,
    ast.MatchMapping: PythonNames._bind_handler,
}
_OPENERS: dict[type, Callable[[PythonNames, Any, PythonScope], list[_Step]]] = {
    ast.FunctionDef: PythonNames._open_function,
    ast.AsyncFunctionDef: PythonNames._open_function,
    ast.Lambda: PythonNames._open_function,
    ast.ClassDef: PythonNames._open_class,
    ast.ListComp: PythonNames._open_comprehension,
    ast.SetComp: PythonNames._open_comprehension,
    ast.GeneratorExp: PythonNames._open_comprehension,
    ast.DictComp: PythonNames._open_comprehension,
}


def owner_of(scope: PythonScope, name: str) -> PythonScope:
    return next((each for each in outward(scope) if each.kind == "function" and name in each.bound), scope)


def outward(scope: PythonScope | None) -> Iterator[PythonScope]:
    while scope is not None:
        yield scope
        scope = scope.parent


def is_telling(atom: Atom) -> bool:
    """Return whether it could make a difference to read the code once more, now that a name stands for this, too."""
    if type(atom) is Ref:
        path = atom.path
        if path in _LEADING or path in _TELLING_BUILTINS or path == "pathlib.Path()":
            return True
        return path.endswith("__dict__") or python_kind(path) is not None
    if type(atom) is Items:
        return any(type(each) is not Const and is_telling(each) for value in atom.values for each in value)
    if type(atom) is PythonFunction:
        return any(map(is_telling, atom.scope.returns))
    return type(atom) is Getter


def iterated(value: Value) -> Value:
    """Return what the elements of a value may stand for."""
    made: Value = NOTHING
    for atom in value:
        if type(atom) is Items:
            for at, each in enumerate(atom.values):
                made = union(made, as_value(atom.keys[at]) if atom.keys is not None else each)
        elif type(atom) is Ref and atom.path.startswith("pathlib.Path()[]"):
            made = union(made, (Ref("pathlib.Path()"),))
    return made


def called(value: Value) -> Value:
    made: list[Atom] = []
    for atom in value:
        if type(atom) is Ref and len(atom.path) < LONGEST_PATH:
            path = atom.path
            last = path.rpartition(".")[2]
            if path.startswith("pathlib.Path") and last in _PATH_MAKERS:
                path = "pathlib.Path"
            elif path.startswith("pathlib.Path") and last in _PATH_LISTERS:
                made.append(collection(((Ref("pathlib.Path()"),),)))
                continue
            made.append(Ref(f"{path}()"))
    return tuple(made)


def attribute_of(path: str, attr: str) -> Value:
    if len(path) > LONGEST_PATH:
        return NOTHING
    if "()" not in path and (lent := attr.lstrip("_")) in LENT_MODULES and path not in ("builtins", ""):
        return (Ref(canonical(lent)),)
    if attr == "__self__" and "()" not in path and "." in path:  # of a function in C: its module
        return (Ref(canonical(path.rpartition(".")[0])),)
    if path == "pathlib.Path()" and attr == "parent":
        return (Ref(path),)
    if path == "pathlib.Path()" and attr == "parents":
        return (collection(((Ref(path),),)),)
    if attr == "__dict__" or path != "builtins" or attr in _BUILTINS:
        return (Ref(canonical(f"{path}.{attr}")),)
    return NOTHING


def canonical(path: str) -> str:
    if (alias := PYTHON_ALIASES.get(path)) is not None:
        return alias
    top, dot, rest = path.partition(".")
    if dot and (alias := PYTHON_ALIASES.get(top)) is not None:
        return f"{alias}.{rest}"
    head, _, last = path.rpartition(".")
    if head and (alias := PYTHON_ALIASES.get(head)) is not None:
        return f"{alias}.{last}"
    return path


def prefixes(path: str) -> list[str]:
    parts = path.replace("()", "").split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts) + 1)]


def words_of(path: str) -> str:
    return path.replace("()", "").removeprefix("builtins.") or "builtins"
