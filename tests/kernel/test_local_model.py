"""A kernel and the server of its model from a file: an interrupt is heard, and a killed kernel leaves no server."""

from __future__ import annotations

import os
import signal

from tests.kernel.kernel_support import Kernel
from tests.support import processes
from tests.support.waiting import until

# While the file loads is too short for a card to show; tests/models/local interrupts that.
# Seconds. A tenth is usual, the others are for a machine that is slow and busy; all that is asked takes minutes there.
SOON = 30.0
READS = "waiting for local/smollm2"


def test_an_interrupt_while_it_reads_is_heard_and_a_killed_kernel_leaves_no_server(kernel: Kernel) -> None:
    cell = kernel.run("%%reyn -m local/smollm2\nCount to a thousand.", interrupt_at=READS)
    assert cell.error is None and "◼ interrupted" in cell.text
    assert cell.seconds < SOON

    kernel.run("from reyn_jupyter.models.local.model_server import SERVERS")
    server = int(kernel.value("SERVERS.states[0].pid"))
    own = int(kernel.value("__import__('os').getpid()"))
    assert not processes.is_gone(server)
    os.kill(own, signal.SIGKILL)
    until(lambda: processes.is_gone(server))
