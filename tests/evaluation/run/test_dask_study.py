"""Studies on a Dask cluster of commands: the same trials, and nothing lost or doubled, whatever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from reyn_jupyter.evaluation.run.budget import Budget
from reyn_jupyter.evaluation.run.planning import PlanError
from reyn_jupyter.evaluation.study import Study
from reyn_jupyter.executors.executor import ExecutorLostError
from reyn_jupyter.models.base import Response
from reyn_jupyter.models.scripted import ScriptedModel
from tests.evaluation.run.test_sent_trials import SIMULATED, facts
from tests.evaluation.study_support import BASE, HoldingAnywhere, small, study
from tests.support.dask_clusters import Cluster
from tests.support.processes import is_gone, started
from tests.support.waiting import until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> Iterator[Client]:
    with Client(cluster.address) as made:
        until(lambda: made.scheduler_info()["n_workers"] == 2)
        yield made


HELD = BASE.but("holding", model="holding")


def rows(made: Study) -> dict[Any, Any]:
    return {(view.trial.scenario, view.trial.repeat): facts(view.trial) for view in made.trials}


def at(done: int, act: Callable[[], object]) -> Callable[[Any], None]:
    """Return a listener that acts once, when so many trials are done."""
    acted: list[int] = []

    def hear(progress: Any) -> None:
        if progress.done >= done and not acted:
            acted.append(progress.done)
            act()

    return hear


async def test_the_same_seed_gives_the_same_trials_as_one_process_does(
    client: Client, cluster: Cluster
) -> None:
    with Study(None, small(5), seed=7) as here, Study(None, small(5), seed=7, executor=client) as there:
        heard: list[int] = []
        await here.aio.run(SIMULATED, repeats=3)
        summary = await there.aio.run(
            SIMULATED, repeats=3, on_progress=lambda progress: heard.append(progress.done)
        )
        assert (summary.ended, summary.done, there.verify().faults) == ("complete", 15, ())
        expected = rows(here)
        assert rows(there) == expected and heard[-1] == 15 and sorted(heard) == heard
        assert there.trials[0].transcript.status == "ok"
    async with Client(cluster.address, asynchronous=True) as own:  # on this loop, which is awaited meanwhile
        with Study(None, small(5), seed=7, executor=own) as there:
            await there.aio.run(SIMULATED, repeats=3)
            assert rows(there) == expected


def test_hosted_models_are_called_here_and_a_budget_ends_the_run(client: Client) -> None:
    model = ScriptedModel(otherwise="Done.", real=True, host="api.example.com")
    with study(None, 2, models={"scripted": model}, executor=client) as made:
        assert made.run(BASE).done == 4 == len(model.requests)
    with Study(None, small(20), executor=client, budget=Budget(calls=12)) as made:
        summary = made.run(SIMULATED)
        assert summary.ended == "budget" and 0 < summary.done < 40 and made.verify().faults == ()
    lambdas = {"scripted": ScriptedModel(lambda request: "Done.")}
    with (
        study(None, 2, models=lambdas, executor=client) as made,
        pytest.raises(PlanError, match=r"lambda.*Define functions and classes in a module"),
    ):
        made.run(BASE)
    with pytest.raises(PlanError, match="executor="):
        Study(None, small(2), executor=object())  # type: ignore[arg-type]


class Stubborn:
    """A model that keeps its process busy and cannot be asked to stop."""

    label, tier, host, real = "stubborn", "standard", None, False

    def __init__(self, folder: str) -> None:
        self._folder = folder

    async def complete(self, request: Any, on_text: Any = None) -> Response:
        (Path(self._folder) / str(os.getpid())).touch()
        threading.Event().wait(600)
        return Response("Done.")


def test_an_interrupt_stops_what_computes_on_the_cluster_and_the_next_run_works(
    client: Client, tmp_path: Path
) -> None:
    models = {"stubborn": Stubborn(str(tmp_path))}
    with study(None, 4, models=models, executor=client) as made:
        pressing = threading.Thread(
            target=lambda: until(lambda: list(tmp_path.iterdir())) and os.kill(os.getpid(), signal.SIGINT)
        )
        pressing.start()
        summary = made.run(BASE.but("stubborn", model="stubborn"))
        pressing.join()
        assert summary.ended == "interrupted"
        until(lambda: all(is_gone(int(each.name)) for each in tmp_path.iterdir()))
        until(lambda: not any(client.processing().values()))
        assert made.run(SIMULATED).ended == "complete"


def test_a_dask_worker_that_is_killed_costs_nothing(client: Client, cluster: Cluster, tmp_path: Path) -> None:
    model = HoldingAnywhere(tmp_path / "calls", 10)

    def kill() -> None:
        cluster.workers[0].kill()
        model.go_on()

    with study(tmp_path / "a.sqlite", 20, models={"holding": model}, executor=client) as made:
        summary = made.run(HELD, on_progress=at(3, kill))
        assert cluster.workers[0].wait(60) == -signal.SIGKILL
        assert (summary.ended, summary.done) == ("complete", 40)
        assert made.spent.trials == 40 and made.verify().faults == ()
        assert not [view for view in made.trials if view.trial.outcome == "error"]
    cluster.add_worker()
    until(lambda: client.scheduler_info()["n_workers"] == 2)


COORDINATOR = """
    import os, pathlib, signal, sys
    from distributed import Client
    from tests.evaluation.study_support import BASE, HoldingAnywhere, study

    def hear(progress):
        if progress.done >= 3:
            os.kill(os.getpid(), signal.SIGKILL)

    models = {"holding": HoldingAnywhere(pathlib.Path(sys.argv[1]) / "calls", 10)}
    made = study(pathlib.Path(sys.argv[1]) / "a.sqlite", 20, models=models, executor=Client(sys.argv[2]))
    made.run(BASE.but("holding", model="holding"), on_progress=hear)
"""


def test_a_coordinator_that_is_killed_loses_and_doubles_nothing_and_another_goes_on(
    client: Client, cluster: Cluster, tmp_path: Path
) -> None:
    process: subprocess.Popen[str] = started(COORDINATOR, str(tmp_path), cluster.address)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == -signal.SIGKILL, errors
    until(lambda: not any(client.processing().values()))
    model = HoldingAnywhere(tmp_path / "calls", 10)
    model.go_on()
    with study(tmp_path / "a.sqlite", 20, models={"holding": model}, executor=client) as made:
        before = {view.trial.run for view in made.trials}
        assert 3 <= len(before) <= 10
        summary = made.run(HELD)
        assert (summary.ended, summary.done, len(made.trials)) == ("complete", 40, 40)
        assert made.verify().faults == () and before <= {view.trial.run for view in made.trials}


def test_a_scheduler_that_is_killed_is_an_error_that_says_so_and_the_study_goes_on_elsewhere(
    client: Client, cluster: Cluster, tmp_path: Path
) -> None:
    model = HoldingAnywhere(tmp_path / "calls", 10)
    with study(tmp_path / "a.sqlite", 20, models={"holding": model}, executor=client) as made:
        with pytest.raises(
            ExecutorLostError, match=r"scheduler at tcp://127.* is out of reach.*run it again"
        ):
            made.run(HELD, on_progress=at(3, cluster.scheduler.kill))
        before = {view.trial.run for view in made.trials}
        assert 3 <= len(before) <= 10 and made.verify().faults == ()
    model.go_on()
    with study(tmp_path / "a.sqlite", 20, models={"holding": model}) as made:
        assert made.run(HELD).ended == "complete"
        assert len(made.trials) == 40 and before <= {view.trial.run for view in made.trials}
        assert made.verify().faults == () and made.spent.trials == 40
