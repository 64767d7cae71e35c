"""Undo: restores the files that a run and its inner runs changed, from the blobs that kept their content before, and
takes back what they did to the notebook of this kernel: names that code made, cells that were proposed.

Invariants: a restore is judged as the person's own write or deletion of that file, so a deny rule holds for it too.
What this very session did not do is taken back only once the person said yes; another notebook's runs by name alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

from reyn_jupyter.backends.files.file_changes import LARGEST
from reyn_jupyter.catalog.action import Purity
from reyn_jupyter.catalog.effects import Effect, EffectKind
from reyn_jupyter.guard.file_restore import (
    Judge,
    RecordedChange,
    Restore,
    UndoRefusedError,
    apply,
    content,
    planned,
)
from reyn_jupyter.guard.permissions import Policy
from reyn_jupyter.outputs.blobs.random_access import is_local
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.runtime.access.reversals import KEPT
from reyn_jupyter.runtime.questions.consent import Question
from reyn_jupyter.runtime.questions.question_detail import DetailLine, question_detail
from reyn_jupyter.runtime.record.events import FileChanging
from reyn_jupyter.runtime.record.run_steps import Call
from reyn_jupyter.runtime.record.run_store import RunNotFoundError
from reyn_jupyter.runtime.record.runlog import RunLogError
from reyn_jupyter.runtime.record.trace import Trace
from reyn_jupyter.sessions.assembly import ENGINE, Parts
from reyn_jupyter.sessions.result_objects import Card
from reyn_jupyter.sessions.runs import run_lifecycle
from reyn_jupyter.support.sanitize import printable
from reyn_jupyter.support.text import count, shorten

IN_NOTEBOOK = frozenset({"python__run", "notebook__propose_cell"})  # what they do is in no file


class NothingToUndoError(LookupError):
    """The run changed no file, or kept nothing to restore."""


class UndoDeclinedError(Exception):
    """The run is another session's, and the person did not say yes to undoing it."""


async def undo(parts: Parts, target: str | int | None) -> Card:
    """Restore the files that a run, or one step of it, changed, and take back what it did to this notebook.

    Args:
        target: a run (any unique part of its id), ``RUN:STEP``, the name of a notebook for its last run that is to be
            undone, or None for that of this session or of its notebook, so that one undo after another walks back.
            A run that this very session did not make asks first.

    Raises:
        UndoDeclinedError: a run of another session, and the person said no or is not there.
        NothingToUndoError: no file was changed, it was undone already, or the content before was not kept.
        UndoRefusedError: a file changed since, and its `diff` shows how; or a rule denies it.
        RunNotFoundError: there is no such run.
    """
    trace, step = _meant(parts, target)
    calls = _calls(trace, step)
    in_notebook = any(parts.services.reversals.has(*each) for each in calls)
    changes = [change for _, change in await _ordered(parts, trace, step)]
    unread = [
        f"{problem}, so what it changed stays"
        for run in (trace, *trace.all_inner)
        for problem in run.inner_problems.values()
    ]
    if not changes and not in_notebook:
        gone = (
            "what it did to a notebook can be taken back only once, in the kernel that it ran in, and of the last "
            f"{KEPT} calls"
        )
        lost = [gone] if any(call.label in IN_NOTEBOOK and call.ok for call in trace.calls) else []
        raise NothingToUndoError(
            "; ".join(
                [
                    f"the run {trace.run[-12:]} changed no file" + (f" in step {step}" if step else ""),
                    *lost,
                    *unread,
                ]
            )
        )
    recorded = [await _recorded(parts, change) for change in changes]
    what = _what(trace) + (f" step {step}" if step else "")
    with ExitStack() as held:
        try:
            restores = held.enter_context(planned(recorded, parts.workspace, _judge(parts.policy)))
        except UndoRefusedError:
            if _is_undone(parts, what):
                raise NothingToUndoError(f"the run {trace.run[-12:]} was undone already") from None
            raise
        unread += _left(restores.linked, changes)
        if not (restores or in_notebook) and _is_undone(parts, what):
            raise NothingToUndoError(f"the run {trace.run[-12:]} was undone already")
        if (restores or in_notebook) and not parts.runs.is_own(trace.run):
            await _ask(parts, trace, restores)
        said = await _restore(parts, restores, calls, what, unread)
    facts = [("prompt", trace.prompt), ("run", trace.run[-12:])]
    facts += [(restore.path, "removed" if restore.content is None else "restored") for restore in restores]
    facts += [(path, "was as before already") for path in restores.back]
    sections = tuple((restore.path, tuple(restore.diff.splitlines())) for restore in restores)
    if said:
        sections += (("In the notebook", said),)
    if unread:
        sections += (("Not undone", tuple(unread)),)
    how = "removed" if restores and all(restore.content is None for restore in restores) else "restored"
    title = "Undone in the notebook" if said and not restores else f"{count(len(restores), 'file')} {how}"
    return Card("undo", title, tuple(facts), sections)


def _is_undone(parts: Parts, what: str) -> bool:
    return any(_undid(other) == what for other in parts.runs.all())


