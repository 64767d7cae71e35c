"""A study acts on nothing: what is installed beside it runs in no trial until the study names it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.action import Category, Effect, Operation, Purity, Tool
from reyn_jupyter.evaluation.plan.frozen_catalog import STANDARD_CATEGORIES, Catalog, MissingCategoryError
from reyn_jupyter.evaluation.plan.suite import Suite, SuiteError
from reyn_jupyter.evaluation.plan.variant import Variant
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.models.scripted import call
from reyn_jupyter.runtime.action_error import ActionError
from tests.categories.test_foreign_category import install
from tests.evaluation.trial_support import READ, Scripts, scenario, suite
from tests.support.installation import import_place

PAY = call("invoke_action", action_name="ext_tool__pay", args={})
PLAIN = Variant("plain", model="scripted")
EXTERNAL = """
import pathlib
from reyn_jupyter.catalog.action import Category, Effect, Operation, Purity, Tool

def categories(services):
    async def pay(args, context):
        with open(pathlib.Path(__file__).with_name("ledger"), "a") as ledger:
            ledger.write("paid ")
        return "paid"

    empty = {"type": "object", "properties": {}}
    tool = Tool("pay_external", pay, Purity.UNKNOWN)
    return (Category("ext_tool", "Pay for things.", (Operation("pay", "Pay.", empty, tool),)),)
