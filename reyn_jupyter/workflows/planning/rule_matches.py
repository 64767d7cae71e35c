"""Find the rules that fit a clause of a request, with what each takes of it.

Invariant: A name of a request is a group of a rule as a whole, or no part of any group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from reyn_jupyter.workflows.planning.request_intents import NormalizedRequest, RequestIntent
from reyn_jupyter.workflows.planning.request_parts import RequestPart
from reyn_jupyter.workflows.planning.rules import FILE_GROUP, PlanRule, PlanRules, compiled

MOST_MATCHES = 200  # of rules in a clause
_Span = tuple[int, int]


@dataclass(eq=False)
class RuleMatch:
    """A rule that fits a clause.

    Attributes:
        rule: The rule.
        clause: The number of the clause in the request.
        spans: What it takes, as places in the request.
        groups: The texts of its groups, for each time that it fits.
        names: The places of the groups.
        file: The file that the clause names beside what the rule matches.
        before: The matches whose steps make what it takes.
        ids: The ids of its steps.
    """

    rule: PlanRule
    clause: int
    spans: list[tuple[int, int]]
    groups: list[Mapping[str, str]]
    names: list[tuple[int, int]] = field(default_factory=list)
    file: RequestPart | None = None
    before: list[RuleMatch] = field(default_factory=list)
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


def find_matches(request: NormalizedRequest, clause: int, rules: PlanRules) -> list[RuleMatch]:
    """Return the rules that fit a clause, each with what it takes of it."""
    intent = request.intents[clause]
    found: list[RuleMatch] = []
    spans: list[_Span] = []
    for rule in rules.rules:
        needed = _needed(request, intent, rule)
        if needed is None:
            continue
        own: list[RuleMatch] = []
        for span, names, groups in _findings(intent, rule):
            if any(one < span[1] and span[0] < other for one, other in spans):
                continue
            if own and rule.once:
                own[0].spans.append(span)
                own[0].names += names
                own[0].groups.append(groups)
            else:
                own.append(RuleMatch(rule, clause, [span], [groups], names))
            if len(found) + len(own) >= MOST_MATCHES:
                break
        spans += [span for each in own for span in each.spans]
        if own:
            own[0].spans += needed
        found += own
    for match in found:
        if any(each.file for sources in match.rule.inputs.values() for each in sources):
            _take_file(match, intent, spans)
    return found


def _needed(request: NormalizedRequest, intent: RequestIntent, rule: PlanRule) -> list[_Span] | None:
    """Return where a clause says what a rule needs besides its pattern, or None if the rule is not for the clause."""
    if rule.alone and len(request.intents) > 1:
        return None
    if rule.unless is not None and compiled(rule.unless).search(intent.text):
        return None
    if rule.needs is None:
        return []
    needed = compiled(rule.needs).search(intent.text)
    return None if needed is None else [(intent.start + needed.start(), intent.start + needed.end())]


def _take_file(match: RuleMatch, intent: RequestIntent, spans: list[_Span]) -> None:
    """Give a match the first file of its clause that no match has."""
    for part in intent.files:
        if not any(start < part.end and part.start < end for start, end in spans):
            match.file = part
            for places in (spans, match.spans, match.names):
                places.append((part.start, part.end))
            return


def _findings(intent: RequestIntent, rule: PlanRule) -> Iterator[tuple[_Span, list[_Span], dict[str, str]]]:
    """Yield where a rule fits a clause: its span, the spans of its groups, and their texts.

    A part of the clause is a group as a whole, or no part of any group.
    """
    if rule.pattern is None:
        for part in intent.files:
            if part.text.casefold().endswith(tuple(f".{each.casefold()}" for each in rule.files)):
                yield (part.start, part.end), [(part.start, part.end)], {FILE_GROUP: part.text}
        return
    pattern = compiled(rule.pattern)
    for match in pattern.finditer(intent.text):
        span = (intent.start + match.start(), intent.start + match.end())
        if span[0] == span[1]:
            continue
        names, groups, is_cut = [], {}, any(each.start < span[0] < each.end for each in intent.parts)
        for name, number in pattern.groupindex.items():
            if match.group(number) is None:
                continue
            start, end = (intent.start + at for at in match.span(number))
            met = next((each for each in intent.parts if each.start < end and start < each.end), None)
            if met is None:
                names.append((start, end))
                groups[name] = match.group(number)
            elif _is_whole(met, start, end):
                names.append((met.start, met.end))
                groups[name] = met.text
            else:
                is_cut = True
        if not is_cut:
            yield span, names, groups


def _is_whole(part: RequestPart, start: int, end: int) -> bool:
    """Return whether a group has a part as a whole, or what is between its quotation marks."""
    if part.kind == "url":  # its end is what the request says, and not what a pattern takes for one
        return start == part.start
    return (start, end) in ((part.start, part.end), (part.start + 1, part.end - 1))
