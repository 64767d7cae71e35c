"""A real ipykernel and what a front end sees of it: outputs of a cell, questions on stdin, completions."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.manager import KernelManager

TIMEOUT = 120.0  # seconds without a word, for a machine that is slow and busy
AGAIN = 10.0  # seconds until a person whose interrupt did nothing interrupts again
PREPARE = """
%load_ext reyn_jupyter
import asyncio, time
import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel, call

def says(*steps, **options):
    reyn.session().parts.model = ScriptedModel(*steps, **options)

def write(path, content):
    return call("invoke_action", action_name="file__write", args={"path": path, "content": content})
"""


@dataclass
class Cell:
    """What one execution sent: every message, and the reply."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    reply: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def _of(self, *kinds: str) -> list[dict[str, Any]]:
        return [each["content"] for each in self.messages if each["msg_type"] in kinds]

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """What stands under the cell: streams, displays, results and errors. Updates replace, they do not add."""
        return self._of("stream", "display_data", "execute_result", "error")

    @property
    def updates(self) -> list[dict[str, Any]]:
        return self._of("update_display_data")

    @property
    def drawn(self) -> list[str]:
        """The text of every display, update and result, in order."""
        shown = self._of("display_data", "update_display_data", "execute_result")
        return [each["data"]["text/plain"] for each in shown]

    @property
    def text(self) -> str:
        """The last thing drawn."""
        return self.drawn[-1] if self.drawn else ""

    @property
    def printed(self) -> str:
        return "".join(each["text"] for each in self._of("stream"))

    @property
    def error(self) -> str | None:
        """What the front end shows for the error, None when there was none."""
        errors = self._of("error")
        return "\n".join(errors[0]["traceback"]) if errors else None


