"""Errors whose sentence is all that a person needs: a notebook shows it below their own lines and no others.

Invariant: a debugger, a log and plain Python see the whole error with its causes. Only what IPython draws under a cell
is shorter, and the person's own frames are always in it.
"""

from __future__ import annotations

import sys
import sysconfig
import traceback
from types import TracebackType

_MACHINERY = ("IPython", "ipykernel")
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))


class ToldError(Exception):
    """An error that says what, why and what to do next. IPython asks an exception for `_render_traceback_`.

    ``%reyn debug on`` and ``%xmode Verbose`` show the whole traceback.
    """

    def _render_traceback_(self) -> list[str]:
        """The lines that stand under a cell. Source: IPython, `InteractiveShell.showtraceback`."""
        shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
        drawing = getattr(shell, "InteractiveTB", None)
        if drawing is None:
            return traceback.format_exception(self)
        if drawing.mode == "Verbose" or getattr(getattr(shell, "_reyn_jupyter", None), "debug", False):
            lines: list[str] = drawing.structured_traceback(type(self), self, self.__traceback__, tb_offset=1)
            return lines
        kept = self.__cause__, self.__context__, self.__suppress_context__
        try:
            self.__cause__, self.__context__ = None, None
            return list(drawing.structured_traceback(type(self), self, _own(self.__traceback__), tb_offset=0))
        finally:
            self.__cause__, self.__context__, self.__suppress_context__ = kept


def _own(given: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this package and of the machinery around a cell."""
    frames: list[TracebackType] = []
    inside = False  # from our first frame on, what libraries do in between is not theirs either
    while given is not None:
        room = _room(given)
        inside = inside or room == "reyn_jupyter"
        path = given.tb_frame.f_code.co_filename
        if room != "reyn_jupyter" and room not in _MACHINERY and not (inside and path.startswith(_LIBRARIES)):
            frames.append(given)
        given = given.tb_next
    found: TracebackType | None = None
    for each in reversed(frames):
        found = TracebackType(found, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return found


def _room(frame: TracebackType) -> str:
    """The package of a frame; by its module, since what dataclasses write has no file."""
    return str(frame.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
