"""Two small views: a run as code, and a run in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reyn_jupyter.notebook.render.model import Badge, Code, View
from reyn_jupyter.notebook.render.untrusted import Look

if TYPE_CHECKING:
    from reyn_jupyter.runtime.script import Script
    from reyn_jupyter.sessions.background import BackgroundRun

_CODE = 20_000


def script_view(script: Script, look: Look) -> View:
    """The code, ready to be copied."""
    code = look.text(script.code, _CODE)
    more = "… cut here; .code holds all of it" if len(script.code) > _CODE else ""
    return View("script", "The run as code", (), (), (Code(code.rstrip("\n"), more=more),), ".code")


def background_view(run: BackgroundRun, look: Look) -> View:
    """One line: what runs, whether it still does, and how to stop it."""
    state = Badge("ended", "muted") if run.done else Badge("… running", "info")
    ways = ".trace is what it came to" if run.done else ".cancel() stops it, .result() waits for it"
    return View("background", f"In the background: {look.line(run.prompt, 100)}", (state,), (ways,))
