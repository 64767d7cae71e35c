"""What is recommended, on which evidence, and what is written into a person's configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.config import load
from reyn_jupyter.config.config_error import ConfigError
from reyn_jupyter.evaluation.checks.check_registry import UnknownCheckError
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.results.recommend import MARGIN, recommend
from reyn_jupyter.evaluation.results.settings_file import RecommendationError
from reyn_jupyter.evaluation.results.trial_set import TrialSet
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.guard.trust import Trust
from reyn_jupyter.models.scripted import ScriptedModel, call
from tests.evaluation.study_support import small
from tests.evaluation.trial_set_support import evidence, many, mixed

GATE = Variant("gate", model="gpt-mini", mandate="explicit", reinforcement=3, discovery="gate", names="shown")
PLAIN = Variant("plain", model="gpt-mini")
CHECKS = ("first_call_is",)


def clear(**fields: Any) -> TrialSet:
    """Evidence on which the gate is clearly better."""
    arms = {"plain": mixed(8, 40), "gate": mixed(36, 40)}
    return evidence(arms, variants={"gate": GATE, "plain": PLAIN}, checks=CHECKS, **fields)


def test_the_best_variant_is_recommended_with_its_evidence() -> None:
    found = recommend(clear())
    assert found.chosen.variant == GATE and found.confidence == "clear" and found.tier == "light"
    assert found.sentence == (
        "Use gpt-mini as tier light with the universal surface, discovery by gate and the explicit mandate ×3 "
        "(gate: 90 % on lists first, 95 % CI 76 to 97, 40 trials in 40 scenarios; clear: no other is more than "
        "5 points better)."
    )
    assert found.evidence[0].winner == "gate" and found.settings["router.names"] == "shown"


def test_it_says_what_the_rate_was_measured_with_and_is_not_written() -> None:
    said = recommend(clear()).measured_with
    assert said.startswith("Tried without search_actions") and "at most 8 steps" in said
    searching = {"gate": GATE.but("gate", search=True, max_steps=12), "plain": PLAIN}
    arms = {"plain": mixed(8, 40), "gate": mixed(36, 40)}
    said = recommend(evidence(arms, variants=searching, checks=CHECKS)).measured_with
    assert said.startswith("Tried with search_actions") and "at most 12 steps" in said


def test_a_cheaper_variant_takes_its_place_only_where_it_is_shown_to_be_as_good() -> None:
    variants = {"gate": GATE, "plain": PLAIN}
    arms = {"gate": mixed(190, 200), "plain": mixed(190, 200)}
    cheap = recommend(
        evidence(arms, variants=variants, tokens={"gate": 9_000, "plain": 1_000}, checks=CHECKS)
    )
    assert cheap.chosen.variant == PLAIN and cheap.tier == "standard" and cheap.confidence == "clear"
    few = {"gate": mixed(24, 25), "plain": mixed(22, 25)}
    dear = recommend(evidence(few, variants=variants, tokens={"gate": 9_000, "plain": 1_000}, checks=CHECKS))
    assert dear.chosen.variant == GATE and dear.confidence == "leaning"
    assert (dear.evidence[0].difference.low or 0) < -MARGIN


def test_of_equals_the_cheaper_one_is_taken() -> None:
    arms = {"dear": many(30, True), "cheap": many(30, True)}
    assert recommend(evidence(arms, tokens={"dear": 9_000}, checks=CHECKS)).chosen.variant.name == "cheap"


@pytest.mark.parametrize(
    ("scenarios", "rivals", "confidence"), [(80, 1, "clear"), (80, 8, "leaning"), (200, 8, "clear")]
)
def test_clear_takes_more_scenarios_the_more_variants_were_tried(
    scenarios: int, rivals: int, confidence: str
) -> None:
    """Tango's limits of equal arms are ± z² / (n + z²): .046 of 80, .085 at the level for eight, .036 of 200."""
    arms = {f"v{n}": mixed(scenarios // 2, scenarios) for n in range(rivals + 1)}
    assert recommend(evidence(arms, checks=CHECKS)).confidence == confidence


def test_a_cheaper_variant_has_to_hold_its_own_among_many_too() -> None:
    arms = {"dear": mixed(40, 80), **{f"v{n}": mixed(40, 80) for n in range(8)}}
    tokens = {name: 1_000 + 100 * (name == "dear") for name in arms}
    two = {name: arms[name] for name in ("dear", "v0")}
    assert recommend(evidence(two, tokens=tokens, checks=CHECKS)).chosen.variant.name == "v0"
    better = {**arms, "dear": mixed(41, 80)}
    assert recommend(evidence(better, tokens=tokens, checks=CHECKS)).chosen.variant.name == "dear"


def test_whether_tasks_are_done_decides_where_the_suite_can_tell() -> None:
    found = recommend(evidence({"a": many(30, True), "b": many(30, False)}))
    assert found.check == "task done" and found.chosen.rate.estimate == 1.0
    assert (
        recommend(evidence({"a": mixed(3, 30), "b": mixed(28, 30)}), check="first_call_is").check
        == "lists first"
    )


@pytest.mark.parametrize("scenarios", [1, 3, 19])
def test_thin_evidence_is_called_so_and_writes_nothing(scenarios: int, tmp_path: Path) -> None:
    found = recommend(evidence({"a": many(scenarios, False), "b": many(scenarios, True)}, checks=CHECKS))
    assert found.confidence == "too little evidence" and "too little evidence" in found.sentence
    with pytest.raises(RecommendationError, match="at least 20"):
        found.write(tmp_path / "reyn.yaml")
    assert not list(tmp_path.iterdir())


def test_a_variant_that_was_hardly_tried_stands_aside() -> None:
    found = recommend(
        evidence({"a": mixed(30, 40), "b": mixed(10, 40), "lucky": many(2, True)}, checks=CHECKS)
    )
    assert found.chosen.variant.name == "a" and [each.variant.name for each in found.candidates] == ["a", "b"]
    assert any("lucky" in warning and "not considered" in warning for warning in found.warnings)


def test_one_variant_alone_and_missing_trials_are_told() -> None:
    found = recommend(evidence({"a": {**mixed(20, 30), "s099": ("error", "timeout")}}, checks=CHECKS))
    assert found.confidence == "leaning" and "nothing else to compare it with" in found.sentence
    assert any("Only one variant" in each for each in found.warnings)
    assert any("2 trials ended" in each for each in found.warnings)


@pytest.mark.parametrize("passed", [0, 1])
def test_a_model_on_the_floor_gets_no_settings_and_is_told_what_does_differ(passed: int) -> None:
    arms = {"plain": mixed(0, 100), "gate": mixed(passed, 100)}
    variants = {"gate": GATE, "plain": PLAIN}
    alike = evidence(arms, variants=variants, checks=("first_call_is", "tokens"))
    with pytest.raises(RecommendationError) as refused:
        recommend(alike)
    said = str(refused.value)
    assert "cannot be told from 0" in said and f"passes {passed} of 100 trials (0 to " in said
    assert (
        "floor of this suite; try the easier suite first-steps." in said
        and "corrected together, do not tell the variants apart either" in said
    )
    apart = evidence(arms, variants=variants, tokens={"plain": 4_000}, checks=("first_call_is", "tokens"))
    with pytest.raises(RecommendationError, match="What does differ: gate beats plain on tokens"):
        recommend(apart)


def test_of_one_variant_on_the_floor_no_comparison_is_told() -> None:
    with pytest.raises(RecommendationError) as refused:
        recommend(evidence({"a": mixed(0, 30)}, checks=CHECKS))
    assert "a, the only variant, passes 0 of" in str(refused.value) and "apart" not in str(refused.value)


def test_variants_of_another_catalog_size_stand_aside_and_a_refusal_says_so_too() -> None:
    sizes = {"a": Variant("a", model="m"), "a-20": Variant("a-20", model="m", catalog_size=20)}
    made = evidence({"a": mixed(0, 30), "a-20": mixed(20, 30)}, variants=sizes, checks=CHECKS)
    with pytest.raises(
        RecommendationError, match=r"a-20: tried on catalogs of another size than a, so not considered"
    ):
        recommend(made)


def test_where_only_the_flat_surface_leaves_the_floor_it_is_what_is_recommended() -> None:
    flat = PLAIN.but("flat", surface="flat")
    variants = {"plain": PLAIN, "gate": GATE, "flat": flat}
    arms = {"plain": mixed(0, 24), "gate": mixed(0, 24), "flat": mixed(15, 24)}
    found = recommend(evidence(arms, variants=variants, checks=CHECKS))
    assert found.chosen.variant == flat and found.settings["router.surface"] == "flat"
    assert "with the flat surface" in found.sentence and found.confidence == "clear"
    assert [each.winner for each in found.evidence] == ["flat", "flat"]


def test_the_help_that_a_weak_model_had_is_part_of_what_is_recommended_and_written(tmp_path: Path) -> None:
    helped = PLAIN.but("helped", text_calls=True, stop_repeats=True)
    arms = {"plain": mixed(8, 40), "helped": mixed(36, 40)}
    found = recommend(evidence(arms, variants={"plain": PLAIN, "helped": helped}, checks=CHECKS))
    assert found.tier == "light" and "no mandate, text calls and stop repeats (helped" in found.sentence
    found.write(tmp_path / "reyn.yaml")
    weak = load(tmp_path, trusted=lambda *_: True).settings.router.weak
    assert (weak.text_calls, weak.stop_repeats) == (True, True)
    assert (weak.check_support, weak.fit_context, weak.short_errors) == (False, False, False)


def test_a_cheaper_variant_on_the_floor_never_takes_the_place_of_one_that_is_not() -> None:
    arms = {"dear": mixed(12, 800), "cheap": mixed(0, 800)}
    found = recommend(evidence(arms, tokens={"dear": 9_000}, checks=CHECKS))
    assert found.chosen.variant.name == "dear"


def test_few_scenarios_without_a_pass_are_refused_as_too_few_and_not_as_a_floor() -> None:
    with pytest.raises(RecommendationError, match="try at least 20 scenarios") as refused:
        recommend(evidence({"a": many(3, False)}, checks=CHECKS))
    assert "floor" not in str(refused.value)


def test_the_plain_words_say_why_it_is_not_the_variant_with_the_highest_rate() -> None:
    arms = {"dear": mixed(191, 200), "cheap": mixed(190, 200)}
    found = recommend(evidence(arms, tokens={"dear": 9_000}, checks=CHECKS))
    assert (found.chosen.variant.name, found.best.variant.name) == ("cheap", "dear")
    assert found.advice.endswith(
        "Not dear, which has the highest rate on lists first (96 % against 95 %): cheap is shown to be at most 5 "
        "points worse, and takes 1,200 tokens a trial in place of 9,200."
    )
    assert recommend(clear()).why_not_best == ""


def test_what_cannot_be_recommended_is_told_with_what_to_do() -> None:
    two = evidence({"a": many(3, True), "b": many(3, True)}, variants={"b": Variant("b", model="other")})
    with pytest.raises(RecommendationError, match="say which"):
        recommend(two)
    assert recommend(two, "other").model == "other"
    with pytest.raises(RecommendationError, match="no trials of 'third'"):
        recommend(two, "third")
    with pytest.raises(RecommendationError, match="no trials yet"):
        recommend(evidence({"a": {}}))
    with pytest.raises(RecommendationError, match="never pooled"):
        recommend(evidence({"a": many(3, True), "b": many(3, True)}, sources={"b": "simulated"}))
    with pytest.raises(RecommendationError, match="gives numbers"):
        recommend(two, "other", "tokens")
    with pytest.raises(RecommendationError, match="applies to no trial"):
        recommend(two, "other", "abstained_when_unanswerable")
    with pytest.raises(UnknownCheckError, match="task_done"):
        recommend(two, "other", "task_dome")


@pytest.mark.parametrize("source", ["simulated", "offline", "scripted", "replayed"])
def test_nothing_but_real_trials_ever_writes_configuration(source: Any, tmp_path: Path) -> None:
    found = recommend(clear(sources={"plain": source, "gate": source}))
    assert found.sentence.startswith(f"{source.capitalize()} trials, no advice for a real model: ")
    with pytest.raises(RecommendationError, match=source):
        found.write(tmp_path / "reyn.yaml")
    assert not list(tmp_path.iterdir())


def test_real_trials_beside_simulated_ones_speak_alone(tmp_path: Path) -> None:
    lists = call("list_actions")
    real = Study(tmp_path / "a.sqlite", small(24), models={"m": ScriptedModel(otherwise=lists, real=True)})
    base = Variant("base", model="m", max_steps=1)
    real.run(base, repeats=1)
    fake = Study(tmp_path / "a.sqlite", small(24), models={"m": ScriptedModel(otherwise=lists)})
    fake.run(base, repeats=1)
    for study in (real, fake):
        found = study.recommend(check="first_call_is")
        assert (found.source, found.chosen.rate.trials) == ("real", 24)


# -- the file ---------------------------------------------------------------------------------------------------------

MINE = """\
# my settings
router_model: light   # the small one

router:
  mandate: none  # not needed, I thought
  limits:
    max_steps: 4
models:
  light: "gpt-mini"
"""


def test_settings_are_written_where_none_were_and_the_session_reads_them(tmp_path: Path) -> None:
    path = recommend(clear()).write(tmp_path / "reyn.yaml")
    settings = load(tmp_path, trusted=lambda *_: True).settings
    assert path.name == "reyn.yaml" and settings.router.mandate == "explicit"
    assert (settings.router.discovery, settings.router.names, settings.router.reinforcement) == (
        "gate",
        "shown",
        3,
    )
    assert [each.name for each in tmp_path.iterdir()] == ["reyn.yaml"]


def test_comments_and_other_keys_stay(tmp_path: Path) -> None:
    path = tmp_path / "reyn.yaml"
    path.write_text(MINE)
    path.chmod(0o640)
    recommend(clear()).write(path)
    text = path.read_text()
    for kept in (
        "# my settings",
        "# the small one",
        "# not needed, I thought",
        "max_steps: 4",
        'light: "gpt-mini"',
    ):
        assert kept in text
    assert "mandate: explicit # not needed" in text and "discovery: gate" in text
    assert path.stat().st_mode & 0o777 == 0o640
    once = path.read_bytes()
    recommend(clear()).write(path)
    assert path.read_bytes() == once


def test_a_file_of_comments_alone_keeps_them(tmp_path: Path) -> None:
    path = tmp_path / "reyn.yaml"
    path.write_text("# nothing yet\n")
    recommend(clear()).write(path)
    assert path.read_text().startswith("# nothing yet\nrouter:\n")


def test_a_section_that_others_share_by_an_alias_changes_alone(tmp_path: Path) -> None:
    path = tmp_path / "reyn.yaml"
    path.write_text("shared: &x {mandate: none}\nrouter: *x\n")
    recommend(clear()).write(path)
    text = path.read_text()
    assert "{mandate: none}\n" in text and "\n  mandate: explicit\n" in text


def test_line_ends_stay_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "reyn.yaml"
    path.write_bytes(MINE.replace("\n", "\r\n").encode())
    recommend(clear()).write(path)
    written = path.read_bytes()
    assert written.count(b"\n") == written.count(b"\r\n") > 10 and b"# the small one\r\n" in written


def test_a_trusted_file_stays_trusted_and_an_untrusted_one_gains_nothing(tmp_path: Path) -> None:
    path = tmp_path / "reyn.yaml"
    trust = Trust(StateFolder(tmp_path))
    for trusted in (False, True):
        path.write_text(MINE)
        if trusted:
            trust.trust(path.read_bytes())
        recommend(clear()).write(path)
        assert path.read_text() != MINE and trust.is_trusted(path.read_bytes()) is trusted


@pytest.mark.parametrize(
    ("content", "error", "told"),
    [
        ("router: [broken\n", ConfigError, "line"),
        ("- a\n- b\n", ConfigError, "key: value"),
        ("router: 12\n", RecommendationError, "no mapping"),
        ("router:\n  mandate: none\n  mandate: generic\n", ConfigError, "mandate"),
    ],
)
def test_a_file_that_cannot_be_read_is_left_as_it_is(
    content: str, error: type[Exception], told: str, tmp_path: Path
) -> None:
    path = tmp_path / "reyn.yaml"
    path.write_text(content)
    with pytest.raises(error, match=told):
        recommend(clear()).write(path)
    assert path.read_text() == content and [each.name for each in tmp_path.iterdir()] == ["reyn.yaml"]


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(RecommendationError, match="cannot be written"):
        recommend(clear()).write(tmp_path / "not-there" / "reyn.yaml")
    (tmp_path / "real.yaml").write_text("router_model: light\n")
    (tmp_path / "reyn.yaml").symlink_to(tmp_path / "real.yaml")
    with pytest.raises(ConfigError, match="link"):
        recommend(clear()).write(tmp_path / "reyn.yaml")
