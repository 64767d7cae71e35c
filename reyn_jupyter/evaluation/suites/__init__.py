"""The suites that come with the package, and the loader for a person's own.

Invariant: a suite is data. What is shipped is loaded by the same code as what a person writes, and every scenario in
it says where it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reyn_jupyter.evaluation.plan.suite import Suite, SuiteError
from reyn_jupyter.support.text import meant_clause

__all__ = ["SuiteError", "check_suite", "describe_suites", "load_suite", "suite_names"]

_FOLDER = Path(__file__).parent / "data"
_FILE = "suite.yaml"


def suite_names() -> tuple[str, ...]:
    """Return the suites that come with the package."""
    return tuple(sorted(path.parent.name for path in _FOLDER.glob(f"*/{_FILE}")))


def describe_suites() -> dict[str, str]:
    """Suite → its title, without its scenarios being read."""
    return {name: _title(_FOLDER / name / _FILE) for name in suite_names()}


def load_suite(name: str | Path) -> Suite:
    """Return a suite by its name, or from a file of one's own.

    Args:
        name: one of `suite_names()`, or the path of a YAML file. A person's own suite is checked against its
            catalogs at once; see `check_suite`. The files that it names lie in its folder or in the current one.

    Raises:
        SuiteError: no such suite, or a mistake in it, told with file, scenario and field.

    Example:
        >>> load_suite("mandates").scenario("read-package-version").says
        ('2.7.1',)
    """
    from reyn_jupyter.evaluation.suites.loader import read_suite

    names = suite_names()
    if str(name) in names:
        return read_suite(_FOLDER / str(name) / _FILE, (_FOLDER,))[1]
    path = Path(name).expanduser()
    if path.suffix not in (".yaml", ".yml"):
        hint = meant_clause(name, names) or f"; there are {', '.join(names)}."
        raise SuiteError(f"there is no suite {str(name)!r}{hint} A suite of your own is a .yaml file.")
    places, suite = read_suite(path, (path.parent, Path.cwd()))
    check_suite(suite, places)
    if any(variant.catalog_size is not None for variant in suite.variants.values()):
        from reyn_jupyter.evaluation.suites.consistency import check_sizes

        check_sizes(suite)
    return suite


def check_suite(suite: Suite, places: Mapping[str, str] | None = None) -> None:
    """Hold a suite to its catalogs: every gold call can be made, every planned error can happen, every check is there.

    It makes each catalog of the suite, so it takes about a second where there are hundreds.

    Args:
        suite: what to hold.
        places: scenario → where it stands in a file, to be named.

    Raises:
        SuiteError: names the scenario, says what is wrong, and what to do.
    """
    from reyn_jupyter.evaluation.suites.consistency import check

    check(suite, places or {})


def _title(path: Path) -> str:
    # Titles are asked for in listings; reading the first lines is a thousand times as fast as reading the suite.
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("title:"):
                return line.removeprefix("title:").strip().strip('"')
    return ""
