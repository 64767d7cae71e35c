"""A utility's run: JSON in, JSON out, nothing granted that was not declared, and whatever it does, a clear end."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from reyn_jupyter.guard.sandbox import Sandbox, SandboxError, ladder
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.support.secret import Secret
from reyn_jupyter.workflows.utilities.program import command_of, missing_dependencies
from reyn_jupyter.workflows.utilities.protocol import prepare_inputs
from reyn_jupyter.workflows.workflow_error import WorkflowError
from tests.support.waiting import LoopClock, until
from tests.workflows.utilities.utility_samples import ECHO, run, write_utility

BACKENDS = pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])
FILE_IN = {"type": "object", "properties": {"file": {"type": "string", "format": "readable-path"}}}
FILE_OUT = {"type": "object", "properties": {"file": {"type": "string", "format": "artifact-path"}}}


async def failure(*args: Any, **options: Any) -> WorkflowError:
    with pytest.raises(WorkflowError) as caught:
        await run(*args, **options)
    json.dumps(caught.value.details, allow_nan=False)
    return caught.value


def processes_with(mark: str) -> list[int]:
    """Return the processes in whose command line a mark stands."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in line:
                found.append(int(entry.name))
    return found


@BACKENDS
async def test_inputs_reach_the_program_as_they_are_and_its_object_comes_back(
    backend: str, tmp_path: Path
) -> None:
    schema = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "mode": {"default": "all"},
            "deep": {"properties": {"n": {"default": 3}}},
        },
    }
    given = {"text": "; rm -rf x $(touch pwn) `id` \"'\n\u20ac", "deep": {}}
    found = await run(write_utility(tmp_path, ECHO, input_schema=schema), tmp_path, given, backend=backend)
    assert found.output == {**given, "mode": "all", "deep": {"n": 3}}
    assert (found.backend, bool(found.isolation), found.artifacts) == (backend, True, ())
    assert not list(tmp_path.rglob("pwn")) and not list(tmp_path.glob("state/runs/1/*"))


@pytest.mark.parametrize("kind", ["shell", "bash", "node"])
@BACKENDS
async def test_a_shell_script_and_a_program_for_node_run_by_the_same_protocol(
    kind: str, backend: str, tmp_path: Path
) -> None:
    if kind == "node":
        program = """
            import fs from "node:fs";
            const given = JSON.parse(fs.readFileSync(0, "utf8"));
            console.error("at work");
            console.log(JSON.stringify({ n: given.n + 1, said: process.argv[2] }));
            """
        utility = write_utility(tmp_path, program, kind="node", command="main.mjs", args=["--fast"])
    elif kind == "shell":
        program = 'read -r line; echo "at work" >&2; echo "{\\"n\\": 2, \\"said\\": \\"$1\\"}"\n'
        utility = write_utility(tmp_path, program, kind="shell", command="run.sh", args=["--fast"])
    else:
        program = '#!/usr/bin/env bash\nset -o pipefail\necho "at work" >&2\necho "{\\"n\\": 2, \\"said\\": \\"$1\\"}"'
        utility = write_utility(tmp_path, program, kind="shell", command="run.sh", args=["--fast"])
        (utility.folder / "run.sh").chmod(0o755)
    found = await run(utility, tmp_path, {"n": 1}, backend=backend)
    assert found.output == {"n": 2, "said": "--fast"}
    assert found.stderr == "at work\n"


async def test_a_declared_command_is_a_program_of_its_own(tmp_path: Path) -> None:
    utility = write_utility(tmp_path, "", kind="shell", command="cat", dependencies=[("command", "cat")])
    assert command_of(utility) == ("cat",)
    assert (await run(utility, tmp_path, {"a": [1]})).output == {"a": [1]}


