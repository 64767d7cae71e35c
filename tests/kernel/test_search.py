"""Search by meaning in a real kernel: `%reyn search`, `%reyn embeddings`, and a build that is interrupted."""

from __future__ import annotations

import pytest

from tests.kernel.kernel_support import Kernel

MANY = """
import reyn_jupyter as reyn
from reyn_jupyter.runtime.namespace.functions import functions
def made(number):
    def job(amount: int) -> int:
        return amount
    job.__name__ = f"job_{number:04}"
    job.__doc__ = f"Runs job number {number} of the night, after the one before."
    return reyn.action(job)
for number in range(1500):
    made(number)
"""


# Nothing is embedded beyond some batches before it may.
HELD = """
import threading
from reyn_jupyter.search.embedders.packaged import PackagedMiniLM
embed, go_on, batches = PackagedMiniLM.embed, threading.Event(), []
def held(self, texts):
    batches.append(len(texts))
    if len(batches) > 4:
        go_on.wait(600)
    return embed(self, texts)
PackagedMiniLM.embed = held
"""


@pytest.fixture(scope="module", autouse=True)
def built(started: Kernel) -> None:
    assert started.run("%reyn embeddings build").error is None


def test_a_search_ranks_by_meaning(kernel: Kernel) -> None:
    found = kernel.run('%reyn search -o found "amend part of a document"')
    assert found.error is None and "Ranked by words alone" not in found.text
    assert kernel.value("found.payload['ranking']") == "hybrid"


def test_status_names_class_who_serves_and_where(kernel: Kernel) -> None:
    shown = kernel.run("%reyn embeddings").text
    assert "local-mini" in shown and "actions.sqlite" in shown and "packaged weights" in shown
    assert "search" in kernel.run("%reyn doctor").text


def test_a_build_shows_one_output_and_clear_empties_the_index(kernel: Kernel) -> None:
    assert "dropped" in kernel.run("%reyn embeddings clear").text
    shown = kernel.run("%reyn embeddings build")
    assert shown.error is None and "new vectors" in shown.text
    assert "Nothing was missing" in kernel.run("%reyn embeddings build").text


def test_opting_out_is_one_line_and_so_is_coming_back(kernel: Kernel) -> None:
    kernel.run("%reyn config action_retrieval.embedding_class null")
    assert "opted out" in kernel.run("%reyn embeddings").text
    refused = kernel.run("%reyn embeddings build")
    assert refused.error is not None and "embedding_class" in refused.error
    assert "was not built" in refused.text and "looking through" not in refused.text
    assert "Ranked by words alone" in kernel.run('%reyn search "find text in files"').text
    kernel.run("%reyn config action_retrieval.embedding_class local-mini")
    assert "Ranked by words alone" not in kernel.run('%reyn search "find text in files"').text


def test_an_interrupted_build_ends_at_once_and_keeps_what_it_had(kernel: Kernel) -> None:
    assert kernel.run(HELD + MANY).error is None
    cell = kernel.run("%reyn embeddings build", interrupt_at="a second")
    kernel.run("PackagedMiniLM.embed = embed\ngo_on.set()")
    assert cell.error is not None and "goes on from there" in cell.error
    before = int(kernel.value("len(reyn.session().catalog)")) - 1_500
    assert before < int(kernel.value('reyn.session().embeddings.data["vectors"]')) < 1_500
    assert len(cell.outputs) == 2, "one place for the progress, and the error"
