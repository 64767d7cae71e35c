"""The wrappers that a model sees, whatever is installed: list, describe, invoke, search, inspect.

Each answer is planned here and recorded by the `Invoker` like any action. What a model gets wrong about a wrapper
(malformed JSON, an action's name in a wrapper's place) is answered here, mechanically and with the way out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, cast

from reyn_jupyter.catalog.action import Action
from reyn_jupyter.catalog.arguments.argument_repair import read_object
from reyn_jupyter.catalog.arguments.preparation import lift, misplaced, prepare
from reyn_jupyter.catalog.discovery.listing import LARGEST_LIMIT, describe_action, list_actions
from reyn_jupyter.catalog.discovery.listing_filter import InvalidListingError, select_categories
from reyn_jupyter.catalog.discovery.search_results import SEARCH_LIMIT, Found, as_query, search_answer
from reyn_jupyter.catalog.discovery.visibility import nearest_category, search_hint
from reyn_jupyter.catalog.names import CHOOSE, NameEncoder, bare_name
from reyn_jupyter.catalog.resolve import UnknownActionError, find
from reyn_jupyter.catalog.suggest import unambiguous
from reyn_jupyter.catalog.text_normalization import quoted
from reyn_jupyter.catalog.wrapper_specs import ANSWER, OTHER, wrapper_specs
from reyn_jupyter.outputs.blobs.ids import InvalidBlobIdError
from reyn_jupyter.outputs.byte_source import AROUND
from reyn_jupyter.outputs.content import BlobNotFoundError, BlobStoreError
from reyn_jupyter.outputs.convert import to_json
from reyn_jupyter.outputs.inspect import inspect
from reyn_jupyter.outputs.selectors import SelectorError
from reyn_jupyter.runtime.call.invoke import ActionCall, ImmediateAnswer, Invoker, PlannedCall
from reyn_jupyter.runtime.call.unknown_names import needs_search, with_found
from reyn_jupyter.runtime.record.events import Flag, Problem
from reyn_jupyter.runtime.run import Outcome, Run
from reyn_jupyter.runtime.services import Services, Source
from reyn_jupyter.support.encoding import clean
from reyn_jupyter.support.text import did_you_mean, for_models, nearest

LIKE_ARGS = ("arguments", "parameters", "params", "input")  # what models write for `args`
HEAD = 200  # characters of malformed text that are quoted back
BY_WORDS = "Ranked by words alone: try other words if nothing fits."
GATE_WORDS = 300  # bytes of what is said beside a listing that was not asked for so


class Wrappers:
    """Plans tool calls: those of a model by their raw JSON, those of a person by their arguments.

    Args:
        services: settings, blob store, redactor.
        invoker: the one way to a handler; it records every answer.
    """

    def __init__(self, services: Services, invoker: Invoker) -> None:
        self._services = services
        self._invoker = invoker
        self._wrappers: dict[str, Callable[[ActionCall, dict[str, Any], Run], PlannedCall]] = {
            "list_actions": self._list,
            "describe_action": self._describe,
            "invoke_action": self._invoke,
            "search_actions": self._search,
            "inspect": self._inspect,
        }

    def plan(
        self,
        call_id: str,
        name: str,
        arguments: str,
        run: Run,
        step: int,
        encoder: NameEncoder | None = None,
        flags: tuple[Flag, ...] = (),
    ) -> PlannedCall:
        """Plan one tool call of a model. Never raises: whatever is wrong is an answer.

        Args:
            encoder: decodes function names of direct tools (flat surface, hot list) into qualified names.
            flags: what is told of the call in the record besides.
        """
        name = bare_name(name, self._wrappers)
        wrapper = self._choose if name == CHOOSE and run.discovery.choices else self._wrappers.get(name)
        quoted_name = name if wrapper is not None else self._shown(name)
        given: Any = {}
        fault = None
        try:
            given = json.loads(arguments) if arguments.strip() else {}
            if not isinstance(given, dict):
                fault = f"a JSON object is needed, not {_kind(given)}"
        except (ValueError, RecursionError) as error:
            fault = str(error)
        if fault is not None and (meant := read_object(arguments)) is not None:
            given, fault, flags = meant, None, (*flags, "decoded")
        if fault is not None:
            return self._malformed(
                ActionCall(call_id, name, None, quoted_name, arguments, flags, step), run, fault
            )
        call = ActionCall(call_id, name, None, quoted_name, given, flags, step)
        if wrapper is not None:
            return wrapper(call, given, run)
        return self._direct(call, given, run, encoder)

    def call(self, name: str, given: dict[str, Any], run: Run) -> PlannedCall:
        """Plan one call by hand. What is no JSON in its arguments is recorded by the name of its type."""
        call = ActionCall("1", name, None, wrapper=name, given=to_json(given), step=1)
        return self._wrappers[name](call, given, run)

    def refuse(
        self,
        call_id: str,
        name: str,
        arguments: str,
        run: Run,
        step: int,
        why: str,
        hint: str,
        flags: tuple[Flag, ...] = (),
    ) -> Outcome:
        """Answer a call that is not run, and record it."""
        given = self._shown(arguments)
        call = ActionCall(call_id, name, None, wrapper=self._shown(name), given=given, flags=flags, step=step)
        return self._invoker.record(call, run, ImmediateAnswer({"error": why, "hint": hint}))

    def point(
        self, call_id: str, name: str, arguments: str, run: Run, step: int, text: str, flags: tuple[Flag, ...]
    ) -> Outcome:
        """Answer a call with a sentence that points to what there is already, and record it as no call of an action."""
        try:
            given = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            given = self._shown(arguments)
        call = ActionCall(call_id, name, None, wrapper=self._shown(name), given=given, flags=flags, step=step)
        return self._invoker.record(call, run, ImmediateAnswer(text))

    def _shown(self, text: str) -> str:
        """Return the head of a text of the model; a secret is taken out before it can be cut in two."""
        return self._services.redactor.text(clean(text[: HEAD + AROUND]))[:HEAD]

    def _malformed(self, call: ActionCall, run: Run, why: str) -> PlannedCall:
        raw = str(call.given)
        payload = {
            "error": f"The arguments of {call.wrapper!r} are not valid JSON: {why[:HEAD]}",
            "received": self._shown(raw) + ("…" if len(raw) > HEAD else ""),
            "hint": "Send the call again with one JSON object as its arguments.",
        }
        return self._invoker.answer(call, run, ImmediateAnswer(payload, "malformed"))

    def _direct(
        self, call: ActionCall, given: dict[str, Any], run: Run, encoder: NameEncoder | None
    ) -> PlannedCall:
        """Plan a call of a tool that is no wrapper: a direct tool, an action's name (salvaged), or a near miss."""
        decoded = encoder.decode(call.name) if encoder is not None else None
        if decoded is not None:
            call = call.meaning(decoded.text, given)
            try:
                return self._invoker.plan(call, find(run.snapshot, decoded), run)
            except UnknownActionError as error:
                return self._invoker.answer(call, run, ImmediateAnswer(error.payload, error.problem))
        meant = self._near_wrapper(call.name)
        if meant is not None:
            payload = {"error": f"There is no tool {call.wrapper!r}.", "hint": did_you_mean([meant])}
            return self._invoker.answer(call, run, ImmediateAnswer(payload, "unknown"))
        call = call.meaning(call.name, given)
        gated = self._gated(call, run)
        if gated is not None:
            return gated
        return self._invoker.planned_when_known(call, run, lambda known: self._salvaged(known, given, run))

    def _salvaged(self, call: ActionCall, given: dict[str, Any], run: Run) -> PlannedCall:
        try:
            action = self._find(run, call.name)
        except UnknownActionError as error:
            return self._unknown(call, error, run, salvaged=True)
        wrapped = set(given) == {"args"} and "args" not in action.input_schema.get("properties", {})
        args = given["args"] if wrapped and isinstance(given["args"], dict | str) else given
        return self._invoker.plan(call.meaning(call.name, args, ("salvaged",)), action, run)

    def _near_wrapper(self, name: str) -> str | None:
        """Return the wrapper that a made-up tool name is nearest to: ``listActions``, ``list_action``, ``invoke``."""
        plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name[:HEAD]).lower().replace("-", "_")
        if "__" in plain or "." in plain:
            return None
        for wrapper in self._wrappers:
            if wrapper == plain or wrapper.partition("_")[0] == plain:
                return wrapper
        return nearest(plain, self._wrappers, cutoff=0.85)

    def _find(self, run: Run, name: str) -> Action:
        """Return the action of a name. Raises UnknownActionError, which quotes the name without its secrets."""
        try:
            return find(run.snapshot, name)
        except UnknownActionError:
            shown = self._services.redactor.text(name)
            if shown == name:
                raise
            return find(run.snapshot, shown)

    def _unknown(
        self, call: ActionCall, error: UnknownActionError, run: Run, *, salvaged: bool = False
    ) -> PlannedCall:
        settings = run.settings.router
        if settings.repair and run.actor != "person":
            repaired = unambiguous(run.snapshot, call.name)
            if repaired is not None:
                flags: tuple[Flag, ...] = (*call.flags, *(("salvaged",) if salvaged else ()), "repaired")
                return self._invoker.plan(call.meaning(repaired.name.text, call.args, flags), repaired, run)
        return self._answer_unknown(call, error, run)

    def _answer_unknown(self, call: ActionCall, error: UnknownActionError, run: Run) -> PlannedCall:
        """Answer a name that leads to no action. If no name is surely meant, a search adds what the words mean."""

        def answered(error: UnknownActionError) -> ImmediateAnswer:
            if run.actor == "person":
                return ImmediateAnswer(error.payload_for_person, error.problem)
            return ImmediateAnswer(error.payload, error.problem, advice=error.hidden or "")

        if not needs_search(error, run.snapshot, call.name, self._services):
            return self._invoker.answer(call, run, answered(error))

        async def look() -> ImmediateAnswer:
            return answered(await with_found(error, run.snapshot, call.name, self._services))

        return self._invoker.answering(call, run, look, error.problem)

    def _invoke(self, call: ActionCall, given: dict[str, Any], run: Run) -> PlannedCall:
        forgive = run.settings.router.forgive
        as_told = given.keys() == {"action_name", "args"} and isinstance(given["action_name"], str)
        name, args, lifted = (
            (given["action_name"], given["args"], ()) if as_told else lift(given, forgive=forgive)
        )
        flags = cast("tuple[Flag, ...]", lifted)
        if name in self._wrappers:
            payload = {"error": f"{name} is a tool, not an action.", "hint": f"Call {name} itself."}
            return self._invoker.answer(call.meaning(name), run, ImmediateAnswer(payload, "unknown"))
        if not isinstance(name, str) or not name:
            payload = self._usage("invoke_action", "action_name is missing or no string")
            return self._invoker.answer(call, run, ImmediateAnswer(payload, "invalid"))
        if not as_told:
            beside = misplaced(given, forgive=forgive)
            other = [key for key in given if key in LIKE_ARGS]
            if other and "args" not in given and len(given) == 2:
                payload = self._usage(
                    "invoke_action", f"the action's arguments go into args, not into {other[0]}"
                )
                return self._invoker.answer(call.meaning(name), run, ImmediateAnswer(payload, "invalid"))
            if beside:
                payload = self._usage("invoke_action", "arguments stand beside args") | {"invalid": beside}
                return self._invoker.answer(call.meaning(name), run, ImmediateAnswer(payload, "invalid"))
        call = call.meaning(name, args, flags)
        gated = self._gated(call, run)
        if gated is not None:
            return gated
        return self._invoker.planned_when_known(call, run, lambda known: self._invocation(known, run))

    def _invocation(self, call: ActionCall, run: Run) -> PlannedCall:
        try:
            action = self._find(run, call.name)
        except UnknownActionError as error:
            return self._unknown(call, error, run)
        return self._invoker.plan(call, action, run)

    def _gated(self, call: ActionCall, run: Run) -> PlannedCall | None:
        """Answer a model's call before any listing with the listing that it skipped; None where the call may go on."""
        if not run.discovery.gate or run.discovery.listed or run.actor == "person":
            return None
        category = nearest_category(run.snapshot, call.name)
        payload: dict[str, Any] = {
            "error": "Not run yet: look at the catalog before invoking or describing an action.",
            "hint": "These are real names. Send the call again with one of them and arguments that fit it.",
            **list_actions(
                run.snapshot,
                [category] if category else None,
                schemas=run.settings.router.list_schemas,
                reads_first=run.discovery.reads_first,
                most=run.discovery.most,
                answer_bytes=run.settings.outputs.answer_bytes - GATE_WORDS,
            ),
        }
        self._listed(run, payload)
        return self._invoker.answer(call, run, ImmediateAnswer(payload, "gated"))

    def _list(self, call: ActionCall, given: dict[str, Any], run: Run) -> PlannedCall:
        checked = self._checked(call, given, run)
        if isinstance(checked, PlannedCall):
            return checked
        call, prepared = checked
        hint = None
        if run.discovery.hint_due and run.actor != "person" and run.client is None:
            hint = self._search_hint_for_model
        page = partial(
            list_actions,
            run.snapshot,
            prepared.get("category"),
            offset=prepared.get("offset", 0),
            limit=prepared.get("limit", 20),
            schemas=run.settings.router.list_schemas,
            reads_first=run.discovery.reads_first and run.actor != "person",
            most=run.discovery.most if run.actor != "person" else LARGEST_LIMIT,
            hint=hint,
        )
        room = run.settings.outputs.answer_bytes
        payload = page(filter=prepared.get("filter"), answer_bytes=room)
        if run.actor != "person" and payload.get("total") == 0 and prepared.get("filter"):
            why = f"Nothing matches the filter {quoted(prepared['filter'])}, so this is the page without it."
            unfiltered = page(answer_bytes=room - GATE_WORDS)
            note = f"{why} {unfiltered.pop('note', '')}".strip()
            payload = {"note": note, **unfiltered, "suggestions": payload.get("suggestions", [])}
        if "error" in payload:
            return self._invoker.answer(
                call, run, ImmediateAnswer(payload, "stale" if payload.get("redirects") else "invalid")
            )
        self._listed(run, payload)
        run.discovery.hint_due = False
        return self._invoker.answer(call, run, ImmediateAnswer(payload))

    @staticmethod
    def _listed(run: Run, payload: dict[str, Any]) -> None:
        run.discovery.listed = True
        run.discovery.names = tuple(item["qualified_name"] for item in payload.get("items", ()))

    def _describe(self, call: ActionCall, given: dict[str, Any], run: Run) -> PlannedCall:
        checked = self._checked(call, given, run)
        if isinstance(checked, PlannedCall):
            return checked
        call, prepared = checked
        call = call.meaning(prepared["action_name"], None, call.flags)
        gated = self._gated(call, run)
        if gated is not None:
            return gated
        return self._invoker.planned_when_known(call, run, lambda known: self._description(known, run))

    def _description(self, call: ActionCall, run: Run) -> PlannedCall:
        try:
            action = self._find(run, call.name)
        except UnknownActionError as error:
            return self._answer_unknown(call, error, run)
        described = describe_action(run.snapshot, action.name, answer_bytes=run.settings.outputs.answer_bytes)
        return self._invoker.answer(call, run, ImmediateAnswer(described, name=action.name.text))

    @property
    def _search_hint(self) -> dict[str, str] | None:
        """Return the reason why search is hidden; None when it is offered."""
        search = self._services.search
        return search.hint if search is not None else search_hint()

    @property
    def _search_hint_for_model(self) -> dict[str, str] | None:
        """Return the reason why search is hidden alone: what turns it on is for people."""
        hint = self._search_hint
        return None if hint is None else {"reason": for_models(hint["reason"])}

    def _search(self, call: ActionCall, given: dict[str, Any], run: Run) -> PlannedCall:
        search = self._services.search
        if search is None or not (search.offered or run.client is not None):
            payload = {
                "error": "search_actions is not available: no action can be found by meaning yet.",
                "hint": "Use list_actions, narrowed with category=[…] and filter.",
                "search": self._search_hint if run.actor == "person" else self._search_hint_for_model,
            }
            return self._invoker.answer(call, run, ImmediateAnswer(payload, "hidden"))
        checked = self._checked(call, given, run)
        if isinstance(checked, PlannedCall):
            return checked
        call, prepared = checked
        try:
            parts = select_categories(run.snapshot, prepared.get("category"))
            query = as_query(prepared["query"])
        except InvalidListingError as error:
            problem: Problem = "stale" if error.payload.get("redirects") else "invalid"
            return self._invoker.answer(call, run, ImmediateAnswer(error.payload, problem))
        limit = min(prepared.get("limit", SEARCH_LIMIT), LARGEST_LIMIT)
        within = [part.category.name for part in parts]

        async def look() -> ImmediateAnswer:
            await search.ready(run.whole)
            found = await search.find(run.whole, query, limit, within) if within else Found(())
            if not (search.offered or found.note):  # a client may search all the same
                found = replace(found, note=BY_WORDS)
            payload = search_answer(found, run.settings.outputs.answer_bytes)
            if payload["items"]:
                self._listed(run, payload)
            return ImmediateAnswer(payload)

        return self._invoker.answering(call, run, look)

    def _choose(self, call: ActionCall, given: dict[str, Any], run: Run) -> PlannedCall:
        """Note what a model chose of those that it was shown; the first choice of a step counts."""
        discovery = run.discovery
        named = next((given[key] for key in ("action", "action_name", "name") if key in given), None)
        chosen = named.strip() if isinstance(named, str) else ""
        if chosen not in discovery.choices and run.snapshot.named(chosen) is None:
            shown = self._shown(chosen) or "Nothing"
            payload = {
                "error": f"{shown} cannot be chosen.",
                "hint": f"Choose one of: {', '.join(discovery.choices)}.",
            }
            return self._invoker.answer(call, run, ImmediateAnswer(payload, "invalid"))
        if discovery.chosen is not None:
            payload = {"error": "One action at a time.", "hint": f"{discovery.chosen} was chosen."}
            return self._invoker.answer(call, run, ImmediateAnswer(payload, "invalid"))
        discovery.chosen = chosen
        next_step = {ANSWER: "Answer the person now.", OTHER: "Choose one of the others."}
        payload = {"chosen": chosen, "hint": next_step.get(chosen, "Call it now, with its arguments.")}
        return self._invoker.answer(call, run, ImmediateAnswer(payload))

    def _inspect(self, call: ActionCall, given: dict[str, Any], run: Run) -> PlannedCall:
        checked = self._checked(call, given, run)
        if isinstance(checked, PlannedCall):
            return checked
        call, prepared = checked

        async def look() -> ImmediateAnswer:
            payload = await self.look(prepared, run.settings.outputs.answer_bytes)
            seen = (Source("blob", str(prepared["blob_id"])),) if isinstance(payload, str) else ()
            return ImmediateAnswer(payload, sources=seen)

        return self._invoker.answering(call, run, look)

    async def look(self, given: dict[str, Any], answer_bytes: int) -> dict[str, Any] | str:
        """Return the answer of `inspect`: the text, secrets covered before anything is cut, or an error as a dict."""
        store = self._services.blobs
        if store is None:
            return {
                "error": "This session keeps no blobs.",
                "hint": "Every result is in the conversation in full.",
            }
        try:
            redactor = self._services.redactor
            text = await inspect(
                store, given["blob_id"], given.get("selector"), cap=answer_bytes, mask=redactor.masked
            )
            return redactor.text(text)
        except (SelectorError, InvalidBlobIdError) as error:
            return {"error": str(error), "hint": error.hint}
        except BlobNotFoundError as error:
            return {"error": str(error), "hint": "Use an id that a result showed as [blob:<id>]."}
        except BlobStoreError as error:
            return {"error": f"The blob could not be read: {error}", "hint": "Run the action again."}

    def _checked(
        self, call: ActionCall, given: dict[str, Any], run: Run
    ) -> tuple[ActionCall, dict[str, Any]] | PlannedCall:
        """Read a wrapper's own arguments, forgiven and validated like an action's; record what was forgiven."""
        schema = _schemas()[call.wrapper]
        forgive = run.settings.router.forgive
        category = given.get("category")
        flags = call.flags
        if forgive and isinstance(category, str) and not category.lstrip().startswith("["):
            given, flags = {**given, "category": [category]}, (*flags, "coerced")
        prepared = prepare(schema, given, forgive=forgive)
        if flags or prepared.flags:
            flags = tuple(dict.fromkeys((*flags, *cast("tuple[Flag, ...]", prepared.flags))))
            call = call.meaning(call.name, call.args, flags)
        if prepared.invalid:
            payload = {
                "error": f"Invalid arguments for {call.wrapper}.",
                "invalid": prepared.invalid,
                "input_schema": schema,
                "hint": "Correct the arguments named in invalid and send the call again.",
            }
            return self._invoker.answer(call, run, ImmediateAnswer(payload, "invalid"))
        return call, dict(prepared.args)

    @staticmethod
    def _usage(wrapper: str, why: str) -> dict[str, Any]:
        return {
            "error": f"Invalid arguments for {wrapper}: {why}.",
            "input_schema": _schemas()[wrapper],
            "hint": 'Call it like {"action_name": "<name from list_actions>", "args": {…}}.',
        }


@cache
def _schemas() -> dict[str, dict[str, Any]]:
    """Return the wrappers' schemas. Category names stay open in them: the listing checks them, and knows redirects."""
    specs = wrapper_specs((), search=True, inspect=True)
    return {spec["function"]["name"]: spec["function"]["parameters"] for spec in specs}


def _kind(value: object) -> str:
    return {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}.get(
        type(value), "a number"
    )
