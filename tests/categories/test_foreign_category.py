"""A category of another package, found through its entry point: it shows everywhere; a broken one hides no other."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter import categories as category_files
from reyn_jupyter.catalog.taxonomy import TAXONOMY
from reyn_jupyter.config import Settings
from reyn_jupyter.models.scripted import ScriptedModel, call
from reyn_jupyter.notebook import completion
from reyn_jupyter.router.request.prompt import static_prompt
from reyn_jupyter.router.request.router_options import RouterOptions
from reyn_jupyter.runtime.questions.consent import Question
from reyn_jupyter.sessions import current
from tests.support.installation import import_place, install_module

WEATHER = """
from reyn_jupyter.catalog.action import Category, Effect, Entry, Operation, Purity, Resources, Tool

CITY = {"type": "object", "properties": {"days": {"type": "integer", "minimum": 1}}, "additionalProperties": False}
REPORT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
          "additionalProperties": False}


def categories(services):
    async def forecast(args, context):
        return {"city": args["city"], "days": args.get("days", 1), "root": str(services.root.name)}

    async def report(args, context):
        return "sent"

    async def entries():
        return [Entry(city, f"The weather of {city}.", CITY) for city in ("oslo", "rome")]

    effects = lambda args, context: [Effect("network", "weather.example")]
    reporting = Tool("report_weather", report, Purity.NETWORK, effects)
    return (
        Category(
            "weather",
            "Look up the weather of cities.",
            (Operation("report", "Report what you see.", REPORT, reporting),),
            Resources(Tool("forecast_weather", forecast, Purity.READ), lambda city, args: {"city": city, **args},
                      "read its forecast", entries),
        ),
    )