async def test_modules_beside_the_program_can_be_imported_and_nothing_is_written_there(
    tmp_path: Path,
) -> None:
    program = """
        import helper, pathlib, json
        try:
            pathlib.Path(helper.__file__).with_name("new").write_text("x")
        except OSError as error:
            print(json.dumps({"n": helper.N, "refused": type(error).__name__}))
        """
    utility = write_utility(tmp_path, program)
    (utility.folder / "helper.py").write_text("N = 7\n")
    found = await run(utility, tmp_path)
    assert found.output["n"] == 7 and found.output["refused"] in {"OSError", "PermissionError"}
    assert sorted(each.name for each in utility.folder.iterdir()) == ["helper.py", "main"]


@BACKENDS
async def test_the_log_is_heard_while_the_program_runs(backend: str, tmp_path: Path) -> None:
    program = """
        import pathlib, sys, time
        print("first", file=sys.stderr)
        while not pathlib.Path("go").exists():
            time.sleep(0.01)
        print("second", file=sys.stderr)
        print("{}")
        """
    heard: list[tuple[str, bytes]] = []
    folder = tmp_path / "state" / "runs" / "1" / "step-1"

    def hear(stream: str, piece: bytes) -> None:
        heard.append((stream, piece))
        (folder / "go").touch()

    found = await run(write_utility(tmp_path, program), tmp_path, backend=backend, on_stderr=hear)
    assert heard[0] == ("stderr", b"first\n") and b"".join(piece for _, piece in heard) == b"first\nsecond\n"
    assert found.stderr == "first\nsecond\n"


