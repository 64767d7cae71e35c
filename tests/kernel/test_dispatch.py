"""A request that is dispatched in a real kernel: one display, updated in place, which ends as the run did."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.kernel.kernel_support import Kernel
from tests.workflows.acceptance.workshop import ANYTHING, manifest_of, rule, rules_file

# It is done once there is a file `go` in its folder.
SLOW = """import json, pathlib, sys, time
print("part 1", file=sys.stderr, flush=True)
end = time.monotonic() + 250
while not pathlib.Path("go").exists() and time.monotonic() < end:
    time.sleep(0.02)
print(json.dumps({"text": "made"}))
"""
# Makes the file once the page has what the utility said.
LETS_GO = """
from pathlib import Path
publisher = get_ipython().display_pub
working = publisher.publish

def publish(*args, **given):
    working(*args, **given)
    if "part 1" in (args[0] if args else given["data"]).get("text/plain", ""):
        for folder in Path("state/runs").glob("*/*/"):
            (folder / "go").touch()

publisher.publish = publish
"""
STUCK = "import sys, time\nprint('stuck now', file=sys.stderr, flush=True)\ntime.sleep(600)\n"
HANGS = """
async def hangs(request):
    await asyncio.sleep(60)
"""


@pytest.fixture
def shop(kernel: Kernel, workspace: Path) -> Kernel:
    """A kernel whose workspace has utilities and rules that the person trusts."""
    for name, program in (("slow", SLOW), ("stuck", STUCK)):
        folder = workspace / "tools" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tool.yaml").write_text(yaml.safe_dump(manifest_of(name, output_schema=ANYTHING)))
        (folder / "main.py").write_text(program)
    rules = rules_file(rule("slow", "make it", "slow.run"), rule("stuck", "hang on", "stuck.run"))
    (workspace / "tools" / "rules.yaml").write_text(rules)
    (workspace / "policy.yaml").unlink(missing_ok=True)
    kernel.run("%reyn trust", answers=["y", "y", "y"])
    return kernel


def test_a_dispatch_is_one_display_that_says_how_far_it_is(shop: Kernel) -> None:
    shop.run(LETS_GO)
    cell = shop.run('%reyn dispatch "make it"')
    shop.run("publisher.publish = working")
    assert cell.error is None and len(cell.outputs) == 1
    assert {each["transient"]["display_id"] for each in cell.updates} == {
        cell.outputs[0]["transient"]["display_id"]
    }
    assert "planning" in cell.drawn[0], cell.drawn[0]
    going = [each for each in cell.drawn if "[running]" in each and "slow.run (running" in each]
    assert any("part" in each for each in going)
    assert "[executed]" in cell.text and "[running]" not in cell.text


def test_while_a_model_plans_the_display_says_so(shop: Kernel) -> None:
    shop.run(HANGS + "says(hangs)")
    cell = shop.run('%reyn dispatch "sing a song"', interrupt_at="planning")
    assert len(cell.outputs) <= 2 and "Interrupted" in str(cell.error)
    assert "[interrupted]" in cell.text and "[running]" not in cell.text


def test_an_interrupt_in_the_first_drawing_leaves_nothing_shown_as_running(shop: Kernel) -> None:
    # The interrupt comes when the page has it, and before the kernel goes on.
    cell = shop.run(
        "publisher = get_ipython().display_pub\nworking = publisher.publish\n"
        "def interrupted(*args, **kwargs):\n"
        "    publisher.publish = working\n    working(*args, **kwargs)\n    raise KeyboardInterrupt\n"
        "publisher.publish = interrupted\n"
        "get_ipython().run_line_magic('reyn', 'dispatch \"hang on\"')"
    )
    assert len(cell.outputs) <= 2 and cell.error is not None
    assert "[interrupted]" in cell.text and "[running]" not in cell.text


def test_an_interrupted_dispatch_is_no_longer_shown_as_running(shop: Kernel) -> None:
    cell = shop.run('%reyn dispatch "hang on"', interrupt_at="stuck now")
    assert "--resume last" in str(cell.error)
    assert "[interrupted]" in cell.text and "stuck.run (interrupted" in cell.text


def test_a_dispatch_that_cannot_be_planned_is_not_shown_as_running(shop: Kernel, workspace: Path) -> None:
    (workspace / "policy.yaml").write_text("max_stepps: 3\n")
    cell = shop.run('%reyn dispatch "make it"')
    (workspace / "policy.yaml").unlink()
    assert "max_stepps" in str(cell.error)
    assert "running" not in cell.text
