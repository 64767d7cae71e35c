"""A suite from its files: one YAML file that says what it compares, and files of scenarios beside it.

Invariant: what is loaded is right as far as it can be known without a catalog, and a mistake is told with file,
scenario and field. No scenario can be passed by doing nothing and repeating the request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field, ValidationError

from reyn_jupyter.evaluation.checks.wording import missing_words
from reyn_jupyter.evaluation.scenario import Expected, Scenario
from reyn_jupyter.evaluation.suite import Claim, Suite, SuiteError
from reyn_jupyter.evaluation.suites.templates import Written
from reyn_jupyter.evaluation.suites.written import Shared, WrittenScenario
from reyn_jupyter.evaluation.variant import Variant

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.catalogs import Catalog

W = TypeVar("W", bound=Written)
_FORM = re.compile(
    r"function-|literal\[|dict\[|str$|After$|LongText$"
)  # what pydantic calls the forms of a value


class CatalogFile(Written):
    """What a catalog holds: the installed categories, records of a file, or both.

    Attributes:
        standard: whether the installed categories are in it.
        records: a JSON, JSONL or YAML file of plain tool descriptions, gzipped or not, beside the suite's file.
        actions: the ids of the records that are taken; None for all of them.
        category, capability: the category that the records become, and its sentence in the system prompt.
    """

    standard: bool = False
    records: str | None = None
    actions: tuple[str, ...] | None = None
    category: str = "tool"
    capability: str = "Call one of many tools."


class Choices(Written):
    """Many catalogs over one file of records: name → the ids of the records that it holds."""

    records: str
    catalogs: Mapping[str, tuple[str, ...]]


class ScenarioFile(Shared):
    """A file of scenarios, with what they share."""

    scenarios: tuple[Mapping[str, Any], ...] = ()


class SuiteFile(ScenarioFile):
    """The file that a suite is loaded from.

    Attributes:
        name, title, primary, checks, claims: as in `Suite`; a claim is written as its fields.
        catalogs: name → what it holds; "standard" is there by itself.
        choices: a JSON file with `Choices`, for many catalogs over one file of records.
        variants: name → the fields in which it differs from the defaults.
        files: further files of scenarios.
    """

    name: str
    title: str
    primary: str
    checks: tuple[str, ...] = ()
    catalogs: Mapping[str, CatalogFile] = Field(default_factory=dict)
    choices: str | None = None
    variants: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    claims: tuple[Mapping[str, Any], ...] = ()
    files: tuple[str, ...] = ()


def read_suite(path: Path) -> Suite:
    """The suite of a YAML file. Raises SuiteError with file, scenario and field."""
    written = _checked(SuiteFile, _mapping(path), path.name)
    scenarios = _scenarios(written, written.scenarios, path.name)
    for name in written.files:
        scenarios += _beside(path.parent / name, written)
    return Suite(
        name=written.name,
        title=written.title,
        primary=written.primary,
        scenarios=tuple(scenarios),
        checks=tuple(dict.fromkeys((written.primary, *written.checks))),
        catalogs=_catalogs(written, path),
        variants={name: _variant(name, fields, path.name) for name, fields in written.variants.items()},
        claims=tuple(_claim(fields, path.name) for fields in written.claims),
    )


def _beside(path: Path, suite: SuiteFile) -> list[Scenario]:
    """The scenarios of a further file: YAML with what they share, or JSONL, one a line, which share the suite's."""
    if path.suffix == ".jsonl":
        return _scenarios(suite, tuple(row for _, row in _lines(path)), path.name)
    shared = _checked(ScenarioFile, _mapping(path), path.name)
    return _scenarios(shared, shared.scenarios, path.name)


def _scenarios(shared: Shared, rows: tuple[Mapping[str, Any], ...], file: str) -> list[Scenario]:
    made = []
    for number, row in enumerate(rows, 1):
        identity = row.get("id", f"number {number}") if isinstance(row, Mapping) else f"number {number}"
        where = f"{file}, scenario {identity!r}"
        try:
            scenario = WrittenScenario.model_validate(row).scenario(shared)
            _gradable(scenario)
        except ValidationError as error:
            raise SuiteError(f"{where}: {_told(error)}") from error
        except ValueError as error:
            raise SuiteError(f"{where}: {error}") from error
        made.append(scenario)
    return made


def _gradable(scenario: Scenario) -> None:
    """Raises ValueError for a scenario that doing nothing and repeating the request would pass."""
    if scenario.gold.unanswerable:
        return
    changes = [each for each in scenario.expected if not each.unchanged]
    if not (scenario.gold.steps or scenario.says or changes):
        raise ValueError("gold: nothing is expected of it; give gold, says or expected, or say unanswerable")
    for prompt, text in scenario.prompts.items():
        if scenario.says and not missing_words(scenario.says, text):
            raise ValueError(
                f"says: the request {prompt!r} says it all itself; ask for what only a look can tell"
            )
    for each in scenario.expected:
        if each.unchanged and each.path not in scenario.workspace:
            raise ValueError(f"expected: {each.path} cannot stay unchanged, the template does not have it")
    if changes and all(_holds(each, scenario.workspace.get(each.path)) for each in changes):
        paths = ", ".join(each.path for each in changes)
        raise ValueError(f"expected: the template already satisfies it ({paths}); doing nothing would pass")


