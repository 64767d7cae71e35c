"""The SDK of a protocol, imported on first use and in a thread: it takes about a second.

Invariant: importing this module imports nothing of an SDK. Its log goes where a program sends it, and to no page.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Sequence

from reyn_jupyter.support.versions import version_of


class ProtocolSdk:
    """The SDK of one protocol.

    Args:
        protocol: its name, for people.
        package: the distribution that is installed.
        major: the version of it that is needed.
        extra: the extra of this package that brings it along.
        modules: what is imported of it, by whole names.
        loggers: the names under which it logs.
        secretive: loggers among them whose records could hold a secret: they go nowhere.
    """

    def __init__(
        self,
        protocol: str,
        package: str,
        major: str,
        extra: str,
        modules: Sequence[str],
        loggers: Sequence[str],
        secretive: Sequence[str] = (),
    ) -> None:
        self._protocol = protocol
        self._package = package
        self._major = major
        self._modules = modules
        self._loggers = loggers
        self._secretive = secretive
        self._is_loaded = False
        self.install = f"pip install 'reyn-jupyter[{extra}]'"

    def missing(self) -> str | None:
        """Return why the protocol cannot be spoken, in a sentence; None where it can."""
        found = version_of(self._package)
        if found is None:
            return f"The SDK of {self._protocol} is not installed: {self.install}."
        if found.partition(".")[0] != self._major:
            needed = f"{self._major} is needed: {self.install}"
            return f"The SDK of {self._protocol} has version {found}, and {needed}."
        return None

    async def load(self) -> None:
        """Import it, in a thread the first time."""
        if not self._is_loaded:
            await asyncio.to_thread(self._import)

    def _import(self) -> None:
        for name in (*self._loggers, *self._secretive):
            # Without a handler, Python writes its warnings onto the page below a cell.
            logging.getLogger(name).addHandler(logging.NullHandler())
        for name in self._secretive:
            logging.getLogger(name).propagate = False
        for name in self._modules:
            importlib.import_module(name)
        self._is_loaded = True
