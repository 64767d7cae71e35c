"""Where the studies of a folder are kept, and which variants a person means: the same in a notebook and in a terminal.

Invariants: the same words give the same file, so that the same line goes on with its study; no name of a suite or a
model, and no link, leads out of the folder of studies.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from reyn_jupyter.evaluation.plan.suite import Suite, SuiteError
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.store.study_file import StoreError
from reyn_jupyter.support.files.plain_files import PlainFolder
from reyn_jupyter.support.text import did_you_mean, nearest_names

FOLDER = Path(".reyn") / "studies"


def default_study_file(root: Path, suite: str, models: Sequence[str]) -> Path:
    """Return the file of a study that was given none, one a suite and its models; its folder is made.

    Args:
        root: the folder of the person's work.
        suite: the suite's name.
        models: the names of the models that were chosen; none where the variants' own are tried.

    Raises:
        StoreError: the folder cannot be made, or a link stands in the file's place.

    Example:
        >>> default_study_file(Path.cwd(), "mandates", ["simulator"])   # doctest: +SKIP
        PosixPath('/home/ada/.reyn/studies/mandates-simulator.sqlite')
    """
    folder = root / FOLDER
    try:
        PlainFolder(root, *FOLDER.parts).make()
    except OSError as error:
        raise StoreError(f"{folder} cannot be made: {error.strerror}.") from error
    name = "-".join(filter(None, (_plain(suite), _plain(",".join(models))))) or "study"
    file = folder / f"{name}.sqlite"
    if file.is_symlink():
        raise StoreError(f"{file} is a link, and none is followed there; give the study a file of its own.")
    return file


def _plain(name: str) -> str:
    """Return a name as a part of a file's.

    >>> _plain("../../openai/gpt-5")
    'openai-gpt-5'
    """
    return re.sub(r"[^\w.]+", "-", name)[:100].strip("-.")


def find_study_file(root: Path, name: str | None) -> Path:
    """Return the file that a name means: a path, a study of the folder, or without one the study tried last.

    Raises:
        StoreError: there is none; says which name is near.
    """
    studies = study_files(root)
    if name is None:
        if not studies:
            raise StoreError("No study was run here yet.")
        return max(studies.values(), key=lambda file: file.stat().st_mtime)
    if name in studies:
        return studies[name]
    if (root / name).is_file():
        return root / name
    there = f"{FOLDER} holds {', '.join(studies)}." if studies else f"{FOLDER} holds none yet."
    meant = did_you_mean(nearest_names(name, studies))
    raise StoreError(" ".join(filter(None, (f"There is no study {name!r}.", meant or there))))


def study_files(root: Path) -> dict[str, Path]:
    """Name → file of the studies that are kept in a folder."""
    files = (root / FOLDER / name for name in PlainFolder(root, *FOLDER.parts).entries()[0])
    return {file.stem: file for file in files if file.suffix == ".sqlite"}


def choose_variants(suite: Suite, names: Sequence[str], models: Sequence[str]) -> list[Variant]:
    """Return the named variants of a suite with each of the models that were chosen.

    Args:
        names: of variants, the baseline first; without any the suite's first two, or its first one with several
            models, or the defaults where it suggests none.
        models: without any, each variant keeps its own.

    Raises:
        SuiteError: the suite has no variant of a name; says which is near.

    Example:
        >>> from reyn_jupyter.evaluation.suites import load_suite
        >>> [each.name for each in choose_variants(load_suite("mandates"), [], ["light", "standard"])]
        ['light', 'standard']
    """
    there = suite.variants
    unknown = [name for name in names if name not in there]
    if unknown and not there:
        raise SuiteError("The suite suggests no variants. Leave --variants out, or write some in its file.")
    if unknown:
        meant = did_you_mean(nearest_names(unknown[0], there, 2))
        said = f"The suite has no variant {unknown[0]!r}."
        raise SuiteError(" ".join(filter(None, (said, meant, f"It has {', '.join(there)}."))))
    few = 1 if len(models) > 1 else 2
    chosen = [there[name] for name in names or list(there)[:few]] or [Variant("defaults")]
    if len(models) < 2:
        return [each.but(each.name, model=models[0]) if models else each for each in chosen]
    return [
        each.but(model if len(chosen) == 1 else f"{each.name} {model}", model=model)
        for model in models
        for each in chosen
    ]
