"""Outcomes of calls, as the history holds them: a value, a failure, a refusal, an interrupt.

Invariants: nothing leaves here unredacted, and a secret is covered before anything is cut; whatever a handler returned
or raised, nothing here raises. What a hint or an answer of ours tells a person to type stands apart, as `advice`: a
model cannot type it, and copies it. An error's message stays whole, and so does all where the caller's own words hold
such a line: nobody else's words pass for advice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, cast

import pydantic_core
from cachetools import LRUCache

from reyn_jupyter.catalog.action import Effect, Tool
from reyn_jupyter.config import Outputs
from reyn_jupyter.guard.permissions import PermissionVerdict
from reyn_jupyter.outputs.content import Inline, OutputPolicy, Stored, Structured, Text
from reyn_jupyter.outputs.convert import to_json, type_name
from reyn_jupyter.outputs.delivery import deliver
from reyn_jupyter.outputs.error_payloads import SHOWN_ERROR, bound_guide, deliver_error
from reyn_jupyter.outputs.parts.content_parts import lone_value
from reyn_jupyter.runtime.action_error import DENIED, ActionError, text_of
from reyn_jupyter.runtime.call.origins import origin_line, origins_of
from reyn_jupyter.runtime.run import LimitReachedError, Outcome, Run
from reyn_jupyter.runtime.services import FileChange, Services, Source
from reyn_jupyter.support.encoding import clean, clip, compact
from reyn_jupyter.support.text import split_advice, tells_to_type

NOTE = "reyn_note"  # in a frame's `attrs`: one sentence for whoever reads the result
NOTE_BYTES = 160
ADVICE_BYTES = 600
_SAID = ("reason", "hint", "note")  # what an answer says in words of ours
_MOST_REMEMBERED = 10_000  # stored results of which it is known whose texts they hold
FRAME_BYTES = 16_384  # of the description of a table in the record
PARTIAL = "What it had until then is in partial; it is not the whole result."


@dataclass
class Reports:
    """What a handler reported while it ran: file changes, sources, origins, advice, its result so far (None: none).

    `given` are the arguments of its call.
    """

    given: object = None
    changes: list[FileChange] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    partial: object = None
    origins: list[str] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)

    @property
    def kept(self) -> dict[str, Any]:
        return {
            "changes": [asdict(change) for change in self.changes],
            "sources": [source.recorded for source in self.sources],
        }


class OutcomeBuilder:
    """Makes the `Outcome` of a call."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._made_of: LRUCache[str, tuple[str, ...]] = LRUCache(_MOST_REMEMBERED)

    def origins(
        self,
        name: str,
        tool: Tool | None,
        reported: Sequence[str],
        sources: Iterable[Source],
        run: Run,
    ) -> tuple[str, ...]:
        """Return where texts of others in a result come from, without secrets; see `origins_of`."""
        services = self._services
        found = origins_of(name, tool, reported, sources, run, services.blobs, services.trust, self._made_of)
        redacted: tuple[str, ...] = services.redactor.value(found)
        return redacted

    @staticmethod
    def _with_line(text: str, line: str, policy: OutputPolicy, *, stored: bool) -> str:
        """Return the text with a line in brackets below it, "" for none; within a summary's bound where it is one."""
        if not line:
            return text
        line = f"\n{line}"
        if stored:
            text = clip(text, policy.summary_bytes - len(line.encode()))
        return text + line

    async def value(self, name: str, tool: Tool, value: object, run: Run, reports: Reports) -> Outcome:
        """Return the outcome of a value that a handler returned: inline, or stored with a summary."""
        redactor = self._services.redactor
        redactor.refresh()  # a handler may have logged in, or loaded an .env file
        if tool.guides and issubclass(type(value), dict):
            text = written(self.bounded(cast("dict[str, Any]", value), run))
            size, advice = len(text.encode()), self._advice(reports.advice)
            return Outcome(text, True, text, value, size=size, name=name, advice=advice, **reports.kept)
        policy, value = output_policy(run.settings.outputs), lone_value(value)
        delivered = await deliver(
            value,
            store=self._services.blobs,
            policy=policy,
            action=name,
            run=run.id,
            mask=redactor.masked,
        )
        note = clip(redactor.text(_note(value)), NOTE_BYTES)
        origins = self.origins(name, tool, reports.origins, reports.sources, run)
        text, stored = redactor.text(delivered.text), delivered.blob is not None
        if origins and delivered.blob is not None:
            self._made_of[delivered.blob] = origins
        for line in (f"[{note}]" if note else "", _told_origins(origins, run)):
            text = self._with_line(text, line, policy, stored=stored)
        return Outcome(
            text,
            True,
            text,
            plain(value),
            delivered.blob,
            delivered.content_kind,
            delivered.size,
            name,
            frame=_recordable(delivered.frame),
            note=note,
            origins=origins,
            advice=self._advice(reports.advice),
            **reports.kept,
        )

    async def failure(
        self, name: str, error: BaseException, run: Run, reports: Reports, tool: Tool | None = None
    ) -> Outcome:
        """Return the outcome of an exception that a tool raised; its whole text is stored when it is long."""
        self._services.redactor.refresh()
        plainly = isinstance(error, ActionError | LimitReachedError)
        code = error.code if isinstance(error, ActionError) else None
        message, hint, advice = text_of(error) or "no message", _hint(error), list(reports.advice)
        if run.actor != "person":
            hint, typed = _parted(
                hint, [reports.given, error.given if isinstance(error, ActionError) else None]
            )
            advice.append(typed)
        delivered = await deliver_error(
            message,
            kind=None if plainly else type_name(error),
            hint=hint,
            code=code,
            # What is stored of a call is one blob: its result as far as it got, where there is one.
            store=self._services.blobs if reports.partial is None else None,
            policy=output_policy(run.settings.outputs),
            action=name,
            run=run.id,
            mask=self._services.redactor.masked,
        )
        text = self._services.redactor.text(delivered.text)
        payload = pydantic_core.from_json(text)
        origins = self.origins(name, tool, reports.origins, reports.sources, run)
        if line := _told_origins(origins, run):
            payload["note"] = line
            text = written(payload)
        outcome = Outcome(
            text,
            False,
            payload,
            error,
            delivered.blob,
            "text",
            delivered.size,
            name,
            str(payload.get("error")),
            code,
            origins=origins,
            advice=self._advice(advice),
            **reports.kept,
        )
        return await self._with_partial(outcome, run, reports)

    async def _with_partial(self, outcome: Outcome, run: Run, reports: Reports) -> Outcome:
        """Return a failure with what the call had reported as its result until then, delivered like a result."""
        if reports.partial is None or not isinstance(outcome.payload, dict):
            return outcome
        redactor = self._services.redactor
        try:
            delivered = await deliver(
                reports.partial,
                store=self._services.blobs,
                policy=output_policy(run.settings.outputs),
                action=outcome.name,
                run=run.id,
                mask=redactor.masked,
            )
        except Exception as error:  # noqa: BLE001 - a thread of the handler's may still change it
            payload = {**outcome.payload, "partial": f"not kept: {type_name(error)}"}
            return replace(outcome, payload=payload, text=written(payload))
        payload = {key: value for key, value in outcome.payload.items() if key != "blob"}
        payload["hint"] = f"{payload.get('hint') or ''} {PARTIAL}".strip()
        if self._services.blobs is not None:
            payload["error"] = clip(str(payload["error"]), SHOWN_ERROR)
        payload = self.bounded(payload, run) | {"partial": redactor.text(delivered.text)}
        return replace(
            outcome,
            text=written(payload),
            payload=payload,
            blob=delivered.blob,
            content_kind=delivered.content_kind,
            size=delivered.size,
            error=str(payload["error"]),
            partial=True,
        )

    def denied(self, name: str, run: Run, effects: Sequence[Effect], verdict: PermissionVerdict) -> Outcome:
        """Return the outcome of a call that the gate denied; its code is that of a denial in the middle of a call."""
        return self._refusal(name, run, *denial(name, effects, verdict), code=DENIED)

    async def cut_short(self, name: str, run: Run, reports: Reports) -> Outcome:
        """Return the outcome of an interrupted call, with its result so far."""
        return await self._with_partial(self.interrupted(name, run, reports), run, reports)

    def interrupted(self, name: str, run: Run, reports: Reports) -> Outcome:
        """Return the outcome of an interrupted call, without waiting for anything."""
        done = "; ".join(f"{change.path} was already changed" for change in reports.changes)
        if run.caller is not None:
            who = f"the end of {run.caller.action}, which called it,"
        else:
            who = "the person" if run.client is None else "its client, or the end of serving,"
        error = f"interrupted by {who} while {name} ran" + (f"; {done}" if done else "")
        origins = self.origins(name, None, reports.origins, (), run)
        return self._refusal(name, run, error, "It may not have finished.", origins=origins, **reports.kept)

    def _refusal(
        self, name: str, run: Run, error: str, hint: str, code: str | None = None, **kept: Any
    ) -> Outcome:
        named = {} if code is None else {"code": code}
        payload, advice = parted_answer({"error": error, "hint": hint, **named}, run, name)
        payload, said = self.bounded(payload, run), self._advice([advice])
        return Outcome(
            written(payload),
            False,
            payload,
            name=name,
            error=payload["error"],
            code=code,
            advice=said,
            **kept,
        )

    def _advice(self, said: Iterable[str]) -> str:
        """Return what the person can do, each sentence once, without secrets."""
        text = " ".join(dict.fromkeys(filter(None, said)))
        return clip(self._services.redactor.text(text), ADVICE_BYTES)

    def bounded(self, payload: Mapping[str, Any], run: Run) -> dict[str, Any]:
        """Return a guiding answer (a listing, an error) within the bytes of an answer; redacted before it is cut."""
        redacted = self._services.redactor.value(dict(payload))
        fitting: dict[str, Any] = bound_guide(redacted, run.settings.outputs.answer_bytes)
        return fitting


