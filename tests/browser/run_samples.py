"""Real runs of a scripted model in a workspace: what the viewer of runs is tried with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reyn_jupyter import Session
from reyn_jupyter.models.scripted import ScriptedModel, Step, call
from reyn_jupyter.notebook.render import view
from reyn_jupyter.notebook.serving.protocol import LiveDiff, LiveTrace, Snapshot
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.current import SESSION_ID


def invoke(action: str, /, **args: Any) -> Any:
    return call("invoke_action", action_name=action, args=args)


def scripted(root: Path, *steps: Step, **options: Any) -> Session:
    """A session in a folder with one file, whose model says these steps; whether search is on depends on no clock."""
    (root / "notes.txt").write_text("first line\nsecond line\nthird line\n")
    off = {"action_retrieval": {"embedding_class": None}}
    return Session(root, model=ScriptedModel(*steps, **options), config=off)


def two_runs(root: Path) -> tuple[Session, Trace, Trace]:
    """The same question twice: with detours and one file, straight and another."""
    session = scripted(
        root,
        call("list_actions", category=["file"], limit=2),
        invoke("file__read", path="notes.txt"),
        [invoke("file__raed", path="x"), invoke("file__read", path="missing.txt")],
        invoke("file__write", path="new.txt", content="alpha\nbeta\n"),
        "It holds **three** lines.",
        invoke("file__read", path="notes.txt"),
        invoke("file__write", path="new.txt", content="alpha\ngamma\n"),
        "It holds three lines, I think.",
    )
    a = session.ask("How many lines has notes.txt?", approve="all")
    b = session.ask("How many lines has it?", new=True, approve="all")
    return session, a, b


def snapshot(shown: object, live: LiveTrace | LiveDiff) -> dict[str, Any]:
    return Snapshot(session=SESSION_ID, view=view(shown), live=live).model_dump(mode="json")
