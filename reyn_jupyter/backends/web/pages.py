"""A page of the web: from its address to what a result holds of it.

Invariants: every host that a redirect leads to is consented to before it is asked anything, its robots.txt included;
a page that did not change since this session read it is not sent again. What a page holds is text to be read, no more.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from cachetools import LRUCache

from reyn_jupyter.backends.web.page_text import PageTextError, PageTextReader
from reyn_jupyter.backends.web.robots import Robots
from reyn_jupyter.backends.web.text_encoding import charset_of, decode_text
from reyn_jupyter.backends.web.web_client import WebAddress, WebAnswer, WebClient, WebError, read_address

MOST_REDIRECTS = 10
_MOST_CACHED = 64 << 20  # bytes of all bodies
_TEXTS = re.compile(r"text/.+|application/(.+\+)?(json|xml|yaml|x-yaml|javascript|ecmascript|toml|x-sh|sql)")
_MEDIA = re.compile(r"(image|audio)/.+")

_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_MARKDOWN = "text/markdown"
# Reads a document by its bytes, type and path, as (Markdown, title, notes); None for what is no document.
ReadDocument = Callable[[bytes, str, str], Awaitable[tuple[str, str, tuple[str, ...]] | None]]
Admit = Callable[[WebAddress, WebAddress | None], Awaitable[None]]  # (next, the one that sent there)


@dataclass(frozen=True)
class Page:
    """What was at an address.

    Attributes:
        address: where it was in the end.
        mime: its type.
        text: as Markdown, or as it was sent where it is no page; None for an image or a sound.
        data: the bytes of an image or a sound.
        is_json: whether the text is JSON.
        notes: what is not in it, in sentences.
    """

    address: WebAddress
    mime: str
    text: str | None = None
    data: bytes = b""
    title: str = ""
    is_json: bool = False
    notes: tuple[str, ...] = ()

    @property
    def whole_text(self) -> str:
        """The text with its title and where it is from, as it is stored."""
        if self.text is None or self.is_json or self.mime != _MARKDOWN:
            return self.text or ""
        begins = self.text.lstrip().removeprefix("#").strip()
        head = [] if not self.title or begins.startswith(self.title) else [f"# {self.title}", ""]
        notes = [f"Note: {note}" for note in self.notes]
        return "\n".join([*head, f"Source: {self.address.url}", *notes, "", self.text.strip(), ""])


class PageReader:
    """Reads pages for one session.

    Args:
        client: sends the requests.
        texts: turns pages into Markdown.
        read_document: does that with PDF and office files; raises WebError.
    """

    def __init__(self, client: WebClient, texts: PageTextReader, read_document: ReadDocument) -> None:
        self._client = client
        self._texts = texts
        self._read_document = read_document
        self._robots = Robots(client)
        self._kept: LRUCache[str, WebAnswer] = LRUCache(
            _MOST_CACHED, getsizeof=lambda each: len(each.body) + 1
        )

    async def read(self, url: str, admit: Admit, *, obey_robots: bool = True) -> Page:
        """Return the page at an address.

        Args:
            url: its address.
            admit: awaited before an address is asked; raises where it may not be.
            obey_robots: whether robots.txt is asked.

        Raises:
            WebError: there is none that can be read.
        """
        address, before = read_address(url), None
        for _ in range(MOST_REDIRECTS + 1):
            await admit(address, before)
            if obey_robots and (why := await self._robots.refusal(address)) is not None:
                raise WebError(
                    why, "Ask the person to open it, or find the same elsewhere.", "robots_refused"
                )
            answer = await self._ask(address)
            onward = self._onward(answer)
            if onward is None:
                return await self._page(answer)
            address, before = onward, address
        raise WebError(
            f"{address.host} redirects more than {MOST_REDIRECTS} times.",
            "Look for another address.",
            "web_wrong",
        )

    async def _ask(self, address: WebAddress) -> WebAnswer:
        kept = self._kept.get(address.url)
        headers = {}
        if kept is not None:
            for name, condition in (("etag", "If-None-Match"), ("last-modified", "If-Modified-Since")):
                if name in kept.headers:
                    headers[condition] = kept.headers[name]
        answer = await self._client.get(address, headers=headers)
        if answer.status == 304 and kept is not None:
            return kept
        if _may_be_kept(answer):
            self._kept[address.url] = answer
        return answer

    @staticmethod
    def _onward(answer: WebAnswer) -> WebAddress | None:
        """Return where an answer sends on to. Raises WebError for an answer that is an error."""
        host, status = answer.address.host, answer.status
        if status in (301, 302, 303, 307, 308) and answer.headers.get("location"):
            return read_address(answer.headers["location"], answer.address)
        if status != 200:
            words = (
                HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "an unknown answer"
            )
            hint = "Look at the address again." if 400 <= status < 500 else "Try again later."
            raise WebError(f"{host} answered {status} ({words}).", hint, f"http_{status}")
        return None

    async def _page(self, answer: WebAnswer) -> Page:
        said = answer.content_type.partition(";")[0].strip().lower()
        notes = () if answer.is_whole else (f"Only the first {len(answer.body) >> 20} MiB were read.",)
        name = answer.address.target.decode("ascii").partition("?")[0]
        if said in _PAGES or (not said and answer.body[:512].lstrip().lower().startswith(b"<!doctype html")):
            return await self._html(answer, notes)
        if (document := await self._read_document(answer.body, said, name)) is not None:
            self._refuse_cut(answer)
            text, title, more = document
            return Page(answer.address, _MARKDOWN, text, b"", title, notes=(*notes, *more))
        if _MEDIA.fullmatch(said):
            self._refuse_cut(answer)
            return Page(answer.address, said, None, answer.body, name.rpartition("/")[2])
        if _TEXTS.fullmatch(said) or (not said and b"\0" not in answer.body[:4096]):
            text = decode_text(answer.body, charset_of(answer.content_type))
            is_json = said.endswith("json")
            return Page(answer.address, said or "text/plain", text, is_json=is_json, notes=notes)
        raise WebError(
            f"{answer.address.url} is {said or 'of no known type'}, {len(answer.body):,} bytes.",
            "Pages, texts, PDF and office documents, images and sounds can be read.",
            "type_unread",
        )

    async def _html(self, answer: WebAnswer, notes: Sequence[str]) -> Page:
        try:
            found = await self._texts.read(
                answer.body, url=answer.address.url, charset=charset_of(answer.content_type)
            )
        except PageTextError as error:
            raise WebError(str(error), "Go on without it.", error.code) from None
        notes = (*notes, *filter(None, (found.note,)))
        return Page(answer.address, _MARKDOWN, found.text, b"", found.title, notes=notes)

    @staticmethod
    def _refuse_cut(answer: WebAnswer) -> None:
        if not answer.is_whole:
            raise WebError(
                f"{answer.address.url} is larger than {len(answer.body) >> 20} MiB.", "Go on without it.",
                "document_too_large",
            )  # fmt: skip


def _may_be_kept(answer: WebAnswer) -> bool:
    """Return whether an answer is worth keeping: whole, not too large, and one that can be asked about later."""
    if answer.status != 200 or not answer.is_whole or len(answer.body) > _MOST_CACHED // 4:
        return False
    may_be = "no-store" not in answer.headers.get("cache-control", "").lower()
    return may_be and bool({"etag", "last-modified"} & answer.headers.keys())