@BACKENDS
async def test_it_sees_what_its_inputs_name_and_nothing_else_of_the_workspace(
    backend: str, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("a\n1\n")
    (tmp_path / "data" / ".env").write_text("KEY=secret-of-data")
    (tmp_path / "notes.md").write_text("private")
    program = """
        import json, os, sys
        given = json.load(sys.stdin)
        def read(path):
            try:
                return open(path).read()
            except OSError:
                return None
        root = os.path.dirname(given["folder"])
        print(json.dumps({
            "named": read(given["file"]), "below": read(given["folder"] + "/a.csv"), "other": read(root + "/notes.md"),
            "secret": read(given["folder"] + "/.env"), "own": read(os.path.dirname(__file__) + "/.env"),
            "home": os.environ["HOME"], "absolute": os.path.isabs(given["file"]), "cwd": os.getcwd(),
            "variables": sorted(os.environ),
        }))
        """
    path = {"type": "string", "format": "readable-path"}
    schema = {"type": "object", "properties": {"file": path, "folder": path}, "required": ["file", "folder"]}
    utility = write_utility(tmp_path, program, input_schema=schema)
    (utility.folder / ".env").write_text("KEY=secret-of-tool")
    os.environ["REYN_TEST_TOKEN"] = "of-the-person"
    try:
        found = (
            await run(utility, tmp_path, {"file": "data/a.csv", "folder": "data"}, backend=backend)
        ).output
    finally:
        del os.environ["REYN_TEST_TOKEN"]
    assert (found["named"], found["below"], found["absolute"]) == ("a\n1\n", "a\n1\n", True)
    assert not found["secret"] and not found["own"] and found["other"] is None
    assert found["home"] != os.environ["HOME"] and "REYN_TEST_TOKEN" not in found["variables"]
    assert found["cwd"] == os.fspath(tmp_path / "state/runs/1/step-1")


@BACKENDS
async def test_a_file_that_the_user_makes_meanwhile_stays_and_the_step_fails(
    backend: str, tmp_path: Path
) -> None:
    program = """
        import json, pathlib, sys, time
        out = pathlib.Path(json.load(sys.stdin)["into"], "x")
        out.write_text("of the program")
        print("ready", file=sys.stderr)
        while not pathlib.Path("go").exists():
            time.sleep(0.01)
        print(json.dumps({"file": str(out)}))
        """
    into = {"type": "object", "properties": {"into": {"type": "string", "format": "writable-folder"}}}
    utility = write_utility(tmp_path, program, input_schema=into, output_schema=FILE_OUT)

    def user(stream: str, piece: bytes) -> None:
        (tmp_path / "out" / "x").write_text("of the user")
        (tmp_path / "state/runs/1/step-1/go").touch()

    with pytest.raises(WorkflowError, match="out/x was made by another program") as caught:
        await run(utility, tmp_path, {"into": "out"}, backend=backend, on_stderr=user)
    assert caught.value.details["kind"] == "not_applied"
    assert (tmp_path / "out" / "x").read_text() == "of the user"


@BACKENDS
async def test_artifacts_are_checked_and_the_next_step_takes_them(backend: str, tmp_path: Path) -> None:
    program = """
        import json, pathlib, sys
        given = json.load(sys.stdin)
        pathlib.Path("a.txt").write_text("made")
        out = pathlib.Path(given["into"], "b.txt")
        out.write_text("too")
        pathlib.Path(given["into"], ".env").write_text("KEY=planted")
        print(json.dumps({"file": "a.txt", "more": [str(out)]}))
        """
    into = {"type": "object", "properties": {"into": {"type": "string", "format": "writable-folder"}}}
    out = {
        "type": "object",
        "properties": {"file": {"$ref": "#/$defs/made"}, "more": {"items": {"$ref": "#/$defs/made"}}},
        "$defs": {"made": {"type": "string", "format": "artifact-path"}},
    }
    utility = write_utility(tmp_path, program, input_schema=into, output_schema=out)
    prepared = prepare_inputs(utility, {"into": "new/folder"}, Workspace(tmp_path, off_limits=()))
    assert (prepared.readable, prepared.writable) == ((), ("new/folder",)) and not (tmp_path / "new").exists()
    found = await run(utility, tmp_path, {"into": "new/folder"}, backend=backend)
    assert found.output == {"file": "state/runs/1/step-1/a.txt", "more": ["new/folder/b.txt"]}
    assert found.artifacts == ("state/runs/1/step-1/a.txt", "new/folder/b.txt")
    assert found.planted == ("new/folder/.env",) and not (tmp_path / "new/folder/.env").exists()
    reader = write_utility(
        tmp_path, 'import json, sys\nprint(json.dumps({"text": open(json.load(sys.stdin)["file"]).read()}))',
        input_schema=FILE_IN,
    )  # fmt: skip
    again = await run(reader, tmp_path, {"file": found.output["file"]}, backend=backend, step="step-2")
    assert again.output == {"text": "made"}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        ('path = "gone.txt"', "is not there"),
        ('os.symlink("/etc/passwd", "l"); path = "l"', "is a link"),
        ('os.symlink("/etc", "d"); path = "d/passwd"', "is a link, or lies behind one"),
        ('path = "/etc/passwd"', "not below a folder"),
        ('path = "../../../../notes.md"', "not below a folder"),
        ('path = "."', "not below a folder"),
        ('os.mkfifo("p"); path = "p"', "no regular file"),
        ('path = "a\\0b"', "is not there"),
        ('open(".env", "w").write("x"); path = ".env"', "is not there"),
    ],
)
async def test_a_lie_about_an_artifact_is_told(make: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("private")
    program = f"import json, os\n{make}\nprint(json.dumps({{'file': path}}))\n"
    error = await failure(write_utility(tmp_path, program, output_schema=FILE_OUT), tmp_path)
    assert error.code == "tool_invalid_output" and said in error.details["problems"][0]["message"], error
    assert error.details["problems"][0]["path"] == "/file"


@pytest.mark.parametrize(
    ("given", "path", "said"),
    [
        ({"n": "3", "file": "a.txt"}, "/n", "integer"),
        ({"file": 3}, "/file", "string"),
        ({"file": "a.txt", "extra": 1}, "", "extra"),
        ({}, "", "file"),
        ({"file": "gone.txt"}, "/file", "no file or folder"),
        ({"file": "../outside"}, "/file", ".."),
        ({"file": "/etc/passwd"}, "/file", "outside the workspace"),
        ({"file": ".env"}, "/file", "protected"),
        ({"file": "link"}, "/file", "outside the workspace"),
        ({"file": "a.txt", "into": ".git/hooks"}, "/into", "protected"),
        ({"file": "a.txt", "into": "."}, "/into", "as a whole"),
        ({"file": "a.txt", "into": "a.txt"}, "/into", "no folder"),
        ({"file": "a.txt", "into": "state/x"}, "", "records of runs"),
        ({"file": {"$blob": "x"}}, "/file", "string"),
    ],
)
async def test_inputs_that_do_not_fit_never_reach_the_program(
    given: dict[str, Any], path: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / ".env").write_text("x")
    (tmp_path / "link").symlink_to("/etc/hostname")
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer"}, "file": {"type": "string", "format": "readable-path"},
            "into": {"type": "string", "format": "writable-folder"},
        },
        "required": ["file"],
        "additionalProperties": False,
    }  # fmt: skip
    utility = write_utility(tmp_path, "open('ran', 'w')\nprint('{}')", input_schema=schema)
    error = await failure(utility, tmp_path, given)
    assert error.code == "validation" and not list(tmp_path.rglob("ran"))
    problem = error.details["problems"][0]
    assert problem["path"] == path and said in problem["message"], problem