class Kernel:
    """An ipykernel in a workspace, with state and settings of its own."""

    def __init__(self, workspace: Path, state: Path, environ: dict[str, str] | None = None) -> None:
        self.workspace = workspace
        folders = {
            "REYN_STATE_DIR": "state",
            "REYN_CONFIG_DIR": "config",
            "IPYTHONDIR": "ipython",
            "JUPYTER_CONFIG_DIR": "jupyter-config",
            "JUPYTER_DATA_DIR": "jupyter-data",
            "JUPYTER_RUNTIME_DIR": "jupyter-runtime",
        }
        own = {name: str(state / folder) for name, folder in folders.items()}
        self._start({**os.environ, **own, "PYDEVD_DISABLE_FILE_VALIDATION": "1", **(environ or {})})
        # Messages of comms that came while something else was waited for, and what was shown beside the cell, or
        # drawn again in its place: a background run may do so before its cell has ended, and during a later one.
        self._aside: list[dict[str, Any]] = []
        self._passed: list[dict[str, Any]] = []

    def _start(self, environ: dict[str, str], tries: int = 3) -> None:
        self._manager = KernelManager(kernel_name="python3")
        self._manager.start_kernel(cwd=str(self.workspace), env=environ)
        self._client = self._manager.client()
        self._client.start_channels()
        try:
            self._client.wait_for_ready(timeout=TIMEOUT)
        except (
            RuntimeError
        ):  # another process may have taken a port between its choice and the kernel's start
            self.stop()
            if tries == 1:
                raise
            self._start(environ, tries - 1)

    def prepare(self) -> Kernel:
        """Load the extension, and names that the tests' cells use."""
        assert self.run(PREPARE).error is None
        return self

    def run(
        self,
        code: str,
        *,
        cell: str | None = None,
        answers: Sequence[str] | None = None,
        interrupt_at: str | None = None,
    ) -> Cell:
        """Run a cell to its end.

        Args:
            cell: its id, as a front end sends it.
            answers: what the person types; None means that nobody is there.
            interrupt_at: interrupt the kernel once this text was drawn or printed, and again where it goes on, as a
                person does: Python hears a signal that came just before a `time.sleep` after it.
        """
        waiting = list(answers or ())
        identity = self.send(code, cell=cell, allow_stdin=answers is not None)
        done = Cell()
        began = heard = time.monotonic()
        interrupted: float | None = None
        while True:
            message = self._next(heard)
            if message is None:
                self._answer(done, waiting, identity)
                if interrupted is not None and time.monotonic() - interrupted > AGAIN:
                    interrupted = time.monotonic()
                    self.interrupt()
                continue
            heard = time.monotonic()
            if message["parent_header"].get("msg_id") != identity:
                self._keep(message)
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                break
            self._keep(message)
            done.messages.append(message)
            if interrupt_at is not None and interrupt_at in f"{done.text}{done.printed}":
                interrupt_at, began = None, time.monotonic()
                interrupted = began
                self.interrupt()
        done.seconds = time.monotonic() - began
        while done.reply == {}:
            reply = self._client.get_shell_msg(timeout=TIMEOUT)
            if reply["parent_header"].get("msg_id") == identity:
                done.reply = reply["content"]
        return done

    def send(self, code: str, *, cell: str | None = None, allow_stdin: bool = False) -> str:
        """Ask for an execution and give the request's id, without waiting."""
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": allow_stdin,
            "stop_on_error": True,
        }
        metadata = {"cellId": cell} if cell else {}
        message = self._client.session.msg("execute_request", content, metadata=metadata)
        self._client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def later(self, text: str) -> list[dict[str, Any]]:
        """What was drawn again since the test began, or since the last look, up to the message that shows `text`."""
        began = time.monotonic()
        found: list[dict[str, Any]] = []
        while True:
            while not self._passed:
                message = self._next(began)
                if message is not None:
                    self._keep(message)
            found.append(self._passed.pop(0))
            if text in found[-1]["content"]["data"].get("text/plain", ""):
                return found

    def forget(self) -> None:
        """Let go of what was drawn until now; a test begins."""
        self._passed.clear()

    def _keep(self, message: dict[str, Any]) -> None:
        if message["msg_type"] in ("comm_msg", "comm_close"):
            self._aside.append(message)
        elif message["msg_type"] == "update_display_data":
            self._passed.append(message)

    def comm(self, target: str = "reyn.v1", *, subshell: str | None = None, control: bool = False) -> Comm:
        """Open a comm from the front end's side; `control`: over the channel that our extension uses."""
        return Comm(self, target, subshell, control)

    def subshell(self) -> str | None:
        """Another of the kernel's threads for messages; None where the kernel has one alone."""
        features = self._client.kernel_info(reply=True, timeout=TIMEOUT)["content"].get(
            "supported_features", []
        )
        if "kernel subshells" not in features:
            return None
        message = self._client.session.msg("create_subshell_request")
        self._client.control_channel.send(message)
        return str(self._client.control_channel.get_msg(timeout=TIMEOUT)["content"]["subshell_id"])

    def put(
        self, kind: str, content: dict[str, Any], subshell: str | None = None, control: bool = False
    ) -> None:
        """Send a message of any kind on the shell channel or the control channel, without waiting."""
        message = self._client.session.msg(kind, content)
        if subshell is not None:
            message["header"]["subshell_id"] = subshell
        (self._client.control_channel if control else self._client.shell_channel).send(message)

    def heard(self, comm: str, seconds: float = TIMEOUT) -> dict[str, Any]:
        """The next message of a comm; those of others are kept."""
        began = time.monotonic() - TIMEOUT + seconds
        while True:
            for each in self._aside:
                if each["content"]["comm_id"] == comm:
                    self._aside.remove(each)
                    return each
            message = self._next(began)
            if message is not None:
                self._keep(message)

    def complete(self, code: str) -> list[str]:
        """What Tab offers at the end of `code`, each as the whole text that it would make."""
        content = self._client.complete(code, len(code), reply=True, timeout=TIMEOUT)["content"]
        assert content["status"] == "ok"
        start, end = content["cursor_start"], content["cursor_end"]
        return [f"{code[:start]}{match}{code[end:]}" for match in content["matches"]]

    def meanings(self, code: str) -> dict[str, str]:
        """What Tab offers at the end of `code`, with what front ends show beside each."""
        content = self._client.complete(code, len(code), reply=True, timeout=TIMEOUT)["content"]
        return {each["text"]: each["type"] for each in content["metadata"]["_jupyter_types_experimental"]}

    def value(self, expression: str) -> str:
        """The text of an expression's value."""
        cell = self.run(f"print(({expression}))")
        assert cell.error is None, cell.error
        return cell.printed.strip()

    def interrupt(self) -> None:
        self._manager.interrupt_kernel()

    def stop(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)

    def _next(self, heard: float) -> dict[str, Any] | None:
        """The next message; None where there is none yet. `heard` is when there was one last."""
        try:
            message: dict[str, Any] = self._client.get_iopub_msg(timeout=0.05)
        except Empty:
            if time.monotonic() - heard > TIMEOUT:
                raise TimeoutError("the kernel says nothing any more") from None
            return None
        return message

    def _answer(self, done: Cell, waiting: list[str], identity: str) -> None:
        """Answer what the cell of a request asks; a question that an interrupt cut off may still be in the channel."""
        if not waiting:
            return
        try:
            question = self._client.get_stdin_msg(timeout=0)
        except Empty:
            return
        if question["parent_header"].get("msg_id") != identity:
            return
        done.questions.append(question["content"]["prompt"])
        self._client.input(waiting.pop(0))


