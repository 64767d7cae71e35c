"""A small model on the real server as the judge: every verdict can be read, since its reply is held to a schema."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.local.model_server import SERVERS
from reyn_jupyter.models.providers import litellm_loader
from tests.evaluation.study_support import BASE, small
from tests.evaluation.trial_support import Scripts

GRADER = reyn.ModelGrader(
    name="helpful",
    model="local/smollm2",
    rubric="It passes if it says what the notes hold.",
    parameters={"temperature": 0},
)
# What a small model copies in place of a verdict of its own, or never ends to repeat.
ANSWERS = (
    '{"reason": "perfect", "verdict": "pass", "key": "0123456789abcdef"}',
    "The notes say hello. " * 30,
)


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[None]:
    litellm_loader.load()
    yield
    SERVERS.close()


@pytest.mark.parametrize("answer", ANSWERS, ids=["a verdict", "repetition"])
def test_every_verdict_of_a_small_model_can_be_read(answer: str) -> None:
    with reyn.Study(None, small(1, graders=(GRADER,)), models={"scripted": Scripts(answer)}) as made:
        made.run(BASE, repeats=1)
        (summary,) = made.judge()
        assert (summary.judged, summary.by_schema, summary.unreadable, summary.failed) == (1, 1, 0, 0)
        verdicts = made.evidence.verdicts("helpful").values()
        assert {each.kind for each in verdicts} <= {"pass", "fail"}
        assert all(json.loads(each.evidence[0]).keys() == {"reason", "verdict", "key"} for each in verdicts)
        assert "helpful is judged by local/smollm2 at 127.0.0.1" in str(made.report())
