"""Trials are pooled by the version of the code: it moves with whatever a trial depends on, and with nothing else."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

from reyn_jupyter.evaluation.trial import code_version


def test_the_version_of_the_code_moves_with_whatever_a_trial_depends_on(tmp_path: Path) -> None:
    package = Path(code_version.__file__).parents[2]
    copy = shutil.copytree(package, tmp_path / "package", ignore=lambda folder, names: [
        name for name in names if not (Path(folder, name).is_dir() or name.endswith((".py", ".gz")))
    ])  # fmt: skip
    spec = importlib.util.spec_from_file_location("copied", copy / "evaluation" / "trial" / "code_version.py")
    assert spec is not None and spec.loader is not None
    copied = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = copied  # its dataclasses look for it there
    try:
        spec.loader.exec_module(copied)
    finally:
        del sys.modules[spec.name]

    def moved(name: str) -> bool:
        copied.code_version.cache_clear()
        before = copied.code_version()
        (copy / name).write_bytes((copy / name).read_bytes() + b"\n")
        copied.code_version.cache_clear()
        return bool(copied.code_version() != before)

    for name in (
        "config/settings.py",
        "router/loop.py",
        "evaluation/plan/variant.py",
        "evaluation/models/gold_arguments.py",
        "evaluation/suites/data/bfcl/actions.jsonl.gz",
    ):
        assert moved(name), name
    assert not moved("evaluation/results/report.py") and not moved("notebook/magic.py")