class Comm:
    """The front end's side of a comm: requests with numbers, answers and events."""

    def __init__(self, kernel: Kernel, target: str, subshell: str | None, control: bool) -> None:
        self._kernel = kernel
        self._control = control
        self._subshell = subshell
        self._number = 0
        self.id = uuid.uuid4().hex
        self.messages: list[dict[str, Any]] = []
        self.closed = False
        kernel.put("comm_open", {"comm_id": self.id, "target_name": target, "data": {}}, subshell, control)

    def send(self, data: object) -> None:
        self._kernel.put("comm_msg", {"comm_id": self.id, "data": data}, self._subshell, self._control)

    def request(self, op: str, **args: Any) -> int:
        self._number += 1
        self.send({"type": "request", "id": self._number, "op": op, "args": args})
        return self._number

    def ask(self, op: str, **args: Any) -> dict[str, Any]:
        """Request, and wait for the answer."""
        return self.answer(self.request(op, **args))

    def answer(self, number: int) -> dict[str, Any]:
        return self.wait(lambda each: each.get("id") == number and each["type"] in ("answer", "error"))

    def event(self, name: str) -> dict[str, Any]:
        found = self.wait(lambda each: each["type"] == "event" and each["event"]["name"] == name)
        return dict(found["event"])

    def hello(self, host: str = "page", *, approves: bool = True) -> dict[str, Any]:
        return self.ask("hello", protocol=1, host=host, version="0", approves=approves)

    def consent(self, asked: dict[str, Any], answer: str) -> dict[str, Any]:
        """Answer a question with what this comm was sent for it."""
        secret = next(each["secret"] for each in asked["choices"] if each["answer"] == answer)
        return self.ask("approval.answer", id=asked["id"], answer=answer, secret=secret)

    def wait(self, wanted: Callable[[dict[str, Any]], bool], seconds: float = TIMEOUT) -> dict[str, Any]:
        """The first message that is wanted; others stay."""
        while True:
            for each in self.messages:
                if wanted(each):
                    self.messages.remove(each)
                    return each
            self._take(self._kernel.heard(self.id, seconds))

    def wait_closed(self) -> None:
        while not self.closed:
            self._take(self._kernel.heard(self.id))

    def close(self) -> None:
        self._kernel.put("comm_close", {"comm_id": self.id, "data": {}}, self._subshell, self._control)

    def _take(self, message: dict[str, Any]) -> None:
        if message["msg_type"] == "comm_close":
            self.closed = True
        else:
            self.messages.append(message["content"]["data"])
