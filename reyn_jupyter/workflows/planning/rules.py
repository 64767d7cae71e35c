"""Rules by which requests become steps without a language model; data, which a workspace can add to.

Invariant: a rule that was read has patterns that take linear time (RE2), names groups that its pattern has, and a
capability. What a rule takes out of a request is text: it can become the value of an input, and never a reference.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from reyn_jupyter.config.yaml_document import parse
from reyn_jupyter.guard.trust import RULES
from reyn_jupyter.support.text import meant_clause
from reyn_jupyter.support.validation_messages import fields_at, reason
from reyn_jupyter.workflows.planning.plan import OnFailure
from reyn_jupyter.workflows.planning.references import parse_reference
from reyn_jupyter.workflows.utilities.contract import Contract
from reyn_jupyter.workflows.utilities.manifest import is_capability
from reyn_jupyter.workflows.workflow_error import WorkflowError

RULES_FILE = RULES
ANY_VERB = "any"  # the class of verbs that every rule serves: "take", "process"
OTHER_VERB = "other"  # the class of verbs that no built-in rule serves
_LONGEST_PATTERN = 2_000
FILE_GROUP = "file"  # the group of a rule of files
_NAME = "{name}"  # in a pattern: quoted text, or one word that can be the name of a folder
_ANY_NAME = (
    r"""(?:"[^"\n]+"|'[^\n]+?'|`[^`\n]+`|“[^”\n]+”|„[^“”\n]+[“”]|‘[^\n]+?’|«[^»\n]+»|「[^」\n]+」"""
    r"""|[\pL\pN_.~/\\-]*[\pL\pN_/])"""
)

WordKind = Literal["filler", "noun", "preposition", "pronoun"]
_Kind = TypeVar("_Kind", bound=str)


@dataclass(frozen=True)
class InputSource:
    """Where an input of a step comes from; one field is set.

    Attributes:
        group: the text of a group of the pattern.
        groups: the texts of a group in every match of the clause, as a list.
        output: an output of a step that comes before, by its name; of a list of files each one, written ``files[0]``.
            Where there are several, there is a step for each.
        outputs: the outputs of all these steps, as a list.
        file: the one file that the clause names beside what the pattern matched.
        request: an input of the request, where it has one of this name.
        value: itself.
    """

    group: str | None = None
    groups: str | None = None
    output: str | None = None
    outputs: str | None = None
    file: bool = False
    request: str | None = None
    value: Any = None


