"""Pages and texts of the web, and search engines.

Invariants: a call asks about each host before anything is sent to it, those of redirects too; addresses inside a
network are refused, whatever was consented to, unless the settings name the host. What comes back is marked as a
stranger's text.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import PurePosixPath

from reyn_jupyter.backends.web.page_text import PageTextReader, handed_over
from reyn_jupyter.backends.web.pages import Page, PageReader
from reyn_jupyter.backends.web.search_engines import SearchEngine, search_engine
from reyn_jupyter.backends.web.web_client import WebAddress, WebClient, WebError, read_address
from reyn_jupyter.catalog.action import Arguments, Category, Effect, EffectKind, Operation, Purity, Tool
from reyn_jupyter.catalog.call_limits import CallLimits
from reyn_jupyter.config.settings import Web
from reyn_jupyter.corpora.document import UnreadableError, as_markdown
from reyn_jupyter.corpora.packed_documents import KINDS, read_packed
from reyn_jupyter.corpora.text_readers import markdown_headings
from reyn_jupyter.outputs.content import Inline, Stored, Structured, Text
from reyn_jupyter.outputs.parts.content_parts import ContentPart, ContentParts
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.services import Services, ToolContext
from reyn_jupyter.support.optional_modules import is_importable
from reyn_jupyter.support.text import count, shorten

CALL_SECONDS = 180.0
MOST_RESULTS = 20
_OPEN_XML = "application/vnd.openxmlformats-officedocument."
_OFFICE = {
    f"{_OPEN_XML}wordprocessingml.document": "word",
    f"{_OPEN_XML}presentationml.presentation": "slides",
    f"{_OPEN_XML}spreadsheetml.sheet": "sheet",
}
_EXTRA = "pip install 'reyn-jupyter[web]'"
_NEEDED = ("httpcore", "lxml", "protego", "trafilatura", "webencodings")
_SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "maxLength": 400, "description": "What is looked for."},
        "max_results": {"type": "integer", "minimum": 1, "maximum": MOST_RESULTS, "default": 5},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_FETCH = {
    "type": "object",
    "properties": {
        "url": {"type": "string", "description": "Address of a page: https://example.org/page."},
        "max_length": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1_000_000,
            "description": "Give so many characters of the page and no more. Without it the whole page is stored, "
            "to be looked into in parts.",
        },
        "start_index": {
            "type": "integer",
            "minimum": 0,
            "default": 0,
            "description": "Begin at this character, counted from 0.",
        },
    },
    "required": ["url"],
    "additionalProperties": False,
}


def categories(services: Services) -> tuple[Category, ...]:
    """The category `web`."""
    web = _Web(services)
    return (
        Category(
            "web",
            "Search the web, and read pages, PDF files and other documents of it as Markdown.",
            operations=(
                Operation(
                    "search",
                    "Search the web; returns titles, addresses and snippets of pages.",
                    _SEARCH,
                    Tool("search_web", web.search, Purity.NETWORK, web.asks_engine, untrusted_output=True),
                ),
                Operation(
                    "fetch",
                    "Read a page of the web, a PDF or another document as Markdown, or an image. A long page is "
                    "stored with the outline of its headings.",
                    _FETCH,
                    Tool("fetch_web_page", web.fetch, Purity.NETWORK, _asks_host, untrusted_output=True),
                ),
            ),
            limits=CallLimits(seconds=CALL_SECONDS),
            hidden=_missing,
            close=web.close,
        ),
    )


def _missing() -> str | None:
    missing = [name for name in _NEEDED if not is_importable(name)]
    return f"What reads pages is not installed ({', '.join(missing)}): {_EXTRA}." if missing else None


def _asks_host(args: Arguments, context: ToolContext) -> Sequence[Effect]:
    return (Effect.network(_address(args["url"]).url),)


def _address(url: str) -> WebAddress:
    try:
        return read_address(url)
    except WebError as error:
        raise _failure(error) from error


def _failure(error: WebError) -> ActionError:
    return ActionError(str(error), error.hint, code=error.code)


class _Web:
    """One session's connections, which are made anew when the settings about them change."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._texts = PageTextReader(services.children)
        self._settings: Web | None = None
        self._client = WebClient()
        self._pages = PageReader(self._client, self._texts, self._read_document)

    async def _current(self) -> Web:
        settings = self._services.settings().web
        if settings != self._settings:
            await self._client.close()
            self._client = WebClient(settings.private_hosts, settings.proxy)
            self._pages = PageReader(self._client, self._texts, self._read_document)
            self._settings = settings
        return settings

    async def _read_document(
        self, data: bytes, mime: str, name: str
    ) -> tuple[str, str, tuple[str, ...]] | None:
        kind = _document_kind(data, mime, name)
        return None if kind is None else await asyncio.to_thread(self._document, data, kind)

    def _document(self, data: bytes, kind: str) -> tuple[str, str, tuple[str, ...]]:
        try:
            with handed_over(data) as file:
                document = read_packed(kind, file, self._services.children)
        except UnreadableError as error:
            raise WebError(f"The document {error}.", "Go on without it.", "document_unreadable") from None
        title, note = str(document.facts.get("title", "")), document.note
        return as_markdown(document), title, (f"{note[:1].upper()}{note[1:]}.",) if note else ()

    async def close(self) -> None:
        """End the connections."""
        await self._client.close()

    async def fetch(self, args: Arguments, context: ToolContext) -> object:
        settings = await self._current()
        consented = {_address(args["url"]).host}

        async def admit(address: WebAddress, before: WebAddress | None) -> None:
            context.came_from(address.url)
            if address.host not in consented:
                reason = f"{before.host if before else 'The page'} sends the request on there"
                await context.ask(Effect.network(address.url), reason=reason)
                consented.add(address.host)
            context.report(f"reading {address.host}")

        try:
            page = await self._pages.read(args["url"], admit, obey_robots=settings.robots)
        except WebError as error:
            raise _failure(error) from error
        bound = context.services.settings().outputs.inline_bytes
        return await asyncio.to_thread(_result, page, args, bound)  # a page may have megabytes of headings

    def asks_engine(self, args: Arguments, context: ToolContext) -> Sequence[Effect]:
        engine = self._engine()
        effects = [Effect.network(engine.address)]
        return [*effects, Effect(EffectKind.SECRET, engine.key)] if engine.key else effects

    def _engine(self) -> SearchEngine:
        settings = self._services.settings().web
        engine = search_engine(settings.search, settings.search_url) if settings.search else None
        if engine is None:
            raise ActionError(
                "No search engine is configured."
                if settings.search is None
                else f"The address of {settings.search} is not configured.",
                "The person can set one: %reyn config web.search brave, or tavily, or ddgs, or searxng with "
                "web.search_url. Pages whose address is known can be fetched without one.",
                code="search_not_configured",
            )
        return engine

    async def search(self, args: Arguments, context: ToolContext) -> list[dict[str, str]]:
        engine = self._engine()
        await self._current()
        context.came_from(f"{engine.name} at {Effect.network(engine.address).target}")

        async def reveal(name: str) -> str:
            return (await context.services.secrets.get(name)).reveal()

        try:
            hits = await engine.search(self._client, args["query"], args.get("max_results", 5), reveal)
        except WebError as error:
            raise _failure(error) from error
        return [{"title": hit.title, "url": hit.url, "snippet": hit.snippet} for hit in hits]


