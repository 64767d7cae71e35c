"""What docstrings, comments and the manual name in backticks is there: modules, functions, attributes, keys, files."""

from __future__ import annotations

import ast
import builtins
import importlib.util
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from reyn_jupyter.demo import REPOSITORY
from tests.docs.example_code import parse_code

PACKAGE = REPOSITORY / "reyn_jupyter"
SOURCES = sorted(PACKAGE.rglob("*.py"))
PAGES = [
    *sorted((PACKAGE / "docs").glob("*.md")),
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
]
DOTTED = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\([^`]*\))?`")
WORD = re.compile(r"`([A-Za-z_]\w*)(?:\([^`]*\))?`")
FILE = re.compile(r"(?<![\w./*{-])((?:[\w-]+/)*[\w-]+\.(?:py|md))\b(?![/*{])")
NAMING = re.compile(r"#.*(?:`|\.py|\.md)")  # a line whose comment names something
# Names that a text makes up to explain something, and attributes of objects that other packages or a page own.
EXAMPLES = {
    *(
        "agent.peer",
        "agent.peer__checker",
        "domain.action",
        "example.org",
        "variable__orders",
        "mcp__call_tool",
        "birth_year",
        "wing_mm",
        "patients",
        "visit",
        "visits",
    ),
    *("smoke", "smoker", "name_2", "name_3", "total_bytes", "file.read", "FileRead", "ReadFile", "readfile"),
    *("JavaScript", "javascript", "Read_File", "listActions", "list_action"),
    *("__class__", "no_var_expand", "ast_checker", "run.stop", "report.evidence.provenance"),
    *("Completer.custom_matchers", "InteractiveShell.showtraceback", "ValidationError.errors"),
    *("tool.create", "tool.run", "tool.delete", "verification.pass"),  # actions of the audit
    *("policy.inline_bytes", "trials.failed", "study.spent.unfinished"),
}
EXAMPLE_FILES = {
    *(
        "a.md",
        "old/a.md",
        "notes.md",
        "MEMORY.md",
        "deep/down/setup.py",
        "docs/a.md",
        "scripts/run.py",
        "src/b.py",
    ),
    *("CLAUDE.md", "AGENTS.md", "GEMINI.md", "to_upper.py"),
}
FILE_ENDINGS = {"yaml", "json", "csv", "css", "md", "txt", "py", "safetensors", "gz", "jsonl", "ipynb"}
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)


def relative(path: Path) -> str:
    return path.relative_to(REPOSITORY).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return parse_code(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all of a module's tree: to walk through it takes as long as to read it."""
    return tuple(ast.walk(tree_of(path)))


@cache
def prose(path: Path) -> tuple[str, ...]:
    """Return the docstrings and comments of a module, or a page without its code blocks."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return (re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL),)
    # Most modules have no comment that names anything, and to read one token by token takes long.
    lines = io.StringIO(text if NAMING.search(text) else "").readline
    comments = [each.string for each in tokenize.generate_tokens(lines) if each.type == tokenize.COMMENT]
    documented = [node for node in nodes_of(path) if isinstance(node, DEFINITIONS)]
    return (*comments, *(ast.get_docstring(node) or "" for node in documented))


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip(".")


def bound_by(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module or class binds, imports aside."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.If() | ast.Try():
            for inner in (*node.body, *node.orelse):
                yield from bound_by(inner)


def attributes(node: ast.ClassDef) -> Iterator[str]:
    for statement in node.body:
        yield from bound_by(statement)
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
            yield inner.attr


@cache
def exported() -> dict[str, set[str]]:
    """Return what each module of the package defines, by its dotted name; a package also what it imports."""
    found: dict[str, set[str]] = {}
    for path in SOURCES:
        names = {name for statement in tree_of(path).body for name in bound_by(statement)}
        if path.name == "__init__.py":
            imports = [node for node in nodes_of(path) if isinstance(node, ast.ImportFrom)]
            names |= {alias.asname or alias.name for node in imports for alias in node.names}
        found[module_of(path)] = names
    return found


@cache
def members() -> dict[str, set[str]]:
    """Return the attributes of every class of the package, by its name in lower case without underscores."""
    found: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for path in SOURCES:
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                key = node.name.lower()
                found.setdefault(key, set()).update(attributes(node))
                bases.setdefault(key, set()).update(ast.unparse(base).lower() for base in node.bases)
    for _ in range(4):
        for key, above in bases.items():
            found[key] |= {name for base in above for name in found.get(base, set())}
    return found


@cache
def words() -> set[str]:
    """Return every identifier of the code, and every word in its strings that is not prose."""
    found: set[str] = set(dir(builtins)) | set(sys.stdlib_module_names)
    for path in SOURCES:
        documented = {
            id(node.body[0].value)
            for node in nodes_of(path)
            if isinstance(node, DEFINITIONS) and ast.get_docstring(node) is not None
            if isinstance(node.body[0], ast.Expr)
        }
        found.update(part for part in path.relative_to(PACKAGE).with_suffix("").parts)
        for node in nodes_of(path):
            for _, value in ast.iter_fields(node):
                if isinstance(value, str) and not (isinstance(node, ast.Constant) and id(node) in documented):
                    found.update(re.findall(r"\w+", value))
    return found


@cache
def keys() -> set[str]:
    """Return the keys of the configuration as the manual's table lists them, which is that of the settings."""
    page = (PACKAGE / "docs" / "configuration.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| `([\w.]+)`", page, re.MULTILINE))


@cache
def endings() -> dict[str, set[str]]:
    """Return what the modules define, by every end of their dotted names."""
    found: dict[str, set[str]] = {}
    for module, names in exported().items():
        parts = module.split(".")
        for at in range(len(parts)):
            found.setdefault(".".join(parts[at:]), set()).update(names)
    return found


@cache
def elsewhere(head: str) -> bool:
    """Return whether a name begins with something of Python or of another package."""
    if head in dir(builtins) or head in sys.stdlib_module_names or head == "tests":
        return True
    return head not in {module.split(".")[-1] for module in exported()} and bool(
        importlib.util.find_spec(head)
    )


@cache
def resolves(name: str) -> bool:
    parts = name.removeprefix("reyn_jupyter.").removeprefix("reyn.").split(".")
    if name == "reyn_jupyter" or parts[-1] in FILE_ENDINGS or name in keys():
        return True
    owner, last = ".".join(parts[:-1]), parts[-1]
    if ".".join(parts) in endings() or last in endings().get(owner, set()):
        return True
    objects = members().get(parts[-2].replace("_", "").lower(), set()) if len(parts) > 1 else set()
    return last in objects or elsewhere(parts[0])


def missing_references(path: Path) -> set[str]:
    texts = prose(path)
    dotted = {name for text in texts for name in DOTTED.findall(text)}
    plain = {name for text in texts for name in WORD.findall(text)} if path.suffix == ".py" else set()
    return {name for name in dotted if not resolves(name)} | (plain - words())


def missing_files(path: Path, every: str) -> set[str]:
    named = {name for text in prose(path) for name in FILE.findall(text)}
    return {name for name in named if f"/{name}\n" not in every}


def span_attributes() -> set[str]:
    """Return the attributes of spans, whose names are those of a convention and lead to no object."""
    code = "".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "telemetry").glob("*.py"))
    registry = "opentelemetry.semconv._incubating.attributes"
    modules = (
        importlib.import_module(f"{registry}.{name}_attributes")
        for name in ("error", "gen_ai", "mcp", "openai", "rpc", "server")
    )
    published = {value for module in modules for value in vars(module).values() if isinstance(value, str)}
    return published | set(re.findall(r'"(reyn\.[\w.]+)"', code))