"""


class Cashier:
    """A category whose only action does what its purity and effects say, and counts how often it ran."""

    def __init__(self, purity: Purity, *effects: Effect) -> None:
        self.paid = 0
        tool = Tool("pay_external", self._pay, purity, lambda args, context: effects)
        pay = Operation("pay", "Pay.", {"type": "object", "properties": {}}, tool)
        self.category = Category("ext_tool", "Pay for things.", (pay,))

    async def _pay(self, args: Any, context: Any) -> str:
        self.paid += 1
        return "paid"

    def suite(self, **fields: Any) -> Suite:
        catalog = Catalog.standard() + Catalog((self.category,))
        task = scenario(catalog="pay", workspace={"notes.md": "hello\n"})
        return suite(task, catalogs={"pay": lambda: catalog}, **fields)


def tried(what: Suite, **options: Any) -> tuple[Study, Any]:
    study = Study(None, what, models={"scripted": Scripts(PAY, "Done.")}, **options)
    study.run(PLAIN, repeats=3)
    return study, study.evidence.trials


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "site"
    folder.mkdir()
    with import_place(folder):
        yield folder
    sys.modules.pop("ext_tool", None)


ACTS = [
    (Purity.UNKNOWN, ()),
    (Purity.WRITE, ()),
    (Purity.NETWORK, ()),
    (Purity.WRITE, (Effect("mcp", "bank/pay"),)),
    (Purity.READ, (Effect("mcp", "bank/balance"),)),
    (Purity.PURE, (Effect("exec", "pay"),)),
    (Purity.UNKNOWN, (Effect("write", "ledger.csv"),)),
    (Purity.WRITE, (Effect("write", "ledger.csv"), Effect("write", "../ledger.csv"))),
    (Purity.WRITE, (Effect("write", "/var/ledger.csv"),)),
]


@pytest.mark.parametrize(("purity", "effects"), ACTS)
def test_what_acts_outside_the_workspace_is_denied_and_said_everywhere(
    purity: Purity, effects: tuple[Effect, ...]
) -> None:
    cashier = Cashier(purity, *effects)
    study, trials = tried(cashier.suite())
    assert cashier.paid == 0 and len(trials) == 3
    for trial in trials:
        assert trial.denied == ("ext_tool__pay",)
        assert trial.calls[0].ok is False
        assert (
            "Denied: ext_tool__pay" in trial.calls[0].error
            and "the study does not allow" in trial.calls[0].error
        )
    (said,) = [each for each in study.report().warnings if "ext_tool__pay" in each]
    assert "(3 trials)" in said and "allow_actions" in said


@pytest.mark.parametrize(
    ("purity", "effects"),
    [
        (Purity.PURE, ()),
        (Purity.READ, ()),
        (Purity.READ, (Effect("read", "notes.md"),)),
        (Purity.WRITE, (Effect("write", "a/../ledger.csv"), Effect("delete", "old.csv"))),
    ],
)
def test_what_is_pure_or_stays_in_the_workspace_runs(purity: Purity, effects: tuple[Effect, ...]) -> None:
    cashier = Cashier(purity, *effects)
    study, trials = tried(cashier.suite())
    assert cashier.paid == 3 and all(trial.denied == () for trial in trials)
    assert not any("allow_actions" in each for each in study.report().warnings)


@pytest.mark.parametrize(("purity", "effects"), ACTS)
def test_it_runs_once_the_study_or_its_suite_names_it(purity: Purity, effects: tuple[Effect, ...]) -> None:
    for options, fields in (
        ({"allow_actions": ["ext_tool__pay"]}, {}),
        ({}, {"allow_actions": ("ext_tool__*",)}),
    ):
        cashier = Cashier(purity, *effects)
        _, trials = tried(cashier.suite(**fields), **options)
        assert cashier.paid == 3 and all(trial.denied == () for trial in trials)


def test_a_pattern_with_a_target_allows_that_target_alone() -> None:
    for target, paid in (("bank/pay", 3), ("bank/*", 3), ("shop/*", 0)):
        cashier = Cashier(Purity.WRITE, Effect("mcp", "bank/pay"))
        tried(cashier.suite(), allow_actions=[f"ext_tool__pay({target})"])
        assert cashier.paid == paid


def test_a_denying_setting_wins_over_what_the_study_allows() -> None:
    cashier = Cashier(Purity.UNKNOWN)
    tried(cashier.suite(), allow_actions=["ext_tool__pay"], config={"permissions": {"deny": ["ext_tool__*"]}})
    assert cashier.paid == 0


def test_what_a_study_allows_is_in_its_file_and_parts_its_trials_from_others(tmp_path: Path) -> None:
    path = tmp_path / "pay.sqlite"
    cashier = Cashier(Purity.UNKNOWN)
    models = {"scripted": Scripts(PAY, "Done.")}
    with Study(path, cashier.suite(), models=models) as study:
        study.run(PLAIN, repeats=1)
    with Study(path, cashier.suite(), models=models, allow_actions=["ext_tool__pay"]) as study:
        assert any("what it allows" in each for each in study.moved)
        study.run(PLAIN, repeats=1)
        assert [trial.denied for trial in study.evidence.trials] == [()]
    with Study.open(path) as study:
        assert study.evidence.provenance["allow_actions"] == ["ext_tool__pay"]
    assert cashier.paid == 1


def test_an_allowance_that_cannot_be_read_is_refused() -> None:
    for given in ("ext_tool__pay", ["ext_tool__pay("], [7]):
        with pytest.raises(SuiteError, match="allow_actions"):
            Study(None, suite(), allow_actions=given)  # type: ignore[arg-type]


def test_a_package_installed_later_is_in_no_catalog_and_moves_no_trial(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "study.sqlite"
    models = {"scripted": Scripts(*READ)}
    with Study(path, suite(), models=models) as study:
        study.run(PLAIN, repeats=1)
    before = Catalog.standard().hash
    install(site, "ext_tool", EXTERNAL)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    assert "ext_tool" in reyn.Session(workspace, store="memory").list_actions().payload["categories"]
    assert Catalog.standard().hash == before
    with Study(path, suite(), models=models) as study:
        assert study.moved == () and len(study.evidence.trials) == 1


def test_a_suite_that_names_an_installed_category_offers_it_and_still_runs_nothing_of_it(site: Path) -> None:
    install(site, "ext_tool", EXTERNAL)
    catalog = Catalog.standard((*STANDARD_CATEGORIES, "ext_tool"))
    made = suite(catalogs={"standard": lambda: catalog})
    _, trials = tried(made)
    assert [trial.denied for trial in trials] == [("ext_tool__pay",)] * 3 and not (site / "ledger").exists()
    tried(made, allow_actions=["ext_tool__pay"])
    assert (site / "ledger").read_text() == "paid paid paid "


def test_a_catalog_of_a_category_that_is_not_installed_says_so() -> None:
    with pytest.raises(MissingCategoryError, match="'ext_tool' is not installed"):
        Catalog.standard(("file", "ext_tool"))


class Middleman:
    """A category whose action calls another one, and keeps what it heard."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self.heard: list[Any] = []
        self._calls = calls
        tool = Tool("ask_around", self._around, Purity.READ)
        around = Operation("pay", "Ask.", {"type": "object", "properties": {}}, tool)
        pay = Operation(
            "really",
            "Pay.",
            {"type": "object", "properties": {}},
            Tool("pay_really", self._pay, Purity.NETWORK),
        )
        self.category = Category("ext_tool", "Pay for things.", (around, pay))
        self.paid = 0

    async def _pay(self, args: Any, context: Any) -> None:
        self.paid += 1

    async def _around(self, args: Any, context: Any) -> str:
        for name, arguments in self._calls:
            try:
                self.heard.append(await context.invoke(name, arguments))
            except ActionError as error:
                self.heard.append(error.message)
        return "asked"

    def suite(self) -> Suite:
        catalog = Catalog.standard() + Catalog((self.category,))
        return suite(
            scenario(catalog="pay", workspace={"notes.md": "hello\n"}), catalogs={"pay": lambda: catalog}
        )


