"""Plans: a request by rules, and 100 steps read, covered, judged and filled in, beside parsing their JSON."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reyn_jupyter.workflows.planning.coverage import cover
from reyn_jupyter.workflows.planning.plan import layers, read_plan
from reyn_jupyter.workflows.planning.policy import CapabilityPolicy, violations
from reyn_jupyter.workflows.planning.references import resolve_inputs
from reyn_jupyter.workflows.planning.router import plan_request
from reyn_jupyter.workflows.utilities.manifest import Entrypoint, Manifest, Utility
from reyn_jupyter.workflows.utilities.registry import UtilityRegistry

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
REQUEST = "Download https://youtu.be/dQw4w9WgXcQ, convert it to mp4 and upload it to https://drive.google.com/drive/folders/1A"
STEPS = 100


def main() -> None:
    text = json.dumps({"request_inputs": {"text": "x"}, "steps": [step(at) for at in range(STEPS)]})
    plan = read_plan(json.loads(text))
    policy = CapabilityPolicy((("thing.*",),), ("*.delete",), max_steps=STEPS)
    outputs = {each.step_id: {"text": "x"} for each in plan.steps}
    few, many = registry(10), registry(1_000)
    work: dict[str, Callable[[], object]] = {
        "json.loads of the plan": lambda: json.loads(text),
        "a request of three steps, by rules": lambda: asyncio.run(plan_request(REQUEST, registry=few)),
        "the plan read and checked": lambda: read_plan(json.loads(text)),
        "its gates among 10 utilities": lambda: cover(plan, few),
        "its gates among 1,000 utilities": lambda: cover(plan, many),
        "the policy": lambda: violations(plan, policy, lambda _: True),
        "its order, and inputs filled in": lambda: [
            resolve_inputs(each.inputs, plan.request_inputs, outputs)
            for layer in layers(plan)
            for each in layer
        ],
    }
    assert cover(plan, few).status == cover(plan, many).status == "complete"
    print(f"a plan of {STEPS} steps, {len(text):,} bytes of JSON; medians of 15")
    for name, run in work.items():
        print(f"  {name:<40} {1_000 * median(run):8.2f} ms")


def step(at: int) -> dict[str, Any]:
    taken = f"steps.s{at - 1}.outputs.text" if at % 5 else "request.inputs.text"
    contract = {"input_schema": TEXT, "output_schema": TEXT}
    return {
        "step_id": f"s{at}",
        "capability": f"thing.do-{at % 10}",
        "inputs": {"text": taken},
        "capability_contract": contract,
        "source": "llm",
        "coverage_confidence": 0.9,
    }


def registry(size: int) -> UtilityRegistry:
    """Return so many utilities, of which every capability that the plan names has its share."""
    return UtilityRegistry(
        tuple(
            Utility(
                Manifest(
                    f"tool-{at}",
                    "1.0.0",
                    "a utility of a benchmark",
                    (f"thing.do-{at % max(10, size // 10)}",),
                    Entrypoint("python", "run.py"),
                    TEXT,
                    TEXT,
                ),
                Path(f"tool-{at}"),
                "package",
                str(at),
                True,
                "",
                {},
            )
            for at in range(size)
        )
    )


def median(run: Callable[[], object]) -> float:
    run()
    times = []
    for _ in range(15):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return statistics.median(times)
