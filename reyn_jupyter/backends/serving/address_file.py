"""Where the sessions of a workspace that are served are written down, with their tokens, for programs of the person's.

Invariant: the file lies in the person's state folder, never in the workspace, and has mode 0600. An entry whose kernel
is gone is told from one that is there: a process is known by its number and by when it began.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.support.programs.process_identity import ProcessIdentity, process_began
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.secret import Secret
from reyn_jupyter.support.text import count, enumerate_words

FILE = "served.json"
TOKEN_NAME = "REYN_MCP_TOKEN"  # noqa: S105 - what people call it
START_LINE = "%reyn serve mcp"
OfferName = Literal["mcp", "a2a"]


class NotServedError(Exception):
    """No session can be reached; the message says which, why, and what to do."""


@dataclass(frozen=True)
class ServedAddress:
    """Where one session is served.

    Attributes:
        session: names it among those of the workspace, in 8 hexadecimal digits.
        url: its endpoint for MCP clients; what else it offers lies at the same host and port.
        token: what each request must carry.
        pid, began: its kernel's process, and when that began, in seconds since the epoch.
        at: when serving began.
        notebook: the notebook of the kernel, where it is known.
        offers: what it is served as.
    """

    session: str
    url: str
    token: Secret
    pid: int
    began: float
    at: float
    notebook: str = ""
    offers: tuple[str, ...] = ()

    @property
    def is_live(self) -> bool:
        """Return whether its kernel is still there."""
        return ProcessIdentity(self.pid, self.began).is_alive

    @property
    def label(self) -> str:
        """Return the session in words, for a line in a terminal."""
        where = f", {printable(self.notebook[:200])}" if self.notebook else ""
        return f"{self.session} (process {self.pid}{where}, since {time.strftime('%H:%M', time.localtime(self.at))})"


class AddressFile:
    """The addresses of one workspace's sessions.

    Args:
        state: the workspace's state folder.
    """

    def __init__(self, state: StateFolder) -> None:
        self._state = state
        self.path = state.path / FILE
        self.root = state.root

    def add(self, session: str, url: str, token: Secret, notebook: str, offers: Sequence[OfferName]) -> None:
        """Write down a session of this process, and leave out those whose kernel is gone. Raises StateError."""
        own = {
            "url": url,
            "token": token.reveal(),
            "pid": os.getpid(),
            "began": process_began(os.getpid()) or 0.0,
            "at": time.time(),
            "notebook": notebook,
            "offers": list(offers),
        }

        def change(before: Any) -> dict[str, Any]:
            kept = {each.session: before[each.session] for each in _addresses(before) if each.is_live}
            return {**kept, session: own}

        self._state.change(FILE, change)

    def remove(self, session: str) -> None:
        """Take a session out, if it is there. Raises StateError."""

        def change(before: Any) -> dict[str, Any]:
            return {
                each.session: before[each.session] for each in _addresses(before) if each.session != session
            }

        if self._state.stamp(FILE) != (0, 0, 0):
            self._state.change(FILE, change)

    def all(self) -> tuple[ServedAddress, ...]:
        """Return what is written down, the newest first. Raises NotServedError where the file cannot be read."""
        try:
            return _addresses(self._state.read(FILE))
        except ValueError as error:
            raise NotServedError(f"{self.path}: {error}. Run {START_LINE} in the notebook again.") from None

    def find(self, session: str | None = None, offer: OfferName | None = None) -> ServedAddress:
        """Return the session of an id, or of the beginning of one; the newest whose kernel is there when None.

        Args:
            offer: leave out what is not served as that.

        Raises:
            NotServedError: there is none, or its kernel is gone.
        """
        found = tuple(each for each in self.all() if offer is None or offer in each.offers)
        if session is not None:
            return self._named(found, session)
        live = next((each for each in found if each.is_live), None)
        if live is not None:
            return live
        if found:
            raise NotServedError(
                f"The kernel that served session {found[0].label} is gone: it was killed or it crashed. "
                f"Open the notebook and run {START_LINE} again."
            )
        raise NotServedError(
            f"No notebook of {printable(str(self.root))} is served. Run {START_LINE} in one; for another workspace, "
            "name its folder with --workspace."
        )

    def _named(self, found: tuple[ServedAddress, ...], session: str) -> ServedAddress:
        fits = [each for each in found if session and each.session.startswith(session)]
        if len(fits) == 1:
            if fits[0].is_live:
                return fits[0]
            raise NotServedError(
                f"The kernel that served session {fits[0].label} is gone. Run {START_LINE} in the notebook again."
            )
        live = [each.label for each in found if each.is_live]
        there = (
            f"There {'is' if len(live) == 1 else 'are'} {enumerate_words(live)}."
            if live
            else "None is served."
        )
        what = "more than one session" if fits else "no session"
        raise NotServedError(
            f"{printable(session[:40])!r} names {what} of {count(len(found), 'entry', 'entries')}. {there}"
        )


def _addresses(value: Any) -> tuple[ServedAddress, ...]:
    """Return the entries of the file's value that are whole, the newest first."""
    entries = value.items() if isinstance(value, Mapping) else ()
    found = [address for name, entry in entries if (address := _address(name, entry)) is not None]
    return tuple(sorted(found, key=lambda each: each.at, reverse=True))


def _address(session: str, entry: Any) -> ServedAddress | None:
    try:
        token = Secret(TOKEN_NAME, str(entry["token"]))
        pid, began, at = int(entry["pid"]), float(entry["began"]), float(entry["at"])
        notebook, offers = str(entry["notebook"]), tuple(map(str, entry["offers"]))
        return ServedAddress(session, str(entry["url"]), token, pid, began, at, notebook, offers)
    except (TypeError, KeyError, ValueError, OverflowError):
        return None