@BACKENDS
@pytest.mark.parametrize(
    ("program", "code", "said"),
    [
        ("print('no json here')", "tool_invalid_output", "did not end its standard output with a JSON object"),
        ("pass", "tool_invalid_output", "JSON object"),
        ("print('[1, 2]')", "tool_invalid_output", "JSON object"),
        ("print('{\"n\": 1}')\nprint('done')", "tool_invalid_output", "JSON object"),
        ("print('{\"n\": NaN}')", "tool_invalid_output", "JSON object"),
        ("print('{\"n\": 1e999}')", "tool_invalid_output", "JSON object"),
        ("print('{\"n\": \"text\"}')", "tool_invalid_output", "/n: "),
        ("print('{\"n\": {\"$blob\": \"x\"}}')", "tool_invalid_output", "/n: "),
        ("print('{}')", "tool_invalid_output", "required"),
        ("print('{\"n\": 1, \"x\": ' + '[' * 500 + ']' * 500 + '}')", "tool_invalid_output", "nested deeper"),
        ("print('{\"a\":' * 100_000)", "tool_invalid_output", "JSON object"),
        ("import os, sys\nprint('{\"n\": 1}', flush=True)\nprint('oh no', file=sys.stderr)\nsys.exit(3)",
         "tool_failed", "exit code 3 (oh no)"),
        ("import ctypes\nctypes.string_at(0)", "tool_failed", "signal 11"),
        ("import os\nos.abort()", "tool_failed", "signal 6"),
        ("x = bytearray(3 << 30)", "tool_failed", "exit code 1 (MemoryError)"),
    ],
)  # fmt: skip
async def test_what_is_no_result_is_an_error_that_says_so(
    program: str, code: str, said: str, backend: str, tmp_path: Path
) -> None:
    out = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    error = await failure(write_utility(tmp_path, program, output_schema=out), tmp_path, backend=backend)
    assert error.code == code and said in str(error), error
    assert error.details["utility"] == "sample@1.0.0" and len(error.details["stdout"]) <= 4_000


async def test_text_before_the_object_is_tolerated_also_where_the_object_has_many_lines(
    tmp_path: Path,
) -> None:
    program = """
        import json
        print("starting {not json}")
        print("{")
        print(json.dumps({"items": [{"a": 1}, {}], "n": 1}, indent=0))
        """
    assert (await run(write_utility(tmp_path, program), tmp_path)).output == {"items": [{"a": 1}, {}], "n": 1}