def _parted(said: str, given: object) -> tuple[str, str]:
    """Return a sentence of ours as a model is told it, and what it tells a person to type."""
    told, typed = split_advice(said)
    return (said, "") if typed and tells_to_type(given) else (told, typed)


def parted_answer(payload: Mapping[str, Any], run: Run, given: object) -> tuple[dict[str, Any], str]:
    """Return an answer as the caller is told it, and what it tells a person to type where the caller is none.

    Args:
        given: the words of the call, which the answer may quote.
    """
    answer, advice = dict(payload), []
    if run.actor != "person":
        for key in _SAID:
            if isinstance(said := answer.get(key), str):
                answer[key], typed = _parted(said, given)
                advice.append(typed)
    return answer, " ".join(filter(None, advice))


def denial(name: str, effects: Sequence[Effect], verdict: PermissionVerdict) -> tuple[str, str]:
    """Return the words of a denial, and what to do next."""
    what = ", ".join(str(effect) for effect in effects) or "run it"
    return (
        f"Denied: {name} may not {what} ({verdict.reason}).",
        "Do not retry it. Go on without it, or tell the person what you would have done.",
    )


def _told_origins(origins: Sequence[str], run: Run) -> str:
    """Return the line that tells a model where strangers' texts are from; a person's own call gets its result bare."""
    return "" if run.actor == "person" else origin_line(origins)