def _holds(expected: Expected, text: str | None) -> bool:
    if text is None or not expected.exists:
        return (text is not None) == expected.exists
    return (
        expected.text in (None, text)
        and all(part in text for part in expected.contains)
        and not any(part in text for part in expected.lacks)
    )


def _variant(name: str, fields: Mapping[str, Any], file: str) -> Variant:
    try:
        return Variant(name, **fields)
    except ValidationError as error:
        raise SuiteError(f"{file}, variant {name!r}: {_told(error)}") from error


def _claim(fields: Mapping[str, Any], file: str) -> Claim:
    try:
        return Claim(**fields)
    except TypeError as error:
        raise SuiteError(f"{file}, claim {fields.get('id')!r}: {error}") from error


def _catalogs(suite: SuiteFile, path: Path) -> dict[str, Callable[[], Catalog]]:
    specs = {"standard": CatalogFile(standard=True), **suite.catalogs}
    if suite.choices is not None:
        chosen = _checked(Choices, _mapping(path.parent / suite.choices), suite.choices)
        for name, ids in chosen.catalogs.items():
            specs[name] = CatalogFile(records=chosen.records, actions=ids)
    return {name: partial(open_catalog, spec, path.parent) for name, spec in specs.items()}


def open_catalog(spec: CatalogFile, folder: Path) -> Catalog:
    """The catalog that a suite's file describes. Raises SuiteError, RecordError."""
    from reyn_jupyter.evaluation.catalogs import Catalog

    catalog = Catalog.standard() if spec.standard else Catalog()
    if spec.records is None:
        return catalog
    records = _records(folder / spec.records)
    if spec.actions is not None:
        known = {record.get("id", record.get("name")): record for record in records}
        missing = [identity for identity in spec.actions if identity not in known]
        if missing:
            raise SuiteError(f"{spec.records} has no record {missing[0]!r}, which a catalog names")
        records = [known[identity] for identity in spec.actions]
    return catalog + Catalog.from_records(records, category=spec.category, capability=spec.capability)


def _records(path: Path) -> list[dict[str, Any]]:
    try:
        return _read_records(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise SuiteError(f"{path} cannot be read: {error}") from error


@lru_cache(maxsize=4)
def _read_records(path: Path, moved: int) -> list[dict[str, Any]]:
    """A file's records; kept, since hundreds of catalogs may choose from one file."""
    if ".jsonl" in path.suffixes:
        return [row for _, row in _lines(path)]
    found = _mapping(path)
    listed = found.get("tools", found) if isinstance(found, Mapping) else found
    if not isinstance(listed, list):
        raise SuiteError(f'{path.name}: records are a list, or an object with "tools"')
    return listed


def _lines(path: Path) -> list[tuple[int, Any]]:
    """(line number, value) of a file with one JSON value a line."""
    found = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        try:
            if line.strip():
                found.append((number, json.loads(line)))
        except ValueError as error:
            raise SuiteError(f"{path.name}, line {number}: no JSON ({error})") from error
    return found


def _text(path: Path) -> str:
    import gzip

    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SuiteError(f"{path} cannot be read: {error}") from error


def _mapping(path: Path) -> Any:
    if path.suffix == ".json":
        try:
            return json.loads(_text(path))
        except ValueError as error:
            raise SuiteError(f"{path.name} is no JSON: {error}") from error
    import yaml

    try:
        return yaml.load(_text(path), _loader())  # noqa: S506 - it is a safe loader
    except yaml.YAMLError as error:
        raise SuiteError(f"{path.name} is no YAML: {error}") from error


@cache
def _loader() -> Any:
    """A safe loader that refuses a key that stands twice in one mapping; YAML would forget the first one."""
    import yaml

    # The C loader where there is one: it is ten times as fast.
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class OnceLoader(base):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [str(key.value) for key, _ in node.value]
            if len(set(keys)) < len(keys):
                twice = next(key for key in keys if keys.count(key) > 1)
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {twice!r} stands twice here", node.start_mark
                )
            return super().construct_mapping(node, deep)

    return OnceLoader


def _checked(kind: type[W], data: Any, file: str) -> W:
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise SuiteError(f"{file}: {_told(error)}") from error


def _told(error: ValidationError) -> str:
    errors = error.errors()
    # Of the forms that a value may have, the one that it comes nearest to is complained about at the deepest place.
    chosen = max(errors, key=lambda each: len(each["loc"]))
    place = ".".join(str(step) for step in chosen["loc"] if not _FORM.match(str(step)))
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{place or 'it'}: {chosen['msg'].removeprefix('Value error, ')}{more}"
