"""What a site asks of programs, by its robots.txt.

Source: RFC 9309. A file that is not there allows everything, and one that cannot be had (5xx) nothing.
"""

from __future__ import annotations

from typing import Any

from cachetools import TTLCache

from reyn_jupyter.backends.web.web_client import AGENT, WebAddress, WebClient, WebError, read_address

_DAY = 24 * 3600.0
_LARGEST = 512 << 10  # bytes that are read of it; the RFC asks for 500 KiB at least
_MOST_HOPS = 5
_MOST_SITES = 500


class Robots:
    """The robots.txt of sites, each asked for once a day.

    Args:
        client: sends the requests.
    """

    def __init__(self, client: WebClient) -> None:
        self._client = client
        self._kept: TTLCache[str, Any] = TTLCache(_MOST_SITES, _DAY)

    async def refusal(self, address: WebAddress) -> str | None:
        """Return why a page may not be asked for, a sentence; None where it may. Raises WebError."""
        if address.origin not in self._kept:
            self._kept[address.origin] = await self._read(address)
        rules = self._kept[address.origin]
        if rules is None:
            return f"{address.host} does not give its robots.txt, so nothing may be asked of it."
        if rules.can_fetch(address.url, AGENT):
            return None
        return (
            f"{address.host} asks programs not to read {address.target.decode('ascii')[:200]} (robots.txt)."
        )

    async def _read(self, address: WebAddress) -> Any:
        from protego import Protego

        at = read_address("/robots.txt", address)
        for _ in range(_MOST_HOPS):
            answer = await self._client.get(at, most=_LARGEST)
            if answer.status >= 500:
                return None
            if answer.status == 200:
                return Protego.parse(answer.body.decode("utf-8", "replace"))
            place = answer.headers.get("location", "") if 300 <= answer.status < 400 else ""
            try:
                onward = read_address(place, at) if place else None
            except WebError:
                onward = None
            if onward is None or onward.host != at.host:  # another host was not consented to
                break
            at = onward
        return Protego.parse("")
