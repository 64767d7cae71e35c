"""A study that runs in a cell: one card that follows it, the summary once, and an interrupt that keeps what is done."""

from __future__ import annotations

import pytest

from tests.kernel.kernel_support import Kernel

STUDY = """
from reyn_jupyter.evaluation.plan.scenario import Scenario

class Slow:
    '''Answers after a while, a number of times; then it hangs.'''
    label, tier, host, real = "slow", "standard", None, False

    def __init__(self, seconds, most=10_000):
        self.seconds, self.most, self.answered = seconds, most, 0

    async def complete(self, request, on_text=None):
        await asyncio.sleep(self.seconds if self.answered < self.most else 600)
        self.answered += 1
        return await ScriptedModel("The notes say hello.").complete(request)

scenarios = [
    Scenario(id=f"s{n}", family="discover", prompts={"natural": f"What do the notes say, {n}?"}, says=("hello",))
    for n in range(8)
]

def made(seconds, most=10_000):
    global model
    model = Slow(seconds, most)
    return reyn.Study(None, scenarios, models={"slow": model}, concurrency=reyn_one)

from reyn_jupyter.evaluation.run.concurrency import Concurrency
reyn_one = Concurrency(most_local=1, start=1)
base = reyn.Variant("base", model="slow")
"""


# A trial ends once its card was drawn twice meanwhile.
WATCHED = """
publisher = get_ipython().display_pub
working, shown = publisher.publish, []

def publish(*args, **given):
    shown.append((args[0] if args else given["data"]).get("text/plain", ""))
    return working(*args, **given)

class Watched(Slow):
    async def complete(self, request, on_text=None):
        async with asyncio.timeout(100):
            while sum("0 of 1 trial" in each and "1 under way" in each for each in shown) < 2:
                await asyncio.sleep(0.02)
        return await super().complete(request, on_text)

def watched():
    publisher.publish = publish
    return reyn.Study(None, scenarios, models={"slow": Watched(0.0)}, concurrency=reyn_one)
"""


@pytest.fixture(scope="module", autouse=True)
def studies(started: Kernel) -> None:
    assert started.run(STUDY).error is None


def test_a_run_shows_one_card_that_follows_it_and_the_summary_once(kernel: Kernel) -> None:
    cell = kernel.run("study = made(0.1)\nstudy.run(base, repeats=1)")
    assert cell.error is None and len(cell.outputs) == 1 and cell.updates
    assert "… running" in cell.drawn[0] and "of 8 trials" in cell.drawn[0]
    assert "✓ complete" in cell.text and cell.text.count("8 new trials") == 1
    assert "scripted" in cell.text, "no real model answered, and the card says so"


def test_a_summary_that_was_kept_shows_again_in_another_cell(kernel: Kernel) -> None:
    cell = kernel.run("summary = made(0.0).run(base, repeats=1)")
    assert len(cell.outputs) == 1 and "✓ complete" in cell.text
    assert "8 new trials" in kernel.run("summary").text


def test_an_interrupt_returns_the_summary_and_the_next_run_goes_on(kernel: Kernel) -> None:
    kernel.run("study = made(0.1, most=2)")
    cell = kernel.run("summary = study.run(base, repeats=1)\nsummary", interrupt_at="2 of 8")
    assert cell.error is None and cell.reply["status"] == "ok"
    assert len(cell.outputs) == 1 and "◼ interrupted" in cell.text
    assert kernel.value("summary.ended, 0 < summary.done < 8, study.verify().faults") == (
        "('interrupted', True, ())"
    )
    kernel.run("model.most = 10_000")
    again = kernel.run("study.run(base, repeats=1)")
    assert "✓ complete" in again.text and "from before" in again.text


def test_an_awaited_run_shows_the_same_card_and_a_cancelled_one_its_summary(kernel: Kernel) -> None:
    cell = kernel.run("study = made(0.1)\nawait study.aio.run(base, repeats=1)")
    assert cell.error is None and len(cell.outputs) == 1 and cell.updates
    assert "… running" in cell.drawn[0] and "✓ complete" in cell.text
    code = """
study = made(0.1, most=2)
task = asyncio.create_task(study.aio.run(base, repeats=1))
while not study.trials:
    await asyncio.sleep(0.05)
task.cancel()
_ = await asyncio.wait([task])
"""
    cell = kernel.run(code)
    assert cell.error is None and "◼ interrupted" in cell.text
    assert kernel.value("task.cancelled(), 0 < len(study.trials) < 8") == "(True, True)"


def test_a_card_tells_that_the_run_lives_while_no_trial_ends(kernel: Kernel) -> None:
    assert kernel.run(WATCHED).error is None
    try:
        cell = kernel.run("summary = watched().run(base, repeats=1, n=1)")
    finally:
        kernel.run("publisher.publish = working")
    alive = [drawn for drawn in cell.drawn if "0 of 1 trial" in drawn and "1 under way" in drawn]
    assert len(alive) >= 2 and "so far" in alive[-1]


def test_whoever_listens_gets_the_progress_in_place_of_the_card(kernel: Kernel) -> None:
    cell = kernel.run("told = []\nsummary = made(0.0).run(base, repeats=1, on_progress=told.append)")
    assert cell.outputs == []
    assert kernel.value("told[-1].done, told[-1].total") == "(8, 8)"


def test_a_report_a_comparison_and_a_table_show_as_cards(kernel: Kernel) -> None:
    kernel.run("study = made(0.0)\nbest = base.but('best', mandate='explicit')\nkept = study.run(base, best)")
    for expression in (
        "study.report()", "study.compare(base, best)", "study.recommend()", "study.trials", "study",
        "study.trials[0]", "study.plan(base, best)",
    ):  # fmt: skip
        cell = kernel.run(expression)
        assert cell.error is None, cell.error
        assert set(cell.outputs[0]["data"]) == {
            "application/vnd.reyn.status+json", "text/html", "text/plain"
        }  # fmt: skip


def test_the_verb_shows_the_run_and_then_the_report(kernel: Kernel) -> None:
    cell = kernel.run("%reyn eval mandates -m simulator -n 4 --repeats 1")
    assert cell.error is None and len(cell.outputs) == 2
    assert "Simulated trials" in cell.text and "Every check" in cell.text
    assert (kernel.workspace / ".reyn" / "studies" / "mandates-simulator.sqlite").is_file()


def test_a_suite_its_scenarios_and_variants_show_as_cards_and_as_one_line_in_a_list(kernel: Kernel) -> None:
    kernel.run('suite = reyn.Study(None, "mandates").suite')
    for expression in ("suite", "suite.scenarios[0]", 'suite.variants["must"]', "reyn.Budget(usd=1)"):
        cell = kernel.run(expression)
        assert cell.error is None, cell.error
        assert set(cell.outputs[0]["data"]) == {
            "application/vnd.reyn.status+json", "text/html", "text/plain"
        }  # fmt: skip
    assert kernel.run("[base]").text == "[Variant('base', model='slow')]"


def test_a_run_that_cannot_be_is_refused_without_a_card(kernel: Kernel) -> None:
    cell = kernel.run("made(0.0).run(base, base.but('other', model='simulatr'))")
    assert len(cell.outputs) == 1 and "Did you mean simulator?" in str(cell.error)
    assert "PlanError" in str(cell.error) and not cell.updates


def test_without_the_extension_nothing_follows_a_run(kernel: Kernel) -> None:
    kernel.run("%unload_ext reyn_jupyter")
    cell = kernel.run("summary = made(0.0).run(base, repeats=1)")
    assert cell.error is None and cell.outputs == []
    assert kernel.run("%load_ext reyn_jupyter").error is None
