"""The files of a suite as plain data, each value with its line.

Invariant: a file costs a bounded amount of time and memory whatever is in it (size, depth, aliases that stand for
more than they say, a small archive of a large text), and what is refused is told with file and line.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from reyn_jupyter.evaluation.plan.suite import SuiteError
from reyn_jupyter.support.files.bounded_reading import BoundExceededError, open_regular, read_at_most

LARGEST = 64 << 20  # bytes, unpacked
MOST_NODES = 1_000_000  # values of a YAML file, those that aliases repeat included
MOST_JSON = 4_000_000  # values of a JSON file at most, and lines of one with a value a line
DEEPEST = 64


@dataclass(frozen=True)
class SuiteDocument:
    """A file that was read: its name, its values, and YAML's nodes of them where it has some."""

    file: str
    data: Any
    node: Any = None

    def place(self, path: Sequence[int | str] = ()) -> str:
        """Return the file, and the line of the deepest part of a path that has one: ``"mine.yaml, line 7"``."""
        node, line = self.node, None
        for step in (*path, None):
            if node is None:
                break
            line = node.start_mark.line + 1
            node, found = _child(node, step)
            line = found or line
        return self.file if line is None or not path else f"{self.file}, line {line}"


def read_document(path: Path) -> SuiteDocument:
    """Return a YAML or JSON file.

    Raises:
        SuiteError: it is not there, too large, nested too deeply, or none of its kind.
    """
    text = read_text(path)
    if path.suffix == ".json" or path.suffixes[-2:] == [".json", ".gz"]:
        _check_number(text, path.name)
        return SuiteDocument(path.name, _json(text, path.name))
    return _yaml(text, path.name)


def read_lines(path: Path) -> list[tuple[int, Any]]:
    """(line number, value) of a file with one JSON value a line. Raises SuiteError."""
    text = read_text(path)
    _check_number(text, path.name)
    numbered = enumerate(text.split("\n"), 1)  # JSON texts may hold what else ends a line, as U+2028
    return [(number, _json(line, f"{path.name}, line {number}")) for number, line in numbered if line.strip()]


def read_text(path: Path) -> str:
    """Return the text of a file, gzipped or not. Raises SuiteError: it cannot be read, is too large, or is no UTF-8."""
    try:
        with open_regular(path) as file:
            content = read_at_most(gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file, LARGEST)
        return content.decode("utf-8-sig")
    except BoundExceededError as error:
        raise SuiteError(
            f"{path} is larger than {LARGEST >> 20} MiB; split it, or take out what is not needed"
        ) from error
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SuiteError(f"{path.name}, line {line}: not UTF-8 text; save the file as UTF-8") from error
    except (OSError, EOFError, zlib.error) as error:
        raise SuiteError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _check_number(text: str, file: str) -> None:
    """Refuse JSON that may have too many values: 64 MiB of them, packed into a few hundred KiB, fill the memory."""
    if sum(map(text.count, "[{,\n")) > MOST_JSON:
        raise SuiteError(f"{file}: more than {MOST_JSON:,} values; split it, or take out what is not needed")


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = "" if "line" in where else f", line {error.lineno}"
        raise SuiteError(f"{where}{line}: no JSON ({error.msg}, column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{where}: no JSON that can be read ({type(error).__name__})") from error


def _yaml(text: str, file: str) -> SuiteDocument:
    import yaml

    try:
        _check_bounds(text, file)
        loader = _loader()(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return SuiteDocument(file, None)
            _weight(node, {}, file)
            return SuiteDocument(file, loader.construct_document(node), node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise SuiteError(f"{file}{line}: no YAML: {_plainly(error.problem or str(error))}") from error
    except yaml.reader.ReaderError as error:
        line = f", line {text.count(chr(10), 0, error.position) + 1}"
        raise SuiteError(f"{file}{line}: a character that YAML does not allow; take it out") from error
    except SuiteError:
        raise
    except ValueError as error:  # a number of thousands of digits
        raise SuiteError(f"{file}: a value cannot be read ({error}); put it into quotes") from error


def _plainly(problem: str) -> str:
    if "tab character" in problem or "'\\t'" in problem:
        return "a tab stands where YAML wants spaces"
    if "nesting depth" in problem:  # libyaml has a bound of its own, and reads ahead
        return f"nested deeper than {DEEPEST}; write it more simply"
    return problem


def _check_bounds(text: str, file: str) -> None:
    """Refuse too large a document by its flat stream of events, which costs no stack; only a modest file becomes a
    tree."""
    import yaml

    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_loader())):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST or count > MOST_NODES:
            why = f"nested deeper than {DEEPEST}" if depth > DEEPEST else f"more than {MOST_NODES:,} values"
            line = getattr(event.start_mark, "line", 0) + 1
            raise SuiteError(f"{file}, line {line}: {why}; write it more simply")


def _weight(node: Any, known: dict[int, int], file: str) -> int:
    """Return how many values a node stands for, whatever an alias repeats counted each time."""
    found = known.get(id(node))
    if found is not None:
        if found < 0:
            raise SuiteError(f"{file}, line {node.start_mark.line + 1}: it holds itself through an alias")
        return found
    known[id(node)] = -1
    parts = node.value if isinstance(node.value, list) else []
    inner = [each for part in parts for each in (part if isinstance(part, tuple) else (part,))]
    weight = 1 + sum(_weight(each, known, file) for each in inner)
    if weight > MOST_NODES:
        raise SuiteError(
            f"{file}, line {node.start_mark.line + 1}: its aliases stand for more than {MOST_NODES:,} values; "
            "write out what is meant"
        )
    known[id(node)] = weight
    return weight


def _child(node: Any, step: int | str | None) -> tuple[Any, int | None]:
    """Return the node inside another one, and the line of its key; none where there is none of that name."""
    parts = node.value if isinstance(node.value, list) else []
    if isinstance(step, int) and parts and not isinstance(parts[0], tuple):
        return (parts[step], None) if step < len(parts) else (None, None)
    for key, value in (part for part in parts if isinstance(part, tuple)):
        if key.value == str(step):
            return value, key.start_mark.line + 1
    return None, None


@cache
def _loader() -> Any:
    """Return a safe loader that refuses a key that stands twice in one mapping; YAML would forget the first one."""
    import yaml

    # The C loader where there is one: it is ten times as fast.
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class OnceLoader(base):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [str(key.value) for key, _ in node.value]
            if len(set(keys)) < len(keys):
                twice = next(key for place, key in enumerate(keys) if key in keys[:place])
                mark = [key for key, _ in node.value if str(key.value) == twice][1].start_mark
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {twice!r} stands twice here", mark
                )
            return super().construct_mapping(node, deep)

    # A date stays the text that was written: that is what a file or an answer holds.
    OnceLoader.add_constructor("tag:yaml.org,2002:timestamp", lambda _, node: node.value)
    return OnceLoader
