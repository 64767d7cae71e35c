"""A view's side of the line to the kernel, for tests of blobs: store something real, ask about it."""

from __future__ import annotations

import asyncio
import json
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from reyn_jupyter.notebook.serving.connection import Connection
from reyn_jupyter.notebook.serving.hub import Hub
from reyn_jupyter.notebook.serving.protocol import PROTOCOL
from reyn_jupyter.outputs.content import FileContent, Structured, Text
from reyn_jupyter.sessions.session import Session

if TYPE_CHECKING:
    from pathlib import Path


class Refused(Exception):  # noqa: N818 - it reads as what happened
    """The kernel answered with an error."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(f"{answer['message']} | {answer['hint']}")


class Viewer:
    """Asks as a view does, over a connection of its own.

    Attributes:
        progress: what was told while requests were under way.
    """

    def __init__(self, root: Path, store: str = "files") -> None:
        self.root = root
        self.session = Session(root, store=store)
        self.store: Any = self.session.parts.services.blobs
        self.progress: list[dict[str, Any]] = []
        self.answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.hub = Hub(lambda: self.session)
        self.connection = Connection(self.hub, self.answers.put, None)
        self._number = 0
        self.ask("hello", protocol=PROTOCOL, host="widget")

    def ask(self, op: str, **args: Any) -> dict[str, Any]:
        number = self.send(op, **args)
        while True:
            answer = self.answers.get(timeout=120)
            if answer["type"] == "progress":
                self.progress.append(answer)
            elif answer["id"] == number:
                if answer["type"] == "error":
                    raise Refused(answer)
                return dict(answer["value"])

    def send(self, op: str, **args: Any) -> int:
        self._number += 1
        self.connection.receive({"type": "request", "id": self._number, "op": op, "args": args})
        return self._number

    def keep(self, value: Any, **origin: Any) -> str:
        """Store a JSON value as an action's result is."""
        return str(self.store.put(Structured(value), **origin).id)

    def keep_text(self, text: str) -> str:
        return str(self.store.put(Text(text)).id)

    def keep_raw(self, data: bytes) -> str:
        return str(asyncio.run(self.store.store_bytes(data)))

    def keep_json(self, text: str) -> str:
        """Store a JSON file just as it is written."""
        path = self.root / "handed-over.json"
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        return str(self.store.put(FileContent(path, kind="json")).id)

    def close(self) -> None:
        self.connection.close()


def children(viewer: Viewer, blob: str, **args: Any) -> list[dict[str, Any]]:
    """All children of one value, page after page."""
    found: list[dict[str, Any]] = []
    while True:
        page = viewer.ask("tree.children", blob=blob, offset=len(found), limit=200, **args)
        found += page["children"]
        if len(found) >= page["total"]:
            return found


def dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
