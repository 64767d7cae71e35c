"""The SDK of a protocol, imported on first use and in a thread: it takes about a second.

Invariant: importing this module imports nothing of an SDK. Its log goes where a program sends it, and to no page.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import math
from collections.abc import Mapping, Sequence

from reyn_jupyter.support.versions import version_of


class ProtocolSdk:
    """The SDK of one protocol.

    Args:
        protocol: its name, for people.
        package: the distribution that is installed.
        oldest: major version → the oldest minor version of it that is supported.
        extra: the extra of this package that brings it along; None if the package does.
        modules: what is imported of it, by whole names.
        loggers: the names under which it logs.
        secretive: loggers among them whose records could hold a secret: they go nowhere.
        beside: another distribution that is needed.
    """

    def __init__(
        self,
        protocol: str,
        package: str,
        oldest: Mapping[int, int],
        extra: str | None,
        modules: Sequence[str],
        loggers: Sequence[str],
        secretive: Sequence[str] = (),
        beside: str | None = None,
    ) -> None:
        self._protocol = protocol
        self._package = package
        self._oldest = oldest
        self._beside = beside
        self._modules = modules
        self._loggers = loggers
        self._secretive = secretive
        self._is_loaded = False
        self.install = (
            f"pip install 'reyn-jupyter[{extra}]'" if extra else "pip install --upgrade reyn-jupyter"
        )

    def missing(self) -> str | None:
        """Return why the protocol cannot be spoken, in a sentence; None where it can."""
        for package in filter(None, (self._package, self._beside)):
            if version_of(package) is None:
                return f"The SDK of {self._protocol} is not installed ({package}): {self.install}."
        found = version_of(self._package) or ""
        major, minor = (int(each) if each.isdigit() else 0 for each in (*found.split("."), "0")[:2])
        if minor >= self._oldest.get(major, math.inf):
            return None
        needed = " or ".join(f"{major}.{minor}" for major, minor in self._oldest.items())
        return (
            f"The SDK of {self._protocol} has version {found} here, and {needed} or a later one of the same major "
            f"version is needed: {self.install}, or `pip check` to see which package holds {self._package} back."
        )

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
