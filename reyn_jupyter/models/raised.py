"""What an exception of a provider's client carries: its causes, words, status, code and headers.

Invariant: exceptions are read by their attributes alone, so that neither LiteLLM nor an HTTP library is imported here;
what is read is foreign text, and nothing of it is fit to be shown before `failures.clean`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LONGEST_CHAIN = 12


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what caused it, nearest first."""
    for _ in range(_LONGEST_CHAIN):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def retry_after(headers: Mapping[str, str] | None) -> float | None:
    """Seconds that a provider asks to wait: ``Retry-After`` (seconds or an HTTP date) or ``Retry-After-Ms``.

    None when there is no such header, or none that can be read. Source: RFC 9110, section 10.2.3.
    """
    if headers is None:
        return None
    given = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(given.get(name, "")) * scale
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        moment = parsedate_to_datetime(given["retry-after"])
    except (KeyError, ValueError):
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def said_by(error: BaseException) -> str:
    """The provider's own words, without the names of the classes that carried them."""
    text = str(getattr(error, "message", "") or error)
    original = getattr(error, "original_exception", None)
    if isinstance(original, BaseException):
        text = str(getattr(original, "message", "") or original)
    return re.sub(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout): |\w+Exception - )+", "", text)


def status_of(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def code_of(error: BaseException) -> str:
    """The provider's own name for the failure, which its clients show only in the text of the HTTP error."""
    found = (re.search(r"'code': '(\w+)'", str(link)[:10_000]) for link in chain(error))
    return next((match.group(1) for match in found if match is not None), "")


def headers_of(error: BaseException) -> Mapping[str, str] | None:
    """The headers of the provider's HTTP answer, None when there was none."""
    for link in chain(error):
        for holder in (link, getattr(link, "response", None)):
            headers: Any = getattr(holder, "litellm_response_headers", None) or getattr(
                holder, "headers", None
            )
            if headers:
                return dict(headers)
    return None
