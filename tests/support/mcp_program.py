"""A server as it may be, well-behaved or hostile, over its standard streams: the protocol by hand, without any SDK.

What it does stands in its one argument, a JSON object: `tools` (a list of their descriptions beside its own), `count`
(how many tools it makes up), `gate` (it answers nothing before this file is there), `silent` (it never answers the
first message), `noise` (what it prints before that),
`pages` (tools a page), `endless` (a page always names a next one), `dies` (its code at once), `daemon` (it leaves a
child that ignores its end), `crashes` and `hangs` (the method at which it does), `bare` (without its own tools),
`journal` (a file that gets a line for each call of a tool).
Its own tools are the functions below, by name.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from urllib.parse import unquote

OPTIONS = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
WRITING = threading.Lock()
ANSWERS = {}
CANCELLED = set()
GROWN = []
GONE = set()
LISTED = threading.Event()
ASKING = threading.Lock()
EMPTY = {"type": "object", "properties": {}}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def send(message):
    line = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    with WRITING:
        sys.stdout.write(line)
        sys.stdout.flush()


def text(said):
    return {"content": [{"type": "text", "text": str(said)}]}


def echo(call, args, meta):
    return text(args.get("text"))


def environment(call, args, meta):
    return text(json.dumps(dict(os.environ)))


def folder(call, args, meta):
    return text(os.getcwd())  # noqa: PTH109


def crash(call, args, meta):
    sys.stderr.write("about to fall over\n")
    sys.stderr.flush()
    os._exit(3)


def slow(call, args, meta):
    time.sleep(float(args["text"]))
    return text("done")


def hang(call, args, meta):
    sys.stderr.write(f"hanging {call}\n")
    sys.stderr.flush()
    while call not in CANCELLED:
        time.sleep(0.01)
    sys.stderr.write(f"cancelled {call}\n")
    sys.stderr.flush()


def steps(call, args, meta):
    for done in range(1, 4):
        send(
            {
                "method": "notifications/progress",
                "params": {
                    "progressToken": meta["progressToken"],
                    "progress": done,
                    "total": 3,
                    "message": f"step {done}",
                },
            }
        )
    return text("done")


def flood(call, args, meta):
    with WRITING:
        for _ in range(100):
            sys.stdout.write("x" * (1 << 20))
        sys.stdout.flush()
    return text("done")


def babble(call, args, meta):
    """Print 100 MB beside the protocol, or on the standard error: as one line, or as many."""
    stream, piece = args["text"].split()
    line = {"line": "x" * 1_000_000, "lines": ("x" * 999 + "\n") * 1_000, "short": "{\n" * 500_000}[piece]
    target = {"out": sys.stdout, "err": sys.stderr}[stream]
    with WRITING:
        for _ in range(100):
            target.write(line)
        target.write("\n")
        target.flush()
    return text("done")


def storm(call, args, meta):
    for number in range(3_000):
        send({"method": "notifications/tools/list_changed"})
        send({"method": "notifications/message", "params": {"level": "info", "data": f"storm {number}"}})
        send(
            {"method": "notifications/progress", "params": {"progressToken": "nobody's", "progress": number}}
        )
        send({"method": "notifications/no_such", "params": {"number": number}})
    return text("calm")


def vanish(call, args, meta):
    """Be on offer no more in the middle of the own call."""
    GONE.add("vanish")
    send({"method": "notifications/tools/list_changed"})
    LISTED.clear()
    LISTED.wait(10)
    return text("still answered")


def pester(call, args, meta):
    """Ask a hundred times, all at once."""
    from concurrent.futures import ThreadPoolExecutor

    form = {"message": "Well?", "requestedSchema": {"type": "object", "properties": {}}}
    with ThreadPoolExecutor(100) as pool:
        found = [each["action"] for each in pool.map(lambda _: asked("elicitation/create", form), range(100))]
    return text(json.dumps({action: found.count(action) for action in found}))


def noise(call, args, meta):
    with WRITING:
        sys.stdout.write('debug: hello\n{"jsonrpc": nonsense\n[1, 2]\n{"id": 99, "result": {}}\n\x1b[2J\n')
        sys.stdout.flush()
    return text("after the noise")


def wrong_ids(call, args, meta):
    for wrong in (call + 1000, str(call + 1), None, {"a": 1}):
        send({"id": wrong, "result": text("not yours")})
    return text("yours")


def twice(call, args, meta):
    send({"id": call, "result": text("first")})
    return text("second")


def lie(call, args, meta):
    return {**text("see the number"), "structuredContent": {"number": "not one"}}


def number(call, args, meta):
    return {**text('{"number": 7}'), "structuredContent": {"number": 7}}


def fail(call, args, meta):
    return {**text("no such \u202eorder"), "isError": True}


def refuse(call, args, meta):
    raise ValueError("no \x1b[31mway")


def nonsense(call, args, meta):
    return {"content": "nothing that the protocol knows"}


def complain(call, args, meta):
    return {**text(args.get("text")), "isError": True}


def link(call, args, meta):
    said = args.get("text")
    return {
        "content": [{"type": "resource_link", "uri": "memo://1", "name": said[:200], "description": said}]
    }


def parts(call, args, meta):
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    return {
        "content": [
            {"type": "text", "text": "a picture", "annotations": {"audience": ["user"]}},
            {"type": "image", "data": png, "mimeType": "image/png"},
            {"type": "image", "data": "!!", "mimeType": "image/png"},
            {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///notes.txt", "name": "notes", "mimeType": "text/plain"},
            {
                "type": "resource",
                "resource": {"uri": "memo://1", "mimeType": "text/markdown", "text": "# Memo"},
            },
            {
                "type": "resource",
                "resource": {"uri": "memo://2", "mimeType": "application/zip", "blob": "AAEC"},
            },
        ]
    }


def grow(call, args, meta):
    GROWN.append(args["text"])
    send({"method": "notifications/tools/list_changed"})
    return text("grown")


def ask(call, args, meta):
    return text(json.dumps(asked("elicitation/create", json.loads(args["text"]))))


def sample(call, args, meta):
    return text(
        json.dumps(
            asked(
                "sampling/createMessage",
                {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5},
            )
        )
    )


def roots(call, args, meta):
    return text(json.dumps(asked("roots/list", {})))


def log(call, args, meta):
    send({"method": "notifications/message", "params": {"level": "warning", "data": args["text"]}})
    return text("logged")


def asked(method, params):
    """Ask the client, and wait for its answer."""
    with ASKING:
        number = f"mine-{len(ANSWERS)}"
        ANSWERS[number] = arrived, held = threading.Event(), []
    send({"id": number, "method": method, "params": params})
    arrived.wait()
    return held[0]


OWN = {
    each.__name__: each
    for each in (
        echo,
        environment,
        folder,
        crash,
        slow,
        hang,
        steps,
        flood,
        babble,
        storm,
        vanish,
        pester,
        noise,
        wrong_ids,
        twice,
        lie,
        number,
        fail,
        refuse,
        nonsense,
        parts,
        grow,
        ask,
        sample,
        roots,
        log,
        complain,
        link,
    )
}
NUMBER = {"type": "object", "properties": {"number": {"type": "number"}}, "required": ["number"]}


def tools():
    told = [
        {
            "name": name,
            "description": f"Do {name}.",
            "inputSchema": TEXT
            if name in ("echo", "slow", "grow", "ask", "log", "babble", "complain", "link")
            else EMPTY,
        }
        for name in OWN
        if name not in GONE and not OPTIONS.get("bare")
    ]
    for each in told:
        if each["name"] in ("lie", "number"):
            each["outputSchema"] = NUMBER
        if each["name"] in ("echo", "folder"):
            each["annotations"] = {"readOnlyHint": True}
    told += OPTIONS.get("tools", [])
    told += [
        {"name": f"made_{n}", "description": f"Make {n}.", "inputSchema": TEXT}
        for n in range(OPTIONS.get("count", 0))
    ]
    told += [{"name": f"grown_{n}", "description": said, "inputSchema": TEXT} for n, said in enumerate(GROWN)]
    return told


def answer(message):
    method, params, call = message.get("method"), message.get("params") or {}, message.get("id")
    if method == OPTIONS.get("crashes"):
        os._exit(5)
    if method == OPTIONS.get("hangs"):
        return None
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "serverInfo": {"name": "program", "version": "1"},
            "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}, "logging": {}},
        }
    if method == "tools/list":
        start, size = int(params.get("cursor", 0)), OPTIONS.get("pages", 1_000_000)
        told = tools()
        LISTED.set()
        more = {"nextCursor": str(start + size)} if start + size < len(told) else {}
        return {
            "tools": told[start : start + size],
            **({"nextCursor": "0"} if OPTIONS.get("endless") else more),
        }
    if method == "resources/list":
        more = {"nextCursor": "again"} if OPTIONS.get("endless") else {}
        return {"resources": [{"uri": "memo://1", "name": "memo", "description": "A memo."}], **more}
    if method == "resources/templates/list":
        return {"resourceTemplates": [{"uriTemplate": "memo://{n}", "name": "memos"}]}
    if method == "resources/read":
        return {
            "contents": [
                {
                    "uri": params["uri"],
                    "mimeType": "text/plain",
                    "text": f"content of {unquote(params['uri'])}",
                }
            ]
        }
    if method == "prompts/list":
        return {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]}
    if method == "prompts/get":
        said = {"type": "text", "text": f"Greet {params['arguments']['who']}."}
        return {"messages": [{"role": "user", "content": said}]}
    if method == "tools/call":
        if "journal" in OPTIONS:
            with open(OPTIONS["journal"], "a") as journal:  # noqa: PTH123
                journal.write(json.dumps([params["name"], params.get("arguments")]) + "\n")
        own = OWN.get(params["name"])
        if own is None:
            return text(f"{params['name']} got {json.dumps(params.get('arguments'))}")
        return own(call, params.get("arguments") or {}, params.get("_meta") or {})
    raise LookupError(method)


def serve(message):
    while "gate" in OPTIONS and not os.path.exists(OPTIONS["gate"]):  # noqa: PTH110
        time.sleep(0.01)
    try:
        result = answer(message)
    except LookupError as error:
        send({"id": message["id"], "error": {"code": -32601, "message": f"Method not found: {error}"}})
    except ValueError as error:
        send({"id": message["id"], "error": {"code": -32000, "message": str(error)}})
    else:
        if result is not None:
            send({"id": message["id"], "result": result})


def main():
    if "dies" in OPTIONS:
        sys.stderr.write("no licence\n")
        sys.exit(OPTIONS["dies"])
    if OPTIONS.get("daemon"):
        import subprocess

        subprocess.Popen(
            [sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(3600)"]
        )
    sys.stdout.write(OPTIONS.get("noise", ""))
    sys.stdout.flush()
    for line in sys.stdin:
        message = json.loads(line)
        if OPTIONS.get("silent"):
            continue
        if message.get("method") == "notifications/cancelled":
            CANCELLED.add(message["params"]["requestId"])
        elif "method" in message and "id" in message:
            threading.Thread(target=serve, args=(message,), daemon=True).start()
        elif message.get("id") in ANSWERS:
            arrived, held = ANSWERS[message["id"]]
            held.append(message.get("result", message.get("error")))
            arrived.set()


if __name__ == "__main__":
    main()
