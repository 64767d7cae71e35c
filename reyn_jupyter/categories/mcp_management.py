"""Which MCP servers there are: searching a registry, installing, dropping.

The operations of the category `mcp` that change the person's file of servers. Each shows the exact command line, the
names of its variables and the file before it writes; none starts a server, and none downloads: the runner does that at
the first start. What a model may not say, however it asks: an option of a runner, a variable that changes what runs, a
secret. Whoever installs a server gives it no permission: each of its tools asks for itself.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reyn_jupyter.backends.mcp_servers.manifest import InstallPlan, check_variables, install_plan
from reyn_jupyter.backends.mcp_servers.packages import KINDS, package_command, package_name
from reyn_jupyter.backends.mcp_servers.registry import Registry, RegistryAnswer, RegistryError, describe
from reyn_jupyter.backends.mcp_servers.server_entry import EntryError, ServerEntry, read_entry
from reyn_jupyter.backends.mcp_servers.server_file import name_shown
from reyn_jupyter.catalog.action import Arguments, Effect, EffectKind, Operation, Purity, Tool
from reyn_jupyter.guard.sandbox import SandboxError, find_sandbox
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.files.state_base import state_base
from reyn_jupyter.support.programs.program_search import find_program, is_runner
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.text import enumerate_words, shorten, tells_to_type

if TYPE_CHECKING:
    from reyn_jupyter.runtime.access.mcp_admin import McpAdmin, McpScope
    from reyn_jupyter.runtime.services import Services, ToolContext

# They fetch what they are to run.
RUNNERS = frozenset({"npx", "uvx", "uv", "docker", "podman", "pipx", "bunx", "bun", "pnpm", "yarn", "deno"})
STARTS = "It starts when its tools are listed next: at once where JupyterLab shows the notebook."
NOT_ISOLATED = "It runs with your rights, without a sandbox."
_TEXT = {"type": "string", "minLength": 1, "maxLength": 300}
_PLACES = {"type": "array", "items": {"type": "string", "maxLength": 300}, "maxItems": 20}
_OVERRIDES = {
    "type": "object",
    "additionalProperties": {"type": "string", "maxLength": 8192},
    "maxProperties": 100,
    "description": "Values of its variables, by name. No secrets: the person gives those.",
}


def management_operations(services: Services) -> tuple[Operation, ...]:
    """Return the operations that search, install and drop servers."""
    management = _Management(services)
    return (
        Operation(
            "search_registry",
            "Search the registry of MCP servers by a part of their names.",
            _schema(["text"], text={**_TEXT, "description": "A part of a name, as weather."}),
            Tool(
                "search_mcp_registry", management.search, Purity.NETWORK, management.asks_registry,
                untrusted_output=True,
            ),
        ),
        Operation(
            "install_registry",
            "Install a server by its id in the registry. The person sees its command line first.",
            _schema(
                ["server_id"],
                server_id={**_TEXT, "description": "As a search gives it: io.github.owner/name."},
                env_overrides=_OVERRIDES,
            ),
            Tool("install_mcp_registry", management.install_registry, Purity.NETWORK, management.asks_registry),
        ),
        Operation(
            "install_package",
            "Install a published package as a server: npm (npx), pypi and github (uvx), docker.",
            _schema(
                ["kind", "identifier"],
                kind={"type": "string", "enum": list(KINDS)},
                identifier={**_TEXT, "description": "Its name there; for github owner/repository, a Python project."},
                version={**_TEXT, "description": "An exact version; the newest where it is left out."},
                env_overrides=_OVERRIDES,
            ),
            _install_tool("install_mcp_package", management.plan_package),
        ),
        Operation(
            "install_local",
            "Register a command of this machine, such as a script in the workspace, as a server.",
            _schema(
                ["name", "command", "args"],
                name={**_TEXT, "description": "What the server is called here."},
                command={**_TEXT, "description": "The program; no shell reads it."},
                args={"type": "array", "items": {"type": "string"}, "maxItems": 256},
                sandbox={
                    "type": "boolean", "default": True,
                    "description": "In a sandbox it reads the workspace, and nothing else that is not named here.",
                },
                writable={**_PLACES, "description": "Folders of the workspace that it may change in its sandbox."},
                hosts={**_PLACES, "description": "Hosts that it may reach from its sandbox over HTTP."},
                env_overrides=_OVERRIDES,
            ),
            _install_tool("install_mcp_local", management.plan_local),
        ),
        Operation(
            "drop_server",
            "Remove an installed server, and forget its secrets.",
            _schema(
                ["server"],
                server=_TEXT,
                scope={
                    "type": "string",
                    "enum": ["user", "workspace"],
                    "description": "Whose file: the person's own, or that of the workspace.",
                },
            ),
            Tool(
                "drop_mcp_server", _drop, Purity.WRITE, _drop_effects, _drop_preview, plan=management.plan_drop
            ),
        ),
    )  # fmt: skip


def _schema(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class Installation:
    """A server that is about to be written: what a question shows is what is written."""

    admin: McpAdmin
    plan: InstallPlan

    @property
    def effects(self) -> tuple[Effect, ...]:
        entry = self.plan.entry
        runs = Effect.exec(entry.argv) if entry.transport == "stdio" else Effect.network(entry.url)
        return runs, Effect(EffectKind.MCP, entry.name)

    @property
    def text(self) -> str:
        """What a person decides about: the whole command line, names of variables, the file."""
        entry = self.plan.entry
        program = entry.transport == "stdio"
        secrets = [each.name for each in self.plan.needs]
        values = "\n".join(f"{name}={value}" for name, value in entry.values.items())
        rows = [
            ("server", entry.name),
            ("runs" if program else "asks", entry.line),
            ("in folder", entry.cwd or ""),
            ("variables" if program else "headers", values),
            ("needs", ", ".join(f"{name} (you give it later)" for name in secrets)),
            ("written to", self.admin.place("user")),
            ("sandbox", str(entry.sandbox or "").removeprefix("sandbox; ").replace("; ", "\n")),
            ("", NOT_ISOLATED if program and entry.sandbox is None else ""),
            (
                "",
                _at_first_use(entry)
                if program
                else "It is asked when its tools are listed next: at once where JupyterLab shows the notebook.",
            ),
            *(("", note) for note in self.plan.notes),
        ]
        return "\n".join(
            f"{label:<10}  {line}".rstrip()
            for label, value in rows
            if value
            for label, line in zip((label, *([""] * value.count("\n"))), value.split("\n"), strict=True)
        )

    def write(self, told: Callable[[str], str] = str) -> dict[str, Any]:
        """Write the entry; return what the caller is told. Raises ActionError.

        Args:
            told: gives a sentence of ours as the caller reads it, see `ToolContext.without_advice`.
        """
        entry = self.plan.entry
        path = self.admin.add(entry.name, entry.plain)
        program = entry.transport == "stdio"
        answer: dict[str, Any] = {
            "installed": entry.name,
            "runs" if program else "asks": entry.line,
            "written_to": path,
            "tools": f"mcp__list_tools with server={entry.name}",
        }
        if program:
            answer["isolation"] = _isolation(entry)
            answer["note"] = _at_first_use(entry)
        missing = self.admin.missing_secrets(entry.name)
        if missing:
            said = {each.name: each.description for each in self.plan.needs}
            answer["needs_secrets"] = [
                {
                    "name": name,
                    "description": said.get(name, ""),
                    "how": told(f"The person hands it over: {reyn_line('mcp secret', entry.name, name)}"),
                }
                for name in missing
            ]
        if self.plan.optional:
            answer["optional_secrets"] = list(self.plan.optional)
        if self.plan.notes:
            answer["notes"] = [told(note) for note in self.plan.notes]
        return answer


class _Management:
    def __init__(self, services: Services) -> None:
        self._services = services

    # The registry

    async def search(self, args: Arguments, context: ToolContext) -> dict[str, Any]:
        registry = self._registry()
        try:
            context.came_from(f"MCP registry {registry.address}")
            found, answer = await registry.search(args["text"])
        except RegistryError as error:
            raise _refusal(error) from None
        servers = [
            {
                "server_id": each["name"],
                "version": shorten(str(each.get("version", "")), 40),
                "description": describe(each),
                "offers": _offers(each),
            }
            for each in found
        ]
        return {"servers": servers, "total": len(servers), **_source(registry, answer)}

    async def install_registry(self, args: Arguments, context: ToolContext) -> dict[str, Any]:
        registry = self._registry()
        try:
            manifest, answer = await registry.latest(args["server_id"])
            plan = install_plan(manifest, args.get("env_overrides", {}))
        except RegistryError as error:
            raise _refusal(error) from None
        except EntryError as error:
            raise _refused(error) from None
        installation = self._installation(plan)
        version = shorten(str(manifest.get("version", "")), 40)
        reason = f"{args['server_id']} {version}, as {registry.address} describes it\n{installation.text}"
        if answer.why_old:
            reason += f"\n{answer.why_old} Its answer of {_day(answer.at)} is used."
        await context.ask(*installation.effects, reason=reason)
        # Words of the manifest, which may be anybody's, are no advice of ours.
        told = str if tells_to_type(manifest) else context.without_advice
        return {**await asyncio.to_thread(installation.write, told), **_source(registry, answer)}

    def asks_registry(self, args: Arguments, context: ToolContext) -> Sequence[Effect]:
        return (Effect.network(self._registry().address),)

    def _registry(self) -> Registry:
        try:
            return Registry(self._services.settings().mcp.registry, state_base() / "mcp-registry")
        except EntryError as error:
            raise ActionError(
                f"{error}.", "Set mcp.registry to the address of one.", code="registry_wrong"
            ) from None

    # What a call would write, before anybody is asked

    def plan_package(self, args: Arguments, context: ToolContext) -> Installation:
        variables: Mapping[str, str] = args.get("env_overrides", {})
        try:
            check_variables(variables)
            words = package_command(
                args["kind"], args["identifier"], args.get("version"), variables=tuple(variables)
            )
            name = package_name(args["kind"], args["identifier"])
            entry = _entry(name, words, variables)
        except EntryError as error:
            raise _refused(error) from None
        return self._installation(InstallPlan(entry, notes=missing_runner(entry)))

    def plan_local(self, args: Arguments, context: ToolContext) -> Installation:
        variables: Mapping[str, str] = args.get("env_overrides", {})
        root = self._services.root
        command = args["command"]
        # A path is meant from the workspace on; the entry holds in every workspace.
        if "/" in command and not Path(command).is_absolute():
            command = str(root / command)
        try:
            check_variables(variables)
            if "${" in "".join((command, *args["args"])):
                raise EntryError("a command line of a call refers to nothing; write the words themselves")
            sandbox, notes = self._sandbox(args, root)
            # A runner looks for code where it works, so it works in an empty folder.
            cwd = None if is_runner(command) else str(root)
            entry = _entry(args["name"], (command, *args["args"]), variables, cwd=cwd, sandbox=sandbox)
        except EntryError as error:
            raise _refused(error) from None
        return self._installation(InstallPlan(entry, notes=(*missing_runner(entry), *notes)))

    def _sandbox(self, args: Arguments, root: Path) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
        """Return what a server gets in its sandbox, and what is to be said of it. Raises EntryError."""
        if not args.get("sandbox", True):
            return None, ()
        writable = []
        for given in args.get("writable") or ():
            place = Path(os.path.realpath(root / given))
            if not place.is_relative_to(root) or "${" in given:
                raise EntryError(f"{given[:80]!a} is no folder of the workspace")
            writable.append(str(place))
        wanted = self._services.settings().sandbox
        try:
            find_sandbox("program", wanted.backend, wanted.minimum)
        except SandboxError as error:
            return None, (f"A sandbox was asked for, and there is none: {error}.",)
        return {"readable": [str(root)], "writable": writable, "hosts": list(args.get("hosts") or ())}, ()

    def plan_drop(self, args: Arguments, context: ToolContext) -> _Drop:
        admin: McpAdmin = self._services.mcp_admin
        name, scope = args["server"], args.get("scope")
        scopes = admin.scopes(name)
        if not scopes or (scope is not None and scope not in scopes):
            where = f" in the {scope} file" if scope else ""
            raise ActionError(
                f"There is no server {name_shown(name)}{where}.",
                "mcp__list_servers names those that there are.",
                code="server_unknown",
            )
        chosen: McpScope = scope or scopes[0]
        return _Drop(admin, name, chosen)

    def _installation(self, plan: InstallPlan) -> Installation:
        admin: McpAdmin = self._services.mcp_admin
        taken = admin.scopes(plan.entry.name)
        if taken:
            raise ActionError(
                f"There is a server {plan.entry.name} already, in {admin.place(taken[0])}.",
                f"Use it, or drop it first: mcp__drop_server with server={plan.entry.name}.",
                code="server_exists",
            )
        return Installation(admin, plan)


@dataclass(frozen=True)
class _Drop:
    admin: McpAdmin
    name: str
    scope: McpScope


def _install_tool(name: str, plan: Any) -> Tool:
    return Tool(name, _install, Purity.WRITE, _install_effects, _install_preview, plan=plan)


async def _install(args: Arguments, context: ToolContext) -> dict[str, Any]:
    installation: Installation = context.plan
    return await asyncio.to_thread(installation.write, context.without_advice)


def _install_effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    installation: Installation = context.plan
    return installation.effects


def _install_preview(args: Arguments, context: ToolContext) -> str:
    installation: Installation = context.plan
    return installation.text


async def _drop(args: Arguments, context: ToolContext) -> dict[str, Any]:
    drop: _Drop = context.plan
    dropped = await asyncio.to_thread(drop.admin.drop, drop.name, drop.scope)
    answer: dict[str, Any] = {"dropped": dropped.name, "scope": dropped.scope, "file": dropped.path}
    return answer | ({"forgotten_secrets": list(dropped.secrets)} if dropped.secrets else {})


def _drop_effects(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    drop: _Drop = context.plan
    return (Effect(EffectKind.MCP, drop.name),)


def _drop_preview(args: Arguments, context: ToolContext) -> str:
    drop: _Drop = context.plan
    return f"drop        {name_shown(drop.name)}\nfrom        {drop.admin.place(drop.scope)}\nand forget its secrets"


def _entry(
    name: str,
    words: Sequence[str],
    variables: Mapping[str, str],
    cwd: str | None = None,
    sandbox: Mapping[str, Any] | None = None,
) -> ServerEntry:
    said: dict[str, Any] = {"command": words[0], "args": list(words[1:]), "env": dict(variables)}
    said |= {} if cwd is None else {"cwd": cwd}
    return read_entry(name, said | ({} if sandbox is None else {"sandbox": sandbox}))


def _at_first_use(entry: ServerEntry) -> str:
    if entry.sandbox is not None or Path(entry.command).name not in RUNNERS:
        return STARTS
    return f"{STARTS} {entry.command} downloads then what it does not have."


def _isolation(entry: ServerEntry) -> str:
    return NOT_ISOLATED if entry.sandbox is None else f"It runs in a {entry.sandbox}."


def missing_runner(entry: ServerEntry) -> tuple[str, ...]:
    """Return a sentence where the program of a server is not installed."""
    if entry.transport == "http":
        return ()
    return () if find_program(entry.command) else (f"{entry.command} is not installed.",)


def _offers(manifest: Mapping[str, Any]) -> str:
    """Return in a few words how a server is reached; a stranger's types are left out."""
    packages = manifest.get("packages")
    kinds = [
        str(each.get("registryType"))
        for each in (packages if isinstance(packages, list) else [])
        if isinstance(each, dict) and each.get("registryType") in ("npm", "pypi", "oci")
    ]
    return enumerate_words([*dict.fromkeys(kinds), *(["remote"] if manifest.get("remotes") else [])])


def _source(registry: Registry, answer: RegistryAnswer) -> dict[str, Any]:
    said = {"registry": registry.address, "as_of": _day(answer.at)}
    return said if answer.why_old is None else {**said, "stale": answer.why_old}


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _refusal(error: RegistryError) -> ActionError:
    return ActionError(str(error), error.hint, code=error.code)


def _refused(error: EntryError) -> ActionError:
    said = error.message
    return ActionError(f"{said[:1].upper()}{said[1:]}.", error.advice, code="server_refused")
