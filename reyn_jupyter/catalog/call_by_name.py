"""The arguments of a call, and, for an action that calls another by name, those of the other action within them.

Invariant: what stands in a call for another action is held to that action's schema, repaired like its own arguments,
and told under its place in the call; a name that leads to no action is answered like any other, with suggestions in the
words of the call. `prepare_call` raises nothing, whatever a model sends or a category's rule does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from reyn_jupyter.catalog.action import Arguments, CalledAction, calls_nothing
from reyn_jupyter.catalog.arguments.preparation import Prepared, prepare
from reyn_jupyter.catalog.arguments.references import child
from reyn_jupyter.catalog.dispatch import CatalogError, UnknownActionError
from reyn_jupyter.catalog.names import SEPARATOR, ActionName, MalformedNameError
from reyn_jupyter.catalog.resolve import find
from reyn_jupyter.catalog.suggest import suggest_entries
from reyn_jupyter.support.encoding import clip_line
from reyn_jupyter.support.text import enumerate_words

if TYPE_CHECKING:
    from reyn_jupyter.catalog.action import Action, Arrival
    from reyn_jupyter.catalog.arguments.schema_validation import Invalid
    from reyn_jupyter.catalog.snapshot import CatalogSnapshot


@dataclass(frozen=True)
class PreparedCall:
    """The arguments of a call, ready or not.

    Attributes:
        prepared: the whole arguments.
        action: the one whose schema they do not fit, when they are invalid.
        held_by: the argument that holds what that action takes; None for the call's own arguments.
    """

    prepared: Prepared
    action: Action
    held_by: str | None = None


def called_action(
    snapshot: CatalogSnapshot, action: Action, args: Mapping[str, Any]
) -> tuple[Action, CalledAction] | None:
    """Return the action that a call is for by name, and where the call has what it takes; None for other calls.

    Args:
        snapshot: the one that the action is of.
        action: the one that is invoked.
        args: its arguments, valid as far as its own schema goes.

    Raises:
        UnknownActionError: the name leads to no action on offer.
        CatalogError: the category's own rule failed.
    """
    called = _called(snapshot, action, args)
    return None if called is None else (find(snapshot, called.name), called)


def arrival_of(
    snapshot: CatalogSnapshot, name: str, raw_args: object, *, forgive: bool = True
) -> Arrival | None:
    """Return what tells whether an action that is not on offer will be; None where there is nothing to wait for.

    Args:
        snapshot: the one of now.
        name: of the action that is invoked.
        raw_args: its arguments as they came: they may name the action that the call is for.
        forgive: see `prepare`.
    """
    try:
        action = snapshot.named(name)
        if action is None:
            parsed = ActionName.parse(name)
            action = snapshot.get(parsed)
        if action is not None:
            rule = snapshot.tables.rule(action.name)
            if rule is None or rule.calls is calls_nothing:
                return None
            called = _called(snapshot, action, prepare(action.input_schema, raw_args, forgive=forgive).args)
            if called is None:
                return None
            parsed = ActionName.parse(called.name)
            if snapshot.get(parsed) is not None:
                return None
    except (MalformedNameError, CatalogError):
        return None  # the answer to the call says what is wrong
    part = snapshot.slices.get(parsed.category)
    resources = part.category.resources if part is not None and part.visible else None
    return None if resources is None else resources.arrival(parsed.entry)


def prepare_call(
    snapshot: CatalogSnapshot, action: Action, raw_args: object, *, forgive: bool = True
) -> PreparedCall:
    """Read and validate the arguments of one call; see `prepare`.

    Args:
        snapshot: the one that the action is of.
        action: the one that is invoked.
        raw_args, forgive: see `prepare`.
    """
    whole = prepare(action.input_schema, raw_args, forgive=forgive)
    # Below the level of single arguments may stand what only the other action's schema knows of, references above all.
    if any(fault["path"].count("/") < 2 for fault in whole.invalid):
        return PreparedCall(whole, action)
    try:
        called = _called(snapshot, action, whole.args)
    except CatalogError as error:
        return PreparedCall(replace(whole, invalid=[{"path": "", "message": str(error)}]), action)
    if called is None:
        return PreparedCall(whole, action)
    try:
        target = find(snapshot, called.name)
    except UnknownActionError as error:
        return PreparedCall(replace(whole, invalid=[_unknown(snapshot, error, called, whole.args)]), action)
    return _with_inner(whole, action, target, called.held_by, forgive)


def _called(snapshot: CatalogSnapshot, action: Action, args: Mapping[str, Any]) -> CalledAction | None:
    rule = snapshot.tables.rule(action.name)
    if rule is None or rule.calls is calls_nothing:
        return None
    try:
        called = rule.calls(dict(args))
    except Exception as error:
        raise CatalogError(
            action.name.category, f"its rule for calls by name failed with {type(error).__name__}"
        ) from error
    if called is not None and not isinstance(called, CalledAction):
        raise CatalogError(
            action.name.category,
            f"its rule for calls by name gave a {type(called).__name__}, no CalledAction",
        )
    return called


def _with_inner(whole: Prepared, action: Action, target: Action, held_by: str, forgive: bool) -> PreparedCall:
    place = child("", held_by)
    own = [fault for fault in whole.invalid if not fault["path"].startswith(f"{place}/")]
    inner = prepare(target.input_schema, whole.args.get(held_by), forgive=forgive)
    told: list[Invalid] = [{**fault, "path": place + fault["path"]} for fault in inner.invalid]
    args: Arguments = whole.args
    if inner.args and not inner.invalid:
        args = {**args, held_by: inner.args}
    flags = tuple(dict.fromkeys((*whole.flags, *inner.flags)))
    at_fault, holder = (action, None) if own else (target, held_by)
    return PreparedCall(Prepared(args, flags, own + told), at_fault, holder)


def _unknown(
    snapshot: CatalogSnapshot, error: UnknownActionError, called: CalledAction, args: Mapping[str, Any]
) -> Invalid:
    """Return the error for a name within a call that leads to no action.

    If the name is an entry alone, the suggestions are the nearest live entries of its category, in the same form.
    """
    suggestions = list(error.payload["suggestions"])
    prefix, _, entry = called.name.partition(SEPARATOR)
    if args.get(called.named_by) == entry:
        within = suggest_entries(snapshot, called.name)
        suggestions = [clip_line(name.removeprefix(prefix + SEPARATOR), 600) for name in within]
    message = str(error.payload["reason"])
    if suggestions:
        message += f" Did you mean {enumerate_words(suggestions, 'or')}?"
    return {"path": child("", called.named_by), "message": message}