"""
BROKEN = {
    "does not import": "raise ImportError('its own dependency is missing')",
    "leaves the process": "import sys; sys.exit(1)",
    "has no function": "",
    "raises": "def categories(services): raise RuntimeError('no weather today')",
    "gives no categories": "def categories(services): return ['weather']",
    "gives nothing": "def categories(services): return None",
    "takes the name of another": (
        "from reyn_jupyter.catalog.action import Category\n"
        "def categories(services): return [Category('file', 'Take over.')]"
    ),
    "is no category": (
        "from reyn_jupyter.catalog.action import Category\n"
        "def categories(services): return [Category('Bad Name', 'Be wrong.')]"
    ),
}


def install(site: Path, module: str, code: str) -> None:
    install_module(site, module, code, name=module, version="1.0")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "site"
    folder.mkdir()
    with import_place(folder):
        yield folder
    for module in ("weather_actions", "a_broken_package"):
        sys.modules.pop(module, None)


@pytest.fixture
def session(site: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> reyn.Session:
    install(site, "weather_actions", WEATHER)
    made = reyn.Session(workspace, store="memory")
    monkeypatch.setattr(current, "_current", [made])
    return made


def test_it_is_listed_described_searched_and_invoked_by_a_person(session: reyn.Session) -> None:
    table = session.list_actions("weather")
    assert [row["qualified_name"] for row in table] == ["weather__oslo", "weather__report", "weather__rome"]
    assert [row["permission"] for row in table] == ["allowed", "asks", "allowed"]
    assert "weather" in session.list_actions().payload["categories"]
    card = session.describe_action("weather__oslo")
    assert card.payload["metadata"]["canonical_default"] == "read its forecast"
    assert session.search_actions("weather of rome").rows[0]["qualified_name"] == "weather__rome"
    result = session.invoke_action("weather__rome", {"days": "3"})
    assert result.value == {"city": "rome", "days": 3, "root": "workspace"}
    assert "weather__rome" in str(session.invoke_action("weather__roma").payload)


def test_it_stands_in_the_prompt_and_in_the_tools_without_the_names_of_its_actions(
    session: reyn.Session,
) -> None:
    model = ScriptedModel(
        call("list_actions", category=["weather"]),
        call("invoke_action", action_name="weather__oslo", args={}),
        call("invoke_action", action_name="weather__report", args={"text": "sun"}),
        "Fine.",
        tier="light",
    )
    asked: list[Question] = []
    session.parts.ask_person = lambda question: asked.append(question) or "once"  # type: ignore[func-returns-value]
    trace = session.ask("how is the weather?", model=model)
    request = model.requests[0]
    assert (
        "- weather: Look up the weather of cities. Invoking one: read its forecast."
        in request.messages[0].content
    )
    listing = next(tool for tool in request.tools.specs if tool["function"]["name"] == "list_actions")
    enum = listing["function"]["parameters"]["properties"]["category"]["items"]["enum"]
    assert "weather" in enum
    assert "weather__" not in request.messages[0].content + json.dumps(request.tools.specs)
    assert [(each.label, each.ok) for each in trace.calls[1:]] == [
        ("weather__oslo", True),
        ("weather__report", True),
    ]
    assert len(asked) == 1 and "network weather.example" in asked[0].text
    assert list(trace.call_log["action"][1:]) == ["weather__oslo", "weather__report"]


def test_rules_cover_it_and_a_run_without_anyone_to_ask_denies_it(session: reyn.Session) -> None:
    report = call("invoke_action", action_name="weather__report", args={"text": "sun"})
    session.parts.ask_person = lambda question: "nobody"
    assert session.ask("go", model=ScriptedModel(report, "ok")).calls[0].ok is False
    session.configure("permissions.allow", ["weather__report(weather.example)"])
    assert session.ask("go", model=ScriptedModel(report, "ok")).calls[0].ok is True


def test_it_is_completed_wherever_actions_are(session: reyn.Session) -> None:
    def completed(line: str) -> Any:
        found = completion.complete(line, 0, len(line))
        return [each.text for each in found[1]] if found else []

    assert completed("%reyn list wea") == ["weather"]
    assert completed("%reyn invoke weather__r") == ["weather__report", "weather__rome"]
    assert any(word.startswith("days") for word in completed("%reyn invoke weather__rome da"))
    assert completed("%%reyn\nand @weather__o") == []  # the cursor is on the first line
    found = completion.complete("%%reyn\nand @weather__o", 1, len("and @weather__o"))
    assert found is not None and found[0] == "@weather__o"
    assert [each.text for each in found[1]] == ["@weather__oslo"]


def test_its_status_counts_it_and_a_flat_surface_offers_it(session: reyn.Session) -> None:
    assert "weather 3" in dict(session.status.facts)["actions"]
    model = ScriptedModel("ok")
    session.ask("go", model=model, surface="flat")
    assert {"weather__oslo", "weather__report"} <= set(model.requests[0].tools.names)


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_one_is_left_out_and_named_and_hides_no_other(
    site: Path, session: reyn.Session, kind: str
) -> None:
    install(site, "a_broken_package", BROKEN[kind])
    assert session.invoke_action("weather__oslo").error is None
    assert session.list_actions("file").total == 7
    problems = [line for heading, lines in session.status.sections if heading == "Problems" for line in lines]
    assert len(problems) == 1
    expected = {"takes the name of another": "'file'", "is no category": "Bad Name"}
    assert expected.get(kind, "a_broken_package") in problems[0]


def test_the_prompts_categories_are_those_of_the_category_files_in_the_order_of_the_taxonomy(
    session: reyn.Session,
) -> None:
    """Adding, renaming or rewording a category moves the prompt, and nothing else does."""
    files, problems = category_files.load(session.parts.services)
    named = {category.name: category for category in files if category.hidden() is None}
    order = [*(name for name in TAXONOMY if name in named), *sorted(set(named) - set(TAXONOMY))]
    prompt = static_prompt(session.catalog, RouterOptions.of(Settings(), "standard"), inspect=True)
    section = prompt.partition("## Action categories\n")[2].partition("\n\n")[0].splitlines()
    expected = []
    for name in order:
        category = named[name]
        line = f"- {name}: {category.capability}"
        if category.resources is not None:
            line += f" Invoking one: {category.resources.canonical_default}."
        expected.append(line)
    assert section == expected and problems == [] and order[-1] == "weather"
