"""The other end of the driver: its process, and its answers over HTTP.

Invariant: the key goes to the driver alone, and no further than the request that needs it.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from reyn_jupyter.extending import ActionError, OwnedProgram, OwnedPrograms, Secret

SECONDS = 20  # that an answer may take; an exposure and the news take as long as they take
PROGRAM = Path(__file__).with_name("driver.py")


@dataclass(frozen=True)
class Instrument:
    """An instrument as the driver lists it: `moves` says whether it needs the key."""

    name: str
    description: str
    moves: bool
    input_schema: dict[str, Any]


@dataclass(frozen=True)
class Frame:
    """What an observation has so far: `number` of `total` frames, their header and, from a camera, their picture."""

    number: int
    total: int
    header: dict[str, Any]
    png: bytes | None


class Driver:
    """The driver of one session. `end` may be awaited at any moment, also when `start` failed."""

    def __init__(self, programs: OwnedPrograms) -> None:
        self._programs = programs
        self._program: OwnedProgram | None = None
        # The driver is on this machine: a proxy of the environment is for others.
        self._http = httpx.AsyncClient(timeout=SECONDS, trust_env=False)
        self.url = ""

    async def start(self, site: str) -> None:
        self._program = await self._programs.start([sys.executable, "-I", str(PROGRAM), site])
        process = self._program.process
        assert process.stdout is not None and process.stderr is not None
        port = (await process.stdout.readline()).decode().strip()
        if not port:
            raise ActionError(f"The driver ended: {(await process.stderr.read()).decode()[-500:]}")
        self.url = f"http://127.0.0.1:{port}"

    async def end(self) -> None:
        await self._http.aclose()
        if self._program is not None:
            await self._program.end()

    async def instruments(self) -> list[Instrument]:
        return [Instrument(**each) for each in (await self.get(f"{self.url}/instruments")).json()]

    async def news(self) -> AsyncIterator[dict[str, Any]]:
        """Yield a line whenever the instruments change, until the driver ends."""
        async for line in self._lines("GET", "/news"):
            yield line

    async def observe(self, name: str, arguments: dict[str, Any], key: Secret | None) -> AsyncIterator[Frame]:
        headers = {} if key is None else {"Authorization": f"Bearer {key.reveal()}"}
        async for line in self._lines("POST", f"/observe/{name}", json=arguments, headers=headers):
            png = base64.b64decode(line["png"]) if "png" in line else None
            yield Frame(line["number"], line["total"], line["header"], png)

    async def get(self, url: str) -> httpx.Response:
        """Return the answer of any host; a redirect is not followed. Raises ActionError."""
        try:
            answer = await self._http.get(url)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _no_answer(error) from None
        return _checked(answer)

    async def _lines(self, method: str, path: str, **request: Any) -> AsyncIterator[dict[str, Any]]:
        patient = httpx.Timeout(SECONDS, read=None)
        try:
            async with self._http.stream(method, self.url + path, timeout=patient, **request) as answer:
                _checked(answer)
                async for line in answer.aiter_lines():
                    yield json.loads(line)
        except httpx.HTTPError as error:
            raise _no_answer(error) from None


def _checked(answer: httpx.Response) -> httpx.Response:
    """Return an answer that is one. The words name the host, never the request's headers."""
    host = answer.request.url.host
    if answer.status_code == 401:
        raise ActionError(f"{host} refused the key.", "Ask the observatory for another.", code="key_refused")
    if answer.status_code == 404:
        raise ActionError(f"{host} has no such thing.", "Look at the name again.", code="not_there")
    if answer.is_error:
        raise ActionError(f"{host} answered {answer.status_code}.", "Try again later.", code="upstream")
    return answer


def _no_answer(error: Exception) -> ActionError:
    return ActionError(f"There is no answer: {type(error).__name__}.", "Try again later.", code="upstream")
