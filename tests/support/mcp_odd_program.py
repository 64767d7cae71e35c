"""A server whose answers are given word for word, by the JSON file that its argument names.

`initialize` is merged into the answer of the handshake, `listing` is the answer of a listing, `answers` has the result
or the error of a call by the name of its tool; a tool without one answers with its arguments. `writes` goes to its
standard error at the start, and with `ends` it ends then. With `strict` it ends at a first message that is not
`initialize`, and writes `complains` before; with `silent` it does not answer it, and with `single` it takes no
`initialize` after it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

OPTIONS = json.loads(Path(sys.argv[1]).read_text())


def answer(message: dict) -> dict:
    method, params = message["method"], message.get("params") or {}
    if method == "initialize" and OPTIONS.get("initialize", {}) is None:
        return {"error": {"code": -32600, "message": 'duplicate "initialize" received'}}
    if method == "initialize":
        told = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        }
        told.update(OPTIONS.get("initialize", {}))
        return {"result": {key: value for key, value in told.items() if value != "-"}}
    if method == "tools/call":
        said = json.dumps(params.get("arguments"))
        own = {"result": {"content": [{"type": "text", "text": said}]}}
        return OPTIONS.get("answers", {}).get(params["name"], own)
    if method in OPTIONS.get("listing", {}):
        return {"result": OPTIONS["listing"][method]}
    return {"error": {"code": -32601, "message": "Method not found"}}


sys.stderr.write(OPTIONS.get("writes", ""))
if OPTIONS.get("ends"):
    sys.exit(1)
is_first = True
for line in sys.stdin:
    asked = json.loads(line)
    if is_first and asked["method"] != "initialize":
        sys.stderr.write(OPTIONS.get("complains", ""))
        if OPTIONS.get("strict"):
            sys.exit("expected initialize, got " + asked["method"])
        if OPTIONS.get("single"):
            OPTIONS["initialize"] = None
        if OPTIONS.get("silent"):
            continue
    is_first = False
    if "method" in asked and "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer(asked)}), flush=True)
