"""Python code in the person's namespace: compiled first, run on the notebook's thread, stopped by an interrupt.

Invariants: what is run is exactly the text that was compiled; what it prints is bounded; an interrupt reaches the code
while it runs, and no moment longer; whatever way the code ends, what it did to the names is known.
"""

from __future__ import annotations

import _thread
import ast
import builtins
import io
import linecache
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import count
from types import CodeType, FrameType
from typing import Any, Final

from reyn_jupyter.backends.name_changes import NameChanges, NamesBefore
from reyn_jupyter.support.import_path import imports_of_person
from reyn_jupyter.support.python_source import compile_source, parse_source
from reyn_jupyter.support.text import shorten

MOST_CODE = 20_000  # characters
MOST_PRINTED = 20_000  # characters of one stream; of more the first and the last are kept
MOST_ERROR = 2_000  # characters of what an exception says
NAMED_FRAMES = 3  # lines of the code that a traceback names
_numbers = count(1)


class _NoValue:
    def __repr__(self) -> str:
        return "NO_VALUE"


NO_VALUE: Final = _NoValue()


class CodeError(ValueError):
    """A text that is no Python code; the message says where and why."""


@dataclass(frozen=True)
class PreparedCode:
    """Code that is ready to run.

    Attributes:
        name: what tracebacks call it.
        source: its text.
        body: its statements but for a last expression.
        last: that expression, whose value is the result; None where the code ends with something else.
    """

    name: str
    source: str
    body: CodeType
    last: CodeType | None


def prepare_code(source: str) -> PreparedCode:
    """Compile a text, without running anything of it.

    Raises:
        CodeError: it is no Python code. Magics and `!` are none.

    >>> prepare_code("a = 1\\na + 1").last is not None
    True
    """
    name = f"<reyn python {next(_numbers)}>"
    try:
        tree = parse_source(source)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            expression = tree.body.pop()
            assert isinstance(expression, ast.Expr)
            last = compile_source(ast.Expression(expression.value), name)
        return PreparedCode(name, source, compile_source(tree, name), last)
    except SyntaxError as error:
        at = (
            f"line {error.lineno}: {shorten((error.text or '').strip(), 120)}" if error.lineno else "the code"
        )
        raise CodeError(f"{error.msg} ({at})") from None
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise CodeError(f"it cannot be compiled: {type(error).__name__}") from None


class BoundedText(io.TextIOBase):
    """A stream that keeps the beginning and the end of what is written to it.

    >>> stream = BoundedText(10)
    >>> _ = stream.write("abcdefghijklmnop")
    >>> stream.text
    'abcde\\n… 6 characters left out …\\nlmnop'
    """

    def __init__(self, most: int = MOST_PRINTED) -> None:
        self._half = most // 2
        self._head = ""
        self._tail: deque[str] = deque(maxlen=self._half)
        self._length = 0
        self._lock = threading.Lock()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # libraries ask for it
        return "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"a text is written here, not {type(text).__name__}")
        with self._lock:
            self._length += len(text)
            room = self._half - len(self._head)
            self._head += text[:room]
            self._tail.extend(text[max(room, len(text) - self._half) :])
        return len(text)

    @property
    def text(self) -> str:
        """Return what was written; where it was too much, with the number of characters that are left out."""
        with self._lock:
            left = self._length - len(self._head) - len(self._tail)
            gap = f"\n… {left:,} characters left out …\n" if left else ""
            return self._head + gap + "".join(self._tail)


@dataclass(frozen=True)
class CodeEnd:
    """The end of a piece of code.

    Attributes:
        value: of its last expression; `NO_VALUE` where there is none.
        out, err: what it printed.
        changes: what it did to the names.
        error: type, message and line of what it raised; "" where it raised nothing.
        stopped: it was interrupted.
    """

    value: object
    out: str
    err: str
    changes: NameChanges
    error: str = ""
    stopped: bool = False


class CodeRun:
    """One run of a piece of code.

    Args:
        code: what to run.
        namespace: the names that it runs among.
        shows: whether a name may be told of.
    """

    def __init__(
        self, code: PreparedCode, namespace: dict[str, Any], shows: Callable[[str, object], bool]
    ) -> None:
        self._code = code
        self._namespace = namespace
        self._shows = shows
        self._lock = threading.Lock()
        self._thread: int | None = None  # that runs the code now
        self._armed = False  # whether an interrupt may strike
        self._late = False  # one came when the code was over
        self._is_stopped = False  # by `stop`
        self.end: CodeEnd | None = None

    def run(self) -> CodeEnd:
        """Run the code, on the notebook's thread; once.

        Raises:
            KeyboardInterrupt: the person interrupted it; `end` says how far it came.
        """
        code, names = self._code, self._namespace
        names.setdefault("__builtins__", builtins)
        before = NamesBefore(names, self._shows)
        out, err = BoundedText(), BoundedText()
        linecache.cache[code.name] = (len(code.source), None, code.source.splitlines(True), code.name)
        value: object = NO_VALUE
        error, interrupted = "", False
        catches = threading.current_thread() is threading.main_thread()
        handler = signal.signal(signal.SIGINT, self._strike) if catches else None
        try:
            with self._lock:
                self._thread = None if self._is_stopped else threading.get_ident()
            try:
                self._armed = True
                try:
                    if self._late:  # it came while all was made ready
                        raise KeyboardInterrupt
                    if not self._is_stopped:
                        with redirect_stdout(out), redirect_stderr(err), imports_of_person():
                            exec(code.body, names)  # noqa: S102 - the person said yes to this very code
                            if code.last is not None:
                                value = eval(code.last, names)  # noqa: S307 - the same
                finally:
                    self._armed = False
            except KeyboardInterrupt:
                interrupted = True
            except BaseException as raised:  # noqa: BLE001 - the code's own, whatever it is
                error = _described(raised, code)
        finally:
            self._armed = False
            with self._lock:
                self._thread = None
            if catches:
                signal.signal(signal.SIGINT, handler)
        stopped = interrupted or self._is_stopped
        self.end = CodeEnd(value, out.text, err.text, before.changes(), error, stopped)
        if (interrupted or self._late) and not self._is_stopped:
            raise KeyboardInterrupt
        return self.end

    def stop(self) -> None:
        """Interrupt the code, from another thread. One that has not begun will not, one that is over hears nothing."""
        with self._lock:
            self._is_stopped = True
            if self._thread is None or self._thread != threading.main_thread().ident:
                return
            if hasattr(signal, "pthread_kill"):
                signal.pthread_kill(self._thread, signal.SIGINT)  # a sleep or a read ends too
            else:
                _thread.interrupt_main()

    @property
    def is_running(self) -> bool:
        """True while the code runs."""
        return self._thread is not None

    def _strike(self, number: int, frame: FrameType | None) -> None:
        if self._armed:
            raise KeyboardInterrupt
        self._late = True


def _described(error: BaseException, code: PreparedCode) -> str:
    """Return an exception in a few lines: type, message, and the lines of the code that led to it."""
    try:
        said = str(error).strip()
    except BaseException:  # noqa: BLE001 - its own text may fail too
        said = ""
    lines = [
        f"line {frame.lineno}: {shorten((frame.line or '').strip(), 120)}"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == code.name
    ]
    if len(lines) > NAMED_FRAMES:
        lines = [lines[0], "…", *lines[-(NAMED_FRAMES - 1) :]]
    head = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return "\n".join([shorten(head, MOST_ERROR), *lines])
