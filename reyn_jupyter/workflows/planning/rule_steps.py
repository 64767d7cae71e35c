"""Rules applied to a request: the steps that they make, and what of the request none of them takes.

Invariant: A clause counts as taken only if its verb is one that a rule in it serves, everything that it names is in a
step, and no other word of it says something. A word such as "it" is what an earlier step made, and nothing else. What
is not taken is returned, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from reyn_jupyter.support.text import count, enumerate_words, shorten
from reyn_jupyter.workflows.planning.plan import WorkflowStep
from reyn_jupyter.workflows.planning.references import escape_literal, write_reference
from reyn_jupyter.workflows.planning.request_intents import (
    WORD,
    NormalizedRequest,
    RequestIntent,
    content_words,
)
from reyn_jupyter.workflows.planning.request_parts import MASK
from reyn_jupyter.workflows.planning.rule_matches import RuleMatch, find_matches
from reyn_jupyter.workflows.planning.rules import ANY_VERB, InputSource, PlanRule, PlanRules

_MOST_WORDS = 10  # in a message
# In a masked clause, in place of what rules take: of a part, of a name without quotation marks, and of other words.
_PART, _BARE, _TAKEN = "\ue001", "\ue002", "\ue003"
_NO_MARKS = str.maketrans(dict.fromkeys((_PART, _BARE, _TAKEN), "x"))  # of the request itself
_PIECE = re.compile(f"[{MASK}]+|{_PART}+|{_BARE}+|{_TAKEN}+|{WORD.pattern}")
_SET_PHRASE = re.compile(
    r"\b(?:(?:for|to)\s+(?:me|us)|if\s+possible|для\s+(?:меня|нас)|если\s+можно)\b", re.IGNORECASE
)
_ONE = frozenset({"it", "this", "that", "его", "её", "ее"})  # stand for one thing


@dataclass(frozen=True)
class UntakenIntent:
    """A clause that no rule takes, or not whole.

    Attributes:
        intent: the clause.
        why: in a sentence.
        parts: What it names and no step takes.
        is_question: Whether only the user can say what is meant.
        unused: The words that keep rules from taking it, "" if there are none.
    """

    intent: RequestIntent
    why: str
    parts: tuple[str, ...] = ()
    is_question: bool = False
    unused: str = ""


@dataclass(frozen=True)
class RuleSteps:
    """What rules make of a request.

    Attributes:
        steps: in the order in which they can run.
        rest: what they do not take.
    """

    steps: tuple[WorkflowStep, ...]
    rest: tuple[UntakenIntent, ...]


def apply_rules(request: NormalizedRequest, rules: PlanRules, inputs: Mapping[str, Any]) -> RuleSteps:
    """Return the steps that rules make of a request.

    Args:
        request: its clauses are looked at one by one.
        rules: tried in their order; what one has taken of a clause no other takes.
        inputs: of the request, which rules may refer to.
    """
    matches = [each for at in range(len(request.intents)) for each in find_matches(request, at, rules)]
    doubts = {
        at: doubt
        for at, intent in enumerate(request.intents)
        if (doubt := " ".join(part.doubt for part in intent.parts if part.doubt))
    }
    refused, unused = dict(doubts), dict[int, str]()
    matches = [each for each in matches if each.clause not in refused]
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
        for clause in {each.clause for each in left}:
            intent, own = request.intents[clause], [each for each in left if each.clause == clause]
            if not any(_serves(each.rule, intent.verb_class) for each in own):
                refused.setdefault(clause, f"No rule that fits serves “{intent.verb}”.")
            elif unread := _unread(request, intent, own, rules, inputs):
                unused.setdefault(clause, _listed(unread))
                refused.setdefault(clause, f"No step uses {_listed(unread)}.")
        left = [each for each in left if each.clause not in refused]
        if len(left) == len(matches):
            break
        matches = left
    steps = _in_order(_steps(matches, inputs), matches, request)
    rest = []
    for at, intent in enumerate(request.intents):
        own = [each for each in matches if each.clause == at]
        if not own:
            if at in refused or not _is_pointer(request, intent, matches, rules):
                why = refused.get(at, "No rule takes it.")
                rest.append(UntakenIntent(intent, why, (), at in doubts, unused.get(at, "")))
            continue
        spans = [span for each in own for span in each.spans]
        parts = [
            part.text
            for part in intent.parts
            if not any(start <= part.start and part.end <= end for start, end in spans)
        ]
        if parts:
            rest.append(UntakenIntent(intent, f"No rule takes {enumerate_words(parts)}.", tuple(parts)))
    return RuleSteps(tuple(steps), tuple(rest))


def _listed(words: Sequence[str]) -> str:
    shown = [f"“{shorten(each, 40)}”" for each in words[:_MOST_WORDS]]
    more = [count(len(words) - _MOST_WORDS, "more word")] if len(words) > _MOST_WORDS else []
    return enumerate_words([*shown, *more])


def _serves(rule: PlanRule, verb_class: str | None) -> bool:
    return not rule.serves or verb_class is None or verb_class in rule.serves


def _source(
    match: RuleMatch, sources: tuple[InputSource, ...], inputs: Mapping[str, Any]
) -> InputSource | None:
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


def _lacking(match: RuleMatch, inputs: Mapping[str, Any]) -> list[str]:
    """Return the inputs that a match has no source for."""
    lacking = [name for name, given in match.rule.inputs.items() if _source(match, given, inputs) is None]
    listed = [name for name, written in _wanted(match).items() if "[" in written]
    if any(name in each.rule.outputs and each.files is None for each in match.before for name in listed):
        lacking.append("number of files")  # each would be a step, and only a run knows how many there are
    return lacking


def _wanted(match: RuleMatch) -> dict[str, str]:
    """Return the outputs that a match would take of earlier steps: how each is written, by its name."""
    return {
        written.partition("[")[0].partition(".")[0]: written
        for sources in match.rule.inputs.values()
        if not (match.file is not None and any(each.file for each in sources))
        for each in sources
        if (written := each.output or each.outputs)
    }


def _connect(matches: list[RuleMatch]) -> None:
    """Say for each match which others make what it takes.

    It takes what was made before it and not taken yet; where all is taken, what the last one took; where nothing comes
    before it ("put into this folder the video …"), what comes after it.
    """
    ordered = sorted(matches, key=lambda each: each.place)
    taken: set[RuleMatch] = set()
    last: list[RuleMatch] = []
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


def _steps(matches: list[RuleMatch], inputs: Mapping[str, Any]) -> list[WorkflowStep]:
    """Return the steps of all matches, those before whose outputs others take."""
    made: list[WorkflowStep] = []
    done: set[RuleMatch] = set()

    def make(match: RuleMatch) -> None:
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
    steps: list[WorkflowStep], matches: list[RuleMatch], request: NormalizedRequest
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
    match: RuleMatch, source: InputSource, giver: tuple[str, str] | None, givers: list[tuple[str, str]]
) -> Any:
    if source.file and match.file is not None:
        return escape_literal(match.file.text)
    if source.group is not None:
        return escape_literal(match.groups[0][source.group])
    if source.groups is not None:
        return [escape_literal(each[source.groups]) for each in match.groups if source.groups in each]
    if source.request is not None:
        return write_reference(None, [source.request])
    if source.output is not None and giver is not None:
        return f"steps.{giver[0]}.outputs.{giver[1]}"
    if source.outputs is not None:
        return [f"steps.{step_id}.outputs.{written}" for step_id, written in givers]
    return escape_literal(source.value)


def _is_pointer(
    request: NormalizedRequest, intent: RequestIntent, matches: list[RuleMatch], rules: PlanRules
) -> bool:
    """Return whether a clause says no more than what another one says whole: "download it", "and upload"."""
    if intent.parts or not intent.verb:
        return False
    kind = intent.verb_class
    if kind != ANY_VERB and not any(each.rule.serves and kind in each.rule.serves for each in matches):
        return False
    said = request.masked[intent.said_from : intent.end]
    if any(rules.word_kind(word) == "preposition" for word in WORD.findall(said)):  # "save it in archive"
        return False
    return bool(matches) and set(content_words(said, rules)) <= {intent.verb}


def _unread(
    request: NormalizedRequest,
    intent: RequestIntent,
    own: list[RuleMatch],
    rules: PlanRules,
    inputs: Mapping[str, Any],
) -> list[str]:
    """Return what of a clause says something and is in no step.

    A preposition or a noun says something by itself unless it leads to what a step takes: "into out" does, and "to
    FOLDER" does not. A pronoun does unless a step takes what an earlier one made.
    """
    takes = [
        each for each in own if any(_takes_made(each, source, inputs) for source in each.rule.inputs.values())
    ]
    is_known = bool(takes) and sum(map(_made, takes)) <= len(takes)
    served = {kind for each in own for kind in each.rule.serves} | {ANY_VERB}
    kinds = {part.text.rpartition(".")[2].casefold() for part in intent.files}  # "the csv file data.csv"
    unread: list[str] = []
    pending: list[str] = []  # a preposition with its nouns, until it leads to something
    after = ""  # the kind of the piece before
    for text, kind in _pieces(request, intent, own, rules):
        if kind == "filler":
            continue
        if kind == "preposition" or (kind == "noun" and (pending or after == "bare")):
            if kind == "preposition" and after == "noun":
                unread += pending
                pending = []
            pending.append(text)
        elif kind == "noun":
            pass  # what the verb is about, or the kind of a name: "download the video", "a.zip file"
        elif kind in ("part", "bare") or (
            kind == "pronoun" and takes and (is_known or text.casefold() not in _ONE)
        ):
            pending = []
        else:
            unread += pending
            pending = []
            is_known_word = (
                text == intent.verb or rules.verb_class(text) in served or text.casefold() in kinds
            )
            if kind == "pronoun" or (kind == "word" and not is_known_word):
                unread.append(text)
        after = kind
    return unread + pending


def _takes_made(match: RuleMatch, sources: tuple[InputSource, ...], inputs: Mapping[str, Any]) -> bool:
    """Return whether an input is what an earlier step made, or the request was given."""
    source = _source(match, sources, inputs)
    return source is not None and bool(source.output or source.outputs or source.request)


def _made(match: RuleMatch) -> int:
    """Return how many things a match takes of earlier steps."""
    return sum(each.files or 1 for each in match.before)


def _pieces(
    request: NormalizedRequest, intent: RequestIntent, own: list[RuleMatch], rules: PlanRules
) -> Iterator[tuple[str, str]]:
    """Yield the words of a clause and what is taken of it, each with its kind."""
    letters = list(request.masked[intent.start : intent.end].translate(_NO_MARKS))

    def write(start: int, end: int, mark: str) -> None:
        start, end = max(start, intent.said_from) - intent.start, end - intent.start
        letters[start:end] = mark * (end - start)

    for match in own:
        for start, end in match.spans:
            write(start, end, _TAKEN)
    parts = {(each.start, each.end) for each in intent.parts}
    for match in own:
        for start, end in match.names:
            write(start, end, _PART if (start, end) in parts else _BARE)
    said = _SET_PHRASE.sub(" ", "".join(letters[intent.said_from - intent.start :]))
    kinds = {MASK: "open", _PART: "part", _BARE: "bare", _TAKEN: "taken"}
    for piece in _PIECE.findall(said):
        yield piece, kinds.get(piece[0]) or rules.word_kind(piece) or "word"
