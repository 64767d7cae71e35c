"""Where tools made at run time are kept: one JSON file a tool, in the person's own state of the workspace.

Invariants: a file is put in place whole, so that a kill at any moment leaves the tool as it was before or after; all
changes are made under one lock between processes, so that two kernels lose nothing of each other's and of two tools of
one name one is made; a file that is no definition is set aside, kept and told of, and hides no other; a definition
that was edited on the disk is told of, and `DynamicTool.check_intact` refuses it.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from reyn_jupyter.catalog.text_normalization import quoted
from reyn_jupyter.dynamic.definition import DynamicTool
from reyn_jupyter.dynamic.tool_error import DynamicToolError
from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.support.files.locks import release, wait_for_lock
from reyn_jupyter.support.files.plain_files import PlainFolder
from reyn_jupyter.support.text import did_you_mean, nearest_names, shorten
from reyn_jupyter.support.validation_messages import problems

FOLDER = "tools"  # in the state of a workspace
NOT_KEPT = "tool_not_kept"  # the code where the disk or its rights are the reason
LARGEST = 2 << 20  # bytes of a definition
LONGEST_WAIT = 30.0  # seconds for the lock
_SUFFIX = ".json"
_ASIDE = ".json.damaged-"
_LOCK = ".lock"
EDITED = (
    "its definition was changed on the disk since it was made, so it is not run; delete it and create it anew"
)
_NO_FILE = (
    errno.ELOOP,
    errno.EINVAL,
    errno.EISDIR,
    errno.ENXIO,
    errno.EFBIG,
)  # a link, a folder, a pipe, too large
_Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class ToolProblem:
    """What is wrong with a file of the store.

    Attributes:
        name: of the tool.
        file: what holds it.
        problem: what is wrong, and what to do.
        set_aside: whether it was taken out of the way, so that the name is free.
    """

    name: str
    file: Path
    problem: str
    set_aside: bool = False


class _Looked(NamedTuple):
    """A file as it was read: the tool, and what is wrong with it; an edited one has both."""

    stamp: _Stamp
    tool: DynamicTool | None
    wrong: str = ""


class ToolStore:
    """The tools of one workspace. Safe to use from several threads and processes.

    Args:
        folder: the person's state of the workspace, or a folder in place of it; the tools lie in ``tools`` below.
        durable: whether a change is on the disk when it returns, so that it outlives a loss of power too.

    Example:
        >>> store = ToolStore(StateFolder("."))                                            # doctest: +SKIP
        >>> store.add(tool, most=100)                                                      # doctest: +SKIP
        >>> store.update("mean", lambda tool: tool.used(True, now)).usage_count            # doctest: +SKIP
        1
    """

    def __init__(self, folder: StateFolder | Path, *, durable: bool = True) -> None:
        self._root = folder.path if isinstance(folder, StateFolder) else folder
        self._folder = PlainFolder(self._root, FOLDER)
        self._durable = durable
        self._lock = threading.Lock()
        self._parsed: dict[str, _Looked] = {}

    @property
    def path(self) -> Path:
        """Return the folder of the files."""
        return self._folder.path

    @property
    def revision(self) -> Hashable:
        """Return a value that moves whenever a kernel changed anything: one look at each file, none is read."""
        return frozenset(self._stamps().items())

    def all(self) -> tuple[tuple[DynamicTool, ...], tuple[ToolProblem, ...]]:
        """Return the tools by name, and what is wrong with files; one that is no definition is set aside.

        A tool that was edited on the disk is among the tools and the problems. Files that did not change since they
        were read are not read again. Where the folder cannot be read, there are no tools and one problem.
        """
        return self._all(held=False)

    def _all(self, *, held: bool) -> tuple[tuple[DynamicTool, ...], tuple[ToolProblem, ...]]:
        """Return what `all` does. `held`: whether the caller holds the lock."""
        try:
            self._folder.check()
        except OSError as error:
            return (), (ToolProblem("", self.path, f"no tool can be read: {_reason(error)}"),)
        found = self._look()
        damaged = [name for name, each in found.items() if name.endswith(_SUFFIX) and each.tool is None]
        if damaged and self._set_aside(damaged, held=held):
            found = self._look()
        tools: list[DynamicTool] = []
        wrong: list[ToolProblem] = []
        for name, each in sorted(found.items(), key=lambda item: _name(item[0])):
            if each.tool is not None:
                tools.append(each.tool)
                if each.wrong:
                    wrong.append(ToolProblem(each.tool.name, self.path / name, each.wrong))
            else:
                wrong.append(self._problem(name, each.wrong))
        return tuple(tools), tuple(wrong)

    def _look(self) -> dict[str, _Looked]:
        """Return what each file is; one that did not change is not read again."""
        stamps = self._stamps()
        with self._lock:
            known = self._parsed
        found: dict[str, _Looked] = {}
        for name, stamp in stamps.items():
            before = known.get(name)
            if before is not None and before.stamp == stamp:
                found[name] = before
            elif isinstance(read := self._read(name), DynamicTool):
                found[name] = _Looked(stamp, read, "" if read.is_intact else EDITED)
            elif read is not None:
                found[name] = _Looked(stamp, None, read)
        with self._lock:
            self._parsed = found
        return found

    def get(self, id_or_name: str) -> DynamicTool:
        """Return a tool by its id or name, as it is on the disk now.

        Raises:
            DynamicToolError: there is none (E203), or its file is no definition (E204).
        """
        return self._found(id_or_name)

    def add(self, tool: DynamicTool, most: int) -> None:
        """Keep a new tool.

        Args:
            most: how many tools there may be.

        Raises:
            DynamicToolError: there is one of this name, in whatever case (E201); there are as many as there may be
                (E202); the definition is too large (E106); it cannot be written ("tool_not_kept").
        """
        data = _written(tool)
        with self._locked(f"the tool {tool.name} cannot be kept"):
            self._clear_leftovers()
            self._check_free(tool.name, most, held=True)
            self._folder.replace(f"{tool.name}{_SUFFIX}", data, durable=self._durable)

    def check_free(self, name: str, most: int) -> None:
        """Check that a tool of a name could be added now. Raises DynamicToolError as `add` does: E201, E202."""
        self._check_free(name, most, held=False)

    def _check_free(self, name: str, most: int, *, held: bool) -> None:
        tools, wrong = self._all(held=held)
        for other in tools:
            if other.name.casefold() == name.casefold():
                raise DynamicToolError(
                    f"there is a tool {other.name} already, with the id {other.id}",
                    f"Run that one, choose another name, or delete {other.name} first.",
                    "E201",
                )
        for problem in wrong:
            if not problem.set_aside and problem.name.casefold() == name.casefold():
                raise DynamicToolError(
                    f"there is a file of the name {problem.file.name} already: {problem.problem}",
                    "Choose another name, or take that file away.",
                    "E201",
                )
        if len(tools) >= most:
            raise DynamicToolError(
                f"there are {len(tools)} tools, and {most} is the most",
                "Delete a tool that is not needed, or raise the setting.",
                "E202",
            )

    def remove(self, id_or_name: str) -> DynamicTool:
        """Remove a tool for good, and return it as it was.

        Raises:
            DynamicToolError: there is none (E203), its file is no definition (E204), or it cannot be removed
                ("tool_not_kept").
        """
        self._found(id_or_name)
        with self._locked(f"the tool {quoted(id_or_name)} cannot be removed"):
            tool = self._found(id_or_name, held=True)
            self._folder.remove(f"{tool.name}{_SUFFIX}")
            return tool

    def update(self, id_or_name: str, function: Callable[[DynamicTool], DynamicTool]) -> DynamicTool:
        """Replace a tool by what a function makes of it, with no other change in between; return the new one.

        Raises:
            DynamicToolError: there is none (E203), its file is no definition (E204), or it cannot be written
                ("tool_not_kept"); it is as it was then.
            ValueError: the new one has another name.
        """
        self._found(id_or_name)
        with self._locked(f"the tool {quoted(id_or_name)} cannot be changed"):
            before = self._found(id_or_name, held=True)
            after = function(before)
            if after.name != before.name:
                raise ValueError(f"the tool {before.name} cannot become {after.name}: add that one")
            if after != before:
                self._folder.replace(f"{after.name}{_SUFFIX}", _written(after), durable=self._durable)
            return after

    def _found(self, id_or_name: str, *, held: bool = False) -> DynamicTool:
        """Return a tool, read anew. Raises DynamicToolError as `get` does."""
        tools, wrong = self._all(held=held)
        for tool in (*(each for each in tools if each.id == id_or_name), *tools):
            if id_or_name in (tool.id, tool.name):
                fresh = self._read(f"{tool.name}{_SUFFIX}")
                if isinstance(fresh, DynamicTool):
                    return fresh
        for problem in wrong:
            if problem.name and problem.name == id_or_name:
                raise DynamicToolError(
                    f"the definition of {problem.name} cannot be used: {problem.problem}",
                    f"Create {problem.name} anew." if problem.set_aside else "Mend or remove the file.",
                    "E204",
                )
        near = did_you_mean(nearest_names(id_or_name, [each.name for each in tools]))
        raise DynamicToolError(
            f"there is no tool {quoted(id_or_name)}",
            near
            or ("List the tools for their names." if tools else "No tool was made here yet; create one."),
            "E203",
        )

    def _read(self, file: str) -> DynamicTool | str | None:
        """Return the tool of a file, or what is wrong with it; None where another kernel has just removed it."""
        try:
            data = self._folder.read(file, LARGEST)
        except FileNotFoundError:
            return None
        except OSError as error:
            return _reason(error)
        try:
            tool = DynamicTool.model_validate_json(data)
        except ValidationError as error:
            return f"it is no definition of a tool: {shorten('; '.join(problems(error, DynamicTool)), 300)}"
        return tool if tool.name == _name(file) else f"it defines {tool.name}, not {_name(file)}"

    def _problem(self, file: str, reason: str) -> ToolProblem:
        aside = not file.endswith(_SUFFIX)
        told = (
            f"its definition was damaged ({reason}), and set aside as {file}; create the tool anew, and remove "
            "that file once it is not needed"
            if aside
            else f"its definition cannot be read: {reason}"
        )
        return ToolProblem(_name(file), self.path / file, told, aside)

    def _set_aside(self, files: Iterable[str], *, held: bool) -> bool:
        """Rename files that are no definitions, looked at once more under the lock; return whether any was."""
        moved = False
        # Without a right to write here, the files stay, and are told of.
        with (
            suppress(DynamicToolError),
            nullcontext() if held else self._locked("a file cannot be set aside"),
        ):
            for file in files:
                if self._is_damaged(file):
                    with suppress(OSError):
                        (self.path / file).rename(self.path / f"{_name(file)}{_ASIDE}{time.time_ns()}")
                        moved = True
        return moved

    def _is_damaged(self, file: str) -> bool:
        """Return whether a file is no definition; one that cannot be read for want of rights may be one."""
        try:
            self._folder.read(file, LARGEST)
        except OSError as error:
            return error.errno in _NO_FILE
        return isinstance(self._read(file), str)

    def _clear_leftovers(self) -> None:
        """Remove the temporary files of processes that were killed; whoever writes one now holds the lock."""
        for name in self._folder.entries()[0]:
            if name.startswith(".") and name.endswith(".part"):
                with suppress(OSError):
                    self._folder.remove(name)

    def _stamps(self) -> dict[str, _Stamp]:
        """Return what tells one state of each file from another, of definitions and of what was set aside."""
        stamps: dict[str, _Stamp] = {}
        with suppress(OSError), os.scandir(self.path) as entries:
            for entry in entries:
                if not entry.name.startswith(".") and (entry.name.endswith(_SUFFIX) or _ASIDE in entry.name):
                    status = entry.stat(follow_symlinks=False)
                    stamps[entry.name] = (status.st_ino, status.st_mtime_ns, status.st_size)
        return stamps

    @contextmanager
    def _locked(self, what: str) -> Iterator[None]:
        """Hold the lock between processes. Raises DynamicToolError where the disk refuses anything meanwhile."""
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = self._folder.open(_LOCK, os.O_RDWR | os.O_CREAT, make=True)
            try:
                if not wait_for_lock(descriptor, LONGEST_WAIT):
                    raise DynamicToolError(
                        f"{what}: another kernel holds the tools for more than {LONGEST_WAIT:.0f} seconds",
                        "Look for a kernel that hangs, and try again.",
                        NOT_KEPT,
                    )
                yield
            finally:
                release(descriptor)
        except OSError as error:
            raise DynamicToolError(
                f"{what}: {error.strerror or error}",
                f"Check the rights and the free space of {self.path}.",
                NOT_KEPT,
            ) from error


def _name(file: str) -> str:
    """Return the name of the tool that a file should define."""
    return file.partition(_ASIDE if _ASIDE in file else _SUFFIX)[0]


def _written(tool: DynamicTool) -> bytes:
    data = json.dumps(tool.model_dump(mode="json"), ensure_ascii=False, indent=1).encode()
    if len(data) > LARGEST:
        raise DynamicToolError(
            f"the definition of {tool.name} has {len(data):,} bytes, and {LARGEST:,} is the most",
            "Shorten its code, or its examples.",
            "E106",
        )
    return data


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "it is a link"
    if error.errno in (errno.EINVAL, errno.EISDIR, errno.ENXIO):
        return "it is no ordinary file"
    if error.errno == errno.EFBIG:
        return f"it is larger than {LARGEST:,} bytes"
    return error.strerror or type(error).__name__
