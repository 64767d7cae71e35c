"""From a registry's manifest of a server (``server.json``) to an entry that can be written.

Invariants: a word of a manifest becomes a word of a command line or nothing; it never becomes an option of the runner
(npx, uvx, docker), nor a variable that changes what runs. A manifest that asks for more is refused with what it asks
for, and a person can add the server by hand. A secret stands in the entry as a reference, never as a value.

Source: ``server.json``, schema 2025-12-11 of the Model Context Protocol's registry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.backends.mcp_servers.packages import PackageKind, package_command
from reyn_jupyter.backends.mcp_servers.server_entry import (
    EntryError,
    ServerEntry,
    read_entry,
    stored_reference,
    usable_name,
)
from reyn_jupyter.support.programs.program_search import find_program
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.secret_names import secret_variable
from reyn_jupyter.support.text import enumerate_words, shorten

_KINDS: Mapping[str, PackageKind] = {"npm": "npm", "pypi": "pypi", "oci": "docker"}
RUNNERS: Mapping[PackageKind, str] = {"npm": "npx", "pypi": "uvx", "docker": "docker", "github": "uvx"}
_USUAL = frozenset({"-y", "--yes", "-i", "--interactive", "--rm"})  # options of runners that are given anyway
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_OPTION = re.compile(r"--?[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_SLOT = re.compile(r"\{([^{}]*)\}")
_MOST = 100  # arguments, variables, headers
# What changes which program runs, what it loads, where packages come from, or where requests go.
RESERVED = re.compile(
    r"LD_.*|DYLD_.*|NPM_.*|NODE_(?:OPTIONS|PATH|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED)|UV_.*|PIP_.*|PYTHON.*|"
    r"PATH|HOME|SHELL|USER|TMPDIR|IFS|ENV|BASH_ENV|PS4|PROMPT_COMMAND|GIT_.*|SSH_.*|DOCKER_.*|(?:.*_)?PROXY|SSL_.*|"
    r"CURL_.*|REQUESTS_CA_BUNDLE|PERL5.*|RUBY(?:OPT|LIB)|_?JAVA_(?:TOOL_)?OPTIONS|JDK_JAVA_OPTIONS|XDG_.*|REYN_.*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class NeededSecret:
    """A secret that a server needs, and what its publisher says of it."""

    name: str
    description: str


@dataclass(frozen=True)
class InstallPlan:
    """What installing a server would write.

    Attributes:
        entry: what is written.
        needs: secrets that have to be given before it can start.
        optional: secrets that it can do without, by name.
        notes: what the person should know, a sentence each.
    """

    entry: ServerEntry
    needs: tuple[NeededSecret, ...] = ()
    optional: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check_variables(values: Mapping[str, str]) -> None:
    """Check variables that a model or a stranger sets.

    Raises:
        EntryError: one changes what runs, or is named like a secret.

    >>> check_variables({"TZ": "UTC"})
    >>> check_variables({"LD_PRELOAD": "/tmp/x.so"})
    Traceback (most recent call last):
    reyn_jupyter.backends.mcp_servers.server_entry.EntryError: LD_PRELOAD changes what is run or where it comes from...
    """
    for name, value in values.items():
        if not _VARIABLE.fullmatch(name):
            raise EntryError(f"{shorten(name, 80)!a} is no name of a variable")
        if RESERVED.fullmatch(name):
            raise EntryError(
                f"{name} changes what is run or where it comes from, so only a person sets it",
                f"%reyn mcp add NAME --env {name}=… -- COMMAND",
            )
        if secret_variable(name):
            raise EntryError(
                f"{name} is named like a secret, and secrets are not given as arguments: leave it out; only the "
                "person gives it",
                f"%reyn mcp secret SERVER {name}",
            )
        if "${" in value:
            raise EntryError(f"{name} refers to another value; write the value itself")


def install_plan(
    manifest: Mapping[str, Any],
    overrides: Mapping[str, str],
    has: Callable[[str], object] = find_program,
) -> InstallPlan:
    """Return what installing a server from a registry would write.

    Args:
        manifest: what the registry says of it; its name was checked.
        overrides: values for variables that it declares.
        has: whether a program is installed, by name; of several packages the first whose runner is there is taken.

    Raises:
        EntryError: there is nothing that can be run here, or it asks for what only a person may give.
    """
    check_variables(overrides)
    name = usable_name(str(manifest["name"]).rpartition("/")[2])
    refused: list[str] = []
    plans: list[tuple[InstallPlan, str]] = []
    for package in _objects(manifest, "packages"):
        try:
            plans.append(_from_package(name, package, overrides))
        except EntryError as error:
            refused.append(str(error))
    if plans:
        plan = next((plan for plan, runner in plans if has(runner)), None)
        if plan is not None:
            return plan
        first, runner = plans[0]
        return InstallPlan(
            first.entry, first.needs, first.optional, (*first.notes, f"{runner} is not installed.")
        )
    for remote in _objects(manifest, "remotes"):
        try:
            return _from_remote(name, remote, overrides)
        except EntryError as error:
            refused.append(str(error))
    why = "; ".join(refused) or "it names no package and no address"
    raise EntryError(f"{manifest['name']} cannot be installed from the registry: {why}")


def _from_package(
    name: str, package: Mapping[str, Any], overrides: Mapping[str, str]
) -> tuple[InstallPlan, str]:
    registry = package.get("registryType")
    kind = _KINDS.get(registry) if isinstance(registry, str) else None
    if kind is None:
        raise EntryError(f"a package of type {_shown(registry)} is not supported")
    transport = package.get("transport")
    if isinstance(transport, dict) and transport.get("type", "stdio") != "stdio":
        raise EntryError(f"its package speaks {_shown(transport.get('type'))} and has to be started by hand")
    for argument in _objects(package, "runtimeArguments"):
        word = argument.get("name") or argument.get("value")
        if word not in _USUAL:
            raise EntryError(
                f"it wants the option {_shown(word)} of {RUNNERS[kind]}, which only a person gives",
                "%reyn mcp add",
            )
    values = _Values(overrides, "its variable")
    variables = {}
    for each in _objects(package, "environmentVariables"):
        variable = each.get("name")
        if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
            raise EntryError(f"{_shown(variable)} is no name of a variable")
        if RESERVED.fullmatch(variable):
            raise EntryError(f"it sets {variable}, which changes what is run or where it comes from")
        value = values.of(variable, each)
        if value is not None:
            variables[variable] = value
    values.check_all_used(overrides)
    identifier, version = package.get("identifier"), package.get("version")
    if not isinstance(identifier, str) or not isinstance(version, str | None):
        raise EntryError("its package has no name")
    words = package_command(
        kind,
        identifier,
        version or None,
        variables=tuple(variables),
        arguments=_arguments(_objects(package, "packageArguments"), identifier),
    )
    base = package.get("registryBaseUrl")
    notes = (
        f"The registry says that the package is at {_shown(base)}; {words[0]} takes it from where it is set up.",
    )
    entry = read_entry(name, {"command": words[0], "args": list(words[1:]), "env": variables})
    plan = InstallPlan(
        entry, tuple(values.needs), tuple(values.optional), notes if isinstance(base, str) else ()
    )
    return plan, words[0]


def _from_remote(name: str, remote: Mapping[str, Any], overrides: Mapping[str, str]) -> InstallPlan:
    kind, url = remote.get("type"), remote.get("url")
    if kind not in ("streamable-http", "streamable_http", "http"):
        raise EntryError(f"its address speaks {_shown(kind)}, and streamable HTTP is needed")
    if not isinstance(url, str) or not url.startswith("https://"):
        raise EntryError("its address does not begin with https://")
    if _SLOT.search(url):
        raise EntryError(f"its address has to be filled in by hand: %reyn mcp add NAME --url {_shown(url)}")
    values = _Values(overrides, "its header")
    headers = {}
    for each in _objects(remote, "headers"):
        header = each.get("name")
        if not isinstance(header, str):
            raise EntryError("a header has no name")
        value = values.of(header, each)
        if value is not None:
            headers[header] = value
    values.check_all_used(overrides)
    entry = read_entry(name, {"type": "http", "url": url, "headers": headers})
    return InstallPlan(entry, tuple(values.needs), tuple(values.optional))


class _Values:
    """Finds the values of a manifest's inputs, and gathers the secrets among them."""

    def __init__(self, overrides: Mapping[str, str], what: str) -> None:
        self._overrides = overrides
        self._what = what
        self._used: set[str] = set()
        self.needs: list[NeededSecret] = []
        self.optional: list[str] = []

    def of(self, name: str, declared: Mapping[str, Any]) -> str | None:
        """Return the value of an input, None where it has none and needs none. Raises EntryError."""
        template = declared.get("value")
        if isinstance(template, str) and "${" in template:
            raise EntryError(f"{_shown(name)} refers to a value of this machine")
        if isinstance(template, str) and (slots := _SLOT.findall(template)):
            inner = declared.get("variables")
            inner = inner if isinstance(inner, dict) else {}
            for slot in slots:
                wanted = inner.get(slot)
                wanted = wanted if isinstance(wanted, dict) else {"isSecret": declared.get("isSecret")}
                filled = self.of(slot, {**wanted, "isRequired": True})
                template = template.replace(f"{{{slot}}}", filled or "")
            return _checked(template, name)
        if isinstance(template, str):
            return _literal(template, name)
        if declared.get("isSecret") is True or secret_variable(name):
            return self._secret(name, declared)
        if name in self._overrides:
            self._used.add(name)
            return _literal(self._overrides[name], name)
        default = declared.get("default")
        if isinstance(default, str):
            return _literal(default, name)
        if declared.get("isRequired") is True:
            said = _description(declared) or "nothing is said of it"
            raise EntryError(f"{self._what} {_shown(name)} needs a value ({said}): give it in env_overrides")
        return None

    def check_all_used(self, overrides: Mapping[str, str]) -> None:
        """Check that each override is of an input that there is. Raises EntryError."""
        unknown = sorted(set(overrides) - self._used)
        if unknown:
            raise EntryError(f"it declares no {enumerate_words(unknown, 'or')}")

    def _secret(self, name: str, declared: Mapping[str, Any]) -> str | None:
        secret = re.sub(r"[^A-Za-z0-9_]", "_", name).upper()
        secret = secret if _VARIABLE.fullmatch(secret) else f"SECRET_{secret}"[:200]
        if declared.get("isRequired") is not True:
            self.optional.append(secret)
            return None
        self.needs.append(NeededSecret(secret, _description(declared)))
        return stored_reference(secret)


