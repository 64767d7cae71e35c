"""The servers of GGUF files: one process a file, for all sessions of this process, started when a model is first asked.

Invariants: a server listens on loopback alone, with a key that is made anew for each start and never leaves memory; it
ends with this process, even one that is killed, and may not use more memory than there was when it began. Nothing here
blocks an event loop: `ModelServer.started` is for a thread.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
import time
from collections import deque
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from reyn_jupyter.models.base import ModelError
from reyn_jupyter.models.local.gguf_header import MAGIC, lacks_chat_template
from reyn_jupyter.support.programs.child_process import (
    ChildEndedError,
    ChildLimits,
    ChildMessage,
    ChildProcess,
)

CONTEXT = 16_384  # tokens a slot at most; the server takes the model's own length where that is less
SLOTS = (
    1  # requests answered at a time; others wait, and find the beginning that they share with the last one
)
KEPT_PROMPTS = 512  # MiB of prompts whose state is kept for the next request that begins alike
LOADING = 600.0  # seconds that loading may take
_LEAST_MEMORY = 512 << 20  # bytes
_LOG_LINES = 400
_OUT_OF_MEMORY = re.compile(
    r"bad_alloc|out of memory|failed to allocate|unable to allocate|cannot allocate|allocation failed", re.I
)
_TOLD = re.compile(r"^[\d.]+ E ")  # how the server marks an error in its log


@dataclass(frozen=True)
class ServerAddress:
    """Where a started server is reached.

    Attributes:
        base: the address of its OpenAI protocol.
        key: what it wants to see with each request.
        start: the number of the start, from 1: another number is another process.
    """

    base: str
    key: str
    start: int


@dataclass(frozen=True)
class ServerState:
    """What `%reyn doctor` shows of a server.

    Attributes:
        pid: None where it does not run.
        address: host and port; empty while it loads.
        seconds: what the last loading took; up to now while it loads.
        log: the last lines of what it said.
    """

    file: Path
    pid: int | None
    address: str
    seconds: float
    starts: int
    log: tuple[str, ...]


class ModelServer:
    """The server of one file.

    Args:
        file: the GGUF file.
        memory: bytes of private memory that it may use; what is free now when None. The weights do not count, since
            they are mapped from the file.
        context: tokens that it takes at most.
        threads: how many it computes on; all but one of those that this process may use when None.
        chat_template: A Jinja template, or `chatml`, that is used in place of the file's own.

    Example:
        >>> server = ModelServer(Path("model.gguf"))                       # doctest: +SKIP
        >>> server.started().base                                          # doctest: +SKIP
        'http://127.0.0.1:43211/v1'
    """

    def __init__(
        self,
        file: Path,
        *,
        memory: int | None = None,
        context: int = CONTEXT,
        threads: int | None = None,
        chat_template: str = "",
    ) -> None:
        self.file = file
        self.chat_template = chat_template
        self._memory = memory
        self._context = context
        self._threads = threads or max(1, _cores() - 1)
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        self._address: ServerAddress | None = None
        self._starts = 0
        self._began = self._took = 0.0
        self._log: deque[str] = deque(maxlen=_LOG_LINES)

    @property
    def loading(self) -> str:
        """What it loads, in a few words, and for how long; empty where it loads nothing."""
        if not self._began or self._took:
            return ""
        seconds = time.monotonic() - self._began
        return f"loading {self.file.name} ({_size(self.file)}) for {seconds:.0f} s"

    @property
    def state(self) -> ServerState:
        """What it does now."""
        child, address = self._child, self._address
        return ServerState(
            self.file,
            None if child is None else child.pid,
            "" if address is None else address.base.removeprefix("http://").removesuffix("/v1"),
            time.monotonic() - self._began if self.loading else self._took,
            self._starts,
            tuple(self._log),
        )

    def is_up(self, address: ServerAddress) -> bool:
        """Return whether the process of an address runs."""
        child = self._child
        return self._address == address and child is not None and child.pid is not None

    def started(self) -> ServerAddress:
        """Start the server unless it runs, wait until it has loaded the file, and return its address.

        Raises:
            ModelError: the wheel is not installed, the file is none, or the server ended; says what it said last.
        """
        with self._lock:
            if self._address is not None and self.is_up(self._address):
                return self._address
            self._address = None
            check_file(self.file, self.chat_template)
            return self._start()

    def close(self) -> None:
        """End the process, and wait until it is gone; another request starts it again."""
        child, self._child, self._address = self._child, None, None
        if child is not None:
            child.close()

    def _start(self) -> ServerAddress:
        self.close()
        self._starts += 1
        self._began, self._took = time.monotonic(), 0.0
        self._log.clear()
        mark, key = secrets.token_hex(8), secrets.token_urlsafe(24)
        child = self._child = ChildProcess(
            "reyn_jupyter.models.local.server_child", ChildLimits(self._memory or _free_memory())
        )
        heard = _Log(self._log, mark)
        try:
            with child.turn:
                child.exchange(ChildMessage(self._options(mark, key), descriptors=(heard.writing,)), LOADING)
        except ChildEndedError as error:
            heard.let_go()
            self._took = time.monotonic() - self._began
            raise ModelError(
                "unavailable", f"The server of {self.file.name} could not start: {error}."
            ) from None
        heard.let_go()
        if not heard.ready.wait(LOADING):
            self.close()
            self._took = LOADING
            raise ModelError("timeout", f"{self.file.name} was not loaded within {LOADING:.0f} s.")
        self._took = time.monotonic() - self._began
        if heard.address is None:
            self.close()
            raise self.failure()
        self._address = ServerAddress(f"{heard.address}/v1", key, self._starts)
        return self._address

    def _options(self, mark: str, key: str) -> dict[str, object]:
        return {
            "file": str(self.file),
            "mark": mark,
            "key": key,
            "context": self._context,
            "slots": SLOTS,
            "threads": self._threads,
            "gpu_layers": 0,
            "kept_prompts": KEPT_PROMPTS,
            "chat_template": self.chat_template,
        }

    def failure(self) -> ModelError:
        """Return what the log says of the end of the server, as an error."""
        lines = tuple(self._log)
        if any(map(_OUT_OF_MEMORY.search, lines)):
            return ModelError(
                "unavailable",
                f"There is not enough memory for {self.file.name} ({_size(self.file)}).",
                "Close what needs memory, or use a smaller file, one with fewer bits a weight for instance.",
            )
        told = [_TOLD.sub("", line) for line in lines if _TOLD.match(line)]
        said = (told or [line for line in lines if line.strip()] or ["it said nothing"])[0]
        return ModelError(
            "unavailable",
            f"The server of {self.file.name} ended: {said.strip()[:300]}",
            "%reyn doctor shows all that it said.",
        )


class _Log:
    """A pipe that a server says things into: a thread keeps the last lines and sees the one that says it is ready.

    Attributes:
        ready: set when the server serves, or has ended.
        address: where it serves; None where it ended first.
    """

    def __init__(self, lines: deque[str], mark: str) -> None:
        reading, self.writing = os.pipe()
        self.ready = threading.Event()
        self.address: str | None = None
        self._lines = lines
        self._mark = mark
        threading.Thread(target=self._read, args=(reading,), name="model-server-log", daemon=True).start()

    def let_go(self) -> None:
        """Close this process's own end for writing, so that the thread sees when the server's is closed."""
        os.close(self.writing)

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, "r", encoding="utf-8", errors="replace") as pipe:
            for line in pipe:
                mark, _, said = line.rstrip("\n").partition(" ")
                if mark != self._mark:
                    self._lines += [line.rstrip("\n")[:1000]] if line.strip() else []
                elif said.startswith("serves "):
                    self.address = said.removeprefix("serves ")
                    self.ready.set()
                else:
                    self._lines.append(said[:1000])
        self.ready.set()


class ModelServers:
    """The servers of this process, by file and chat template."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: dict[tuple[Path, str], ModelServer] = {}

    def of(self, file: Path, chat_template: str = "") -> ModelServer:
        """Return the server of a file, made the first time and not started."""
        key = (file, chat_template)
        with self._lock:
            if key not in self._servers:
                self._servers[key] = ModelServer(file, chat_template=chat_template)
            return self._servers[key]

    def loading(self, file: Path) -> str:
        """Return what the servers of a file load, in a few words; empty if they load nothing."""
        loading = (each.loading for (path, _), each in list(self._servers.items()) if path == file)
        return next(filter(None, loading), "")

    @property
    def states(self) -> tuple[ServerState, ...]:
        """What each one does that was ever started."""
        return tuple(each.state for each in list(self._servers.values()) if each.state.starts)

    def close(self) -> None:
        """End them all."""
        for each in list(self._servers.values()):
            each.close()


