"""Errors whose sentence is all that a person needs: a notebook shows it below their own lines and no others.

Invariant: a debugger, a log and plain Python see the whole error with its causes. Only what IPython draws under a cell
is shorter, and the person's own frames are always in it. What is drawn is saved with the notebook, so it holds no
secret and no hidden character.
"""

from __future__ import annotations

import re
import sys
import sysconfig
import traceback
from types import TracebackType

_MACHINERY = ("IPython", "ipykernel")
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))
_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")


class UserError(Exception):
    """An error that says what, why and what to do next. IPython asks an exception for `_render_traceback_`.

    ``%reyn debug on`` and ``%xmode Verbose`` show the whole traceback.
    """

    def _render_traceback_(self) -> list[str]:
        """Return the lines that stand under a cell. Source: IPython, `InteractiveShell.showtraceback`."""
        shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
        drawing = getattr(shell, "InteractiveTB", None)
        if drawing is None:
            return [sanitize("".join(traceback.format_exception(self)))]
        whole = drawing.mode == "Verbose" or getattr(getattr(shell, "_reyn_jupyter", None), "debug", False)
        # IPython is given another exception with the same sentence, since it colours what it draws: an escape of the
        # sentence's own could not be told from one of IPython's afterwards.
        drawn = Exception(sanitize(str(self)))
        for note in getattr(self, "__notes__", ()):
            drawn.add_note(sanitize(str(note)))
        if whole:
            drawn.__cause__, drawn.__context__ = self.__cause__, self.__context__
            drawn.__suppress_context__ = self.__suppress_context__
            lines = drawing.structured_traceback(type(self), drawn, self.__traceback__, tb_offset=1)
        else:
            lines = drawing.structured_traceback(
                type(self), drawn, _own_frames(self.__traceback__), tb_offset=0
            )
        return [_sanitize_coloured(line) for line in lines]


def sanitize(text: str) -> str:
    """Return the text without secrets of the environment, its hidden characters shown."""
    from reyn_jupyter.support.sanitize import visible
    from reyn_jupyter.support.secrets import environment_redaction

    return visible(environment_redaction()(text))


def _sanitize_coloured(text: str) -> str:
    """Sanitize what stands between the colours that IPython set."""
    pieces = _COLOUR.split(text)
    return "".join(piece if at % 2 else sanitize(piece) for at, piece in enumerate(pieces))


def _own_frames(given: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package and of the machinery around a cell."""
    frames: list[TracebackType] = []
    inside = False  # from our first frame on, what libraries do in between is not theirs either
    while given is not None:
        package = _package(given)
        inside = inside or package == "reyn_jupyter"
        path = given.tb_frame.f_code.co_filename
        if (
            package != "reyn_jupyter"
            and package not in _MACHINERY
            and not (inside and path.startswith(_LIBRARIES))
        ):
            frames.append(given)
        given = given.tb_next
    found: TracebackType | None = None
    for each in reversed(frames):
        found = TracebackType(found, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return found


def _package(frame: TracebackType) -> str:
    """Return the package of a frame; by its module, since what dataclasses write has no file."""
    return str(frame.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
