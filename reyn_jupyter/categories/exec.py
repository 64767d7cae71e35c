"""Commands in a sandbox: one program with its arguments, no shell, and nothing of the machine but the workspace.

Invariants: a command runs in the sandbox in force or not at all. It reads the workspace without the files that
`file__read` may not read, writes in a scratch folder and in folders that were consented to, and reaches the hosts that
were consented to and no others. What it changed is recorded, so that `undo` takes it back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reyn_jupyter.backends.files.command_files import CommandChange, WatchedFolders
from reyn_jupyter.catalog.action import Arguments, Category, Effect, EffectKind, Operation, Purity, Tool
from reyn_jupyter.catalog.discovery.visibility import is_exec_available
from reyn_jupyter.guard.sandbox import (
    Confinement,
    SandboxError,
    SandboxLimits,
    SandboxResult,
    find_sandbox,
    resolve_backend,
)
from reyn_jupyter.guard.sandbox.hidden_files import hidden_files
from reyn_jupyter.guard.workspace import WorkspaceError, protects
from reyn_jupyter.runtime.access.progress_report import last_line_reporter
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import Services, ToolContext
from reyn_jupyter.support.network.hosts import HostError, read_host
from reyn_jupyter.support.text import count, shorten

SCRATCH = "reyn-scratch"  # in the workspace
SECONDS = 60
MOST_SECONDS = 600
_MOST_NAMED = 100  # files in a result
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
    """The folders that a command may write in, from the workspace's root on, and the hosts that it may reach."""

    folders: tuple[str, ...]
    hosts: tuple[str, ...]


def _plan(args: Arguments, context: ToolContext) -> _Plan:
    workspace, found = context.services.workspace, []
    try:
        for given in args.get("writable") or ():
            place = workspace.place(given)
            if (why := protects(place.split("/"), for_write=True)) is not None:
                raise WorkspaceError(f"{given!r} is protected: {why}")
            if not (workspace.root / place).is_dir():
                raise WorkspaceError(f"{given!r} is no folder; name one that is there")
            found.append(place)
    except WorkspaceError as error:
        raise ActionError(str(error), f"Write in {SCRATCH}/, or name another folder.") from error
    try:
        hosts = dict.fromkeys(str(read_host(given)) for given in args.get("hosts") or ())
    except HostError as error:
        raise ActionError(str(error), 'Name hosts: ["example.org", "localhost:8080"].') from error
    return _Plan(tuple(dict.fromkeys(found)), tuple(hosts))


def _effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    return (
        Effect.exec(args["argv"]),
        *(Effect(EffectKind.WRITE, folder) for folder in context.plan.folders),
        *(Effect.network(host) for host in context.plan.hosts),
    )


async def _run(args: Arguments, context: ToolContext) -> dict[str, Any]:
    settings, workspace = context.services.settings().sandbox, context.workspace
    program = shorten(args["argv"][0], 60)
    if context.plan.hosts:  # it may print what it got there
        context.came_from(f"output of {program}, which may have asked {', '.join(context.plan.hosts)}")
    elif context.services.trust.awaits_trust:
        context.came_from(f"output of {program} in a folder that is not trusted")
    try:
        sandbox = find_sandbox("program", settings.backend, settings.minimum)
        scratch = _scratch(workspace.root)
        folders = _outermost((*context.plan.folders, SCRATCH))
        hidden = await asyncio.to_thread(hidden_files, workspace)
        watched = await asyncio.to_thread(WatchedFolders, workspace.root, folders)
        confinement = Confinement(
            workspace.root,
            (workspace.root, *watched.protected.paths),
            tuple(workspace.root / folder for folder in folders),
            hidden,
            hosts=context.plan.hosts,
        )
        seconds = args.get("timeout_seconds", SECONDS)
        try:
            result = await sandbox.run(
                args["argv"],
                confinement,
                SandboxLimits(seconds=seconds),
                on_output=last_line_reporter(context.report),
            )
        finally:
            changes, removed = await watched.report(context)
            with suppress(OSError):
                scratch.rmdir()  # nothing was made in it
    except SandboxError as error:
        code = "tool_timeout" if error.began else "no_sandbox"
        said = "run to its end" if error.began else "run"
        raise ActionError(f"The command did not {said}: {error}.", error.hint, code=code) from error
    return _result(result, changes, removed)


def _scratch(root: Path) -> Path:
    """Return the scratch folder, made if it is not there. Raises ActionError where something else is."""
    scratch = root / SCRATCH
    scratch.mkdir(mode=0o700, exist_ok=True)
    if scratch.is_symlink() or not scratch.is_dir():
        raise ActionError(f"{SCRATCH} is no folder, so a command has no place to write", "Remove it.")
    return scratch


def _outermost(folders: Sequence[str]) -> tuple[str, ...]:
    """Return folders without those that lie below another one."""
    if "." in folders:
        return (".",)
    return tuple(
        folder
        for folder in dict.fromkeys(folders)
        if not any(folder != other and folder.startswith(other + "/") for other in folders)
    )


def _result(
    result: SandboxResult, changes: Sequence[CommandChange], removed: Sequence[str]
) -> dict[str, Any]:
    told: dict[str, Any] = {
        "status": result.status,
        "backend": result.backend,
        "isolation": result.isolation,
        "returncode": result.returncode,
        "stdout": result.stdout.decode("utf-8", "replace"),
        "stderr": result.stderr.decode("utf-8", "replace"),
        "truncated": result.truncated,
        "files": [change.told for change in changes[:_MOST_NAMED]],
    }
    if result.traffic:
        told["network"] = [
            {
                "host": each.host, "connections": each.connections,
                "bytes_sent": each.sent, "bytes_received": each.received,
            }
            for each in result.traffic
        ]  # fmt: skip
    if result.refusals:
        told["refused"] = list(result.refusals)
    if result.reason:
        told["reason"] = f"ended: {result.reason}"
    if result.truncated:
        told["bytes"] = {"stdout": result.stdout_bytes, "stderr": result.stderr_bytes}
    notes = []
    if len(changes) > _MOST_NAMED:
        notes.append(f"{count(len(changes) - _MOST_NAMED, 'further file')} changed.")
    if removed:
        notes.append(f"Removed, since nothing may be written there: {', '.join(removed[:_MOST_NAMED])}.")
    if notes:
        told["note"] = " ".join(notes)
    return told
