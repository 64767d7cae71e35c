"""Search engines of the web, each by its documented interface.

Invariant: what an engine answers is a stranger's text: bounded, on one line, without markup. Sources: the search API of
SearXNG (``/search?format=json``), Tavily's ``POST /search``, Brave's ``GET /res/v1/web/search``; DuckDuckGo by the
library ddgs, which has no interface to go by and reads its pages.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode

from reyn_jupyter.backends.web.web_client import WebAnswer, WebClient, WebError, read_address
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import shorten

EngineName = Literal["searxng", "tavily", "brave", "ddgs"]
Reveal = Callable[[str], Awaitable[str]]  # from the name of a key to its value, with consent

_LARGEST = 2 << 20  # bytes of an answer
_SECONDS = 20.0
_LONGEST_TITLE, _LONGEST_SNIPPET, _LONGEST_URL = 200, 500, 2_000
_BRAVE_MOST = 20


@dataclass(frozen=True)
class SearchHit:
    """A page that an engine found."""

    title: str
    url: str
    snippet: str


@dataclass(frozen=True)
class SearchEngine:
    """An engine as it is configured.

    Attributes:
        name: which one.
        address: the base URL; of the engine's own service where the settings name none.
        key: the name of the key that it needs, None for none.
        read: asks it.
    """

    name: EngineName
    address: str
    key: str | None
    read: Callable[[WebClient, SearchEngine, str, int, Reveal], Awaitable[list[SearchHit]]]

    async def search(self, client: WebClient, query: str, most: int, reveal: Reveal) -> list[SearchHit]:
        """Return at most so many pages.

        Args:
            client: sends the request.
            query: what is looked for.
            most: pages.
            reveal: gives the key.

        Raises:
            WebError: there was no answer, or one that is none.
        """
        hits = await self.read(client, self, query, most, reveal)
        return [hit for hit in hits if hit.url][:most]


def search_engine(name: EngineName, address: str | None = None) -> SearchEngine | None:
    """Return an engine by its name, at an address of the person's; None where it needs one and has none.

    >>> search_engine("brave").address
    'https://api.search.brave.com'
    """
    service, key, read = _ENGINES[name]
    base = (address or service).rstrip("/")
    return SearchEngine(name, base, key, read) if base else None


async def _searxng(
    client: WebClient, engine: SearchEngine, query: str, most: int, reveal: Reveal
) -> list[SearchHit]:
    answer = await _ask(client, f"{engine.address}/search?{urlencode({'q': query, 'format': 'json'})}")
    if answer.status == 403:
        raise WebError(
            f"{answer.address.host} does not answer in JSON.",
            "Its settings must allow the format json (search.formats).",
            "web_wrong",
        )
    return _hits(_results(answer, "results"), "content")


async def _tavily(
    client: WebClient, engine: SearchEngine, query: str, most: int, reveal: Reveal
) -> list[SearchHit]:
    body = json.dumps({"query": query, "max_results": most, "search_depth": "basic"}).encode()
    headers = {
        "Authorization": f"Bearer {await reveal(str(engine.key))}",
        "Content-Type": "application/json",
    }
    answer = await _ask(client, f"{engine.address}/search", "POST", headers, body)
    return _hits(_results(answer, "results"), "content")


async def _brave(
    client: WebClient, engine: SearchEngine, query: str, most: int, reveal: Reveal
) -> list[SearchHit]:
    asked = urlencode({"q": query, "count": min(most, _BRAVE_MOST)})
    headers = {"X-Subscription-Token": await reveal(str(engine.key))}
    answer = await _ask(client, f"{engine.address}/res/v1/web/search?{asked}", headers=headers)
    return _hits(_results(answer, "web", "results"), "description")


async def _ddgs(
    client: WebClient, engine: SearchEngine, query: str, most: int, reveal: Reveal
) -> list[SearchHit]:
    try:
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException
    except ImportError:
        raise WebError("ddgs is not installed.", "pip install ddgs", "web_missing") from None

    def ask() -> Any:
        with DDGS(proxy=client.proxy, timeout=int(_SECONDS)) as library:
            return library.text(query, max_results=most, backend="duckduckgo")

    try:
        found = await asyncio.to_thread(ask)
    except DDGSException as error:
        raise WebError(
            f"DuckDuckGo gave no answer: {shorten(str(error), 200)}.", "Try again later.", "web_unreachable"
        ) from None
    return _hits(({**each, "url": each.get("href")} for each in found if isinstance(each, dict)), "body")


_ENGINES: Mapping[EngineName, tuple[str, str | None, Any]] = {
    "searxng": ("", None, _searxng),
    "tavily": ("https://api.tavily.com", "TAVILY_API_KEY", _tavily),
    "brave": ("https://api.search.brave.com", "BRAVE_API_KEY", _brave),
    "ddgs": ("https://html.duckduckgo.com", None, _ddgs),
}


async def _ask(
    client: WebClient,
    url: str,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> WebAnswer:
    address = read_address(url)
    sent = {"Accept": "application/json", **(headers or {})}
    return await client.send(method, address, headers=sent, content=body, most=_LARGEST, seconds=_SECONDS)


def _results(answer: WebAnswer, *path: str) -> list[Any]:
    """Return the list in an answer. Raises WebError for any other status than 200, and for another answer."""
    host = answer.address.host
    if answer.status in (401, 403):
        raise WebError(f"{host} refused the key.", "Look at the key.", "key_refused")
    if answer.status in (429, 432, 433):
        raise WebError(f"{host} takes no more searches for now.", "Try again later.", "web_limit")
    if answer.status != 200:
        raise WebError(f"{host} answered {answer.status}.", "Try again later.", "web_unreachable")
    try:
        value: Any = json.loads(answer.body)
        for name in path:
            value = value.get(name, {} if name != path[-1] else [])
        if not isinstance(value, list):
            raise TypeError
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise WebError(
            f"{host} answered with something else than results.", "Look at web.search_url.", "web_wrong"
        ) from None
    return value


def _hits(found: Iterable[Any], snippet: str) -> list[SearchHit]:
    return [
        SearchHit(
            _plain(each.get("title"), _LONGEST_TITLE),
            _address(each.get("url")),
            _plain(each.get(snippet), _LONGEST_SNIPPET),
        )
        for each in found
        if isinstance(each, dict)
    ]


def _address(url: object) -> str:
    """Return an address of the web in its one spelling; "" for anything else."""
    try:
        return read_address(url).url if isinstance(url, str) and len(url) <= _LONGEST_URL else ""
    except WebError:
        return ""


def _plain(text: object, most: int) -> str:
    """Return a text on one line, without markup and hidden characters."""
    if not isinstance(text, str):
        return ""
    if "<" in text or "&" in text:
        from lxml.html import fragment_fromstring

        text = str(fragment_fromstring(text[: 20 * most], create_parent="div").text_content())
    return shorten(printable(" ".join(text.split())), most)
