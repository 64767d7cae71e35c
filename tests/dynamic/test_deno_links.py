"""A link in a folder that a TypeScript tool may read grants nothing that it leads to."""

from __future__ import annotations

import json
from pathlib import Path

from reyn_jupyter.config.settings import Settings
from reyn_jupyter.dynamic.tool_permissions import ToolPermissions
from reyn_jupyter.dynamic.tool_runner import run_tool
from reyn_jupyter.guard.workspace import Workspace

READS = """
export function execute(p: any): any {
  return p.paths.map((each: string) => {
    try { return Deno.readTextFileSync(each); } catch (e) { return (e as Error).name; }
  });
}
"""


async def test_link_in_a_granted_folder_grants_nothing_that_it_leads_to(tmp_path: Path) -> None:
    root, outside = tmp_path / "clone", tmp_path / "outside.txt"
    data = root / "data"
    data.mkdir(parents=True)
    outside.write_text("the secret")
    (root / ".env").write_text("KEY=the secret")
    (data / "plain").write_text("fine")
    links = {"file": outside, "root": "/", "above": "..", "env": "../.env", "inside": "plain"}
    for name, target in links.items():
        (data / name).symlink_to(target)
    names = ("plain", "inside", "file", f"root{outside}", "above/.env", "env")
    run = await run_tool(
        READS,
        {"paths": [str(data / name) for name in names]},
        mode="typescript",
        name="t",
        settings=Settings().sandbox,
        workspace=Workspace(str(root)),
        permissions=ToolPermissions(readable=("data",)),
    )
    assert run.error is None and run.value[0] == "fine"
    assert "the secret" not in json.dumps(run.value)