@BACKENDS
async def test_a_program_that_ignores_the_request_to_end_is_ended_with_its_children(
    backend: str, tmp_path: Path
) -> None:
    mark = f"mark-{os.getpid()}-{backend}"
    program = f"""
        import signal, subprocess, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "{mark}"], start_new_session=True)
        print("waiting", file=sys.stderr, flush=True)
        time.sleep(600)
        """
    utility = write_utility(tmp_path, program)
    clock = LoopClock()
    error = await failure(
        utility, tmp_path, backend=backend, seconds=100, on_stderr=lambda stream, piece: clock.advance(100)
    )
    assert error.code == "tool_timeout" and "100 seconds" in str(error) and "(waiting)" in str(error)
    assert processes_with(mark) == []


@BACKENDS
async def test_children_that_are_left_behind_end_with_the_program(backend: str, tmp_path: Path) -> None:
    mark = f"mark-{os.getpid()}-left-{backend}"
    program = f"""
        import subprocess, sys
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "{mark}"], start_new_session=True)
        print("{{}}")
        """
    assert (await run(write_utility(tmp_path, program), tmp_path, backend=backend)).output == {}
    assert processes_with(mark) == []


@BACKENDS
async def test_a_cancelled_run_leaves_no_process(backend: str, tmp_path: Path) -> None:
    mark = f"mark-{os.getpid()}-cancelled-{backend}"
    utility = write_utility(tmp_path, "import time\ntime.sleep(600)", args=[mark])
    task = asyncio.create_task(run(utility, tmp_path, backend=backend))
    await asyncio.to_thread(until, lambda: processes_with(mark))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert processes_with(mark) == []


async def test_a_gigabyte_of_log_is_passed_on_and_its_end_kept(tmp_path: Path) -> None:
    program = """
        import sys
        piece = b"x" * (1 << 20)
        for _ in range(1024):
            sys.stderr.buffer.write(piece)
        sys.stderr.buffer.write(b"the end")
        sys.stderr.flush()
        print("{}")
        """
    heard = 0

    def hear(stream: str, piece: bytes) -> None:
        nonlocal heard
        heard += len(piece)

    found = await run(write_utility(tmp_path, program), tmp_path, on_stderr=hear, seconds=120)
    assert heard == (1 << 30) + 7 and len(found.stderr) == 64 << 10 and found.stderr.endswith("the end")


async def test_more_than_sixteen_mebibytes_on_standard_output_end_the_program(tmp_path: Path) -> None:
    error = await failure(write_utility(tmp_path, "while True:\n    print('x' * 1_000_000)"), tmp_path)
    assert error.code == "tool_invalid_output" and "more than 16 MiB" in str(error)
    large = write_utility(tmp_path, "import json\nprint(json.dumps({'x': 'y' * 15_000_000}))")
    assert len((await run(large, tmp_path)).output["x"]) == 15_000_000


async def test_an_output_of_many_rows_is_checked_whole(tmp_path: Path) -> None:
    number, made = {"type": "integer"}, {"type": "string", "format": "artifact-path"}
    out = {
        "type": "object",
        "properties": {
            "rows": {"items": {"type": "object", "properties": {"n": number, "m": number}}}, "files": {"items": made},
        },
    }  # fmt: skip
    program = """
        import json, sys
        last = json.load(sys.stdin)["last"]
        open("a.txt", "w").close()
        rows = [{"n": n, "m": 0} for n in range(200_000)]
        print(json.dumps({"rows": [*rows, {"n": last}], "files": ["a.txt"] * 3}))
        """
    utility = write_utility(tmp_path, program, output_schema=out)
    found = await run(utility, tmp_path, {"last": 1})
    assert len(found.output["rows"]) == 200_001 and found.artifacts == ("state/runs/1/step-1/a.txt",)
    error = await failure(utility, tmp_path, {"last": "x"})
    assert error.code == "tool_invalid_output" and error.details["problems"][0]["path"] == "/rows/200000/n"


