"""All utilities that were found, and what is wrong with the others.

Invariants: an invalid manifest is a problem that says where, and hides no other utility. ``name@version`` stands for
one utility: of two the workspace's wins, then one of a configured folder, then the package's, but none that is not
trusted takes the place of a trusted one. What counts is what was read: the file that is written for others is never
read back.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache as cached
from functools import cached_property
from pathlib import Path
from typing import Any

from reyn_jupyter.guard.trust import UTILITIES
from reyn_jupyter.support.encoding import one_line
from reyn_jupyter.support.files.plain_files import PlainFolder
from reyn_jupyter.workflows.utilities.manifest import (
    FILE,
    Manifest,
    Origin,
    Utility,
    manifest_of,
    semver_key,
)
from reyn_jupyter.workflows.utilities.utility_files import (
    FolderFiles,
    Signature,
    UtilityFolderError,
    read_folder,
    signature_of,
)
from reyn_jupyter.workflows.workflow_error import WorkflowError

FOLDER = UTILITIES  # of a workspace
SHIPPED = Path(__file__).parent.parent / "shipped"
STATE_FOLDER, CACHE_FILE = "state", "registry-cache.json"
MOST_UTILITIES = 5_000  # in one folder
_ORDER: Mapping[Origin, int] = {"workspace": 0, "configured": 1, "package": 2}


@dataclass(frozen=True)
class UtilityFolder:
    """A folder whose folders may be utilities.

    Attributes:
        path: where it is; it need not exist.
        origin: who put it there.
        name: how its utilities' trust begins, ``tools``; "" where they need none.
    """

    path: Path
    origin: Origin
    name: str = ""


@dataclass(frozen=True)
class UtilityProblem:
    """Why something that was found is no utility, or not one that can be had.

    Attributes:
        file: which: ``tools/<folder>/tool.yaml``.
        path: the place in it, a JSON Pointer; "" for the whole.
        message: what is wrong.
    """

    file: str
    path: str
    message: str


@dataclass(frozen=True)
class UtilityRegistry:
    """The utilities of one moment.

    Attributes:
        utilities: in the order of name and version.
        problems: of what was left out, in the order of files.
        revision: another one means that something moved.
    """

    utilities: tuple[Utility, ...] = ()
    problems: tuple[UtilityProblem, ...] = ()
    revision: str = ""

    @cached_property
    def by_id(self) -> Mapping[str, Utility]:
        """The utilities by ``name@version``."""
        return {each.id: each for each in self.utilities}

    @cached_property
    def capabilities(self) -> Mapping[str, tuple[Utility, ...]]:
        """The utilities by what they can do, in the order of capabilities."""
        found: dict[str, list[Utility]] = {}
        for utility in self.utilities:
            for capability in utility.manifest.capabilities:
                found.setdefault(capability, []).append(utility)
        return {name: tuple(found[name]) for name in sorted(found)}

    @cached_property
    def best(self) -> Mapping[str, Utility]:
        """The utility that a bare name stands for: the trusted one of the highest precedence, else the highest."""
        found: dict[str, Utility] = {}
        for utility in self.utilities:
            name = utility.manifest.name
            if name not in found or precedence(found[name]) < precedence(utility):
                found[name] = utility
        return found

    def entry(self, utility: Utility) -> str:
        """Return what a utility is called in the catalog: its name, or its id where it is not the best of its name."""
        best = self.best.get(utility.manifest.name)
        return utility.manifest.name if best is None or best.id == utility.id else utility.id

    def candidates(self, capability: str) -> tuple[Utility, ...]:
        """Return the utilities that declare a capability, whether or not they may run."""
        return self.capabilities.get(capability, ())


@dataclass
class ScanCache:
    """What a scan learned of folders, for the next one in the same process. Nothing of it comes from a file."""

    folders: dict[str, _Scanned] = field(default_factory=dict)
    facts: list[Any] = field(default_factory=list)  # what the last registry was made of
    registry: UtilityRegistry | None = None


@dataclass(frozen=True)
class _Scanned:
    """What a folder held at a moment: a manifest or problems."""

    signature: Signature | None
    files: FolderFiles | None = None
    manifest: Manifest | None = None
    digest: str = ""
    problems: tuple[tuple[str, str, str], ...] = ()  # path in the folder, path in the file, message


def utility_folders(workspace: Path, configured: Sequence[str] = ()) -> tuple[UtilityFolder, ...]:
    """Return where utilities may lie: the workspace's ``tools``, what the configuration names, the package's own.

    A configured folder within the workspace is as little the person's own as the rest of it: its utilities need trust.

    Args:
        workspace: the folder.
        configured: the setting workflows.folders; ``~`` is the person's home, a relative one is of the workspace.
    """
    root = workspace.resolve()
    found = [UtilityFolder(root / FOLDER, "workspace", FOLDER)]
    for text in configured:
        path = Path(os.path.expanduser(text))  # noqa: PTH111 - Path.expanduser raises where there is no home
        named = Path(os.path.normpath(root / path))
        path = named.resolve()
        if path == root / FOLDER:
            continue
        # A link of the workspace may lead anywhere, and tomorrow elsewhere: what it names needs trust as well.
        place = next((each for each in (path, named) if each.is_relative_to(root)), None)
        inside, name = place is not None, place.relative_to(root).as_posix() if place is not None else ""
        found.append(UtilityFolder(path, "workspace" if inside else "configured", name))
    return (*found, UtilityFolder(SHIPPED, "package"))


def read_registry(
    folders: Sequence[UtilityFolder],
    *,
    cache: ScanCache | None = None,
    is_trusted: Callable[[str, str], bool],
) -> UtilityRegistry:
    """Read the utilities of folders.

    Args:
        folders: where to look, see `utility_folders`.
        cache: of an earlier scan; folders that did not move since are not read again.
        is_trusted: whether the person trusts a utility, by its trust name and its digest; see
            `utility_trust.trusted_utilities`. Only asked about those of a workspace.

    Returns:
        the utilities and the problems; a folder that is not there has none.

    Example:
        >>> registry = read_registry(utility_folders(Path()), is_trusted=lambda name, digest: False)
        >>> [each.origin for each in registry.utilities if each.trusted and each.origin == "workspace"]
        []
    """
    known = cache.folders if cache is not None else {}
    now: dict[str, _Scanned] = {}
    facts: list[Any] = []
    for folder in folders:
        try:
            if folder.origin == "package":
                facts += [(folder, name, scanned, True) for name, scanned in _package_scan(folder)]
                continue
            names = _folders_in(folder)
        except UtilityFolderError as error:
            facts.append((folder, "", _Scanned(None, problems=(("", "", error.message),)), False))
            continue
        for name, is_link in names:
            path = os.path.join(folder.path, name)  # noqa: PTH118 - of a thousand folders
            scanned = now[path] = _scan(path, is_link, known.get(path))
            trusted = scanned.manifest is not None and (
                folder.origin != "workspace" or is_trusted(f"{folder.name}/{name}", scanned.digest)
            )
            facts.append((folder, name, scanned, trusted))
    if cache is None:
        return _registry(facts)
    if cache.registry is None or not _are_same(facts, cache.facts):
        cache.registry = _registry(facts)
    cache.folders, cache.facts = now, facts
    return cache.registry


@cached
def _package_scan(folder: UtilityFolder) -> list[tuple[str, _Scanned]]:
    """Read the package's own utilities, once a process: an installed package does not change while it is in use."""
    return [(name, _scan(str(folder.path / name), is_link, None)) for name, is_link in _folders_in(folder)]


