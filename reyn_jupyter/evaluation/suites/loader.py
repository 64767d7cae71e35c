"""A suite from its files: one YAML file that says what it compares, and files of scenarios beside it.

Invariant: what is loaded is right as far as it can be known without a catalog, and a mistake is told with file, line,
scenario and field. No scenario can be passed by doing nothing and repeating the request. The files that a suite names
lie in the folders that it is given, and are none that hold secrets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from dataclasses import fields as dataclass_fields
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from reyn_jupyter.evaluation.checks.text_match import missing_words
from reyn_jupyter.evaluation.plan.model_grader import ModelGrader
from reyn_jupyter.evaluation.plan.scenario import Expected, Scenario
from reyn_jupyter.evaluation.plan.suite import Claim, Suite, SuiteError
from reyn_jupyter.evaluation.plan.validation import FieldError
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.suites.scenario_expansion import Shared, WrittenScenario
from reyn_jupyter.evaluation.suites.suite_document import SuiteDocument, read_document, read_lines
from reyn_jupyter.evaluation.suites.templates import Written
from reyn_jupyter.guard.workspace import Workspace, WorkspaceError
from reyn_jupyter.support.text import meant_clause
from reyn_jupyter.support.validation_messages import fields_at, reason

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog

W = TypeVar("W", bound=Written)
Place = tuple[int | str, ...]
Placed = tuple[str, Scenario]  # where it stands, and what it means
Where = Callable[[int, Place], str]  # the number of a scenario and a place in it → file and line
_FORM = re.compile(
    r"function-|literal\[|dict\[|str$|After$|LongText$"
)  # what pydantic calls the forms of a value


class CatalogFile(Written):
    """The contents of a catalog: installed categories, records of a file, or both.

    Attributes:
        standard: whether the categories of `STANDARD_CATEGORIES` are in it.
        categories: installed categories by name, which are in it instead of these.
        only: the operations that are taken of these, by qualified name; None for all of them.
        records: a JSON, JSONL or YAML file of plain tool descriptions, gzipped or not, beside the suite's file.
        actions: the ids of the records that are taken; None for all of them.
        category, capability: the category that the records become, and its sentence in the system prompt.
    """

    standard: bool = False
    categories: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
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
        name, title, primary, claims: as in `Suite`; a claim is written as its fields.
        checks: as in `Suite`; among them model graders as their fields, with the name under "grade".
        catalogs: name → what it holds; "standard" is there by itself.
        choices: a JSON file with `Choices`, for many catalogs over one file of records.
        variants: name → the fields in which it differs from the defaults.
        files: further files of scenarios.
        allow_actions: as in `Suite`.
    """

    name: str
    title: str
    primary: str
    checks: tuple[str | Mapping[str, Any], ...] = ()
    catalogs: Mapping[str, CatalogFile] = Field(default_factory=dict)
    choices: str | None = None
    variants: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    claims: tuple[Mapping[str, Any], ...] = ()
    files: tuple[str, ...] = ()
    allow_actions: tuple[str, ...] = ()


def read_suite(path: Path, folders: Sequence[Path]) -> tuple[dict[str, str], Suite]:
    """Return the suite of a YAML file, and where each scenario stands. Raises SuiteError with file, line and field.

    Args:
        folders: those in which the files lie that it names.
    """
    document = read_document(path)
    written = _validate(SuiteFile, document)
    places: dict[str, str] = {}
    found = _scenarios(written, written.scenarios, _within(document))
    _take_ids(found, places)
    for at, name in enumerate(written.files):
        beside = _beside(_named_file(path, name, folders, document.place(("files", at))), written)
        _take_ids(beside, places)  # before the next one: the same file a thousand times is read twice
        found += beside
    variants = {
        name: _variant(name, fields, document.place(("variants", name)))
        for name, fields in written.variants.items()
    }
    claims = [_claim(fields, document.place(("claims", at))) for at, fields in enumerate(written.claims)]
    catalogs = _catalogs(written, path, folders, document)
    names = [each for each in written.checks if isinstance(each, str)]
    graders = tuple(
        _grader(each, document.place(("checks", at)))
        for at, each in enumerate(written.checks)
        if not isinstance(each, str)
    )
    try:
        return places, Suite(
            name=written.name,
            title=written.title,
            primary=written.primary,
            scenarios=tuple(scenario for _, scenario in found),
            checks=tuple(dict.fromkeys((written.primary, *names))),
            graders=graders,
            catalogs=catalogs,
            variants=variants,
            claims=tuple(claims),
            allow_actions=written.allow_actions,
        )
    except SuiteError as error:
        raise SuiteError(f"{path.name}: {error}") from error


