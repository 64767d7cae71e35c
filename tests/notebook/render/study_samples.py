"""Studies to show: every object of an evaluation, with any text in every place that a person or a model fills."""

from __future__ import annotations

from functools import cache
from typing import Any
from unicodedata import category

import reyn_jupyter as reyn
from reyn_jupyter.evaluation.plan.scenario import Scenario, Source
from reyn_jupyter.evaluation.plan.suite import Claim
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.comparison import compare
from reyn_jupyter.evaluation.results.recommend import recommend
from reyn_jupyter.evaluation.results.report import report
from reyn_jupyter.evaluation.results.trial_set import TrialSet
from reyn_jupyter.evaluation.run.budget import Budget
from reyn_jupyter.evaluation.run.progress import Progress
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.models.scripted import ScriptedModel
from tests.evaluation.trial_set_support import evidence, many, mixed, trial


def found(text: str = "x", **fields: Any) -> TrialSet:
    """Evidence of two variants in which every name, answer, error and reason holds the text."""
    text = text.replace("\ud800", "?")  # no field of ours takes half a character
    # An id takes no space and no letter that cannot be seen; every other place may hold them.
    seen = "".join("_" if letter.isspace() or category(letter)[0] == "C" else letter for letter in text)
    name, identity = f"a {text}"[:100], "s" + seen[:150]
    claim = Claim(id="c", sentence=f"Claimed: {text}", family="", check="first_call_is", variant=name, passed=3,
                  trials=4, benchmark=0.5)  # fmt: skip
    other = [
        trial(name, identity, 0, False, answer=text, fingerprints=(text, "fp_2")),
        trial("b", identity, 0, True, answer=text),
        trial("b", identity, 1, "error", error=text),
    ]
    arms = {name: mixed(18, 24, 2), "b": mixed(6, 24, 2)}
    variants = {
        name: Variant(name, model=text[:200], mandate="explicit"),
        "b": Variant("b", model=text[:200]),
    }
    given = {
        "claims": (claim,),
        "forecast": 0.7,
        "suite": text,
        "provenance": {"config": {"k": text}, "notes": (text,)},
    }
    return evidence(arms, variants=variants, more=other, **{**given, **fields})


def study(text: str = "x", count: int = 4) -> Study:
    """A study that was run, of a model that answers with the text."""
    scenarios = [
        Scenario(id=f"s{n}", family="discover", prompts={"natural": f"What, {n}?"}, says=("hello",))
        for n in range(count)
    ]
    return Study(None, scenarios, models={"scripted": ScriptedModel(otherwise=f"hello {text}")})


def every_object(text: str) -> dict[str, object]:
    """One of each kind, the text in all of them."""
    text = text.replace("\ud800", "?")
    on = found(text)
    first, second = on.tried
    made = study(text)
    base = Variant(f"base {text}"[:100], model="scripted")
    summary = made.run(base, base.but("best", mandate="explicit"), budget=Budget(calls=1_000))
    progress = Progress(
        done=3, total=9, running=2, seconds=4.0, rate=0.75, eta=(6.0, 10.0), usd=0.02, tokens=12_000, calls=9,
        missing={base.name: 1}, estimates=summary.estimates, log_e=1.2, sources=summary.sources,
    )  # fmt: skip
    return {
        "report": report(on),
        "comparison": compare(on, second, first),
        "numbers": compare(on, second, first, "tokens"),
        "recommendation": recommend(on),
        "study": made,
        "plan": made.plan(base, base.but("best", mandate="explicit")),
        "progress": progress,
        "summary": summary,
        "trials": made.trials,
        "trial": made.trials[0],
    }


def nine() -> TrialSet:
    """Nine variants, all simulated."""
    return crowd(9)


@cache
def crowd(variants: int) -> TrialSet:
    """So many variants, all simulated."""
    arms = {f"variant-{n}": mixed(4 + 3 * (n % 9), 40, 2) for n in range(variants)}
    claims = tuple(
        Claim(id=f"c{n}", sentence=f"Claimed, {n}: it lists first more often than not.", family="", passed=3, trials=4,
              check="first_call_is", variant="variant-1", against="variant-0", benchmark=0.5)
        for n in range(9)
    )  # fmt: skip
    sources: dict[str, Source] = dict.fromkeys(arms, "simulated")
    return evidence(arms, sources=sources, forecast=0.5, claims=claims)


def empty() -> TrialSet:
    """Nothing that could be graded."""
    return evidence({"a": many(2, "error")})


def suite_objects(text: str) -> dict[str, Any]:
    """What a study is about: one of each, with a text wherever a text can stand."""
    text = text.replace("\ud800", "")  # what no model of a scenario takes
    call = reyn.AcceptedCall(
        action="tool__" + text.translate(dict.fromkeys(range(32), " ")), args={text: (text, "")}
    )
    one = reyn.Scenario(
        id="one",
        family="f",
        prompts={text: f"Do {text}"},
        workspace={text: text, "long.txt": f"{text}\n" * 5_000},
        gold=reyn.Gold(steps=(call, (call, call))),
        expected=(
            reyn.Expected(path=text, contains=(text,), lacks=(text,)),
            reyn.Expected(path="gone", exists=False),
            reyn.Expected(path="exact", text=text),
            reyn.Expected(path="kept" + text, unchanged=True),
        ),
        says=(text,),
        setup_error={text: text},
        forecast=0.5,
        catalog="tools",
    )
    variant = reyn.Variant(text[:100], model=text, parameters={text: text}, mandate="generic")
    catalog = reyn.Catalog.from_records([{"name": f"{n}{text}", "description": text} for n in range(30)])
    suite = reyn.Suite(name=text, title=text, primary=text, checks=(text,), scenarios=(one,),
                       variants={text: variant}, catalogs={"tools": catalog})  # fmt: skip
    return {"suite": suite, "scenario": one, "variant": variant, "catalog": catalog,
            "budget": reyn.Budget(usd=1, calls=3)}  # fmt: skip
