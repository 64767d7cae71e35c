"""Rules applied to a request: the steps that they make, and what of the request none of them takes.

Invariant: a clause counts as taken only if its verb is one that a rule in it serves, and every address and file that
it names is in a step. What is not taken comes back, as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

from reyn_jupyter.support.text import enumerate_words
from reyn_jupyter.workflows.planning.plan import WorkflowStep
from reyn_jupyter.workflows.planning.references import escape_literal, write_reference
from reyn_jupyter.workflows.planning.request_intents import (
    NormalizedRequest,
    RequestIntent,
    RequestPart,
    content_words,
)
from reyn_jupyter.workflows.planning.rules import ANY_VERB, InputSource, PlanRule, PlanRules, compiled

MOST_MATCHES = 200  # of rules in a request


@dataclass(frozen=True)
class UntakenIntent:
    """A clause that no rule takes, or not whole.

    Attributes:
        intent: the clause.
        why: in a sentence.
        parts: the addresses and files of it that are in no step.
    """

    intent: RequestIntent
    why: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleSteps:
    """What rules make of a request.

    Attributes:
        steps: in the order in which they can run.
        rest: what they do not take.
        unread: words of clauses that they take and of which they took no account.
    """

    steps: tuple[WorkflowStep, ...]
    rest: tuple[UntakenIntent, ...]
    unread: tuple[str, ...]


@dataclass(eq=False)
class _Match:
    """A rule in a clause. `spans` are places in the request."""

    rule: PlanRule
    clause: int
    spans: list[tuple[int, int]]
    groups: list[Mapping[str, str]]
    file: RequestPart | None = None
    before: list[_Match] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    @property
    def place(self) -> int:
        return self.spans[0][0]

    @property
    def files(self) -> int | None:
        """How many files it works on where it names them; None where only a run can tell."""
        for sources in self.rule.inputs.values():
            for each in sources:
                if each.groups is not None:
                    return sum(each.groups in one for one in self.groups)
                if each.outputs is not None:
                    return len(self.before)
        return None


def apply_rules(request: NormalizedRequest, rules: PlanRules, inputs: Mapping[str, Any]) -> RuleSteps:
    """Return the steps that rules make of a request.

    Args:
        request: its clauses are looked at one by one.
        rules: tried in their order; what one has taken of a clause no other takes.
        inputs: of the request, which rules may refer to.
    """
    matches = [each for at in range(len(request.intents)) for each in _matches(request, at, rules)]
    refused: dict[int, str] = {}
    # A rule that cannot be followed takes its clause with it, and what took its outputs cannot be followed either.
    while True:
        _connect(matches)
        left = []
        for each in matches:
            lacking = _lacking(each, inputs)
            if lacking:
                said = f"The rule {each.rule.name} finds no {enumerate_words(lacking, 'and no')} for it."
                refused.setdefault(each.clause, said)
            else:
                left.append(each)
        taken = {each.clause for each in left if _serves(each.rule, request.intents[each.clause].verb_class)}
        for clause in {each.clause for each in left} - taken:
            verb = request.intents[clause].verb
            refused.setdefault(clause, f"No rule that fits serves “{verb}”.")
        left = [each for each in left if each.clause in taken]
        if len(left) == len(matches):
            break
        matches = left
    steps = _in_order(_steps(matches, inputs), matches, request)
    rest, unread = [], []
    for at, intent in enumerate(request.intents):
        own = [each for each in matches if each.clause == at]
        if not own:
            if not _is_pointer(request, intent, matches, rules):
                rest.append(UntakenIntent(intent, refused.get(at, "No rule takes it.")))
            continue
        parts = [
            part.text
            for part in (*intent.urls, *intent.files)
            if not any(start < part.end and part.start < end for each in own for start, end in each.spans)
        ]
        if parts:
            rest.append(UntakenIntent(intent, f"No rule takes {enumerate_words(parts)}.", tuple(parts)))
        unread += _unread(request, intent, own, rules)
    return RuleSteps(tuple(steps), tuple(rest), tuple(dict.fromkeys(unread)))


def _serves(rule: PlanRule, verb_class: str | None) -> bool:
    return not rule.serves or verb_class is None or verb_class in rule.serves


def _matches(request: NormalizedRequest, clause: int, rules: PlanRules) -> list[_Match]:
    """Return the rules that fit a clause, each with what it takes of it."""
    intent = request.intents[clause]
    found: list[_Match] = []
    spans: list[tuple[int, int]] = []
    for rule in rules.rules:
        if rule.needs is not None and not compiled(rule.needs).search(intent.text):
            continue
        if rule.unless is not None and compiled(rule.unless).search(intent.text):
            continue
        own: list[_Match] = []
        for each in compiled(rule.pattern).finditer(intent.text):
            start, end = intent.start + each.start(), intent.start + each.end()
            inside = any(part.start < start < part.end for part in intent.urls)
            if start == end or inside or any(one < end and start < other for one, other in spans):
                continue
            groups = {name: value for name, value in each.groupdict().items() if value is not None}
            if own and rule.once:
                own[0].spans.append((start, end))
                own[0].groups.append(groups)
            else:
                own.append(_Match(rule, clause, [(start, end)], [groups]))
            if len(found) + len(own) >= MOST_MATCHES:
                break
        spans += [span for each in own for span in each.spans]
        found += own
    for match in found:
        if any(each.file for sources in match.rule.inputs.values() for each in sources):
            match.file = next(
                (part for part in intent.files if not any(a < part.end and part.start < b for a, b in spans)),
                None,
            )
            if match.file is not None:
                spans.append((match.file.start, match.file.end))
                match.spans.append((match.file.start, match.file.end))
    return found


def _source(match: _Match, sources: tuple[InputSource, ...], inputs: Mapping[str, Any]) -> InputSource | None:
    """Return the first source of an input that there is."""
    for each in sources:
        if (
            (each.file and match.file is not None)
            or (each.group is not None and each.group in match.groups[0])
            or (each.groups is not None and any(each.groups in one for one in match.groups))
            or (each.request is not None and each.request in inputs)
            or ((each.output or each.outputs) and match.before)
            or not (each.file or each.group or each.groups or each.request or each.output or each.outputs)
        ):
            return each
    return None


def _lacking(match: _Match, inputs: Mapping[str, Any]) -> list[str]:
    """Return the inputs that a match has no source for."""
    lacking = [name for name, given in match.rule.inputs.items() if _source(match, given, inputs) is None]
    listed = [name for name, written in _wanted(match).items() if "[" in written]
    if any(name in each.rule.outputs and each.files is None for each in match.before for name in listed):
        lacking.append("number of files")  # each would be a step, and only a run knows how many there are
    return lacking


def _wanted(match: _Match) -> dict[str, str]:
    """Return the outputs that a match would take of earlier steps: how each is written, by its name."""
    return {
        written.partition("[")[0].partition(".")[0]: written
        for sources in match.rule.inputs.values()
        if not (match.file is not None and any(each.file for each in sources))
        for each in sources
        if (written := each.output or each.outputs)
    }


def _connect(matches: list[_Match]) -> None:
    """Say for each match which others make what it takes.

    It takes what was made before it and not taken yet; where all is taken, what the last one took; where nothing comes
    before it ("put into this folder the video …"), what comes after it.
    """
    ordered = sorted(matches, key=lambda each: each.place)
    taken: set[_Match] = set()
    last: list[_Match] = []
    for at, match in enumerate(ordered):
        match.before = []
        wanted = _wanted(match)
        if not wanted:
            continue
        earlier = [each for each in ordered[:at] if wanted.keys() & set(each.rule.outputs)]
        later = [
            each for each in ordered[at + 1 :] if wanted.keys() & set(each.rule.outputs) and not _wanted(each)
        ]
        fresh = [each for each in earlier if each not in taken]
        match.before = fresh or [each for each in last if each in earlier] or earlier[-1:] or later
        taken |= set(match.before)
        if match.before:
            last = match.before


def _steps(matches: list[_Match], inputs: Mapping[str, Any]) -> list[WorkflowStep]:
    """Return the steps of all matches, those before whose outputs others take."""
    made: list[WorkflowStep] = []
    done: set[_Match] = set()

    def make(match: _Match) -> None:
        if match in done:
            return
        done.add(match)
        for each in match.before:
            make(each)
        wanted = _wanted(match)
        givers = [
            (step_id, written.replace("[0]", f"[{at}]"))
            for each in match.before
            for name, written in wanted.items()
            if name in each.rule.outputs
            for step_id in each.ids
            for at in range((each.files or 1) if "[" in written else 1)
        ]
        sources = {name: _source(match, given, inputs) for name, given in match.rule.inputs.items()}
        fans_out = any(each is not None and each.output for each in sources.values())
        each_of: list[tuple[str, str] | None] = [*givers] if fans_out else [None]
        for giver in each_of:
            step_id = f"step-{len(made) + 1}"
            match.ids.append(step_id)
            made.append(
                WorkflowStep(
                    step_id,
                    match.rule.capability,
                    inputs={
                        name: _value(match, source, giver, givers)
                        for name, source in sources.items()
                        if source is not None
                    },
                    on_failure=match.rule.on_failure,
                    capability_contract=match.rule.contract,
                    coverage_rationale=f"by the rule {match.rule.name}",
                    source="rule",
                )
            )

    for match in sorted(matches, key=lambda each: each.place):
        make(match)
    return made


def _in_order(
    steps: list[WorkflowStep], matches: list[_Match], request: NormalizedRequest
) -> list[WorkflowStep]:
    """Return steps of which those of a clause that is said to come after others wait for these."""
    stages = list(accumulate(int(request.comes_after(at)) for at in range(len(request.intents))))
    stage = {step_id: stages[each.clause] for each in matches for step_id in each.ids}
    needs = {each.step_id: set(each.needed_steps) for each in steps}

    def reach(step_id: str) -> set[str]:
        found, pending = set[str](), [step_id]
        while pending:
            new = needs[pending.pop()] - found
            found |= new
            pending += new
        return found

    made = []
    for step in steps:
        own = step.step_id
        before = [at for at in stage.values() if at < stage[own]]
        for each in (other for other, at in stage.items() if before and at == max(before)):
            if each not in reach(own) and own not in reach(each):
                needs[own].add(each)
        added = tuple(each.step_id for each in steps if each.step_id in needs[own] - set(step.needed_steps))
        made.append(replace(step, depends_on=(*step.depends_on, *added)))
    return made


def _value(
    match: _Match, source: InputSource, giver: tuple[str, str] | None, givers: list[tuple[str, str]]
) -> Any:
    if source.file and match.file is not None:
        return escape_literal(match.file.text)
    if source.group is not None:
        return escape_literal(_unquoted(match.groups[0][source.group]))
    if source.groups is not None:
        return [
            escape_literal(_unquoted(each[source.groups])) for each in match.groups if source.groups in each
        ]
    if source.request is not None:
        return write_reference(None, [source.request])
    if source.output is not None and giver is not None:
        return f"steps.{giver[0]}.outputs.{giver[1]}"
    if source.outputs is not None:
        return [f"steps.{step_id}.outputs.{written}" for step_id, written in givers]
    return escape_literal(source.value)


def _unquoted(text: str) -> str:
    pairs = {'"': '"', "«": "»", "“": "”"}
    return text[1:-1] if len(text) > 2 and pairs.get(text[0]) == text[-1] else text


def _is_pointer(
    request: NormalizedRequest, intent: RequestIntent, matches: list[_Match], rules: PlanRules
) -> bool:
    """Return whether a clause says no more than what another one says whole: "download it", "and upload"."""
    if intent.urls or intent.files or not intent.verb:
        return False
    kind = intent.verb_class
    if kind != ANY_VERB and not any(each.rule.serves and kind in each.rule.serves for each in matches):
        return False
    words = content_words(request.masked[intent.start : intent.end], rules)
    return (
        bool(matches)
        and set(words) <= {intent.verb}
        and "\ue000" not in request.masked[intent.start : intent.end]
    )


def _unread(
    request: NormalizedRequest, intent: RequestIntent, own: list[_Match], rules: PlanRules
) -> list[str]:
    """Return the words of a clause that say something and that are in no match."""
    letters = list(request.masked[intent.start : intent.end])
    for start, end in (span for each in own for span in each.spans):
        letters[start - intent.start : end - intent.start] = " " * (end - start)
    return [
        each
        for each in content_words("".join(letters), rules)
        if each != intent.verb and rules.verb_class(each) is None
    ]
