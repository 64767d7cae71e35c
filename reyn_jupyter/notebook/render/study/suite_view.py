"""Views of what a study is about: a suite, a scenario, a variant, a catalog, a budget.

Invariant: what a suite expects of a model stands beside what it asks, so that a person can judge whether it is fair.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from reyn_jupyter.evaluation.checks import CHECKS
from reyn_jupyter.notebook.render import formatting
from reyn_jupyter.notebook.render.blocks import (
    Block,
    Cell,
    Code,
    Column,
    Commands,
    Facts,
    Fold,
    Grid,
    Notice,
    Paragraph,
    Section,
    Span,
    View,
    number_cell,
)
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.plan.frozen_catalog import Catalog
    from reyn_jupyter.evaluation.plan.scenario import AcceptedCall, Expected, Scenario
    from reyn_jupyter.evaluation.plan.suite import Suite
    from reyn_jupyter.evaluation.plan.variant import Variant
    from reyn_jupyter.evaluation.run.budget import Budget
    from reyn_jupyter.notebook.render.value_text import Look

_MOST = 40
_TEXT = 2_000  # characters of a workspace file


def suite_view(suite: Suite, look: Look) -> View:
    """Return what a suite asks, family by family, and what it suggests to compare."""
    blocks: list[Block] = [Paragraph((Span(look.text(suite.title, 400)),)), _families(suite, look)]
    if suite.variants:
        rows = [
            (Cell(look.line(name, 60), face="code"), Cell(look.line(_settings(each), 300) or "the defaults"))
            for name, each in suite.variants.items()
        ]
        columns = (Column("variant", header=True, whole=True), Column("what it sets", wide=True))
        blocks.append(Section("Variants", (_some(columns, rows, ".variants"),)))
    facts = [("decides", _check(suite.primary)), ("checks", ", ".join(map(_check, suite.checks)))]
    if suite.graders:
        judged = ", ".join(f"{each.name}, judged by {each.model}" for each in suite.graders)
        facts.append(("graders", judged))
    blocks.append(Facts(tuple((name, look.text(said, 2_000)) for name, said in facts)))
    blocks.append(Commands((look.line(f'study.suite.scenario("{suite.scenarios[0].id}")', 200),)))
    counts = (
        count(len(suite.scenarios), "scenario"),
        count(len(suite.variants), "variant"),
        count(len(suite.claims), "claim"),
    )
    return View("suite", look.line(f"Suite {suite.name}", 120), (), counts, tuple(blocks), ".scenarios")


def _check(name: str) -> str:
    """Return a check as reports call it, with the name that it is asked for by."""
    return f"{CHECKS[name].title} ({name})" if name in CHECKS else name


def _families(suite: Suite, look: Look) -> Grid:
    rows = []
    for family in dict.fromkeys(scenario.family for scenario in suite.scenarios):
        own = [scenario for scenario in suite.scenarios if scenario.family == family]
        example = next(iter(own[-1].prompts.values()))
        rows.append(
            (
                Cell(look.line(family, 60)),
                number_cell(f"{len(own):,}", len(own)),
                Cell(look.line(example, 160)),
            )
        )
    columns = (
        Column("family", header=True),
        Column("scenarios", right=True),
        Column("for example", wide=True),
    )
    return _some(columns, rows, ".scenarios")


def _some(columns: tuple[Column, ...], rows: Sequence[tuple[Cell, ...]], knob: str) -> Grid:
    more = f"{_MOST} of {len(rows):,}; {knob} holds all of them" if len(rows) > _MOST else ""
    return Grid("", columns, tuple(rows[:_MOST]), more)


def scenario_view(scenario: Scenario, look: Look) -> View:
    """Return one task: what is asked, where, and what counts as right."""
    blocks: list[Block] = [
        Facts(tuple((look.line(name, 60), look.text(text, 1_000)) for name, text in scenario.prompts.items()))
    ]
    blocks.append(Section("What counts as right", tuple(what_is_right(scenario, look))))
    blocks += [_file(path, text, look) for path, text in list(scenario.workspace.items())[:_MOST]]
    left = len(scenario.workspace) - _MOST
    if left > 0:
        blocks.append(Notice(f"{left:,} more files; .workspace holds all of them.", "muted"))
    facts = (look.line(scenario.family, 60), look.line(f"on the catalog {scenario.catalog}", 80))
    return View("scenario", look.line(f"Scenario {scenario.id}", 200), (), facts, tuple(blocks), ".gold")


def _file(path: str, text: str, look: Look) -> Fold:
    more = f"{_TEXT:,} of {len(text):,} characters; .workspace holds all of it" if len(text) > _TEXT else ""
    shown = Code(look.text(text[:_TEXT], _TEXT), more=more)
    return Fold(
        (Span(look.line(path, 120), ("code",)),), aside=formatting.size(len(text.encode())), blocks=(shown,)
    )


def what_is_right(scenario: Scenario, look: Look) -> Iterable[Block]:
    """Return what a scenario says in advance of a right trial."""
    pairs: list[tuple[str, str]] = []
    if scenario.gold.unanswerable:
        pairs.append(("nothing fits", "to invoke nothing and say so"))
    for number, step in enumerate(scenario.gold.steps, 1):
        pairs.append((f"step {number}", " or\n".join(_call(call) for call in step)))
    pairs += [(each.path, _after(each)) for each in scenario.expected if not each.unchanged]
    same = [each.path for each in scenario.expected if each.unchanged]
    if same:
        pairs.append(("unchanged", ", ".join(same)))
    if scenario.says:
        pairs.append(("the answer says", ", ".join(map(_alternatives, scenario.says))))
    if scenario.omits:
        pairs.append(("and none of", ", ".join(map(_alternatives, scenario.omits))))
    if scenario.no_other:
        pairs.append(("no other call of", ", ".join(scenario.no_other)))
    pairs += [(f"{action} fails once", said) for action, said in scenario.setup_error.items()]
    if scenario.forecast is not None:
        pairs.append(("foretold", f"{100 * scenario.forecast:.0f} % get it right"))
    if not pairs:
        yield Notice("Nothing is expected of it; give gold, says or expected.", "warn")
        return
    yield Facts(tuple((look.line(name, 120), look.text(said, 600)) for name, said in pairs[: 2 * _MOST]))


def _call(call: AcceptedCall) -> str:
    given = [f"{name}={_values(accepted)}" for name, accepted in call.args.items()]
    return f"{call.action}({', '.join(given if call.exact else [*given, '…'])})"


def _alternatives(text: str) -> str:
    """Return a text of which any part does, see `checks.text_match.says`."""
    return text.replace("|", " or ")


def _values(accepted: Iterable[object]) -> str:
    return " | ".join("left out" if each == "" else json.dumps(each, ensure_ascii=False) for each in accepted)


def _after(expected: Expected) -> str:
    if not expected.exists:
        return "is not there"
    said = []
    if expected.text is not None:
        whole = (
            repr(expected.text)
            if len(expected.text) <= 200
            else f"a text of {len(expected.text):,} characters"
        )
        said.append(f"is exactly {whole}")
    if expected.line is not None:
        said.append(f"is {expected.line!r}, with or without blank space around it")
    said += [f"contains {each!r}" for each in expected.contains]
    said += [f"lacks {each!r}" for each in expected.lacks]
    return ", ".join(said) or "is there"


def variant_view(variant: Variant, look: Look) -> View:
    """Return a model and what is set otherwise than by default."""
    shown = _settings(variant)
    pairs = [
        ("model", look.line(variant.model, 200)),
        ("sets", look.text(shown, 600) or "nothing: the defaults"),
    ]
    if variant.parameters:
        pairs.append(("parameters", look.line(json.dumps(dict(variant.parameters)), 300)))
    return View(
        "variant", look.line(f"Variant {variant.name}", 120), (), (), (Facts(tuple(pairs)),), ".config"
    )


def _settings(variant: Variant) -> str:
    changed = [
        (name, value) for name, value in variant.__repr_args__() if name not in (None, "model", "parameters")
    ]
    return ", ".join(f"{name}={value!r}" for name, value in changed)


def catalog_view(catalog: Catalog, look: Look) -> View:
    """Return the actions that trials are offered, by category."""
    slices = [part for part in catalog.snapshot.slices.values() if part.visible]
    rows = []
    for part in slices:
        names = ", ".join(action.name.entry for action in part.actions[:8])
        more = f", … {len(part.actions) - 8:,} more" if len(part.actions) > 8 else ""
        name = Cell(look.line(part.category.name, 80), face="code")
        rows.append(
            (
                name,
                number_cell(f"{len(part.actions):,}", len(part.actions)),
                Cell(look.line(names + more, 400)),
            )
        )
    columns = (
        Column("category", header=True),
        Column("actions", right=True),
        Column("among them", wide=True),
    )
    facts = (
        count(len(catalog.snapshot), "action"),
        count(len(slices), "category", "categories"),
    )
    return View("catalog", "Catalog", (), facts, (_some(columns, rows, ".snapshot"),), ".snapshot")


def budget_view(budget: Budget, look: Look) -> View:
    """Return what a study may use."""
    return View("budget", "Budget", (), (), (Paragraph((Span(look.line(budget.sentence, 200)),)),), "")
