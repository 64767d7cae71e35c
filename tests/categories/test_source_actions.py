"""The package's own source and manual, read by the agent."""

from __future__ import annotations

from pathlib import Path

import pytest

import reyn_jupyter
from reyn_jupyter.categories.source import categories
from reyn_jupyter.outputs.content import Text
from reyn_jupyter.runtime.action_error import ActionError
from tests.categories.file_support import Actions, build_services

PACKAGE = Path(reyn_jupyter.__file__ or "").parent


@pytest.fixture
def actions(tmp_path: Path) -> Actions:
    services = build_services(tmp_path)
    return Actions(services, categories(services))


async def test_a_source_file_is_read_exactly(actions: Actions) -> None:
    expected = Text((PACKAGE / "catalog" / "names.py").read_text())

    assert await actions.call("reyn_source__read", path="catalog/names.py") == expected
    assert await actions.call("reyn_source__read", path="reyn_jupyter/catalog/names.py") == expected
    lines = await actions.call("reyn_source__read", path="catalog/names.py", offset=1, limit=1)
    assert lines.text == '"""One action, one qualified name: ``<category>__<entry>``.\n'
    assert actions.sources == []  # nothing of the person's is in it


async def test_folders_are_listed_without_compiled_files(actions: Actions) -> None:
    top = await actions.call("reyn_source__list")
    names = {entry["name"]: entry["type"] for entry in top["entries"]}

    assert names["catalog"] == "folder"
    assert names["docs"] == "folder"
    assert "__pycache__" not in names
    assert (await actions.call("reyn_source__list", path="reyn_jupyter"))["entries"] == top["entries"]


async def test_the_source_is_searched(actions: Actions) -> None:
    found = await actions.call("reyn_source__grep", pattern="^class ActionName", glob="*.py")

    assert found.text.startswith("catalog/names.py:")
    assert ".pyc" not in found.text


@pytest.mark.parametrize("path", ["../pyproject.toml", "/etc/passwd", "catalog/../../x", "reyn_jupyter/../x"])
async def test_nothing_outside_the_package_is_reached(actions: Actions, path: str) -> None:
    for action, args in (("read", {}), ("list", {}), ("grep", {"pattern": "x"})):
        with pytest.raises(ActionError):
            await actions.call(f"reyn_source__{action}", path=path, **args)


async def test_a_wrong_name_is_answered_with_the_nearest(actions: Actions) -> None:
    with pytest.raises(ActionError, match="does not exist") as refused:
        await actions.call("reyn_source__read", path="catalog/name.py")
    assert "catalog/names.py" in refused.value.hint


def test_every_source_action_only_reads(actions: Actions) -> None:
    (category,) = actions.categories
    assert [operation.entry for operation in category.operations] == ["read", "list", "grep"]
    assert all(operation.tool.purity.repeatable for operation in category.operations)
    assert actions.effects("reyn_source__read", path="catalog/names.py") == ()


async def test_what_counts_as_right_in_an_evaluation_cannot_be_read(actions: Actions) -> None:
    folder = "evaluation/suites"
    listed = await actions.call("reyn_source__list", path=folder)
    assert "data" not in {entry["name"] for entry in listed["entries"]}
    assert (PACKAGE / folder / "data" / "mandates" / "discover.yaml").is_file()
    for path in (f"{folder}/data/mandates/discover.yaml", f"{folder}/../suites/data/mandates/edit.yaml"):
        with pytest.raises(ActionError):
            await actions.call("reyn_source__read", path=path)
    found = await actions.call("reyn_source__grep", pattern="^scenarios:|says:", path=folder)
    assert "data/" not in str(found)