def _result(page: Page, args: Arguments, inline_bytes: int) -> object:
    if page.text is None:
        return ContentParts((ContentPart(page.mime, data=page.data, uri=page.address.url, name=page.title),))
    text, start, most = page.whole_text, args.get("start_index", 0), args.get("max_length")
    if most is not None or start:
        return Text(_slice(text, start, most))
    if page.is_json:
        return _json(text)
    if len(text.encode("utf-8", "replace")) <= inline_bytes:
        return Inline(text)
    short = _summary(page, text)
    return Text(text) if short is None else Stored(short, Text(text))


def _summary(page: Page, text: str) -> str | None:
    """Return the summary of a long page: what it is, where from, and its headings; None where it has none."""
    found = markdown_headings(text)
    if len(found) < 2:
        return None
    title = shorten(page.title or found[0][2], 80)
    parts = [
        f"text | {count(text.count(chr(10)) + 1, 'line')} | {title}",
        shorten(page.address.url, 100),
        "── outline (line: heading) ──",
        *(f"{line + 1}: {'#' * level} {shorten(heading, 60)}" for line, level, heading in found),
    ]
    return "\n".join(parts)


def _json(text: str) -> object:
    try:
        return Structured(json.loads(text), source=text)
    except (ValueError, RecursionError):
        return Text(text)


def _document_kind(data: bytes, mime: str, name: str) -> str | None:
    """Return which kind of document something is, by its first bytes and then by its type or name; None for none."""
    if data[:1024].lstrip().startswith(b"%PDF-"):
        return "pdf"
    if not data.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        return None
    kind = _OFFICE.get(mime) or KINDS.get(PurePosixPath(name).suffix.lower())
    return kind if kind != "html" else None


def _slice(text: str, start: int, most: int | None) -> str:
    """Return some characters of a text, and where the rest is."""
    if start >= len(text):
        return f"[start_index {start:,} is past the end: the page has {len(text):,} characters]"
    stop = len(text) if most is None else min(len(text), start + most)
    left = f"\n[{len(text) - stop:,} characters are left: start_index={stop}]" if stop < len(text) else ""
    return text[start:stop] + left