@dataclass(frozen=True)
class PlanRule:
    """One rule: what of a clause it takes, and the step that it makes of it.

    Attributes:
        name: of its own.
        capability: of the step.
        pattern: RE2, searched in one clause of the request; each match is a step. None for a rule of files.
        files: Suffixes; each file with one of them that the clause names is a match, with the group "file".
        needs: RE2; a clause in which it is not found is left to other rules.
        unless: RE2; a clause in which it is found is left to other rules.
        once: whether all matches of a clause are one step.
        alone: Whether the clause must be the whole request.
        serves: classes of verbs that it serves, every one where none is named; a clause with another verb asks for
            something else.
        inputs: the sources of each input, the first that there is counts. Without one for each the rule makes no step.
        contract: of the step.
        on_failure: what a failure of the step means for the run.
        file: the file that the rules are from.
    """

    name: str
    capability: str
    pattern: str | None
    inputs: Mapping[str, tuple[InputSource, ...]]
    contract: Contract
    files: tuple[str, ...] = ()
    needs: str | None = None
    unless: str | None = None
    once: bool = False
    alone: bool = False
    serves: tuple[str, ...] = ()
    on_failure: OnFailure = "fail"
    file: str = ""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The outputs that a step of it guarantees."""
        return tuple(self.contract.output_schema.get("required", ()))


@dataclass(frozen=True)
class PlanRules:
    """Rules in the order in which they are tried, and the words that they know.

    Attributes:
        rules: see `PlanRule`.
        verbs: words that begin an intent, by class; a word that ends with ``*`` stands for all that begin so.
        words: words that say nothing by themselves, so that a rule need not explain them.
        nouns: Words that say nothing beside what they stand for: "the file a.zip".
        prepositions: Words that say nothing before something that a rule takes: "to FOLDER".
        pronouns: Words that stand for what an earlier step made.
    """

    rules: tuple[PlanRule, ...] = ()
    verbs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    nouns: tuple[str, ...] = ()
    prepositions: tuple[str, ...] = ()
    pronouns: tuple[str, ...] = ()

    def before(self, other: PlanRules) -> PlanRules:
        """Return these rules, and those of another file after them; a name that both have is theirs no longer."""
        names = {each.name for each in self.rules}
        classes = dict.fromkeys((*self.verbs, *other.verbs))
        return PlanRules(
            (*self.rules, *(each for each in other.rules if each.name not in names)),
            {each: (*self.verbs.get(each, ()), *other.verbs.get(each, ())) for each in classes},
            (*self.words, *other.words),
            (*self.nouns, *other.nouns),
            (*self.prepositions, *other.prepositions),
            (*self.pronouns, *other.pronouns),
        )

    @functools.cached_property
    def _vocabulary(self) -> tuple[dict[str, str], list[tuple[str, str]]]:
        """Whole words by what they are, and beginnings of words, the longest first."""
        return _by_word(self.verbs)

    def verb_class(self, word: str) -> str | None:
        """Return the class of a verb, or None where the word is not known as one.

        >>> built_in_rules().verb_class("Скачай"), built_in_rules().verb_class("sunset")
        ('download', None)
        """
        whole, stems = self._vocabulary
        folded = word.casefold().replace("ё", "е")
        found = whole.get(folded)
        return found or next((kind for stem, kind in stems if folded.startswith(stem)), None)

    @functools.cached_property
    def _word_kinds(self) -> tuple[dict[str, WordKind], list[tuple[str, WordKind]]]:
        """Whole words by what they are, and beginnings of words, the longest first."""
        kinds: dict[WordKind, tuple[str, ...]] = {
            "pronoun": self.pronouns,
            "preposition": self.prepositions,
            "noun": self.nouns,
            "filler": self.words,
        }
        return _by_word(kinds)

    def word_kind(self, word: str) -> WordKind | None:
        """Return what a word is that says nothing by itself, or None for every other word.

        >>> [built_in_rules().word_kind(word) for word in ("the", "into", "files", "it", "grayscale")]
        ['filler', 'preposition', 'noun', 'pronoun', None]
        """
        whole, stems = self._word_kinds
        folded = word.casefold().replace("ё", "е")
        return whole.get(folded) or next((kind for stem, kind in stems if folded.startswith(stem)), None)

    def is_idle(self, word: str) -> bool:
        """Return whether a word says nothing by itself: an article, a preposition, "please"."""
        return self.word_kind(word) is not None


def _by_word(kinds: Mapping[_Kind, tuple[str, ...]]) -> tuple[dict[str, _Kind], list[tuple[str, _Kind]]]:
    """Return whole words by their kinds, the first kind of each, and beginnings of words, the longest first."""
    whole: dict[str, _Kind] = {}
    stems: list[tuple[str, _Kind]] = []
    for kind, words in kinds.items():
        for word in words:
            if word.endswith("*"):
                stems.append((word[:-1], kind))
            else:
                whole.setdefault(word, kind)
    return whole, sorted(stems, key=lambda pair: -len(pair[0]))


@functools.lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Return a pattern that takes linear time, without regard to letter case.

    Raises:
        ValueError: it is none.
    """
    import re2

    if len(pattern) > _LONGEST_PATTERN:
        raise ValueError(f"the pattern is longer than {_LONGEST_PATTERN:,} characters")
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = False
    try:
        return re2.compile(pattern.replace(_NAME, _ANY_NAME), options)
    except (re2.error, UnicodeError) as problem:
        said = problem.args[0] if problem.args else problem
        shown = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise ValueError(f"not a usable pattern (RE2): {shown[:200]}") from None


def read_rules(data: Any, file: str) -> PlanRules:
    """Return the rules that data describe.

    Args:
        data: a mapping with ``rules``, ``verbs`` and ``words``, as the manual's chapter on planning shows.
        file: where it is from, for messages.

    Raises:
        WorkflowError: "validation"; ``details["problems"]`` holds every problem with its place.
    """
    try:
        given = _RulesData.model_validate(data)
    except ValidationError as error:
        problems = [
            ("/".join(("", *map(str, item["loc"]))), reason(item, fields_at(_RulesData, item["loc"][:-1])))
            for item in error.errors(include_url=False)
        ]
        raise _invalid(file, problems) from None
    names = [each.name for each in given.rules]
    doubled = [
        (f"/rules/{at}/name", f"there is more than one rule {name!r}")
        for at, name in enumerate(names)
        if name in names[:at]
    ]
    classes = {*given.verbs, *_built_in_classes(file)}
    unknown = [
        (f"/rules/{at}/serves", f"there are no verbs {kind!r}{meant_clause(kind, classes)}")
        for at, each in enumerate(given.rules)
        for kind in each.serves
        if kind not in classes
    ]
    if doubled or unknown:
        raise _invalid(file, doubled + unknown)
    folded = {
        kind: tuple(word.casefold().replace("ё", "е") for word in words)
        for kind, words in given.verbs.items()
    }
    kinds = (given.words, given.nouns, given.prepositions, given.pronouns)
    words = (tuple(word.casefold().replace("ё", "е") for word in each) for each in kinds)
    return PlanRules(tuple(_rule(each, file) for each in given.rules), folded, *words)