def _note(value: object) -> str:
    """Return what a text says of itself, or a table in its `attrs`; "" where it says nothing or the value is none."""
    kind = type(value)  # never isinstance: that asks the value for its __class__
    if issubclass(kind, Text):
        return cast("Text", value).note
    if kind.__name__ != "DataFrame" or not kind.__module__.startswith("pandas"):
        return ""
    note = cast("Any", value).attrs.get(NOTE)
    return note if isinstance(note, str) else ""


def _recordable(frame: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return what restores a table where the record can hold it: a few rows may have thousands of columns."""
    return None if frame is None or len(written(frame)) > FRAME_BYTES else frame


@cache
def output_policy(outputs: Outputs) -> OutputPolicy:
    """Return the bounds of results that the settings give."""
    return OutputPolicy(**outputs.model_dump())


def plain(value: object) -> object:
    """Return a handler's value for ordinary code, taken out of its marker of the outputs room where it has one."""
    # By its type alone: a person's object may answer for its __class__ with code of its own.
    if issubclass(type(value), Stored):
        value = cast("Stored", value).content
    if issubclass(type(value), Text | Inline):
        return cast("Text", value).text
    return cast("Structured", value).value if issubclass(type(value), Structured) else value


def written(payload: Any) -> str:
    """Return a payload as compact JSON that can be encoded."""
    try:
        return pydantic_core.to_json(payload).decode()
    except (pydantic_core.PydanticSerializationError, ValueError, RecursionError):
        return clean(compact(to_json(payload)))


def _hint(error: BaseException) -> str:
    if isinstance(error, ActionError):
        return str(error.hint)
    if isinstance(error, LimitReachedError):
        return f"Raise {error.name}, or ask for less."
    return ""