def test_a_call_within_a_call_stays_in_the_workspace_of_its_trial(tmp_path: Path) -> None:
    path = {"path": "out.md"}
    middleman = Middleman(("file__write", {**path, "content": "new\n"}), ("file__read", path))
    _, trials = tried(middleman.suite())
    assert all(trial.files["out.md"].text == "new\n" for trial in trials)
    assert [str(each) for each in middleman.heard].count("new\n") == 3  # trials run side by side
    assert not Path("out.md").exists() and all(trial.denied == () for trial in trials)


def test_a_call_within_a_call_is_denied_in_a_trial_and_said_until_the_study_names_it() -> None:
    middleman = Middleman(("ext_tool__really", {}))
    study, trials = tried(middleman.suite())
    assert middleman.paid == 0 and all(trial.denied == ("ext_tool__really",) for trial in trials)
    assert any("ext_tool__really" in each and "allow_actions" in each for each in study.report().warnings)
    named = Middleman(("ext_tool__really", {}))
    tried(named.suite(), allow_actions=["ext_tool__really"])
    assert named.paid == 3


class Keyed:
    """A category whose action asks for a secret."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        nothing = {"type": "object", "properties": {}}
        pay = Operation("pay", "Pay.", nothing, Tool("pay_keyed", self._pay, Purity.READ))
        self.category = Category("ext_tool", "Pay for things.", (pay,))

    async def _pay(self, args: Any, context: Any) -> str:
        try:
            self.heard.append((await context.services.secrets.get("TRIAL_API_KEY")).reveal())
        except ActionError as error:
            self.heard.append(error.message)
        return "asked"


def test_a_secret_reaches_a_trial_only_where_the_study_names_its_action(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRIAL_API_KEY", "correct-horse")
    for allowed in ([], ["ext_tool__pay(OTHER)"], ["ext_tool__pay(TRIAL_API_KEY)"]):
        keyed = Keyed()
        catalog = Catalog.standard() + Catalog((keyed.category,))
        what = suite(
            scenario(catalog="pay", workspace={"notes.md": "hello\n"}),
            catalogs={"pay": lambda made=catalog: made},
        )
        _, trials = tried(what, allow_actions=allowed)
        got = keyed.heard.count("correct-horse")
        assert got == (3 if "TRIAL_API_KEY" in str(allowed) else 0)
        assert all((trial.denied == ()) is (got == 3) for trial in trials)
