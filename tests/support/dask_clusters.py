"""Dask clusters as people start them: a scheduler and workers, each a command, on the loopback address alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import psutil
import pytest
from distributed import Client, LocalCluster

from tests.support.processes import environment
from tests.support.waiting import until

DASK = Path(sys.executable).parent / "dask"


@contextmanager
def local_client() -> Iterator[Client]:
    """Start two processes of one thread each, as `LocalCluster` does, and a client of them."""
    main = sys.modules["__main__"]
    if not hasattr(main, "__spec__"):  # a shell of IPython that was emptied; Python describes a process by it
        main.__spec__ = None  # type: ignore[attr-defined]
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


class Cluster:
    """A scheduler with workers of one thread each.

    Args:
        folder: a folder for what they write.
        workers: how many, all of them without a nanny, so that one that is killed stays away.
    """

    def __init__(self, folder: Path, workers: int = 2) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._file = folder, folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start("scheduler", "--port", "0", "--scheduler-file", str(self._file))
        self.address = str(until(self._address))
        for _ in range(workers):
            self.add_worker()

    def _address(self) -> str | None:
        assert self.scheduler.poll() is None, self.log("scheduler")
        with suppress(OSError, ValueError):
            return str(json.loads(self._file.read_text())["address"])
        return None

    def add_worker(self, *paths: str) -> subprocess.Popen[bytes]:
        """Start another worker, with `paths` before all that it imports from."""
        name = f"worker{len(self.workers)}"
        made = self._start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--name", name, paths=paths
        )
        self.workers.append(made)
        return made

    def _start(self, kind: str, *arguments: str, paths: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        environ = environment(DASK_TEMPORARY_DIRECTORY=str(self._folder))
        environ["PYTHONPATH"] = ":".join((*paths, environ["PYTHONPATH"]))
        with (self._folder / f"{kind}.log").open("ab") as log:
            return subprocess.Popen(
                [DASK, kind, *arguments, "--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"],
                stdout=log, stderr=log, env=environ, cwd=self._folder,
            )  # fmt: skip

    def log(self, kind: str) -> str:
        """What schedulers or workers wrote."""
        return (self._folder / f"{kind}.log").read_text()

    def busy(self) -> list[int]:
        """The processes beside the workers, which run tasks."""
        found = []
        for worker in self.workers:
            with suppress(psutil.Error):
                for each in psutil.Process(worker.pid).children():
                    with suppress(psutil.Error):
                        if each.status() != psutil.STATUS_ZOMBIE and "spawn_main" in " ".join(each.cmdline()):
                            found.append(each.pid)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (*self.workers, self.scheduler):
            each.kill()
            each.wait(60)


def workers_of(client: Client) -> dict[str, Any]:
    return dict(client.scheduler_info(n_workers=-1)["workers"])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of two workers, for the tests of a file."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture
def client(cluster: Cluster) -> Iterator[Client]:
    """A client of the cluster, which has two workers again where a test before killed one."""
    while sum(each.poll() is None for each in cluster.workers) < 2:
        cluster.add_worker()
    with Client(cluster.address) as made:
        until(lambda: len(workers_of(made)) == 2)
        yield made