def _are_same(facts: list[Any], before: list[Any]) -> bool:
    """Return whether two scans found the very same, without a comparison of all that was read."""
    return len(facts) == len(before) and all(
        one[0] == other[0] and one[1] == other[1] and one[2] is other[2] and one[3] == other[3]
        for one, other in zip(facts, before, strict=True)
    )


def _registry(facts: Sequence[tuple[UtilityFolder, str, _Scanned, bool]]) -> UtilityRegistry:
    """Return the registry of what was found: each folder's place, name and content, and whether it is trusted."""
    problems: list[UtilityProblem] = []
    found: list[Utility] = []
    for folder, name, scanned, trusted in facts:
        shown = folder.name or str(folder.path)
        file = f"{shown}/{one_line(name)}" if name else shown
        problems += [
            UtilityProblem(f"{file}/{one_line(inner or FILE)}" if name else file, place, message)
            for inner, place, message in scanned.problems
        ]
        if scanned.manifest is not None and scanned.files is not None:
            trust_name = f"{folder.name}/{name}" if folder.origin == "workspace" else ""
            place, hashes = folder.path / name, scanned.files.hashes
            found.append(
                Utility(scanned.manifest, place, folder.origin, scanned.digest, trusted, trust_name, hashes)
            )
    kept, collisions = _without_collisions(found)
    problems += collisions
    return UtilityRegistry(tuple(kept), tuple(problems), _revision(kept, problems))


def write_cache(registry: UtilityRegistry, workspace: Path) -> None:
    """Write what the registry holds to ``state/registry-cache.json`` of a workspace, for people and other programs.

    It is never read back: what is trusted, shown and run is what was parsed. ``state`` ignores itself in Git.

    Raises:
        OSError: it cannot be written, or a link stands in the way.
    """
    folder = PlainFolder(workspace, STATE_FOLDER)
    if not folder.holds(".gitignore"):
        folder.replace(".gitignore", b"*\n")
    text = json.dumps(as_json(registry), ensure_ascii=False, indent=1)
    folder.replace(CACHE_FILE, text.encode("utf-8", "backslashreplace"))