async def test_nothing_runs_without_a_sandbox_without_trust_or_without_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = "open('ran', 'w')\nprint('{}')"
    untrusted = await failure(write_utility(tmp_path, program, trusted=False), tmp_path)
    assert (untrusted.code, untrusted.details["kind"]) == ("tool_failed", "untrusted")
    needs = [
        ("command", "no-such-program"),
        ("package", "no-such-package"),
        ("package", "pytest"),
        ("service", "Example"),
    ]
    utility = write_utility(tmp_path, program, dependencies=needs)
    assert [each.name for each in missing_dependencies(utility)] == ["no-such-program", "no-such-package"]
    missing = await failure(utility, tmp_path)
    assert missing.details["missing"] == [
        {"kind": "command", "name": "no-such-program"}, {"kind": "package", "name": "no-such-package"},
    ]  # fmt: skip
    assert "the program no-such-program, the Python package no-such-package" in str(missing)
    monkeypatch.setattr(ladder, "probe", lambda backend: "it was turned off")
    without = await failure(write_utility(tmp_path, program), tmp_path)
    assert (without.code, without.details["kind"]) == ("tool_failed", "no_sandbox") and "turned off" in str(
        without
    )
    assert not list(tmp_path.rglob("ran"))


async def test_a_program_of_which_something_does_not_end_may_have_done_its_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(*args: Any, **kwargs: Any) -> None:
        raise SandboxError("a process of it has not ended", "End what it waits for.", began=True)

    monkeypatch.setattr(Sandbox, "run", run)
    told = await failure(write_utility(tmp_path, "pass"), tmp_path)
    assert (told.code, told.details["kind"]) == ("tool_timeout", "not_ended"), "it is asked about on resume"
    assert "did not run to its end: a process of it has not ended. End what it waits for." in str(told)


async def test_secrets_that_are_declared_are_given_and_no_others(tmp_path: Path) -> None:
    program = "import json, os\nprint(json.dumps({'names': [n for n in os.environ if n.endswith('_TOKEN')]}))"
    utility = write_utility(tmp_path, program, dependencies=[("secret", "DRIVE_TOKEN")])
    both = {name: Secret(name, "correct-horse") for name in ("DRIVE_TOKEN", "OTHER_TOKEN")}
    assert (await run(utility, tmp_path, secrets=both)).output == {"names": ["DRIVE_TOKEN"]}
    error = await failure(utility, tmp_path)
    assert "the secret DRIVE_TOKEN" in str(error)


@pytest.fixture
def server() -> Iterator[str]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"here")

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


async def test_the_hosts_of_the_manifest_are_reached_and_no_others(server: str, tmp_path: Path) -> None:
    program = f"""
        import json, urllib.request
        try:
            said = urllib.request.urlopen("http://{server}/", timeout=10).read().decode()
        except OSError as error:
            said = "refused"
        print(json.dumps({{"said": said}}))
        """
    declared = write_utility(tmp_path, program, dependencies=[("host", server)])
    found = await run(declared, tmp_path)
    assert found.output == {"said": "here"} and [each.host for each in found.traffic] == [server]
    assert (await run(write_utility(tmp_path, program), tmp_path)).output == {"said": "refused"}
    other = await run(write_utility(tmp_path, program, dependencies=[("host", "example.org")]), tmp_path)
    assert other.output == {"said": "refused"} and other.refusals


async def test_a_folder_of_runs_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    root = tmp_path / "work"
    root.mkdir()
    (root / "state").symlink_to(tmp_path / "elsewhere")
    utility = write_utility(root, "print('{}')")
    with pytest.raises(WorkflowError, match="folder could not be made") as caught:
        from reyn_jupyter.config.settings import SandboxSettings
        from reyn_jupyter.workflows.utilities.protocol import run_utility

        await run_utility(
            utility, {}, run_folder=root / "state/runs/1/a", workspace=Workspace(root, off_limits=()),
            settings=SandboxSettings(), timeout_seconds=20,
        )  # fmt: skip
    assert caught.value.details["kind"] == "no_folder" and not list((tmp_path / "elsewhere").iterdir())
