"""A client of an MCP registry: search, and the newest version of one server.

Invariants: a request takes a bounded time and an answer a bounded size; no redirect is followed; an answer is kept for
a day, and an older one is used only where the registry cannot be reached, with its age said. What a registry says is a
stranger's text: here it is checked for its shape, in `manifest` for what may become of it.

Source: the Generic Registry API, v0.1 (``GET /v0.1/servers``, ``GET /v0.1/servers/{name}/versions/latest``).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from reyn_jupyter.backends.mcp_servers.server_entry import EntryError
from reyn_jupyter.support.files.plain_files import PlainFolder, is_moment, parse_json
from reyn_jupyter.support.network.hosts import HostError, read_host
from reyn_jupyter.support.sanitize import visible
from reyn_jupyter.support.text import shorten

DAY = 24 * 3600.0  # seconds for which an answer is used without asking again
SECONDS = 15.0  # for one request, from the name's look-up to the last byte
LARGEST = 2 << 20  # bytes of an answer
MOST_FOUND = 20
MOST_KEPT = 200  # answers
LONGEST_TEXT = 300  # characters of a search, and of a description
_SERVER_ID = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
)
_LONGEST_ID = 200
_UNREACHABLE = "It works again once the registry can be reached; mcp.registry is its address in the settings."


class RegistryError(Exception):
    """A registry that gave no answer that can be used.

    Args:
        message: what happened, a sentence.
        hint: what to do next.
        code: "registry_offline", "registry_refused", "registry_wrong" or "not_in_registry".
    """

    def __init__(self, message: str, hint: str, code: str) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code


@dataclass(frozen=True)
class RegistryAnswer:
    """What a registry said.

    Attributes:
        value: its JSON.
        at: when it said so, in seconds since the epoch.
        why_old: why an answer of more than a day was used; None for any other.
    """

    value: Any
    at: float
    why_old: str | None = None


class Registry:
    """A registry at an address.

    Args:
        address: its base URL, such as ``https://registry.example.org``; https, or http on this machine.
        folder: where answers are kept; None keeps none.
        clock: gives the seconds since the epoch.

    Raises:
        EntryError: the address is none.
    """

    def __init__(
        self, address: str, folder: Path | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.address = address.rstrip("/")
        self._on_this_machine = _check_address(self.address)
        self._folder = folder
        self._clock = clock

    async def search(self, text: str, limit: int = MOST_FOUND) -> tuple[list[dict[str, Any]], RegistryAnswer]:
        """Return the newest versions of servers whose names have a text, as manifests, and the answer.

        Raises:
            RegistryError.
        """
        query = urlencode({"search": shorten(text, LONGEST_TEXT), "limit": limit, "version": "latest"})
        answer = await self._get(f"/v0.1/servers?{query}", self._check_list)
        found = answer.value["servers"]
        servers = [
            each["server"] for each in found if isinstance(each, dict) and _is_manifest(each.get("server"))
        ]
        return servers[:limit], answer

    async def latest(self, server_id: str) -> tuple[dict[str, Any], RegistryAnswer]:
        """Return the manifest of the newest version of a server, and the answer.

        Raises:
            EntryError: that is no name of a server. RegistryError.
        """
        check_server_id(server_id)

        def check(value: Any) -> None:
            server = value.get("server") if isinstance(value, dict) else None
            if not isinstance(server, dict) or not _is_manifest(server):
                raise self._wrong("its answer describes no server")
            if server["name"] != server_id:
                raise self._wrong(f"it answered with {_shown(server['name'])} in place of {server_id}")

        answer = await self._get(f"/v0.1/servers/{quote(server_id, safe='')}/versions/latest", check)
        manifest: dict[str, Any] = answer.value["server"]
        return manifest, answer

    def _check_list(self, value: Any) -> None:
        if not isinstance(value, dict) or not isinstance(value.get("servers"), list):
            raise self._wrong("its answer has no list of servers")

    async def _get(self, path: str, check: Callable[[Any], None]) -> RegistryAnswer:
        """Return what the registry says at a path; what `check` refuses is not kept. Raises RegistryError."""
        kept = await asyncio.to_thread(self._kept, path, check)
        if kept is not None and 0 <= self._clock() - kept.at < DAY:
            return kept
        try:
            value = await self._ask(path)
            check(value)
        except RegistryError as error:
            if kept is None or error.code == "not_in_registry":
                raise
            return RegistryAnswer(kept.value, kept.at, str(error))
        answer = RegistryAnswer(value, self._clock())
        await asyncio.to_thread(self._keep, path, answer)
        return answer

    async def _ask(self, path: str) -> Any:
        """Return the JSON at a path. Raises RegistryError."""
        import httpx

        try:
            # A proxy of the environment is for others than this machine.
            async with (
                asyncio.timeout(SECONDS),
                httpx.AsyncClient(timeout=SECONDS, trust_env=not self._on_this_machine) as client,
                client.stream("GET", self.address + path, headers={"Accept": "application/json"}) as response,
            ):
                self._check_status(response.status_code)
                content = b""
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > LARGEST:
                        raise self._wrong(f"its answer is larger than {LARGEST >> 20} MiB")
        except TimeoutError:
            raise self._offline(f"it gave no answer within {SECONDS:.0f} seconds") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            raise self._offline(type(error).__name__) from None
        try:
            return parse_json(content)
        except ValueError:
            raise self._wrong("its answer is no JSON") from None

    def _check_status(self, status: int) -> None:
        if status == 404:
            raise RegistryError(
                f"{self._host} has no such server.",
                "Search for it: mcp__search_registry gives the ids that there are.",
                "not_in_registry",
            )
        if 300 <= status < 400:
            raise self._wrong("it sends the request elsewhere, which is not followed")
        if status == 429 or status >= 500:
            raise self._offline(f"it answered {status}")
        if status != 200:
            raise RegistryError(f"{self._host} answered {status}.", _UNREACHABLE, "registry_refused")

    @property
    def _host(self) -> str:
        return str(read_host(self.address))

    def _offline(self, why: str) -> RegistryError:
        return RegistryError(
            f"The registry {self._host} cannot be reached: {why}.", _UNREACHABLE, "registry_offline"
        )

    def _wrong(self, why: str) -> RegistryError:
        return RegistryError(
            f"The registry {self._host} cannot be used: {why}.", _UNREACHABLE, "registry_wrong"
        )

    # Answers that are kept: a file each, named by the hash of what was asked.

    def _file(self, path: str) -> str:
        return hashlib.sha256(f"{self.address}{path}".encode()).hexdigest()[:32] + ".json"

    def _kept(self, path: str, check: Callable[[Any], None]) -> RegistryAnswer | None:
        if self._folder is None or not self._folder.is_dir():
            return None
        with suppress(OSError, ValueError, KeyError, TypeError, RegistryError):
            kept = parse_json(PlainFolder(self._folder).read(self._file(path), 2 * LARGEST))
            if is_moment(kept["at"]):
                check(kept["value"])
                return RegistryAnswer(kept["value"], kept["at"])
        return None

    def _keep(self, path: str, answer: RegistryAnswer) -> None:
        if self._folder is None:
            return
        with suppress(OSError):  # an answer that is not kept is asked for again
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = PlainFolder(self._folder)
            folder.replace(self._file(path), json.dumps({"at": answer.at, "value": answer.value}).encode())
            names = [name for name in folder.entries()[0] if name.endswith(".json")]
            if len(names) > MOST_KEPT:
                oldest = sorted(names, key=lambda name: (self._folder / name).stat().st_mtime)  # type: ignore[operator]
                for name in oldest[: len(names) - MOST_KEPT]:
                    folder.remove(name)


def check_server_id(server_id: str) -> None:
    """Check that a text is a name of a server in a registry. Raises EntryError."""
    if len(server_id) > _LONGEST_ID or not _SERVER_ID.fullmatch(server_id):
        raise EntryError(
            f"{_shown(server_id)!a} is no id of a server in a registry; write it as io.github.owner/name, as a search "
            "gives it"
        )


def describe(manifest: Mapping[str, Any]) -> str:
    """Return what a server says of itself, on one bounded line."""
    said = manifest.get("description")
    return shorten(" ".join(visible(said).split()), LONGEST_TEXT) if isinstance(said, str) else ""


def _check_address(address: str) -> bool:
    """Return whether an address is on this machine. Raises EntryError where it is none."""
    try:
        host = read_host(address).name
    except HostError as error:
        raise EntryError(f"mcp.registry is no address: {error}") from None
    here = host in ("127.0.0.1", "::1", "localhost")
    if not re.fullmatch(r"https://[^?#@\s]+" if not here else r"https?://[^?#@\s]+", address):
        raise EntryError("mcp.registry must be an address that begins with https://")
    return here


def _is_manifest(value: object) -> bool:
    name = value.get("name") if isinstance(value, dict) else None
    return isinstance(name, str) and len(name) <= _LONGEST_ID and _SERVER_ID.fullmatch(name) is not None


def _shown(text: str) -> str:
    return visible(shorten(text, 80))