def _arguments(declared: Sequence[Mapping[str, Any]], package: str) -> tuple[str, ...]:
    """Return the arguments of a server. Raises EntryError where one has no value, or would be read as another."""
    words: list[str] = []
    for each in declared:
        value = each.get("value", each.get("default"))
        named = each.get("type") == "named"
        option = each.get("name")
        if named and (not isinstance(option, str) or not _OPTION.fullmatch(option)):
            raise EntryError(f"{_shown(option)} is no option")
        if not isinstance(value, str):
            if named and isinstance(option, str) and each.get("isRequired") is True and "format" not in each:
                words.append(option)
            elif each.get("isRequired") is True:
                hint = each.get("valueHint") or option
                raise EntryError(
                    f"it needs the argument {_shown(hint)}, which only a person gives",
                    "%reyn mcp add",
                )
            continue
        text = _literal(value, "an argument")
        if _SLOT.search(text):
            raise EntryError(f"its argument {_shown(value)} has to be filled in by hand", "%reyn mcp add")
        if text.startswith("-"):
            raise EntryError(f"its argument {_shown(value)} would be read as an option")
        words += [option, text] if named and isinstance(option, str) else [text]
    return tuple(words)


def _literal(text: str, name: str) -> str:
    if "${" in text:
        raise EntryError(f"{_shown(name)} refers to a value of this machine")
    return _checked(text, name)


def _checked(text: str, name: str) -> str:
    if not text.isprintable():
        raise EntryError(f"{_shown(name)} has characters that are not drawn")
    return text


def _objects(value: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = value.get(key)
    if found is None:
        return []
    if not isinstance(found, list) or len(found) > _MOST or not all(isinstance(each, dict) for each in found):
        raise EntryError(f'its manifest has no list as "{key}"')
    return found


def _description(declared: Mapping[str, Any]) -> str:
    said = declared.get("description")
    return shorten(" ".join(visible(said).split()), 200) if isinstance(said, str) else ""


def _shown(value: object) -> str:
    return ascii(shorten(str(value), 80))
