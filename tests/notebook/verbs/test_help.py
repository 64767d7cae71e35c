"""`%reyn help`: the verbs by what one wants to do, short."""

from __future__ import annotations

from typing import get_args

from reyn_jupyter.notebook import verbs
from reyn_jupyter.notebook.displays.mime import mimebundle
from reyn_jupyter.notebook.magic_line.verb import Context, VerbGroup
from reyn_jupyter.notebook.verbs.help import GROUPS, HelpOptions, run


def test_every_verb_is_named_once_in_the_group_that_it_belongs_to() -> None:
    sections = dict(run(Context(None), HelpOptions()).sections)
    named: list[str] = []
    for group, (title, first) in GROUPS.items():
        lines = sections[title]
        also = [line.removeprefix("also: ").split(", ") for line in lines if line.startswith("also: ")]
        words = [line.split()[0] for line in lines if not line.startswith("also: ")]
        here = [*words, *(also[0] if also else ())]
        assert words == list(first)
        for word in here:
            verb = verbs.find(word)
            assert verb is not None and verb.group == group
        named += here
    assert sorted(named) == sorted(verbs.names())
    assert set(GROUPS) == set(get_args(VerbGroup))


def test_it_fits_a_screen() -> None:
    assert mimebundle(run(Context(None), HelpOptions()))["text/plain"].count("\n") < 45