@functools.cache
def built_in_rules() -> PlanRules:
    """Return the rules that come with the package."""
    path = Path(__file__).with_name(RULES_FILE)
    return read_rules(parse(path.read_bytes(), RULES_FILE).values, _BUILT_IN)


_BUILT_IN = f"the built-in {RULES_FILE}"


def _built_in_classes(file: str) -> Iterable[str]:
    return (ANY_VERB, OTHER_VERB) if file == _BUILT_IN else (*built_in_rules().verbs, ANY_VERB, OTHER_VERB)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _SourceData(_Strict):
    group: str | None = None
    groups: str | None = None
    output: str | None = None
    outputs: str | None = None
    file: bool = False
    request: str | None = None
    value: Any = None

    @model_validator(mode="after")
    def _one_of_them(self) -> _SourceData:
        if len(self.model_fields_set) != 1:
            raise ValueError("one of group, groups, output, outputs, file, request and value is needed")
        return self


class _RuleData(_Strict):
    name: str = Field(min_length=1, max_length=100)
    capability: str
    pattern: str | None = Field(default=None, min_length=1)
    files: list[str] = Field(default_factory=list)
    needs: str | None = None
    unless: str | None = None
    once: bool = False
    alone: bool = False
    serves: list[str] = Field(default_factory=list)
    on_failure: OnFailure = "fail"
    inputs: dict[str, tuple[_SourceData, ...]] = Field(default_factory=dict)
    input_schema: dict[str, Any] = Field(default_factory=dict)
    output_schema: dict[str, Any] = Field(default_factory=dict)

    @field_validator("inputs", mode="before")
    @classmethod
    def _as_sources(cls, inputs: Any) -> Any:
        """A list is a list of sources, an object is a source, and anything else is a value."""
        if not isinstance(inputs, dict):
            return inputs
        return {
            name: tuple(each if isinstance(each, dict) else {"value": each} for each in given)
            if isinstance(given, list)
            else (given if isinstance(given, dict) else {"value": given},)
            for name, given in inputs.items()
        }

    @model_validator(mode="after")
    def _sound(self) -> _RuleData:
        if not is_capability(self.capability):
            raise ValueError(f"{self.capability[:80]!r} is no capability; write it as video.convert")
        if (self.pattern is None) != bool(self.files):
            raise ValueError("one of pattern and files is needed")
        known = {FILE_GROUP} if self.pattern is None else compiled(self.pattern).groupindex
        for each in (self.needs, self.unless):
            if each is not None:
                compiled(each)
        for name, sources in self.inputs.items():
            for source in sources:
                group = source.group or source.groups
                if group is not None and group not in known:
                    raise ValueError(f"the input {name!r} names no group of the pattern: {group!r}")
                output = source.output or source.outputs
                if output is not None and parse_reference(f"steps.a.outputs.{output}") is None:
                    raise ValueError(f"the input {name!r} names no output: {output[:80]!r}")
        return self


class _RulesData(_Strict):
    rules: list[_RuleData] = Field(default_factory=list, max_length=1_000)
    verbs: dict[str, list[str]] = Field(default_factory=dict)
    words: list[str] = Field(default_factory=list)
    nouns: list[str] = Field(default_factory=list)
    prepositions: list[str] = Field(default_factory=list)
    pronouns: list[str] = Field(default_factory=list)


def _rule(data: _RuleData, file: str) -> PlanRule:
    inputs = {
        name: tuple(InputSource(**each.model_dump()) for each in sources)
        for name, sources in data.inputs.items()
    }
    return PlanRule(
        name=data.name,
        capability=data.capability,
        pattern=data.pattern,
        inputs=inputs,
        contract=Contract(data.input_schema, data.output_schema),
        files=tuple(data.files),
        needs=data.needs,
        unless=data.unless,
        once=data.once,
        alone=data.alone,
        serves=tuple(data.serves),
        on_failure=data.on_failure,
        file=file,
    )


def _invalid(file: str, problems: list[tuple[str, str]]) -> WorkflowError:
    listed = [{"file": file, "path": path, "message": message} for path, message in problems]
    said = "; ".join(f"{each['path']}: {each['message']}" for each in listed)
    return WorkflowError(
        f"The rules of {file} cannot be used: {said}.",
        "The manual's chapter on planning shows what a rule is.",
        "validation",
        {"problems": listed},
    )
