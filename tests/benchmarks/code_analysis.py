"""The reading of a tool's code before it runs: 1,000 lines of the standard library, beside `ast.parse` of the same."""

from __future__ import annotations

import ast
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

from reyn_jupyter.dynamic.analysis.python_safety import python_findings
from reyn_jupyter.dynamic.analysis.quality import assess_quality
from reyn_jupyter.dynamic.analysis.typescript_safety import typescript_findings

MODULES = ("statistics", "random", "shutil", "configparser", "datetime")
TYPESCRIPT = """
function step_NUMBER(items: number[], limit = 10): number {
  let total = 0;
  for (const item of items) {
    if (item > limit && item % 2 === 0) {
      total += Math.sqrt(item) * items.length;
    }
  }
  return { total, text: `${total} of ${items.length}` }.total;
}
"""
EXECUTE = "\ndef execute(params): return params\n"
REPEATS = 7


def best(work: Callable[[], object]) -> float:
    """Return the least CPU time of several runs, in milliseconds."""
    times = []
    for _ in range(REPEATS):
        began = time.process_time()
        work()
        times.append((time.process_time() - began) * 1_000)
    return min(times)


def main() -> None:
    folder = Path(sysconfig.get_path("stdlib"))
    reading: list[float] = []
    ratios: list[float] = []
    for module in MODULES:
        code = (folder / f"{module}.py").read_text(encoding="utf-8") + EXECUTE
        lines = code.count("\n") / 1_000
        found = best(lambda code=code: python_findings(code)) / lines
        parsed = best(lambda code=code: ast.parse(code)) / lines
        reading.append(found)
        ratios.append(found / parsed)
        print(f"{module}: {found:.1f} ms for 1,000 lines, {found / parsed:.1f} × ast.parse")
    print(f"analysis of 1,000 lines of Python: {max(reading):.1f} ms at most, limit 50")
    print(f"ratio: analysis over ast.parse {max(ratios):.2f}")
    code = (folder / "statistics.py").read_text(encoding="utf-8") + EXECUTE
    lines = code.count("\n") / 1_000
    quality = best(lambda: assess_quality(code, description="Statistics")) / lines
    print(f"quality of 1,000 lines of Python, beside the analysis: {quality:.1f} ms")
    script = "".join(TYPESCRIPT.replace("NUMBER", str(number)) for number in range(90))
    script += "function execute(params) { return step_1(params.items); }\n"
    found = best(lambda: typescript_findings(script)) / (script.count("\n") / 1_000)
    print(f"analysis of 1,000 lines of TypeScript: {found:.1f} ms")


if __name__ == "__main__":
    main()
