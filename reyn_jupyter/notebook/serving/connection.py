"""The line of one view or panel to the kernel: it takes messages, runs operations on the engine, and answers.

Invariants: each request is answered once or was cancelled; a message that makes no sense is answered with what is
wrong, never raised into the kernel; everything is sent in order, from the loop of the thread that the channel was last
heard on, so that an answer goes back the way its request came. A comm that is closed leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import platform
import threading
import time
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from reyn_jupyter.notebook.render.value_text import Look
from reyn_jupyter.notebook.serving.answer_key import AnswerKey
from reyn_jupyter.notebook.serving.hub import DRAWING, Hub, kernel_hub, shows_questions
from reyn_jupyter.notebook.serving.operation import OperationContext, OperationError, WireMessage, operations
from reyn_jupyter.notebook.serving.protocol import (
    PROTOCOL,
    Cancel,
    CellProposed,
    CellWithdrawn,
    Hello,
    SentCells,
    ViewAnswer,
    ViewEvent,
    ViewFailure,
    ViewProgress,
    ViewRequest,
    Welcome,
)
from reyn_jupyter.runtime.access.live_notebook import (
    LIVE_NOTEBOOK,
    MOST_CELLS,
    MOST_OUTPUTS,
    CellOutput,
    NotebookCell,
    NotebookCells,
    ProposedCell,
)
from reyn_jupyter.runtime.engine import running_loop
from reyn_jupyter.runtime.pump import Job
from reyn_jupyter.sessions.assembly import ENGINE
from reyn_jupyter.sessions.current import SESSION_ID
from reyn_jupyter.support.secrets import environment_redaction

ALIVE_SECONDS = (
    150.0  # for which a page with open questions is there once it was heard; it says hello each 30 s
)
MOST = 64  # requests of one connection under way
_SAID = 1000  # characters of what went wrong
_INCOMING: TypeAdapter[ViewRequest | Cancel | SentCells] = TypeAdapter(
    Annotated[ViewRequest | Cancel | SentCells, Field(discriminator="type")]
)
_log = logging.getLogger(__name__)


class Connection:
    """The kernel's end of one channel.

    Args:
        hub: what all connections share.
        put: puts a JSON-able message on the channel; called on `home`.
        home: the loop of the thread that owns the channel; None calls `put` from wherever an answer is ready.
        answer_key: the key of an earlier connection over this channel; None makes a new one.
        client: the front end's own name for itself in the messages of the kernel.
        hears_in_cell: its messages arrive while a cell runs.
    """

    def __init__(
        self,
        hub: Hub,
        put: Callable[[dict[str, Any]], None],
        home: asyncio.AbstractEventLoop | None,
        answer_key: AnswerKey | None = None,
        client: str = "",
        hears_in_cell: bool = False,
    ) -> None:
        self._hub = hub
        self._put = put
        self._home = home
        # A kernel knows from the context to whom a message answers, and over which of its threads.
        self._context: contextvars.Context | None = None
        self._jobs: dict[int, Job[None]] = {}
        self._starting = threading.Lock()  # an operation may be over before its job is noted
        self._closed = False
        self.hello: Hello | None = None
        self.answer_key = answer_key or AnswerKey()
        self.client = client
        self.hears_in_cell = hears_in_cell
        self._heard_at = time.monotonic()

    def receive(self, raw: object) -> None:
        """Take one message from the channel; never raises."""
        if self._closed:
            return
        self._heard_at = time.monotonic()
        if self._home is not None:
            self._home = running_loop() or self._home
            self._context = contextvars.copy_context()
        try:
            message = _INCOMING.validate_python(raw)
        except (ValidationError, RecursionError) as error:
            self._refuse(raw, error)
            return
        if isinstance(message, Cancel):
            job = self._jobs.pop(message.id, None)
            if job is not None:
                job.cancel()
        elif isinstance(message, SentCells):
            self._take_cells(message)
        elif message.op == "hello":
            self._greet(message)
        elif message.id in self._jobs or len(self._jobs) >= MOST:
            why = "its number is in use" if message.id in self._jobs else f"{MOST} others are under way"
            self.send(ViewFailure(id=message.id, code="invalid", message=f"the request was not taken: {why}"))
        else:
            self._begin(message)

    @property
    def is_alive(self) -> bool:
        """True unless it is a page that has not said for a while that it is there: one that crashed says no goodbye."""
        return not self.hears_in_cell or time.monotonic() - self._heard_at < ALIVE_SECONDS

    @property
    def idle(self) -> bool:
        """True while no request over it is under way."""
        return not self._jobs

    def close(self) -> None:
        """Stop what the channel asked for: it is gone."""
        self._closed = True
        for job in list(self._jobs.values()):
            job.cancel()
        self._jobs.clear()
        self._hub.leave(self)
        LIVE_NOTEBOOK.forget(self)

    def propose(self, cell: ProposedCell) -> None:
        """See `NotebookChannel.propose`."""
        event = CellProposed(cell=cell.id, kind=cell.kind, source=cell.source, below=cell.below, run=cell.run)
        self.send(ViewEvent(event=event))

    def withdraw(self, cell: str, source: str) -> None:
        """See `NotebookChannel.withdraw`."""
        self.send(ViewEvent(event=CellWithdrawn(cell=cell, source=source)))

    def send(self, message: WireMessage) -> None:
        """Put a message on the channel, from any thread. A channel that is broken is closed."""
        content = message.model_dump(mode="json")
        home = self._home
        if home is not None and home.is_closed():
            home = self._home = self._hub.home
        if home is None:
            self._deliver(content)
            return
        context = self._context.copy() if self._context is not None else None
        try:
            home.call_soon_threadsafe(self._deliver, content, context=context)
        except RuntimeError:  # closed just now: nobody listens any more
            self.close()

    def _deliver(self, content: dict[str, Any]) -> None:
        if self._closed:
            return
        try:
            self._put(content)
        except Exception as error:  # noqa: BLE001 - a channel fails in ways of its own; the kernel goes on
            _log.debug("a message to a view could not be sent", exc_info=True)
            if content.get("type") == "answer":
                said = f"the answer could not be sent ({type(error).__name__})"
                self._deliver(
                    ViewFailure(id=content["id"], code="failed", message=said).model_dump(mode="json")
                )
            else:
                self.close()

    def _take_cells(self, message: SentCells) -> None:
        """Keep the copy of the notebook that a page of JupyterLab or Notebook 7 sent; no session is made for it."""
        if self.hello is None or self.hello.host not in DRAWING:
            return
        cells = tuple(
            NotebookCell(
                each.id,
                each.kind,
                each.source,
                each.count,
                tuple(
                    CellOutput(out.kind, out.text, out.types, out.cut) for out in each.outputs[:MOST_OUTPUTS]
                ),
                each.cut,
                each.more,
            )
            for each in message.cells[:MOST_CELLS]
        )
        LIVE_NOTEBOOK.receive(NotebookCells(cells, "front end", time.time(), message.more), self)

    def _refuse(self, raw: object, error: Exception) -> None:
        number = raw.get("id") if isinstance(raw, dict) else None
        if isinstance(number, int):
            said = _first(error) if isinstance(error, ValidationError) else "it is nested too deeply"
            self.send(
                ViewFailure(id=number, code="invalid", message=f"not a message of this protocol: {said}")
            )

    def _greet(self, request: ViewRequest) -> None:
        try:
            hello = Hello.model_validate(request.args)
        except ValidationError as error:
            self.send(ViewFailure(id=request.id, code="invalid", message=_first(error)))
            return
        if hello.protocol != PROTOCOL:
            self.send(
                ViewFailure(
                    id=request.id,
                    code="protocol",
                    message=f"the view speaks version {hello.protocol} of the protocol, the kernel {PROTOCOL}",
                    hint="Install the same reyn-jupyter for the kernel and for JupyterLab, then reload the page.",
                )
            )
            return
        self.hello = hello
        answer = Welcome(
            protocol=PROTOCOL, session=SESSION_ID, version=package_version(), versions=kernel_versions()
        )
        self.send(ViewAnswer(id=request.id, value=answer.model_dump(mode="json")))
        if not self._closed:  # a channel that broke on the answer is no one to tell more
            self._hub.join(self)

    def _begin(self, request: ViewRequest) -> None:
        with self._starting:
            job = ENGINE.start(self._serve(request), home=self._hub.home or self._home)
            self._jobs[request.id] = job
        job.future.add_done_callback(lambda _: self._forget_job(request.id, job))

    def _forget_job(self, number: int, job: Job[None]) -> None:
        if self._jobs.get(number) is job:
            del self._jobs[number]

    async def _serve(self, request: ViewRequest) -> None:
        answer = await self._answer(request)
        with self._starting:
            self._jobs.pop(request.id, None)  # its number is free again once the view can know of the answer
        self.send(answer)

    async def _answer(self, request: ViewRequest) -> WireMessage:
        look = Look(redact=environment_redaction())
        operation = operations().get(request.op)
        if operation is None:
            named = look.line(request.op, 60)
            return ViewFailure(
                id=request.id, code="unknown", message=f"the kernel knows no operation {named!r}"
            )
        try:
            arguments = operation.arguments.model_validate(request.args)
        except ValidationError as error:
            said = look.text(f"{request.op}: {_first(error)}", _SAID)
            return ViewFailure(id=request.id, code="invalid", message=said)
        except RecursionError:
            return ViewFailure(id=request.id, code="invalid", message=f"{request.op}: nested too deeply")

        def progress(done: float, total: float, note: str = "") -> None:
            self.send(ViewProgress(id=request.id, done=done, total=total, note=note))

        try:
            key = self.answer_key if shows_questions(self) else None
            operation_context = OperationContext(
                self._hub.session(),
                look,
                progress,
                self._hub.ask,
                key,
                self._hub.home or self._home,
                self._hub.caches,
            )
            value: BaseModel = await operation.run(operation_context, arguments)
            return ViewAnswer(id=request.id, value=value.model_dump(mode="json"))
        except OperationError as error:
            said, hint = look.text(error.message, _SAID), look.text(error.hint, _SAID)
            return ViewFailure(id=request.id, code="failed", message=said, hint=hint)
        except Exception as error:  # noqa: BLE001 - a view must hear of it, whatever it is
            said = look.text(f"{type(error).__name__}: {error}", 400)
            return ViewFailure(id=request.id, code="failed", message=said)


def _first(error: ValidationError) -> str:
    """Return the first thing that is wrong, with its place."""
    problem = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part)[:60] for part in problem["loc"][:6])
    said = str(problem["msg"])[:300]
    return f"{where}: {said}" if where else said


def open_comm(comm: Any, message: Any) -> None:
    """Serve a comm that a front end opened to our target; what the opening itself carries is a first message."""
    hub = kernel_hub()
    here = running_loop()
    by_control = here is not None and here is not hub.home  # a thread that no cell keeps from its messages
    connection = Connection(
        hub, comm.send, here or hub.home, client=_client(message), hears_in_cell=by_control
    )

    def receive(message: Any) -> None:
        connection.receive(_data(message))

    def close(message: Any) -> None:
        connection.close()

    comm.on_msg(receive)
    comm.on_close(close)
    first = _data(message)
    if isinstance(first, dict) and first:
        connection.receive(first)


def _client(message: Any) -> str:
    header = message.get("header") if isinstance(message, dict) else None
    return str(header.get("session") or "") if isinstance(header, dict) else ""


def _data(message: Any) -> object:
    content = message.get("content") if isinstance(message, dict) else None
    return content.get("data") if isinstance(content, dict) else None


@cache
def package_version() -> str:
    """Return this package's version."""
    return version("reyn-jupyter")


@cache
def kernel_versions() -> dict[str, str]:
    """Return the versions of what takes part on the kernel's side, as a view and `%reyn doctor` name them."""
    found = {"python": platform.python_version(), "reyn-jupyter": package_version()}
    for name in ("ipykernel", "ipywidgets", "anywidget", "pandas"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
