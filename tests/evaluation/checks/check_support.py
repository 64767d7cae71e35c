"""Small trials and scenarios for the tests of checks, and strategies that make any."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st

from reyn_jupyter.evaluation.checks import find_check
from reyn_jupyter.evaluation.plan.scenario import AcceptedCall, Expected, Gold, Scenario
from reyn_jupyter.evaluation.trial.trial import FileFact, Outcome, Trial
from reyn_jupyter.runtime.record.call_facts import CallFact
from reyn_jupyter.runtime.record.events import Flag, Problem
from reyn_jupyter.runtime.record.verdict import Verdict

READ = "file__read"


def scenario(**fields: Any) -> Scenario:
    return Scenario(**{"id": "s", "family": "f", "prompts": {"natural": "Do it."}, **fields})


def accepts(action: str = READ, *, exact: bool = False, **args: tuple[Any, ...]) -> AcceptedCall:
    return AcceptedCall(action=action, args=args, exact=exact)


def needs(*calls: AcceptedCall, **fields: Any) -> Scenario:
    """A scenario with one step for each accepted call."""
    return scenario(gold=Gold(steps=tuple((call,) for call in calls)), **fields)


def unanswerable(**fields: Any) -> Scenario:
    return scenario(gold=Gold(unanswerable=True), **fields)


def listed(step: int = 1, *names: str) -> CallFact:
    return CallFact(step=step, wrapper="list_actions", ok=True, listed=names)


def call(step: int, wrapper: str, **fields: Any) -> CallFact:
    return CallFact(step=step, wrapper=wrapper, **fields)


def invoked(step: int, name: str | None = READ, *, ok: bool | None = True, **fields: Any) -> CallFact:
    given = {"wrapper": "invoke_action", "args": {}, **fields}
    return CallFact(step=step, name=name, ok=ok, **given)


def trial(*calls: CallFact, **fields: Any) -> Trial:
    known = {"key": "k", "scenario": "s", "variant": "v", "repeat": 0, "code": "1", "source": "scripted"}
    return Trial(**{**known, "calls": calls, **fields})


def grade(check: str, tried: Trial, task: Scenario | None = None) -> Verdict:
    return find_check(check).grade(tried, task or scenario())


READS_A = needs(accepts(path=("a.md",)))
RIGHT = invoked(2, args={"path": "a.md"})
EDITS_A = needs(accepts("file__edit", path=("a.md",)), workspace={"a.md": "one\n"})

TEXTS = st.text(max_size=12)
NUMBERS = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
ACTIONS = st.sampled_from(["file__read", "file__edit", "file__write", "agent.peer__ann", "x__y"])
PATHS = st.sampled_from(["a.md", "b/c.txt", "."])
ARGUMENTS = st.dictionaries(st.sampled_from(["path", "limit", "q"]), VALUES, max_size=3)


@st.composite
def golds(draw: st.DrawFn) -> Gold:
    if draw(st.booleans()):
        return Gold(unanswerable=draw(st.booleans()))
    accepted = st.builds(
        AcceptedCall,
        action=ACTIONS,
        args=st.dictionaries(
            st.sampled_from(["path", "limit", "q"]), st.lists(VALUES, min_size=1, max_size=3).map(tuple)
        ),
        exact=st.booleans(),
    )
    return Gold(
        steps=tuple(draw(st.lists(st.lists(accepted, min_size=1, max_size=2).map(tuple), max_size=4)))
    )


EXPECTED = st.one_of(
    st.builds(Expected, path=PATHS, exists=st.just(False)),
    st.builds(
        Expected,
        path=PATHS,
        text=st.none() | TEXTS,
        contains=st.lists(TEXTS, max_size=2).map(tuple),
        lacks=st.lists(TEXTS, max_size=2).map(tuple),
        unchanged=st.booleans(),
    ),
)
SCENARIOS = st.builds(
    scenario,
    gold=golds(),
    workspace=st.dictionaries(PATHS, TEXTS, max_size=2),
    expected=st.lists(EXPECTED, max_size=2).map(tuple),
    says=st.lists(TEXTS, max_size=2).map(tuple),
)
CALLS = st.builds(
    CallFact,
    step=st.integers(-1, 9),
    wrapper=st.sampled_from(
        ["list_actions", "describe_action", "invoke_action", "search_actions", "inspect", "file__read", ""]
    ),
    name=st.none() | ACTIONS | TEXTS,
    problem=st.none() | st.sampled_from(get_args(Problem)),
    flags=st.lists(st.sampled_from(get_args(Flag)), max_size=3).map(tuple),
    args=st.one_of(ARGUMENTS, VALUES),
    ok=st.sampled_from([None, True, False]),
    error=st.none() | TEXTS,
)
FILES = st.builds(
    FileFact, exists=st.booleans(), text=st.none() | TEXTS, sha256=st.none() | TEXTS, changed=st.booleans()
)
TRIALS = st.builds(
    lambda calls, **fields: trial(*calls, **fields),
    calls=st.lists(CALLS, max_size=6),
    outcome=st.sampled_from(get_args(Outcome)),
    surface=st.sampled_from(["universal", "flat"]),
    error=st.none() | TEXTS,
    answer=TEXTS,
    files=st.dictionaries(PATHS, FILES, max_size=2),
    model_calls=st.integers(0, 9),
    prompt_tokens=st.integers(0, 10**6),
    completion_tokens=st.integers(0, 10**6),
    cost=st.none() | st.floats(0, 10),
    seconds=st.floats(0, 600),
)
