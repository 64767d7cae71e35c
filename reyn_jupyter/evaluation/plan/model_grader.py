"""A check whose verdict a language model gives, as a judge, for answers that no rule decides.

Invariant: model, rubric and parameters are data of the suite, and a change of any of them is another version, whose
verdicts are never mixed with those of the one before. The name of a model may stand for another one tomorrow (a tier
does); each verdict is kept with the model that gave it, see `store.judgement_record`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from pydantic import Field, JsonValue

from reyn_jupyter.evaluation.plan.validation import Stated
from reyn_jupyter.models.base import canonical

FORM = 2  # of the prompt and of the reply; moved when either changes its meaning


class ModelGrader(Stated):
    """A model as the judge of answers.

    Args:
        name: of the check that it gives, "helpful", say.
        model: a tier, a LiteLLM model string, or the name of a model given to the study.
        rubric: what passes and what fails, in plain words. The judge sees it with the request and the answer.
        parameters: sent with every judgement (temperature, max_tokens).
        title: what tables say; the name with spaces when empty.

    Example:
        >>> ModelGrader(name="helpful", model="standard", rubric="It passes if it names a next step.").label
        'helpful'
    """

    name: str = Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=60)
    model: str = Field(min_length=1, max_length=200)
    rubric: str = Field(min_length=1, max_length=20_000)
    parameters: Mapping[str, JsonValue] = Field(default_factory=dict)
    title: str = ""

    @property
    def label(self) -> str:
        """What tables say."""
        return self.title or self.name.replace("_", " ")

    @property
    def digest(self) -> str:
        """The SHA-256 over all that a verdict depends on besides the trial, in hex."""
        return hashlib.sha256(
            canonical([FORM, self.name, self.model, self.rubric, dict(self.parameters)])
        ).hexdigest()

    @property
    def version(self) -> int:
        """The version of the check, from the digest."""
        return int(self.digest[:12], 16)

    @property
    def people_version(self) -> int:
        """The version of what people say: another judge leaves it as it is, another rubric asks another question."""
        return int(hashlib.sha256(canonical([self.name, self.rubric])).hexdigest()[:12], 16)

    @property
    def people(self) -> str:
        """The name under which the labels of people for this check are kept."""
        return f"{self.name}_by_people"