SERVERS = ModelServers()


def check_file(file: Path, chat_template: str = "") -> None:
    """Refuse a file that no server can load, or that nobody can talk to.

    Args:
        file: The path of the file.
        chat_template: The template that is used in place of the file's own; empty if none is.

    Raises:
        ModelError: llama.cpp is not installed, the file cannot be read, or it has no chat template.
    """
    if find_spec("xllamacpp") is None:
        raise ModelError(
            "configuration",
            "A model from a file is run by llama.cpp, which is not installed.",
            "pip install 'reyn-jupyter[local-llm]'",
        )
    try:
        with file.open("rb") as content:
            beginning = content.read(len(MAGIC))
    except FileNotFoundError:
        raise ModelError("not_found", f"There is no file {file}.", "Give the path of a GGUF file.") from None
    except OSError as error:
        raise ModelError("not_found", f"{file} cannot be read: {error.strerror}.") from None
    if beginning != MAGIC:
        raise ModelError(
            "configuration",
            f"{file.name} is no GGUF file: it begins otherwise.",
            "llama.cpp reads GGUF alone; look for a file of the model that ends in .gguf.",
        )
    if not chat_template and lacks_chat_template(file):
        raise ModelError(
            "configuration",
            f"{file.name} has no chat template, so it is probably a base model, which continues text and does not "
            "answer. llama.cpp would use a template that the model was not trained with.",
            "Use an instruct or chat file of the model. If it is one, give its template in the model's entry in "
            "reyn.yaml: parameters: {chat_template: chatml}, or a Jinja template.",
        )


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _free_memory() -> int:
    import psutil  # ipykernel brings it along

    return max(_LEAST_MEMORY, int(psutil.virtual_memory().available * 0.9))


def _size(file: Path) -> str:
    return f"{file.stat().st_size / 1e6:,.0f} MB"