def test_what_is_named_in_backticks_is_there() -> None:
    known = EXAMPLES | span_attributes()
    missing = {relative(path): missing_references(path) - known for path in (*SOURCES, *PAGES)}
    assert {place: names for place, names in missing.items() if names} == {}


def test_files_that_are_named_exist() -> None:
    there = [*SOURCES, *PAGES, *(REPOSITORY / "tests").rglob("*.py"), *REPOSITORY.glob("notebooks/**/*.md")]
    every = "".join(f"/{relative(file)}\n" for file in there)
    missing = {relative(path): missing_files(path, every) - EXAMPLE_FILES for path in (*SOURCES, *PAGES)}
    assert {place: names for place, names in missing.items() if names} == {}


def test_the_statistics_of_the_manual_are_the_modules_that_there_are() -> None:
    page = (PACKAGE / "docs" / "statistics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\|[^|]*\|[^|]*\| (`[^|]*`) \|$", page, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}
    folder = PACKAGE / "evaluation" / "statistics"
    modules = {path.stem for path in folder.glob("[a-z]*.py")}
    opening = ast.get_docstring(tree_of(folder / "__init__.py")) or ""
    assert {name for name in listed if not resolves(f"statistics.{name}") and not resolves(name)} == set()
    assert modules - set(WORD.findall(opening)) == set()


@pytest.mark.parametrize(
    "name",
    ["store_file.opened", "packaged.checked", "verifying.verify", "guard.redact.Redactor", "Session.nothing"],
)
def test_a_name_that_is_gone_is_found(name: str) -> None:
    assert not resolves(name)


def test_a_public_class_has_a_name_that_no_other_has() -> None:
    owners: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                owners.setdefault(node.name, []).append(relative(path))
    assert {name: places for name, places in owners.items() if len(places) > 1} == {}


def test_a_module_opens_with_one_text() -> None:
    openings = {relative(path): ast.get_docstring(tree_of(path)) or "" for path in SOURCES}
    glued = {
        place
        for place, text in openings.items()
        if sum(part.startswith("Invariant") for part in text.split("\n\n")) > 1
    }
    assert glued == set()
