"""What Python code of a tool does, read from its syntax tree with imports, aliases and constants resolved.

Invariants: nothing of the code is run or imported; the time is bounded by the size of the code, whatever it looks like;
comments, texts and docstrings are never read as code. What a name stands for is followed through the whole code without
regard to the order of its statements, so what is found may not happen. What cannot be followed is not found: the
sandbox is what keeps a tool in.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from reyn_jupyter.dynamic.analysis.folding import (
    fold_expression,
    fold_item,
    fold_operation,
    fold_slice,
)
from reyn_jupyter.dynamic.analysis.python_calls import PythonCalls
from reyn_jupyter.dynamic.analysis.python_scopes import (
    Atom,
    PythonFunction,
    PythonScope,
    iterated,
    outward,
    prefixes,
)
from reyn_jupyter.dynamic.analysis.python_syntax import (
    NESTED,
    has_node,
    is_always_true,
    never_changes,
    parse_python,
)
from reyn_jupyter.dynamic.analysis.safety_rules import (
    DISTINCTIVE,
    HUGE_EXPONENT,
    HUGE_ITEMS,
    PYTHON_ATTRIBUTES,
    PYTHON_MODULES,
    Finding,
    ToolCodeError,
    python_kind,
)
from reyn_jupyter.dynamic.analysis.values import (
    MOST_ATOMS,
    MOST_ITEMS,
    NOTHING,
    Const,
    Items,
    Ref,
    Value,
    as_value,
    collection,
    item_of,
    length_of,
    number_of,
    plain,
    union,
)
from reyn_jupyter.support.key_shapes import contains_key_shape

# What takes a text as a name, a mode or code.
_NAME_TAKERS = frozenset({
    "getattr", "setattr", "__import__", "import_module", "vars", "globals", "locals", "__dict__", "modules", "open",
    "attrgetter", "methodcaller", "__getattribute__", "reduce", "__builtins__", "getattr_static",
})  # fmt: skip
_PASSES = 4  # over code in which a name is read above where it gets its meaning
_ENDLESS = frozenset({"itertools.count()", "itertools.cycle()", "itertools.repeat()", "builtins.iter()"})
_EXITS = frozenset({"sys.exit", "os._exit", "builtins.exit", "builtins.quit", "os.abort"})


def python_findings(code: str) -> list[Finding]:
    """Return what Python code does that is worth a word, by line.

    Raises:
        ToolCodeError: as `parse_python`.

    >>> python_findings("import os as o\\ndef execute(params): return o.system('ls')")[0].kind
    'processes'
    """
    return _Reading(parse_python(code)).findings()


class _Reading(PythonCalls):
    """One reading of a tree: what each of its nodes may stand for, and what is found."""

    def findings(self) -> list[Finding]:
        steps = [(step, *each) for each in self._steps if (step := _STEPS.get(type(each[0]))) is not None]
        for number in range(_PASSES):
            self._dirty = self._dirty_texts = False
            for step, node, scope in steps:
                step(self, node, scope)
            # Texts grow with each pass, so they are a reason for one more, not for many.
            if not (self._dirty or (self._dirty_texts and self._takes_names and number == 0)):
                break
        self._look_at_loops()
        self._look_at_imports()
        self._look_at_loose_names()
        self._look_for_keys()
        return sorted(
            (Finding(kind, line, what) for (kind, line), what in self._found.items()),
            key=lambda each: each.line,
        )

    def _read_name(self, node: Any, scope: PythonScope) -> None:
        name = node.id
        if name in _NAME_TAKERS:
            self._takes_names = True
        if name in ("get_ipython",) and not any(name in place.bound for place in outward(scope)):
            raise ToolCodeError(
                f"line {node.lineno} asks for IPython: a tool runs outside of the notebook", node.lineno
            )
        if name in PYTHON_ATTRIBUTES and name.startswith("__"):
            self._note(PYTHON_ATTRIBUTES[name], node, f"uses {name}")
        self._mention(node, self._lookup(name, scope, node.lineno))

    def _read_attribute(self, node: Any, scope: PythonScope) -> None:
        attr = node.attr
        if attr in _NAME_TAKERS:
            self._takes_names = True
        if type(node.ctx) is not ast.Load:
            return
        base = self._value(node.value)
        value = self._attribute(base, attr)
        kind = PYTHON_ATTRIBUTES.get(attr)
        if kind is not None:
            self._note(kind, node, f"uses {attr}")
        if not base or any(type(atom) is not Ref for atom in base):
            if attr in DISTINCTIVE:
                self._loose.append((attr, node.lineno))
            value = union(value, self._attributes.get(attr, NOTHING))
        self._mention(node, value)

    def _read_subscript(self, node: Any, scope: PythonScope) -> None:
        if type(node.ctx) is not ast.Load:
            return
        base = self._value(node.value)
        if not base:
            return
        cut = node.slice if isinstance(node.slice, ast.Slice) else None
        value: Value = NOTHING
        for atom in base:
            if type(atom) is Ref:
                value = union(value, self._item_of(node, atom.path, node.slice, scope))
            elif type(atom) is Items:
                value = union(value, item_of(atom, self._constants(node.slice), cut is not None))
            elif type(atom) is Const:
                folded = (
                    fold_slice(atom.value, cut, self._constant)
                    if cut is not None
                    else fold_item(atom.value, self._constant(node.slice))
                )
                value = union(value, as_value(folded))
        self._mention(node, value)

    def _read_operation(self, node: Any, scope: PythonScope) -> None:
        left, right = self._value(node.left), self._value(node.right)
        kind = type(node.op)
        self._look_at_size(node, kind, left, right)
        value: Value = NOTHING
        for one in left:
            if type(one) is Ref and one.path == "pathlib.Path()" and kind is ast.Div:
                value = union(value, (one,))
            for other in right if len(left) * len(right) <= MOST_ATOMS else NOTHING:
                value = union(value, _combined(kind, one, other))
        if kind is ast.Div and Ref("pathlib.Path()") in right:
            value = union(value, (Ref("pathlib.Path()"),))
        self._set(node, value)

    def _look_at_size(self, node: Any, kind: type[ast.operator], left: Value, right: Value) -> None:
        numbers = [atom.value for atom in right if type(atom) is Const and type(atom.value) is int]
        if kind is ast.Mult:
            for size, other in ((number_of(left), right), (number_of(right), left)):
                items = next((length_of(atom) for atom in other if length_of(atom) is not None), None)
                if size is not None and items is not None and size * max(items, 1) >= HUGE_ITEMS:
                    self._note("huge_work", node, f"makes {size * max(items, 1):,} items at once")
        elif kind is ast.Pow and numbers and abs(number_of(left) or 2) > 1 and max(numbers) >= HUGE_EXPONENT:
            self._note("huge_work", node, f"raises to the power {max(numbers):,}")
        elif kind is ast.LShift and numbers and max(numbers) >= 8 * HUGE_ITEMS:
            self._note("huge_work", node, f"shifts by {max(numbers):,} bits")
        if kind is ast.Pow and not numbers and isinstance(node, ast.BinOp) and _is_tower(node):
            self._note("huge_work", node, "raises to a power of powers")

    def _read_sign(self, node: Any, scope: PythonScope) -> None:
        number = self._constant(node.operand)
        if type(node.op) is ast.USub and isinstance(number, (int, float)):
            self._set(node, (Const(-number),))

    def _read_f_string(self, node: Any, scope: PythonScope) -> None:
        text = ""
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                piece = (
                    self._constant(part.value) if part.format_spec is None and part.conversion == -1 else None
                )
                if not isinstance(piece, (str, int)):
                    return
                text += str(piece)
            else:
                text += str(part.value)
        if len(text) <= 4_096:
            self._set(node, (Const(text),))

    def _read_sequence(self, node: Any, scope: PythonScope) -> None:
        if type(getattr(node, "ctx", None)) in (ast.Store, ast.Del):
            return
        if len(node.elts) <= MOST_ITEMS:
            values: list[Value] = []
            for each in node.elts:
                if isinstance(each, ast.Starred):
                    values += [
                        item
                        for atom in self._value(each.value)
                        if type(atom) is Items
                        for item in atom.values
                    ]
                else:
                    values.append(self._value(each))
            self._set(node, (collection(tuple(values[:MOST_ITEMS])),))

    def _read_dict(self, node: Any, scope: PythonScope) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if type(key) is ast.Constant and isinstance(key.value, str):
                self._look_for_credential(value, key.value, value)
        if len(node.keys) <= MOST_ITEMS:
            keys = tuple(None if key is None else self._constant(key) for key in node.keys)
            self._set(node, (collection(tuple(map(self._value, node.values)), keys),))

    def _read_choice(self, node: Any, scope: PythonScope) -> None:
        parts = [node.body, node.orelse] if isinstance(node, ast.IfExp) else node.values
        value: Value = NOTHING
        for part in parts:
            value = union(value, self._value(part))
        self._set(node, value)

    def _read_same(self, node: Any, scope: PythonScope) -> None:
        self._set(node, self._value(node.value))

    def _read_walrus(self, node: Any, scope: PythonScope) -> None:
        value = self._value(node.value)
        self._bind(node.target, value, scope)
        self._set(node, value)

    def _read_function(self, node: Any, scope: PythonScope) -> None:
        inner = self._inner[id(node)]
        if isinstance(node, ast.Lambda):
            inner.returns = union(inner.returns, self._value(node.body))
            self._set(node, (PythonFunction(node, inner),))
            return
        for decorator in node.decorator_list:
            for atom in self._value(decorator):
                if type(atom) is PythonFunction:
                    self._bind_arguments(atom, [(PythonFunction(node, inner),)])
                made = self._result(atom, [(PythonFunction(node, inner),)], decorator, scope)
                self._add(self._bind_name(scope, node.name), node.name, made)
        if scope.kind == "class":
            self._attributes[node.name] = union(
                self._attributes.get(node.name, NOTHING), (PythonFunction(node, inner),)
            )

    def _read_parameters(self, node: Any, scope: PythonScope) -> None:
        positional = [*node.posonlyargs, *node.args]
        pairs = list(zip(positional[len(positional) - len(node.defaults) :], node.defaults, strict=True))
        pairs += [
            (each, default)
            for each, default in zip(node.kwonlyargs, node.kw_defaults, strict=True)
            if default
        ]
        for parameter, default in pairs:
            self._add(scope, parameter.arg, self._value(default))
            self._look_for_credential(default, parameter.arg, default)
        for parameter in (*positional, *node.kwonlyargs):
            if parameter.annotation is not None:
                self._add(scope, parameter.arg, self._instance(parameter.annotation))

    def _instance(self, annotation: ast.AST) -> Value:
        return (Ref("pathlib.Path()"),) if "pathlib.Path" in self._paths(annotation) else NOTHING

    def _read_comprehension(self, node: Any, scope: PythonScope) -> None:
        inner = self._inner[id(node)]
        if isinstance(node, ast.DictComp):
            self._set(node, (collection((self._value(node.value),), (None,)),))
            return
        folded = self._fold_each(node, inner)
        if folded is not None:
            self._set(node, (collection(tuple(as_value(each) for each in folded)),))
        elif value := self._value(node.elt):
            self._set(node, (collection((value,)),))

    def _fold_each(self, node: Any, scope: PythonScope) -> list[Any] | None:
        """Return the elements of a comprehension over constants, or None."""
        if (
            len(node.generators) != 1
            or node.generators[0].ifs
            or type(node.generators[0].target) is not ast.Name
        ):
            return None
        items = self._items(node.generators[0].iter)
        if items is None:
            return None
        name = node.generators[0].target.id

        def path_of(function: ast.expr) -> str | None:
            return next(iter(self._paths(function)), None)

        made = []
        for item in items:
            value = fold_expression(node.elt, {name: item}, path_of)
            if value is None:
                return None
            made.append(value)
        return made

    # -- what is bound ---------------------------------------------------------------------------------------

    def _bind(self, target: ast.AST, value: Value, scope: PythonScope) -> None:
        if not value:
            return
        match target:
            case ast.Name(id=name):
                self._add(self._bind_name(scope, name), name, value)
                if scope.kind == "class":
                    self._attributes[name] = union(self._attributes.get(name, NOTHING), value)
            case ast.Attribute(attr=attr):
                self._attributes[attr] = union(self._attributes.get(attr, NOTHING), value)
            case ast.Subscript(value=ast.Name(id=name)):
                self._add(self._bind_name(scope, name), name, (collection((value,)),))
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for at, each in enumerate(targets):
                    if isinstance(each, ast.Starred):
                        self._bind(each.value, (collection((iterated(value),)),), scope)
                        continue
                    taken: Value = NOTHING
                    for atom in value:
                        if type(atom) is Items and atom.keys is None and len(atom.values) == len(targets):
                            taken = union(taken, atom.values[at])
                        else:
                            taken = union(taken, iterated((atom,)))
                    self._bind(each, taken, scope)

    def _read_assign(self, node: Any, scope: PythonScope) -> None:
        value = self._value(node.value)
        for target in node.targets:
            self._bind(target, value, scope)
            self._own_names.update(_attribute_names(target))
            self._look_for_credential(node.value, _target_name(target), node)

    def _read_annotated(self, node: Any, scope: PythonScope) -> None:
        self._bind(node.target, union(self._value(node.value), self._instance(node.annotation)), scope)
        if node.value is not None:
            self._look_for_credential(node.value, _target_name(node.target), node)

    def _read_augmented(self, node: Any, scope: PythonScope) -> None:
        if type(node.target) is not ast.Name:
            return
        where = self._bind_name(scope, node.target.id)
        before = where.values.get(node.target.id, NOTHING)
        right = self._value(node.value)
        self._look_at_size(node, type(node.op), before, right)
        made: Value = NOTHING
        for one in before[-1:]:
            for other in right if len(right) == 1 else NOTHING:
                made = union(made, _combined(type(node.op), one, other))
        if not made:  # it is not known any more
            where.values[node.target.id] = tuple(atom for atom in before if type(atom) is not Const)
            return
        # Not a cause for another pass: each would make it longer.
        where.values[node.target.id] = union(before, made)

    def _read_for(self, node: Any, scope: PythonScope) -> None:
        self._bind(node.target, iterated(self._value(node.iter)), scope)

    def _read_with(self, node: Any, scope: PythonScope) -> None:
        if node.optional_vars is not None:
            self._bind(node.optional_vars, self._value(node.context_expr), scope)

    def _read_match(self, node: Any, scope: PythonScope) -> None:
        value = self._value(node.subject)
        if not value:
            return
        for case in node.cases:
            for each in ast.walk(case.pattern):
                if isinstance(each, (ast.MatchAs, ast.MatchStar)) and each.name is not None:
                    self._add(self._bind_name(scope, each.name), each.name, union(value, iterated(value)))

    def _read_yield(self, node: Any, scope: PythonScope) -> None:
        value = self._value(node.value)
        if value:  # what a loop over the generator gets, and what a context manager lends
            while scope.kind == "comprehension" and scope.parent is not None:
                scope = scope.parent
            scope.returns = union(scope.returns, (*value, collection([value])))

    def _read_return(self, node: Any, scope: PythonScope) -> None:
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        before = scope.returns
        scope.returns = union(before, self._value(node.value))

    def _look_at_loops(self) -> None:
        for node in self._loops:
            if isinstance(node, ast.While):
                always = is_always_true(node.test) or never_changes(node)
            else:
                always = any(path in _ENDLESS for path in self._paths(node.iter))
            if always and not self._has_way_out(node):
                self._note("endless_loop", node, "a loop without a break, return or raise that is reached")

    def _has_way_out(self, node: Any) -> bool:
        if has_node(node.body, (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom)):
            return True
        return has_node(node.body, (ast.Break,), loops=False) or self._exits(node)

    def _exits(self, node: Any) -> bool:
        pending = list(node.body)
        while pending:
            each = pending.pop()
            if isinstance(each, ast.Call) and any(path in _EXITS for path in self._paths(each.func)):
                return True
            if not isinstance(each, NESTED):
                pending += ast.iter_child_nodes(each)
        return False

    def _look_at_imports(self) -> None:
        """Note a module that is nothing but one kind of operation, where no use of it was seen."""
        for module, line in self._import_lines.items():
            parts = prefixes(module)
            kind = next((PYTHON_MODULES[each] for each in parts if each in PYTHON_MODULES), None)
            if kind is None or python_kind(f"{module}.x") is None or self._used_modules & set(parts):
                continue
            self._found.setdefault((kind, line), f"imports {module}")

    def _look_at_loose_names(self) -> None:
        for attr, line in self._loose:
            kind, modules = DISTINCTIVE[attr]
            if attr not in self._own_names and self._imported.intersection(modules):
                self._found.setdefault((kind, line), f"uses {attr} of what is probably from {modules[0]}")

    def _look_for_keys(self) -> None:
        texts = [
            each.value.decode("latin-1") if isinstance(each.value, bytes) else each.value
            for each in self._texts
        ]
        if not contains_key_shape("\n".join(texts)):
            return
        for node, text in zip(self._texts, texts, strict=True):
            if contains_key_shape(text):
                self._note("credentials", node, "holds a text of the shape of a key")


def _combined(kind: type[ast.operator], one: Atom, other: Atom) -> Value:
    if (
        type(one) is Items
        and type(other) is Items
        and kind is ast.Add
        and one.keys is None
        and other.keys is None
    ):
        return (collection((one.values + other.values)[:MOST_ITEMS]),)
    if type(one) is Items and kind is ast.BitOr:
        return (one, other)
    if type(one) is Const and type(other) in (Const, Items):
        right = plain((other,))
        if type(other) is Items and (kind is not ast.Mod or right is None or None in right):
            return NOTHING
        return as_value(fold_operation(kind, one.value, right))
    return NOTHING


def _is_tower(node: ast.BinOp) -> bool:
    return (
        isinstance(node.right, ast.BinOp)
        and isinstance(node.right.op, ast.Pow)
        and all(
            isinstance(each, ast.Constant) and isinstance(each.value, int) and each.value > 1
            for each in _leaves(node)
        )
    )


def _leaves(node: ast.expr) -> Iterator[ast.expr]:
    while isinstance(node, ast.BinOp):
        yield node.left
        node = node.right
    yield node


def _target_name(target: ast.AST) -> str:
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str() as name)):
            return name
    return ""


def _attribute_names(target: ast.AST) -> list[str]:
    return [target.attr] if isinstance(target, ast.Attribute) else []


_STEPS: dict[type, Callable[[_Reading, Any, PythonScope], None]] = {
    ast.Name: _Reading._read_name,
    ast.Attribute: _Reading._read_attribute,
    ast.Subscript: _Reading._read_subscript,
    ast.Call: _Reading._read_call,
    ast.BinOp: _Reading._read_operation,
    ast.UnaryOp: _Reading._read_sign,
    ast.JoinedStr: _Reading._read_f_string,
    ast.List: _Reading._read_sequence,
    ast.Tuple: _Reading._read_sequence,
    ast.Set: _Reading._read_sequence,
    ast.Dict: _Reading._read_dict,
    ast.IfExp: _Reading._read_choice,
    ast.BoolOp: _Reading._read_choice,
    ast.Await: _Reading._read_same,
    ast.NamedExpr: _Reading._read_walrus,
    ast.Lambda: _Reading._read_function,
    ast.FunctionDef: _Reading._read_function,
    ast.AsyncFunctionDef: _Reading._read_function,
    ast.arguments: _Reading._read_parameters,
    ast.ListComp: _Reading._read_comprehension,
    ast.SetComp: _Reading._read_comprehension,
    ast.GeneratorExp: _Reading._read_comprehension,
    ast.DictComp: _Reading._read_comprehension,
    ast.comprehension: _Reading._read_for,
    ast.Assign: _Reading._read_assign,
    ast.AnnAssign: _Reading._read_annotated,
    ast.AugAssign: _Reading._read_augmented,
    ast.For: _Reading._read_for,
    ast.AsyncFor: _Reading._read_for,
    ast.withitem: _Reading._read_with,
    ast.Return: _Reading._read_return,
    ast.Match: _Reading._read_match,
    ast.Yield: _Reading._read_yield,
}