def _take_ids(found: Sequence[Placed], places: dict[str, str]) -> None:
    """Note where each scenario stands. Raises SuiteError: an id is taken."""
    for where, scenario in found:
        other = places.setdefault(scenario.id, where)
        if other is not where:
            raise SuiteError(
                f"{where}, scenario {scenario.id!r}: the id is taken in {other}; give each scenario one of its own"
            )


def _grader(fields: Mapping[str, Any], where: str) -> ModelGrader:
    given = dict(fields)
    try:
        return ModelGrader(**{"name": given.pop("grade", ""), **given})
    except FieldError as error:
        raise SuiteError(f"{where}, a model grader: {'; '.join(error.problems) or error}") from error


def _beside(path: Path, suite: SuiteFile) -> list[Placed]:
    """Return the scenarios of a further file: YAML with what they share, or JSONL, one a line, which share the
    suite's."""
    if path.suffix == ".jsonl":
        rows = read_lines(path)
        return _scenarios(suite, [row for _, row in rows], lambda at, _: f"{path.name}, line {rows[at][0]}")
    if {".csv", ".parquet", ".arrow"} & set(path.suffixes):
        raise SuiteError(
            f"{path.name}: further files are .yaml, .json or .jsonl; a table of requests and answers is read in "
            f"Python, reyn.Dataset.from_inspect({path.name!r})"
        )
    document = read_document(path)
    shared = _validate(ScenarioFile, document)
    return _scenarios(shared, shared.scenarios, _within(document))


def _within(document: SuiteDocument) -> Where:
    return lambda at, place: document.place(("scenarios", at, *place))


def _scenarios(shared: Shared, rows: Sequence[Any], where: Where) -> list[Placed]:
    made = []
    for at, row in enumerate(rows):
        identity = row.get("id", f"number {at + 1}") if isinstance(row, Mapping) else f"number {at + 1}"
        try:
            scenario = WrittenScenario.model_validate(row).scenario(shared)
            require_gradable(scenario)
        except ValidationError as error:
            place, told = _explain(error, WrittenScenario)
            raise SuiteError(f"{where(at, place)}, scenario {identity!r}: {told}") from error
        except ValueError as error:
            told = "; ".join(error.problems) if isinstance(error, FieldError) else str(error)
            field = told.partition(":")[0]
            raise SuiteError(f"{where(at, (field,))}, scenario {identity!r}: {told}") from error
        made.append((where(at, ()), scenario))
    return made


def require_gradable(scenario: Scenario) -> None:
    """Refuse a scenario that doing nothing and repeating the request would pass. Raises ValueError."""
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
        and expected.line in (None, text.strip())
        and all(part in text for part in expected.contains)
        and not any(part in text for part in expected.lacks)
    )


def _variant(name: str, fields: Mapping[str, Any], place: str) -> Variant:
    try:
        return Variant(**{**fields, "name": name})
    except FieldError as error:
        raise SuiteError(f"{place}, variant {name!r}: {'; '.join(error.problems)}") from error


def _claim(fields: Mapping[str, Any], place: str) -> Claim:
    where = f"{place}, claim {fields.get('id')!r}"
    known = {each.name: each for each in dataclass_fields(Claim)}
    for key in fields:
        if key not in known:
            raise SuiteError(
                f"{where}: {key}: unknown key{meant_clause(key, known) or '; known are ' + ', '.join(known)}"
            )
    lacking = [name for name, each in known.items() if each.default is MISSING and name not in fields]
    if lacking:
        raise SuiteError(f"{where}: {lacking[0]}: is missing")
    return Claim(**fields)


