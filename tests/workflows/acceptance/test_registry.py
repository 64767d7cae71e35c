"""The registry: which utilities there are, which one serves a capability, and that its cache gains nobody anything."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from reyn_jupyter.workflows import workflow_library
from reyn_jupyter.workflows.utilities.registry import UtilityRegistry, read_registry
from tests.support.trusting import trust
from tests.workflows.acceptance.workshop import (
    NOTHING,
    SHOUT,
    TEXT,
    Notebook,
    Workshop,
    closed,
    gives,
    manifest_of,
    needs,
    opened,
    step,
    utility_call,
)  # fmt: skip


def chosen(workshop: Workshop, capability: str, **more: Any) -> str | None:
    tool = workshop.cover(step("a", capability, **more))["plan"]["steps"][0]["tool"]
    assert tool is None or isinstance(tool, str)
    return tool


def candidates(workshop: Workshop, *manifests: dict[str, Any]) -> None:
    """Write utilities that serve c.d where nothing else is said, and trust them."""
    for number, fields in enumerate(manifests):
        others = {key: value for key, value in fields.items() if key != "name"}
        name = fields.get("name", f"tool-{number}")
        workshop.write(name, folder=f"folder-{number}", **{"capabilities": ["c.d"], **others})
    trust(workshop.session)


# A new folder is resolvable and runnable with no other change


def test_a_new_folder_can_be_resolved_and_run_at_once(notebook: Notebook) -> None:
    workshop = notebook.workshop
    workshop.add("shout", SHOUT, capabilities=["text.shout"], input_schema=closed(text=TEXT))
    assert "shout@1.0.0" in notebook.say("%reyn resolve text.shout")
    assert workshop.call("shout", text="hey").value == {"text": "HEY"}
    assert "utility__shout" in {
        each["qualified_name"] for each in workshop.session.list_actions("utility").payload["items"]
    }


def test_a_folder_that_the_persons_configuration_names_is_looked_into_too(tmp_path: Path) -> None:
    folder = tmp_path / "utilities"
    place = folder / "mine"
    place.mkdir(parents=True)
    (place / "tool.yaml").write_text(yaml.safe_dump(manifest_of("mine")))
    (place / "main.py").write_text(SHOUT)
    made = Workshop(tmp_path / "other", {"workflows": {"folders": [str(folder)]}})
    assert made.call("mine", text="a").value == {"text": "A"}
    made.close()


def test_the_workspaces_own_configuration_names_no_folders(workshop: Workshop, tmp_path: Path) -> None:
    folder = tmp_path / "utilities"
    place = folder / "theirs"
    place.mkdir(parents=True)
    (place / "tool.yaml").write_text(yaml.safe_dump(manifest_of("theirs")))
    (place / "main.py").write_text(SHOUT)
    workshop.text("reyn.yaml", {"workflows": {"folders": [str(folder)]}})
    other = Workshop(workshop.root)
    assert not other.attempt("utility__theirs", text="a").ok
    other.close()
    mine = Workshop(workshop.root, {"workflows": {"folders": [str(folder)]}})
    assert mine.call("theirs", text="a").value == {"text": "A"}
    mine.close()


def test_an_edited_manifest_is_seen_at_the_next_use(workshop: Workshop) -> None:
    place = workshop.add("changing")
    assert chosen(workshop, "changing.run") == "changing@1.0.0"
    (place / "tool.yaml").write_text(
        yaml.safe_dump(manifest_of("changing", version="1.1.0", capabilities=["new.run"]))
    )
    trust(workshop.session)
    assert chosen(workshop, "changing.run") is None
    assert chosen(workshop, "new.run") == "changing@1.1.0"


def test_a_folder_that_is_gone_serves_no_more(workshop: Workshop) -> None:
    place = workshop.add("gone")
    assert chosen(workshop, "gone.run") == "gone@1.0.0"
    (place / "tool.yaml").unlink()
    assert chosen(workshop, "gone.run") is None
    assert not workshop.attempt("utility__gone").ok


def test_the_cache_holds_capabilities_ids_and_a_hash_of_each_manifest(notebook: Notebook) -> None:
    notebook.workshop.add("kept", capabilities=["k.one", "k.two"], version="2.3.4")
    notebook.say("%reyn utilities --rebuild")
    text = (notebook.workshop.root / "state" / "registry-cache.json").read_text()
    assert isinstance(json.loads(text), dict)
    assert [each for each in ("kept@2.3.4", "k.one", "k.two") if each not in text] == []
    assert re.search(r"[0-9a-f]{64}", text)


def test_a_cache_that_is_gone_damaged_or_of_somebody_else_makes_no_difference(notebook: Notebook) -> None:
    workshop = notebook.workshop
    workshop.add("kept", SHOUT)
    notebook.say("%reyn utilities --rebuild")
    cache = workshop.root / "state" / "registry-cache.json"
    for content in ("", "{", "[]", "null", '{"version": 99}', "\x00" * 10):
        cache.write_text(content)
        other = Workshop(workshop.root)
        assert other.call("kept", text="a").value == {"text": "A"}, content
        assert chosen(other, "kept.run") == "kept@1.0.0", content
        other.close()


def test_what_runs_leave_behind_stays_out_of_version_control(workshop: Workshop) -> None:
    workshop.add("kept")
    workshop.execute(step("a", "kept.run"))
    assert (workshop.root / "state" / ".gitignore").read_text().strip() == "*"


# Choice: capability → contract → confidence → priority, stability, version, name


def test_only_utilities_of_the_very_capability_are_candidates(workshop: Workshop) -> None:
    candidates(workshop, {"capabilities": ["c.dd"]}, {"capabilities": ["cc.d"]}, {"capabilities": ["d.c"]})
    assert chosen(workshop, "c.d") is None


def test_a_utility_of_several_capabilities_serves_each(workshop: Workshop) -> None:
    candidates(workshop, {"capabilities": ["c.d", "e.f"]})
    assert chosen(workshop, "c.d") == chosen(workshop, "e.f") == "tool-0@1.0.0"


def test_the_contract_comes_before_the_priority(workshop: Workshop) -> None:
    candidates(workshop, {"priority": 99, "output_schema": opened(n={"type": "integer"})},
               {"output_schema": opened(r=TEXT)})  # fmt: skip
    assert chosen(workshop, "c.d", **needs(NOTHING, opened(r=TEXT))) == "tool-1@1.0.0"


def test_priority_comes_before_stability(workshop: Workshop) -> None:
    candidates(workshop, {"priority": 1}, {"stability": "stable", "version": "9.0.0"})
    assert chosen(workshop, "c.d") == "tool-0@1.0.0"


def test_stable_comes_before_a_higher_version(workshop: Workshop) -> None:
    candidates(workshop, {"version": "2.0.0"}, {"stability": "stable", "version": "0.9.0"})
    assert chosen(workshop, "c.d") == "tool-1@0.9.0"


def test_versions_are_compared_as_numbers(workshop: Workshop) -> None:
    candidates(workshop, {"version": "0.9.0", "name": "a"}, {"version": "0.10.0", "name": "b"})
    assert chosen(workshop, "c.d") == "b@0.10.0"


def test_a_release_comes_before_what_was_there_before_it(workshop: Workshop) -> None:
    versions = ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11",
                "1.0.0-rc.1", "1.0.0"]  # fmt: skip
    candidates(workshop, *({"version": each, "name": "one"} for each in versions))
    found = []
    for number in reversed(range(len(versions))):
        found.append(chosen(workshop, "c.d"))
        (workshop.root / "tools" / f"folder-{number}" / "tool.yaml").unlink()
    assert found == [f"one@{each}" for each in reversed(versions)]


def test_of_equals_the_first_by_name_is_chosen(workshop: Workshop) -> None:
    candidates(workshop, {"name": "b"}, {"name": "a"}, {"name": "c"})
    assert chosen(workshop, "c.d") == "a@1.0.0"


def test_resolve_shows_the_ranking_in_order_and_why(notebook: Notebook) -> None:
    candidates(
        notebook.workshop,
        {"name": "old", "version": "0.9.0"},
        {"name": "prior", "priority": 5},
        {"name": "steady", "stability": "stable"},
        {"name": "lost", "priority": 9, "dependencies": [{"command": "no-such-program-anywhere"}]},
    )
    notebook.workshop.write("untrusted", capabilities=["c.d"], priority=99)
    said = notebook.say("%reyn resolve c.d")
    places = [said.index(each) for each in ("prior@1.0.0", "steady@1.0.0", "old@0.9.0")]
    assert places == sorted(places)
    assert "no-such-program-anywhere is not installed" in " ".join(said.split())
    assert "untrusted@1.0.0" in said and "trust" in said
    assert "priority" in said and "stable" in said
    assert chosen(notebook.workshop, "c.d") == "prior@1.0.0"


def test_resolve_of_a_capability_that_nothing_serves_says_what_to_do(notebook: Notebook) -> None:
    said = notebook.say("%reyn resolve nobody.does-this")
    assert "nobody.does-this" in said and "%reyn scaffold nobody.does-this" in said


def test_resolve_of_a_capability_with_a_slip_names_the_one_that_there_is(notebook: Notebook) -> None:
    assert "Did you mean video.convert?" in notebook.say("%reyn resolve video.covnert")
    assert "Did you mean" not in notebook.say("%reyn resolve nobody.knows")


def test_resolve_of_what_is_no_capability_says_the_form(notebook: Notebook) -> None:
    assert "domain.action" in notebook.say("%reyn resolve nonsense")


def test_utilities_are_listed_with_version_capabilities_and_whether_they_are_ready(
    notebook: Notebook,
) -> None:
    notebook.workshop.add("ready", capabilities=["c.d"], version="3.2.1")
    notebook.workshop.write("waiting", capabilities=["e.f"])
    said = notebook.say("%reyn utilities")
    assert [each for each in ("ready", "3.2.1", "c.d", "waiting", "e.f") if each not in said] == []
    assert "%reyn trust" in said, "the way out for what waits"


def test_a_utility_runs_in_the_version_that_its_name_says(workshop: Workshop) -> None:
    for version in ("1.0.0", "2.0.0"):
        workshop.write(
            "two", gives(f'"{version}" and {{"version": "{version}"}}'), folder=version, version=version
        )
    trust(workshop.session)
    assert workshop.call("two").value == {"version": "2.0.0"}
    assert workshop.call("two@1.0.0").value == {"version": "1.0.0"}


def test_no_look_at_the_folders_of_utilities_holds_up_the_loop(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_loop: list[bool] = []

    def look(*args: Any, **options: Any) -> UtilityRegistry:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            on_loop.append(False)
        else:
            on_loop.append(True)
        return read_registry(*args, **options)

    monkeypatch.setattr(workflow_library, "read_registry", look)
    workshop.add("kept", SHOUT, idempotency="safe")
    assert workshop.call("kept", text="a").value == {"text": "A"}
    workshop.write("evil", SHOUT)
    assert workshop.attempt("utility__evil", text="a").code == "not_trusted"
    workshop.turn(utility_call("kept", text="b"))
    assert workshop.execute(step("a", "kept.run", {"text": "c"}))["status"] == "executed"
    assert on_loop and not any(on_loop)
