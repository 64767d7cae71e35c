"""Commands in a sandbox: one program with its arguments, no shell, and nothing of the machine but the workspace.

Invariants: a command runs in the sandbox in force or not at all. It reads the workspace without the files that
`file__read` may not read, writes in private copies of a scratch folder and of the folders that the user allowed, and
reaches the hosts that the user allowed and no others. What it changed is taken over when it has ended, into the folders
that the user was asked about, and recorded, so that `undo` takes it back.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.backends.files.command_files import UndoRecord, told
from reyn_jupyter.catalog.action import Arguments, Category, Effect, EffectKind, Operation, Purity, Tool
from reyn_jupyter.catalog.discovery.visibility import is_exec_available
from reyn_jupyter.guard.held_place import HeldFolder
from reyn_jupyter.guard.sandbox import (
    Confinement,
    Sandbox,
    SandboxError,
    SandboxLimits,
    SandboxResult,
    find_sandbox,
    resolve_backend,
)
from reyn_jupyter.guard.sandbox.hidden_files import hidden_files
from reyn_jupyter.guard.sandbox.private_copies import PrivateCopies, TakenOver
from reyn_jupyter.guard.workspace import Workspace, WorkspaceError, protects
from reyn_jupyter.runtime.access.progress_report import last_line_reporter
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import Services, ToolContext
from reyn_jupyter.support.network.hosts import HostError, read_host
from reyn_jupyter.support.text import shorten

SCRATCH = "reyn-scratch"  # in the workspace
SECONDS = 60
MOST_SECONDS = 600
_SCHEMA = {
    "type": "object",
    "properties": {
        "argv": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": 1000,
            "description": 'The program and its arguments, one item each: ["python", "script.py", "--fast"]. No shell '
            "reads them: no pipes, no variables, no wildcards.",
        },
        "timeout_seconds": {
            "type": "number",
            "minimum": 1,
            "maximum": MOST_SECONDS,
            "default": SECONDS,
            "description": "The command is ended after so many seconds.",
        },
        "writable": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": 20,
            "description": f"Folders of the workspace that it may write in, beside {SCRATCH}/.",
        },
        "hosts": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": 20,
            "description": "Hosts that it may reach over HTTP and HTTPS, none by default: example.org for ports 80 and "
            "443, example.org:8080 for another one. Programs find the way in HTTP_PROXY and HTTPS_PROXY, as curl, "
            "git, pip and npm do.",
        },
    },
    "required": ["argv"],
    "additionalProperties": False,
}


def categories(services: Services) -> tuple[Category, ...]:
    """`exec`, offered where a sandbox for programs is in force."""

    def hidden() -> str | None:
        try:
            return None if is_exec_available(_in_force(services)) else "No sandbox is in force."
        except SandboxError as error:
            return f"Commands are off: {error}. {error.hint}".strip()

    return (
        Category(
            "exec",
            "Run programs in a sandbox: no network but for hosts that are named, the workspace read-only but for a "
            "scratch folder.",
            operations=(
                Operation(
                    "run",
                    "Run one command in the workspace, in a sandbox, and return what it printed. It can write in "
                    f"{SCRATCH}/ and in the folders named as writable, and reach the hosts named as hosts alone.",
                    _SCHEMA,
                    Tool("run_command", _run, Purity.EXEC, _effects, plan=_plan),
                ),
            ),
            hidden=hidden,
        ),
    )


def _in_force(services: Services) -> str:
    settings = services.settings().sandbox
    return resolve_backend("program", settings.backend, settings.minimum).name


@dataclass(frozen=True)
class _Plan:
    """What a command may reach, until `close`.

    Attributes:
        root: the workspace's root, held.
        folders: those that the user is asked about, held.
        hosts: what it may reach over HTTP.
    """

    root: HeldFolder
    folders: tuple[HeldFolder, ...]
    hosts: tuple[str, ...]

    def close(self) -> None:
        """Let the folders go."""
        for folder in (self.root, *self.folders):
            folder.close()


def _plan(args: Arguments, context: ToolContext) -> _Plan:
    try:
        hosts = dict.fromkeys(str(read_host(given)) for given in args.get("hosts") or ())
    except HostError as error:
        raise ActionError(str(error), 'Name hosts: ["example.org", "localhost:8080"].') from error
    workspace, found = context.services.workspace, dict[str, HeldFolder]()
    root = os.fspath(workspace.root)
    try:
        for given in args.get("writable") or ():
            place = workspace.place(given)
            if (why := protects(place.split("/"), for_write=True)) is not None:
                raise WorkspaceError(f"{given!r} is protected: {why}")
            if not (workspace.root / place).is_dir():
                raise WorkspaceError(f"{given!r} is no folder; name one that is there")
            found.setdefault(place, HeldFolder(root, place))
        return _Plan(HeldFolder(root, "."), tuple(found.values()), tuple(hosts))
    except WorkspaceError as error:
        for folder in found.values():
            folder.close()
        raise ActionError(str(error), f"Write in {SCRATCH}/, or name another folder.") from error


def _effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    return (
        Effect.exec(args["argv"]),
        *(Effect(EffectKind.WRITE, folder.place) for folder in context.plan.folders),
        *(Effect.network(host) for host in context.plan.hosts),
    )


async def _run(args: Arguments, context: ToolContext) -> dict[str, Any]:
    settings, workspace = context.services.settings().sandbox, context.workspace
    program = shorten(args["argv"][0], 60)
    if context.plan.hosts:  # it may print what it got there
        context.came_from(f"output of {program}, which may have asked {', '.join(context.plan.hosts)}")
    elif context.services.trust.awaits_trust:
        context.came_from(f"output of {program} in a folder that is not trusted")
    limits = SandboxLimits(seconds=args.get("timeout_seconds", SECONDS))
    taken = TakenOver()
    try:
        sandbox = find_sandbox("program", settings.backend, settings.minimum)
        with _scratch(context.plan.root) as scratch:
            copies = await asyncio.to_thread(_copies, context.plan, scratch, workspace, sandbox)
            try:
                result = await sandbox.run(
                    [copies.given(word) for word in args["argv"]],
                    lambda: _confinement(context.plan, copies, workspace),
                    limits,
                    on_output=last_line_reporter(context.report),
                )
            finally:
                if not sandbox.has_left_processes:  # what still runs may still write
                    taken = await copies.take_over(UndoRecord(context))
                await asyncio.to_thread(copies.close)
    except SandboxError as error:
        code = "tool_timeout" if error.began else "no_sandbox"
        said = "run to its end, and what it changed was not applied" if error.began else "run"
        raise ActionError(f"The command did not {said}: {error}.", error.hint, code=code) from error
    return _result(result, taken)


@contextmanager
def _scratch(root: HeldFolder) -> Iterator[HeldFolder]:
    """Yield the scratch folder, held; made if it is not there, and removed if nothing was made in it.

    Args:
        root: the workspace's root.

    Raises:
        ActionError: something else is there.
    """
    try:
        with suppress(FileExistsError):
            os.mkdir(SCRATCH, 0o700, dir_fd=root.descriptor)
        folder = HeldFolder(root.root, SCRATCH)
    except (OSError, WorkspaceError) as error:
        raise ActionError(
            f"{SCRATCH} is no folder, so a command has no place to write ({error})", "Remove it."
        ) from error
    with closing(folder):
        try:
            yield folder
        finally:
            with suppress(OSError):
                os.rmdir(SCRATCH, dir_fd=root.descriptor)


def _copies(plan: _Plan, scratch: HeldFolder, workspace: Workspace, sandbox: Sandbox) -> PrivateCopies:
    """Return the copies of the folders that a command writes in. Raises SandboxError."""
    hidden = [workspace.relative(path) for path in hidden_files(workspace)]
    copies = PrivateCopies(plan.root, (*plan.folders, scratch), hidden, view=sandbox.view)
    copies.mirror(["."])
    return copies


def _confinement(plan: _Plan, copies: PrivateCopies, workspace: Workspace) -> Confinement:
    return copies.confinement(".", (workspace.root,), hidden_files(workspace), hosts=plan.hosts)


def _result(result: SandboxResult, taken: TakenOver) -> dict[str, Any]:
    said: dict[str, Any] = {
        "status": result.status,
        "backend": result.backend,
        "isolation": result.isolation,
        "returncode": result.returncode,
        "stdout": result.stdout.decode("utf-8", "replace"),
        "stderr": result.stderr.decode("utf-8", "replace"),
        "truncated": result.truncated,
        **told(taken),
    }
    if result.traffic:
        said["network"] = [
            {
                "host": each.host, "connections": each.connections,
                "bytes_sent": each.sent, "bytes_received": each.received,
            }
            for each in result.traffic
        ]  # fmt: skip
    if result.refusals:
        said["refused"] = list(result.refusals)
    if result.reason:
        said["reason"] = f"ended: {result.reason}"
    if result.truncated:
        said["bytes"] = {"stdout": result.stdout_bytes, "stderr": result.stderr_bytes}
    return said
