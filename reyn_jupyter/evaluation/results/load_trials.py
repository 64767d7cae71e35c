"""Load the trials that count for a study, with notes on what does not count.

Invariants: trials are pooled only where scenario, conditions and code are those of today (or, for a study that is
opened for reading, of its last run); what is left out, what was cut short and what was paid for in vain is counted and
said, never dropped in silence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from reyn_jupyter.evaluation.plan.conditions import conditions_of
from reyn_jupyter.evaluation.plan.model_grader import ModelGrader
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.plan.suite import Claim, Suite
from reyn_jupyter.evaluation.results.grading import stored_verdicts
from reyn_jupyter.evaluation.results.trial_set import TrialSet
from reyn_jupyter.evaluation.results.true_rates import recorded_true_rates
from reyn_jupyter.evaluation.store.rows import StoredTrial
from reyn_jupyter.evaluation.store.store import Store
from reyn_jupyter.evaluation.store.study_file import StoreError
from reyn_jupyter.evaluation.store.usage_totals import total_usage
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.models.base import canonical
from reyn_jupyter.runtime.record.events import ModelRequested

_ASKED_AGAIN = 20  # catalogs that are made once more at the end of a run
_CATALOGS = 4  # catalogs that are shown one by one


@dataclass(frozen=True)
class StudySpec:
    """The subject of a study, with or without the suite at hand.

    Attributes:
        name, title, primary, checks, claims, scenarios, graders: the suite's.
        code: the version of the code whose trials count.
        catalogs: name → hash of the frozen catalog.
        stamps: model's name → what its trials stand on besides. A name that is not in these two is not held against
            a trial.
    """

    name: str
    title: str
    primary: str
    checks: tuple[str, ...]
    claims: tuple[Claim, ...]
    scenarios: tuple[Scenario, ...]
    code: str
    catalogs: Mapping[str, str]
    stamps: Mapping[str, str]
    graders: tuple[ModelGrader, ...] = ()

    @classmethod
    def of_suite(
        cls, suite: Suite, code: str, catalogs: Mapping[str, str], stamps: Mapping[str, str]
    ) -> StudySpec:
        checks = tuple(dict.fromkeys((suite.primary, *suite.checks)))
        return cls(
            suite.name,
            suite.title,
            suite.primary,
            checks,
            suite.claims,
            suite.scenarios,
            code,
            catalogs,
            stamps,
            suite.graders,
        )

    @classmethod
    def of_store(cls, store: Store) -> StudySpec:
        """Return what the last run of a file was about."""
        runs = store.runs()
        if not runs:
            return cls("", "", "first_call_is", ("first_call_is",), (), (), "", {}, {})
        last = runs[-1]
        scenarios = tuple(store.scenarios(last["id"]).values())
        with store.reading("the last run"):
            suite, known = last["suite"], {each.name for each in fields(Claim)}
            claims = tuple(
                Claim(**{key: value for key, value in claim.items() if key in known})
                for claim in suite["claims"]
            )
            return cls(
                suite["name"],
                suite["title"],
                suite["primary"],
                tuple(suite["checks"]),
                claims,
                scenarios,
                last["code"],
                last["catalogs"],
                {model: stamp for run in runs for model, stamp in run["stamps"].items()},
                tuple(ModelGrader(**grader) for grader in suite.get("graders", ())),
            )

    @property
    def record(self) -> dict[str, Any]:
        """The data that a run notes of this subject."""
        return {
            "suite": {
                "name": self.name,
                "title": self.title,
                "primary": self.primary,
                "checks": list(self.checks),
                "claims": list(self.claims),
                "graders": [grader.model_dump(mode="json") for grader in self.graders],
            },
            "code": self.code,
            "catalogs": dict(self.catalogs),
            "stamps": dict(self.stamps),
        }


@dataclass(frozen=True)
class LoadedTrials:
    """The evidence, and the row in the file of each of its trials: (variant's name, key, source) → row."""

    evidence: TrialSet
    rows: Mapping[tuple[str, str, str], int]


def load_trials(store: Store, spec: StudySpec, judges: Mapping[str, str] | None = None) -> LoadedTrials:
    """Read every trial that counts for a subject.

    Args:
        store: the study's file.
        spec: the subject.
        judges: grader's name → the model that it stands for today, where that is known.
    """
    scenarios = {scenario.digest: scenario for scenario in spec.scenarios}
    if any(digest not in scenarios for (digest,) in store.rows("SELECT digest FROM scenarios")):
        # An older version, whose scenarios had fewer fields, stored the same scenario under another digest.
        stored_before = {digest: scenarios.get(each.digest) for digest, each in store.scenarios().items()}
        scenarios |= {digest: found for digest, found in stored_before.items() if found is not None}
    variants, behaviours = store.variants(), store.behaviours()
    models = {digest: found[0].model for digest, found in behaviours.items()}
    kept: dict[tuple[str, str], StoredTrial] = {}
    others = {"scenario": 0, "ground": 0, "attempt": 0}
    for stored in store.trials(spec.code):
        if stored.behaviour not in behaviours:
            raise StoreError(
                f"{store.path}: the variant of trial {stored.id} is missing. The file is damaged: study.verify() "
                "lists what is wrong; restore it from a copy."
            )
        reason = _left_out(stored, scenarios, spec, models)
        if reason:
            others[reason] += 1
            continue
        place = (stored.trial.key, stored.trial.source)
        others["attempt"] += place in kept
        kept[place] = stored  # the last attempt counts
    trials: list[Trial] = []
    rows: dict[tuple[str, str, str], int] = {}
    for stored in kept.values():
        for name in (each.name for each in behaviours[stored.behaviour]):
            trial = stored.trial
            trials.append(trial if trial.variant == name else trial.model_copy(update={"variant": name}))
            rows[name, trial.key, trial.source] = stored.id
    runs = store.runs()
    with store.reading("what a run noted"):
        notes = run_notes(store, runs, others, spec)
        primary = _announced_check(runs, spec)
        judged = {grader.name: grader.version for grader in spec.graders}
        versions = judged | {grader.people: grader.people_version for grader in spec.graders}
        evidence = TrialSet(
            suite=spec.name,
            primary=primary,
            checks=tuple(dict.fromkeys((primary, *spec.checks, *judged))),
            scenarios={scenario.id: scenario for scenario in spec.scenarios},
            variants=variants,
            trials=trials,
            claims=spec.claims,
            truths=recorded_true_rates(runs, variants, spec.code, spec.catalogs, spec.stamps),
            runs=tuple(
                {**run["stop"], **{key: run[key] for key in ("check", "variants", "repeats", "order")}}
                for run in runs
                if run["code"] == spec.code
            ),
            provenance={
                **_provenance(runs),
                **({"system prompts": _prompts(store, rows)} if rows else {}),
                "code": spec.code,
                "notes": notes,
            },
            stored=lambda check: stored_verdicts(store, check, rows, versions.get(check)),
            graders=spec.graders,
            judges=judges or {},
        )
    return LoadedTrials(evidence, rows)


def _announced_check(runs: Sequence[Mapping[str, Any]], spec: StudySpec) -> str:
    """Return the check that decides: the one that every run named before its first trial, else the suite's own."""
    named = _named_checks(runs, spec)
    return named[0] if len(named) == 1 else spec.primary


def _named_checks(runs: Sequence[Mapping[str, Any]], spec: StudySpec) -> list[str]:
    """Return the checks that runs named before their first trials, the earliest first."""
    return list(dict.fromkeys(run["check"] for run in runs if run["code"] == spec.code))


def _prompts(store: Store, rows: Mapping[tuple[str, str, str], int]) -> dict[str, str]:
    """Variant → SHA-256 of the system prompt of its first trial."""
    found: dict[str, str] = {}
    for (variant, _, _), row in rows.items():
        if variant not in found:
            asked = (each for each in store.events(row) if isinstance(each, ModelRequested))
            sent = next((message for each in asked for message in each.messages), {})
            prompt = sent.get("content", "") if sent.get("role") == "system" else ""
            found[variant] = (
                hashlib.sha256(str(prompt).encode("utf-8", "replace")).hexdigest() if prompt else "none"
            )
    return found


def describe_changes(before: StudySpec, now: StudySpec) -> tuple[str, ...]:
    """Return what is different from the last run of a study, a sentence each; empty where nothing is, or nothing
    ran yet."""
    if not before.code:
        return ()
    said = []
    if before.name != now.name:
        said.append(f"The study was made with the suite {before.name!r}, not {now.name!r}.")
    old, new = ({each.id: each.digest for each in spec.scenarios} for spec in (before, now))
    changed = sorted(key for key in old.keys() & new.keys() if old[key] != new[key])
    if changed:
        said.append(
            f"{_name_few(changed)} changed since the last run; their trials of then are kept, and not shown."
        )
    judged, judges = ({each.name: each.digest for each in spec.graders} for spec in (before, now))
    said += [
        f"The judge of {name!r} changed since the last run, so its verdicts of then are not shown: study.judge()."
        for name in sorted(judged.keys() & judges.keys())
        if judged[name] != judges[name]
    ]
    gone = sorted(old.keys() - new.keys())
    if gone:
        said.append(f"{_name_few(gone)} left the suite; their trials are kept, and not shown.")
    said += [
        f"The catalog {name!r} changed since the last run, so its scenarios are tried again."
        for name in sorted(before.catalogs.keys() & now.catalogs.keys())
        if before.catalogs[name] != now.catalogs[name]
    ]
    said += [
        f"The study's settings, what it allows, or what {model!r} is made of, changed since the last run, so its "
        "trials are made again."
        for model in sorted(before.stamps.keys() & now.stamps.keys())
        if before.stamps[model] != now.stamps[model]
    ]
    if before.code != now.code:
        said.append(
            f"The code changed ({before.code} → {now.code}), so trials are made again; the old ones are kept."
        )
    return tuple(said)


def describe_catalog_changes(
    suite: Suite, frozen: Mapping[str, str], scenarios: Iterable[Scenario]
) -> tuple[str, ...]:
    """Name the catalogs of a run that would now be others than those that it froze, a sentence each.

    Args:
        suite: where functions stand for catalogs, they are asked once more; of many, none is.
        frozen: name → hash of the catalog that the trials ran on.
        scenarios: those that were run.
    """
    used = {scenario.catalog for scenario in scenarios}
    asked = sorted(name for name in used if callable(suite.catalogs[name]))
    return tuple(
        f"The catalog {name!r} changed while the study ran. These trials are on it as it was before; "
        "open the study again to try the new one."
        for name in (asked if len(asked) <= _ASKED_AGAIN else ())
        if _hash_now(suite, name) not in (None, frozen[name])
    )


def _hash_now(suite: Suite, name: str) -> str | None:
    """Return the hash of a catalog as it would be made now; None where it could not be."""
    try:
        return suite.catalog(name).hash
    except Exception:  # noqa: BLE001 - whatever a person's function raises: the trials are there, and on the frozen one
        return None


def _name_few(identities: list[str]) -> str:
    shown = ", ".join(identities[:5])
    rest = f" and {len(identities) - 5} more" if len(identities) > 5 else ""
    return f"{'Scenario' if len(identities) == 1 else 'Scenarios'} {shown}{rest}"


def _left_out(
    stored: StoredTrial, scenarios: Mapping[str, Scenario], spec: StudySpec, models: Mapping[str, str]
) -> str:
    """Return why a trial does not count; "" where it does."""
    scenario = scenarios.get(stored.scenario)
    if scenario is None:
        return "scenario"
    catalog, stamp = spec.catalogs.get(scenario.catalog), spec.stamps.get(models[stored.behaviour])
    known = catalog is not None and stamp is not None
    return "ground" if known and conditions_of(catalog or "", stamp or "") != stored.conditions else ""


def _provenance(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the runs have in common, by the last of them, and when they were."""
    if not runs:
        return {}
    last = runs[-1]
    shown = ("versions", "seed", "check", "budget", "sources", "config", "allow_actions", "cassette")
    dates = {"runs": len(runs), "first run": runs[0].get("date", ""), "last run": last.get("date", "")}
    catalogs = dict(last.get("catalogs", {}))
    if len(catalogs) > _CATALOGS:
        together = hashlib.sha256(canonical(catalogs)).hexdigest()
        catalogs = {f"{len(catalogs)} catalogs together": together}
    return {
        **dates,
        "catalogs": catalogs,
        **{name: last[name] for name in shown if last.get(name) not in (None, "", {}, [])},
    }


def run_notes(
    store: Store, runs: list[dict[str, Any]], others: Mapping[str, int], spec: StudySpec
) -> tuple[str, ...]:
    """Return what a reader of the figures should know of the file and its runs, one sentence each.

    Args:
        store: the study's file.
        runs: what is known of its runs, the oldest first.
        others: why trials do not count → how many.
        spec: the study as it is now, with the version of the code whose trials count.
    """
    return (
        *_note_left_out(others, store.codes(), spec.code),
        *_note_checks(runs, spec),
        *_note_interruption(runs),
        *_note_unfinished(store),
        *_run_warnings(runs),
    )


def _note_left_out(others: Mapping[str, int], codes: Mapping[str, int], code: str) -> list[str]:
    said = []
    for version, count in codes.items():
        if version != code:
            said.append(
                f"{count:,} trials of another version of the code ({version}) are kept, and not shown."
            )
    words = {
        "scenario": "of scenarios that changed or left the suite are kept, and not shown",
        "ground": "on a catalog, settings or a simulator that changed since are kept, and not shown",
        "attempt": "were tried again; the last attempt counts",
    }
    return said + [f"{count:,} trials {words[reason]}." for reason, count in others.items() if count]


def _note_checks(runs: Sequence[Mapping[str, Any]], spec: StudySpec) -> list[str]:
    """Return why a check that a run named does not decide, where an earlier run named another one."""
    named = _named_checks(runs, spec)
    others = ", ".join(each for each in named if each != spec.primary)
    if len(named) < 2:
        return []
    return [
        f"{spec.primary} decides: not every run of this file named {others}. For that, begin a file of its own."
    ]


def _note_unfinished(store: Store) -> list[str]:
    """Return what was paid for without a trial to show for it."""
    said = total_usage(store).unfinished.sentence
    return [f"{said}."] if said else []


def _note_interruption(runs: list[dict[str, Any]]) -> list[str]:
    """Return what to know of a last run that a person ended, who may have seen the rates on the way, or a variant's
    model."""
    last = runs[-1] if runs else {}
    if last.get("faults"):
        return [f"In the last run {last['faults']}"]
    if last.get("ended_by") != "interrupted" or last["stop"]["rule"] != "fixed":
        return []
    said = f"The last run was interrupted after {last['done']:,} of {last['planned']:,} trials."
    why = "Intervals and p hold only if that had nothing to do with the rates so far: let it go on, or run it with"
    return [f'{said} {why} stop="evalue".']


def _run_warnings(runs: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(str(warning) for run in runs for warning in run.get("warnings", ())))