def as_json(registry: UtilityRegistry) -> dict[str, Any]:
    """Return what a registry holds as JSON has it, the hash of each manifest too."""
    return {
        "version": 1,
        "revision": registry.revision,
        "utilities": {
            each.id: {
                "folder": each.trust_name or str(each.folder),
                "origin": each.origin,
                "trusted": each.trusted,
                "digest": each.digest,
                "manifest_sha256": each.files[FILE].partition(" ")[0],
                "description": each.manifest.description,
                "capabilities": list(each.manifest.capabilities),
                "stability": each.manifest.stability,
                "priority": each.manifest.priority,
                "idempotency": each.manifest.idempotency,
            }
            for each in registry.utilities
        },
        "capabilities": {
            name: [each.id for each in utilities] for name, utilities in registry.capabilities.items()
        },
        "problems": [
            {"file": each.file, "path": each.path, "message": each.message} for each in registry.problems
        ],
    }


def _folders_in(folder: UtilityFolder) -> list[tuple[str, bool]]:
    """Return the names of the folders in a folder, sorted, and whether each is a link. Raises UtilityFolderError."""
    try:
        if folder.origin == "workspace" and stat.S_ISLNK(folder.path.lstat().st_mode):
            raise UtilityFolderError("is a link, and links are not followed")
        with os.scandir(folder.path) as entries:
            names = []
            for entry in entries:
                link = entry.is_symlink()
                if not entry.name.startswith(".") and (link or entry.is_dir()):
                    names.append((entry.name, link))
                    if len(names) > MOST_UTILITIES:
                        raise UtilityFolderError(f"holds more than {MOST_UTILITIES:,} folders")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise UtilityFolderError(f"cannot be read: {error.strerror}") from None
    return sorted(names)


def _scan(path: str, is_link: bool, before: _Scanned | None) -> _Scanned:
    """Read a folder, unless it is as it was before."""
    if is_link:
        return _unusable(path, "", "is a link, and links are not followed")
    try:
        signature = signature_of(path)
        if before is not None and signature is not None and before.signature == signature:
            return before
        files = read_folder(Path(path), FILE)
    except UtilityFolderError as error:
        return _unusable(path, error.path, error.message)
    if files.manifest is None:
        faults: tuple[tuple[str, str, str], ...] = ()
        if FILE in files.hashes:
            faults = ((FILE, "", "is a link, and links are not followed"),)
        elif os.path.lexists(os.path.join(path, FILE)):  # noqa: PTH118 - of a thousand folders
            faults = ((FILE, "", "is no regular file"),)
        return _Scanned(
            signature, problems=faults
        )  # without a manifest it is no utility's folder, or an unfinished one
    try:
        manifest = manifest_of(files.manifest, Path(path), FILE)
    except WorkflowError as error:
        listed = error.details["problems"]
        return _Scanned(signature, problems=tuple((FILE, each["path"], each["message"]) for each in listed))
    return _Scanned(signature, files, manifest, files.digest)


def _unusable(path: str, inner: str, message: str) -> _Scanned:
    """Return that a folder cannot be read; nothing is said of one that does not look like a utility's."""
    there = os.path.lexists(os.path.join(path, FILE))  # noqa: PTH118 - of a thousand folders
    return _Scanned(None, problems=((inner, "", message),) if there else ())


def _without_collisions(found: Sequence[Utility]) -> tuple[list[Utility], list[UtilityProblem]]:
    """Return one utility for each id, and a problem for each other one."""
    kept: dict[str, Utility] = {}
    problems = []
    for utility in sorted(found, key=lambda each: (not each.trusted, _ORDER[each.origin])):
        winner = kept.setdefault(utility.id, utility)
        if winner is not utility:
            why = "is trusted" if winner.trusted and not utility.trusted else "comes first"
            problems.append(
                UtilityProblem(
                    f"{_place(utility)}/{FILE}",
                    "/name",
                    f"{utility.id} is left out: {_place(winner)} declares the same, and {why}",
                )
            )
    ordered = sorted(
        kept.values(), key=lambda each: (each.manifest.name, semver_key(each.manifest.version), each.id)
    )
    return ordered, sorted(problems, key=lambda each: each.file)


def _place(utility: Utility) -> str:
    return one_line(utility.trust_name or str(utility.folder))


def precedence(utility: Utility) -> tuple[Any, ...]:
    """Return what utilities of one name are ordered by."""
    manifest = utility.manifest
    return utility.trusted, semver_key(manifest.version)


def _revision(utilities: Sequence[Utility], problems: Sequence[UtilityProblem]) -> str:
    facts = [[each.id, each.digest, str(each.folder), each.trusted] for each in utilities]
    text = json.dumps([facts, [[each.file, each.path, each.message] for each in problems]])
    return hashlib.sha256(text.encode()).hexdigest()[:16]
