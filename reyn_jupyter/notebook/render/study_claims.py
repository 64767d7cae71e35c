"""Published claims beside what a study found, as a table.

Invariant: a claim stands with what its own sample can carry, and what was found with its interval and its source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from reyn_jupyter.notebook.render import figures
from reyn_jupyter.notebook.render.model import Block, Cell, Column, Fold, Grid, Section, Span, Tone
from reyn_jupyter.notebook.render.study_charts import gap, measured
from reyn_jupyter.notebook.render.study_tables import source_column

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.claims import ClaimFinding
    from reyn_jupyter.notebook.render.untrusted import Look

_FIT: dict[bool | None, tuple[str, Tone]] = {
    True: ("fits", "good"),
    False: ("does not fit", "bad"),
    None: ("", "muted"),
}


def claims_section(claims: Sequence[ClaimFinding], look: Look) -> Section:
    """Those that something was tried for; the others are folded away."""
    tried = [each for each in claims if each.found is not None]
    others = [each for each in claims if each.found is None]
    told = (
        Column("claim", header=True, wide=True), Column("published"), Column("its sample supports", wide=True)
    )  # fmt: skip
    blocks: list[Block] = []
    if tried:
        marked, sources = source_column(tried)
        columns = (*told, *marked, Column("found here", wide=True), Column("does it fit?"))
        rows = tuple((*_told(each, look), *sources(each.source), *_found(each, look)) for each in tried)
        blocks.append(Grid("", columns, rows))
    if others:
        title = f"{figures.count(len(others), 'published claim')} that nothing here was tried for"
        inner = Grid("", told, tuple(_told(each, look) for each in others))
        blocks.append(Fold((Span(title),), blocks=(inner,)))
    return Section("What was claimed, and what was found", tuple(blocks))


def _told(found: ClaimFinding, look: Look) -> tuple[Cell, ...]:
    claim = found.claim
    published = "no figure"
    if claim.passed is not None:
        published = f"{claim.passed}/{claim.trials}"
    elif claim.low is not None and claim.high is not None:
        low, high = f"{100 * claim.low:.0f}", f"{100 * claim.high:.0f}"
        published = f"about {low} %" if low == high else f"{low} to {high} %"
    return Cell(look.text(claim.sentence, 200)), Cell(published), Cell(found.support)


def _found(found: ClaimFinding, look: Look) -> tuple[Cell, ...]:
    """The figure, the difference from the variant that the claim compares with, and whether the claim can be true."""
    assert found.found is not None
    text, compared = measured(found.found), found.comparison
    if compared is not None:
        shares = not compared.check.numeric
        more = gap(compared.difference, shares).replace(" (", " points (" if shares else " (")
        text += f"; {more} from {look.line(compared.a, 60)}" + ("" if compared.clear else ", not told apart")
    word, tone = _FIT[found.agrees]
    return Cell(text), Cell(word, tone, "badge" if word else "text")