def _left(linked: Mapping[str, str], changes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a sentence for each file that a link keeps from being put back, with where its content before is."""
    said = []
    for path, why in linked.items():
        blob = next((each.get("previous_blob") for each in changes if each.get("path") == path), None)
        kept = f"; what it held before is [blob:{blob}]" if blob else ""
        said.append(f"{path} stays as it is: {why}{kept}")
    return said


def _meant(parts: Parts, target: str | int | None) -> tuple[Trace, int | None]:
    if target is None:
        return _last(parts), None
    name, separator, step = str(target).rpartition(":")
    if separator and step.isdecimal():
        return _named(parts, name), int(step)
    return _named(parts, target), None


def _last(parts: Parts) -> Trace:
    """Return the last run of this session that changed a file and was not undone; says whose the next one would be."""
    others = []
    for trace in _to_undo(parts):
        if _is_near(parts, trace):
            return trace
        others.append(trace)
    if others:
        raise NothingToUndoError(
            f"this session has nothing to undo. {count(len(others), 'run')} of other sessions changed files, the last "
            f"one is {_described(others[0])}. %reyn undo {others[0].run[-12:]} asks you, then restores what it changed"
        )
    undone = any(_undid(trace) for trace in parts.runs.back())
    raise NothingToUndoError(
        "everything that runs here changed is undone"
        if undone
        else "no run here has changed a file or this notebook"
    )


def _named(parts: Parts, target: str | int) -> Trace:
    """Return the run that is meant by a part of its id, or by the notebook that it was made in."""
    try:
        return parts.runs.load(target or None)
    except RunNotFoundError:
        if not any(trace.started.notebook == target for trace in parts.runs.back()):
            raise
    for trace in _to_undo(parts):
        if trace.started.notebook == target:
            return trace
    raise NothingToUndoError(f"everything that runs of {printable(str(target))} changed is undone")


def _to_undo(parts: Parts) -> Iterator[Trace]:
    """Yield the runs that changed a file and were not undone, newest first: what undid a run is newer than it."""
    undone = set()
    for run in reversed(parts.runs.ids()):
        with suppress(RunLogError):
            trace = parts.runs.load(run)
            if (what := _undid(trace)) is not None:
                undone.add(what)
            elif _what(trace) not in undone and (_changed(trace) or _in_notebook(parts, trace)):
                yield trace


def _is_near(parts: Parts, trace: Trace) -> bool:
    """Return whether a run is of this session, or says that it is of its notebook before the kernel began anew.

    Its file lies in the workspace, where a clone may bring one that says so too: that one is asked about all the same.
    """
    notebook = parts.notebook
    same = notebook is not None and trace.started.notebook == notebook
    return same or parts.runs.is_own(trace.run)


def _described(trace: Trace) -> str:
    at = time.strftime("%Y-%m-%d %H:%M", time.localtime(trace.started.at))
    who = printable(trace.started.notebook) if trace.started.notebook else "another session"
    return f"{trace.run[-12:]} of {who}, {at}: {printable(shorten(trace.prompt, 80))}"


async def _ask(parts: Parts, trace: Trace, restores: Sequence[Restore]) -> None:
    """Ask whether what another session did is to be taken back: whose run it is, when, and each file. Raises."""
    effects = [_made_by(restore.place.path, restore.content is None)[1] for restore in restores]
    preview = "\n".join(restore.diff for restore in restores)
    detail = question_detail(effects, preview, {}, parts.redactor)
    whose = DetailLine(
        "note", f"This session did not change them; the record says that it was {_described(trace)}"
    )
    question = Question("undo", replace(detail, lines=(whose, *detail.lines)), (), trace.run)
    answer = await parts.ask(question)
    if answer in ("once", "always"):
        return
    why = (
        "nobody is here to be asked. Undo it from its own notebook, or from a notebook or terminal with you at it"
        if answer in ("nobody", "unanswered")
        else "you said no"
    )
    raise UndoDeclinedError(f"nothing was undone: the run is {_described(trace)}; {why}")


def _judge(policy: Policy) -> Judge:
    """Return what the rules say of a restore: what they say when the person makes that change by hand."""

    def judge(place: str, removes: bool) -> str | None:
        action, effect = _made_by(place, removes)
        verdict = policy.decide(action, Purity.WRITE, (effect,), "person")
        return verdict.reason if verdict.decision == "deny" else None

    return judge


def _made_by(place: str, removes: bool) -> tuple[str, Effect]:
    """Return the action that a restore is as good as, and its effect."""
    if removes:
        return "file__delete", Effect(EffectKind.DELETE, place)
    return "file__write", Effect(EffectKind.WRITE, place)


async def _restore(
    parts: Parts, restores: Sequence[Restore], calls: Sequence[_Calls], what: str, left: Sequence[str]
) -> tuple[str, ...]:
    """Write the restores and take back what calls did to the notebook, as a run of its own; say what became of that.

    Raises:
        UndoRefusedError: a file cannot be restored; then nothing of the notebook is taken back either.
    """
    run = await run_lifecycle.by_hand(parts, what)
    try:
        apply(restores)
    except UndoRefusedError as error:
        run_lifecycle.finish(parts, run, "error", error=str(error))
        raise
    reversals = [each for named in reversed(calls) for each in parts.services.reversals.take(*named)]

    def revert() -> list[str]:
        return [line for each in reversals for line in each.revert()]

    said = tuple(dict.fromkeys(await ENGINE.main_thread(revert))) if reversals else ()
    files = (f"restored {', '.join(restore.path for restore in restores)}",) if restores else ()
    run_lifecycle.finish(parts, run, "ok", answer=parts.redactor.text("; ".join((*files, *said, *left))))
    return said


_Calls = tuple[str, frozenset[str]]  # a run, and calls of it


def _calls(trace: Trace, step: int | None = None) -> list[_Calls]:
    """Return the calls of a run, or of one step of it, and those that they made in their turn."""
    own = [call.id for call in trace.calls if step in (None, call.resolved.step)]
    inner = [each for call in own if call in trace.inner for each in _calls(trace.inner[call])]
    return [(trace.run, frozenset(own)), *inner]


def _in_notebook(parts: Parts, trace: Trace) -> bool:
    return any(parts.services.reversals.has(*each) for each in _calls(trace))


def _what(trace: Trace) -> str:
    """Return the prompt of the run that undoes another one: by the part of its id that tables show and verbs take."""
    return f"undo {trace.run[-12:]}"


def _undid(trace: Trace) -> str | None:
    """Return the prompt under which `undo` recorded a run, which names what it undid; None for every other run."""
    by_hand = trace.started.run_kind == "manual" and trace.status == "ok"
    return trace.prompt if by_hand and not trace.calls and trace.prompt.startswith("undo ") else None


def _changed(trace: Trace) -> bool:
    for run in (trace, *trace.all_inner):
        announced = _announcements(run)
        if any(call.finished.changes if call.finished else announced.get(call.id) for call in run.calls):
            return True
    return False


async def _ordered(parts: Parts, trace: Trace, step: int | None = None) -> list[tuple[float, dict[str, Any]]]:
    """Return the changes of a run with their times, oldest first: those of a call and of what it called go together."""
    found: list[tuple[float, dict[str, Any]]] = []
    by_call = _announcements(trace)
    for call in trace.calls:
        if step not in (None, call.resolved.step):
            continue
        events = by_call.get(call.id, [])
        end = call.finished.at if call.finished else trace.events[-1].at
        timed = _timed(await _changes(parts, call, events), events, end)
        if call.id in trace.inner:
            inner = await _ordered(parts, trace.inner[call.id])
            timed = sorted([*timed, *inner], key=lambda pair: pair[0])
        found += timed
    return found


def _announcements(trace: Trace) -> dict[str, list[FileChanging]]:
    """Return the changes that each call announced."""
    found: dict[str, list[FileChanging]] = {}
    for event in trace.events:
        if isinstance(event, FileChanging):
            found.setdefault(event.call, []).append(event)
    return found


def _timed(
    changes: list[dict[str, Any]], events: Sequence[FileChanging], end: float
) -> list[tuple[float, dict[str, Any]]]:
    """Return the changes of a call with the times when they were announced, or that of its end."""
    announced: dict[str, list[float]] = {}
    for event in events:
        announced.setdefault(event.path, []).append(event.at)
    timed = []
    for change in changes:
        times = announced.get(str(change.get("path")), [])
        timed.append((times.pop(0) if times else end, change))
    return timed


async def _changes(parts: Parts, call: Call, events: Sequence[FileChanging]) -> list[dict[str, Any]]:
    """Return the changes of a call; of a killed one those that it announced, unless the file is as it was before."""
    if call.finished is not None:
        return list(call.finished.changes)
    made = []
    for event in _last_of_each(events):
        change = {name: getattr(event, name) for name in ("path", "previous_blob", "sha256", "mode")}
        if content(parts.workspace, event.path) != (await _recorded(parts, change)).previous:
            made.append(change)
    return made


def _last_of_each(events: Sequence[FileChanging]) -> list[FileChanging]:
    """Return the last change of each file, since it overtook those before."""
    return list({event.path: event for event in events}.values())


async def _recorded(parts: Parts, change: dict[str, Any]) -> RecordedChange:
    blob = change.get("previous_blob")
    store = parts.services.blobs
    previous = None
    if blob is not None:
        if store is None or not blob:  # "" stands for content that was there and could not be kept
            raise NothingToUndoError(
                f"what {change['path']} held before was not kept: the session kept no blobs"
            )
        try:
            if is_local(store) and store.describe(blob).size > LARGEST:
                raise NothingToUndoError(
                    f"what {change['path']} is said to have held is larger than any that is kept"
                )
            previous = await store.load_bytes(blob)
        except BlobStoreError as error:
            raise NothingToUndoError(f"what {change['path']} held before cannot be read: {error}") from error
    return RecordedChange(str(change["path"]), previous, change.get("sha256"), change.get("mode"))
