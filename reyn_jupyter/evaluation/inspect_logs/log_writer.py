"""Write a study as logs of inspect_ai: one ``.eval`` file for each variant.

Invariants: a log is there whole or not at all; simulated, offline, scripted and replayed trials are tagged as such in
its header and in each sample, and never stand in one log with real ones.
Source: UKGovernmentBEIS/inspect_ai, log._log (EvalLog, version 2) and log._recorders.eval, which names the
members of the archive.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from reyn_jupyter.evaluation.inspect_logs.sample_record import (
    CORRECT,
    INCORRECT,
    moment,
    plain,
    sample_of,
    summary_of,
    usage_of,
)
from reyn_jupyter.evaluation.results.trial_export import ExportError
from reyn_jupyter.evaluation.results.trial_set import TrialSet
from reyn_jupyter.evaluation.trial.trial import MISSING, Trial
from reyn_jupyter.runtime.record.events import Event
from reyn_jupyter.runtime.record.verdict import Verdict
from reyn_jupyter.support.files.replacement import replacement

VERSION = 2  # of inspect's log format
_SOLVER = "reyn_jupyter/router"
_UNSAFE = re.compile(r"[^\w.-]+")


def write_logs(
    evidence: TrialSet, events: Callable[[Trial], Sequence[Event]], folder: Path
) -> tuple[Path, ...]:
    """Write a log for each variant that has trials, of its trials of one source.

    Args:
        evidence: the study's.
        events: gives the stored events of a trial, for its messages.
        folder: where; made when it is not there.

    Raises:
        ExportError: there are no trials, or nothing can be written there.
    """
    if not evidence.tried:
        raise ExportError("the study has no trials yet; run some with study.run(…)")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return tuple(_write(evidence, variant, events, folder) for variant in evidence.tried)
    except OSError as error:
        raise ExportError(f"{folder} cannot be written ({error.strerror}); name another folder") from error


def _write(
    evidence: TrialSet, variant: str, events: Callable[[Trial], Sequence[Event]], folder: Path
) -> Path:
    trials = sorted(evidence.by_variant[variant], key=lambda trial: (trial.repeat, trial.scenario))
    verdicts = {name: evidence.verdicts(name) for name in evidence.checks}
    start = _start(evidence, variant, trials)
    safe = _UNSAFE.sub("-", f"{evidence.suite}-{variant}").strip("-.") or "study"
    path = folder / f"{safe}_{start['eval']['task_id']}.eval"
    summaries = []
    with replacement(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        _member(archive, "_journal/start.json", start)
        for trial in trials:
            said = {name: of[trial.key] for name, of in verdicts.items() if trial.key in of}
            sample = sample_of(trial, evidence.scenarios[trial.scenario], said, events(trial))
            _member(archive, f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
            summaries.append(summary_of(sample))
        _member(archive, "summaries.json", summaries)
        _member(archive, "header.json", {**start, **_end(evidence, trials, verdicts)})
    return path


def _member(archive: zipfile.ZipFile, name: str, value: Any) -> None:
    archive.writestr(plain(name), json.dumps(plain(value)))


def _start(evidence: TrialSet, name: str, trials: Sequence[Trial]) -> dict[str, Any]:
    variant = evidence.variants[name]
    source = evidence.sources[name]
    settings = variant.model_dump(mode="json", exclude={"name", "model", "parameters"})
    models = dict.fromkeys(trial.model for trial in trials if trial.model)
    identity = hashlib.sha256("\n".join(trial.key + trial.source for trial in trials).encode()).hexdigest()
    ids = list(dict.fromkeys(trial.scenario for trial in trials))
    spec: dict[str, Any] = {
        "eval_id": identity[:22],
        "run_id": identity[22:44],
        "created": moment(min(trial.started for trial in trials)),
        "task": f"{evidence.suite}: {name}",
        "task_id": hashlib.sha256(f"{evidence.suite}\n{name}\n{source}".encode()).hexdigest()[:22],
        "tags": [source] if source == "real" else [source, "not a real model"],
        "dataset": {"name": evidence.suite, "samples": len(ids), "sample_ids": ids},
        "model": ", ".join(models) or variant.model,
        "model_args": dict(variant.parameters),
        "config": {"epochs": max(trial.repeat for trial in trials) + 1},
        "packages": {"reyn-jupyter": version("reyn-jupyter")},
        "metadata": {"variant": name, "source": source, "primary": evidence.primary, "settings": settings},
        "scorers": [{"name": check} for check in evidence.checks],
        "headline_metric": {"score": evidence.primary},
    }
    step = {"solver": _SOLVER, "params": settings, "params_passed": settings}
    return {"version": VERSION, "eval": spec, "plan": {"name": "plan", "steps": [step]}}


def _end(
    evidence: TrialSet, trials: Sequence[Trial], verdicts: Mapping[str, Mapping[str, Verdict]]
) -> dict[str, Any]:
    scores = []
    for check in evidence.checks:
        said = [verdicts[check][trial.key] for trial in trials if trial.key in verdicts[check]]
        values = [verdict.value for verdict in said if verdict.value is not None]
        metric = "mean" if evidence.check(check).numeric else "accuracy"
        metrics = {metric: {"name": metric, "value": sum(values) / len(values)}} if values else {}
        scores.append({
            "name": check,
            "scorer": check,
            "scored_samples": len(values),
            "unscored_samples": len(trials) - len(values),
            "params": {"passed": CORRECT, "failed": INCORRECT} if metric == "accuracy" else {},
            "metrics": metrics,
        })  # fmt: skip
    completed = sum(trial.outcome not in MISSING for trial in trials)
    by_model: dict[str, list[Trial]] = {}
    for trial in trials:
        by_model.setdefault(trial.model or "unknown", []).append(trial)
    return {
        "status": "success",
        "results": {"total_samples": len(trials), "completed_samples": completed, "scores": scores},
        "stats": {
            "started_at": moment(min(trial.started for trial in trials)),
            "completed_at": moment(max(trial.started + trial.seconds for trial in trials)),
            "model_usage": {name: usage_of(of) for name, of in sorted(by_model.items())},
        },
    }