def _named_file(suite: Path, name: str, folders: Sequence[Path], where: str) -> Path:
    """Return the file that a suite names, beside it or from the root. Raises SuiteError: it may not be read."""
    path = Path(os.path.abspath(suite.parent / name))  # noqa: PTH100 - without following links
    try:
        led_to = Path(os.path.realpath(path))  # unlike Path.resolve, it takes links that lead in a circle
    except ValueError:
        raise SuiteError(f"{where}: {name!r} is no name that a file can have") from None
    folder = next((each for each in folders if led_to.is_relative_to(each.resolve())), None)
    if folder is None:
        raise SuiteError(
            f"{where}: {name!r} leads outside the folder of the suite and the current one; only files inside them can "
            "be used"
        )
    try:
        return Workspace(folder).resolve(path)
    except WorkspaceError as error:
        raise SuiteError(f"{where}: {error}") from error


def _catalogs(
    suite: SuiteFile, path: Path, folders: Sequence[Path], document: SuiteDocument
) -> dict[str, Callable[[], Catalog]]:
    specs = {"standard": CatalogFile(standard=True), **suite.catalogs}
    places = {name: document.place(("catalogs", name, "records")) for name in suite.catalogs}
    if suite.choices is not None:
        chosen_file = _named_file(path, suite.choices, folders, document.place(("choices",)))
        chosen = _validate(Choices, read_document(chosen_file))
        for name, ids in chosen.catalogs.items():
            specs[name] = CatalogFile(records=chosen.records, actions=ids)
            places[name] = chosen_file.name
    known: dict[str, Callable[[], Path]] = {}
    for name, spec in specs.items():
        if spec.records is not None and spec.records not in known:
            known[spec.records] = partial(_named_file, path, spec.records, tuple(folders), places[name])
            known[spec.records]()
    return {name: partial(open_catalog, spec, known.get(spec.records or "")) for name, spec in specs.items()}


def open_catalog(spec: CatalogFile, records_file: Callable[[], Path] | None) -> Catalog:
    """Return the catalog that a suite's file describes. Raises SuiteError, ToolRecordError, MissingActionError.

    Args:
        records_file: says where its records lie, judged anew: a link may be there since the suite was read. None for a
            catalog without any.
    """
    from reyn_jupyter.evaluation.plan.frozen_catalog import STANDARD_CATEGORIES, Catalog

    chosen = spec.categories or (STANDARD_CATEGORIES if spec.standard else ())
    catalog = Catalog.standard(chosen) if chosen else Catalog()
    if spec.only is not None:
        catalog = catalog.only(spec.only)
    if records_file is None:
        return catalog
    records = _records(records_file())
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
    """Return a file's records; kept, since hundreds of catalogs may choose from one file."""
    if ".jsonl" in path.suffixes:
        return [row for _, row in read_lines(path)]
    found = read_document(path).data
    listed = found.get("tools", found) if isinstance(found, Mapping) else found
    if not isinstance(listed, list):
        raise SuiteError(f'{path.name}: records are a list, or an object with "tools"')
    return listed


def _validate(kind: type[W], document: SuiteDocument) -> W:
    data, file = document.data, document.file
    if not isinstance(data, Mapping):
        holds = "nothing" if data is None else "a list" if isinstance(data, list) else "a single value"
        wanted = ", ".join(name for name, field in kind.model_fields.items() if field.is_required())
        raise SuiteError(f"{file}: it holds {holds}, and a mapping is needed: {wanted or 'scenarios'}, …")
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        place, told = _explain(error, kind)
        raise SuiteError(f"{document.place(place)}: {told}") from error


def _explain(error: ValidationError, kind: type[BaseModel]) -> tuple[Place, str]:
    """Return where the worst of it stands, and what is wrong there, with how much more there is."""
    errors = error.errors(include_url=False)
    # A key that is a slip of the pen explains the one that is missing. Of the forms that a value may have, the one
    # that it comes nearest to is complained about at the deepest place.
    chosen = max(errors, key=lambda each: (each["type"] == "extra_forbidden", len(each["loc"])))
    loc = chosen["loc"]
    place = tuple(step for step in loc if not _FORM.match(str(step)))
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    said = reason(chosen, fields_at(kind, loc[:-1]))
    return place, f"{'.'.join(map(str, place)) or 'it'}: {said}{more}"
