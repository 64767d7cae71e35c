"""The process that serves one GGUF file on loopback, by llama.cpp's server of the wheel `xllamacpp`.

Invariants: it listens on 127.0.0.1 alone, on a port that the system chooses, and answers nobody without the key that
its parent gave it over the channel. It reads one file and writes none; what it says goes into the pipe of its parent.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from reyn_jupyter.support.programs.child_process import ChildMessage, serve

BATCH = 256  # tokens read at a time: after each one the server notices that whoever asked has hung up

_running: list[Any] = []  # the server, which ends when nobody refers to it


def answer(request: ChildMessage) -> ChildMessage:
    """Start the server that a request describes, and return its address, or why there is none."""
    for stream in (1, 2):
        os.dup2(request.descriptors[0], stream)
    threading.Thread(target=_load, args=(dict(request.header),), daemon=True).start()
    return ChildMessage({})


def _load(options: dict[str, Any]) -> None:
    """Load the file and say so in one line of the log, since it takes longer than a request should."""
    mark = options["mark"]
    try:
        address = _served(options)
    except Exception as error:  # noqa: BLE001 - whatever the library raises is what there is to say
        os.write(1, f"\n{mark} failed {type(error).__name__}: {error}\n".encode())
        os._exit(1)
    # A line of its own: the server's log may be in the middle of one.
    os.write(1, f"\n{mark} serves {address}\n".encode())


def _served(options: dict[str, Any]) -> str:
    os.environ["GGML_NO_BACKTRACE"] = "1"  # it would start a debugger
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = options["file"]
    parameters.api_keys = [options["key"]]
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_parallel = options["slots"]
    parameters.n_ctx = options["context"] * options["slots"]
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = options["threads"]
    parameters.n_batch = parameters.n_ubatch = BATCH
    parameters.n_gpu_layers = options["gpu_layers"]
    parameters.fit_params = False
    parameters.cache_ram_mib = options["kept_prompts"]
    parameters.ui = parameters.endpoint_slots = parameters.endpoint_props = False
    parameters.offline = True
    if options["chat_template"]:
        parameters.chat_template = options["chat_template"]
    server = xllamacpp.Server(parameters)
    _running.append(server)
    return str(server.listening_address)


if __name__ == "__main__":
    serve(answer, lambda: None)
