"""The ladder of sandboxes: the strongest that works, as far as the settings admit it, and never anything weaker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from reyn_jupyter.guard.sandbox import SandboxError, resolve_backend, rungs
from reyn_jupyter.guard.sandbox import ladder as sandbox_ladder
from reyn_jupyter.guard.sandbox.confinement import Language


@dataclass
class Rung:
    """A backend that works, or says why not, and counts how often it was asked."""

    name: str
    why: str | None = None
    language: Language = "program"
    isolation: str = "nothing: it stands in a test"
    asked: list[str] = field(default_factory=list)

    def problem(self) -> str | None:
        self.asked.append(self.name)
        return self.why

    def launch(self, *_: Any) -> Any:
        raise AssertionError


@pytest.fixture(autouse=True)
def _nothing_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_ladder, "_probed", {})


def test_the_strongest_that_works_is_in_force_and_each_is_run_once() -> None:
    strong, weak = Rung("strong", why="it is not installed"), Rung("weak")
    for _ in range(2):
        assert resolve_backend(backends=(strong, weak)) is weak
    assert strong.asked == ["strong"]


def test_a_minimum_is_never_undercut() -> None:
    ladder = (Rung("strong", why="it is not installed"), Rung("weak"))
    with pytest.raises(
        SandboxError, match=r"strong: it is not installed; weak: it is weaker than sandbox\.minimum"
    ) as no:
        resolve_backend(minimum="strong", backends=ladder)
    assert "Install one" in no.value.hint
    assert not ladder[1].asked


def test_a_chosen_backend_is_the_only_one() -> None:
    ladder = (Rung("strong"), Rung("weak"))
    assert resolve_backend(wanted="weak", backends=ladder) is ladder[1]
    with pytest.raises(SandboxError, match="weaker than"):
        resolve_backend(wanted="weak", minimum="strong", backends=ladder)


@pytest.mark.parametrize("settings", [{"wanted": "noop"}, {"minimum": "noop"}, {"wanted": "none"}])
def test_what_is_no_sandbox_leaves_none(settings: dict[str, str]) -> None:
    with pytest.raises(SandboxError, match="which is no sandbox") as no:
        resolve_backend(backends=(Rung("weak"),), **settings)
    assert "Known: auto, weak" in no.value.hint


def test_a_language_has_its_own_sandboxes() -> None:
    ladder = (Rung("strong"), Rung("scripts", language="typescript"))
    assert resolve_backend("typescript", backends=ladder) is ladder[1]
    with pytest.raises(SandboxError, match="strong does not run TypeScript"):
        resolve_backend("typescript", wanted="strong", backends=ladder)


def test_every_backend_says_what_it_keeps_apart_or_why_it_does_not() -> None:
    found = rungs()
    assert [rung.backend for rung in found] == ["bubblewrap", "landlock", "deno", "pyodide"]
    assert all(rung.isolation and (rung.problem is None or rung.problem) for rung in found)
