"""How a utility runs: JSON in, JSON out, logs live, and what becomes of one that behaves badly."""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.support.trusting import trust
from tests.workflows.acceptance.workshop import (
    ECHO,
    READ,
    SHOUT,
    SLEEPS,
    TEXT,
    Workshop,
    closed,
    code_of,
    gives,
    manifest_of,
    opened,
    problems_of,
    step,
    utility_call,
)

NUMBER = {"type": "number"}


def alive(mark: str) -> list[int]:
    """Return the processes whose command line holds a mark."""
    return [
        each.pid
        for each in psutil.process_iter(["cmdline", "status"])
        if mark in (each.info["cmdline"] or ()) and each.info["status"] != psutil.STATUS_ZOMBIE
    ]


# The protocol


def test_one_object_goes_in_and_one_comes_out(workshop: Workshop) -> None:
    workshop.add("shout", SHOUT, input_schema=closed(text=TEXT), output_schema=closed(text=TEXT))
    assert workshop.call("shout", text="hey").value == {"text": "HEY"}


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"text": ""},
        {"text": "größe — 日本語 \u202e ‮ 🎉"},
        {"text": 'quotes " and \\ and \n lines'},
        {"nested": {"list": [1, 2.5, None, True, {"a": []}]}},
        {"large": "x" * 300_000},
        {"whole": 2**53},
    ],
)
def test_inputs_arrive_as_they_were_sent(workshop: Workshop, inputs: dict[str, Any]) -> None:
    workshop.add("echo", ECHO)
    assert workshop.call("echo", **inputs).value == {"echo": inputs}


def test_the_last_document_on_stdout_is_the_output(workshop: Workshop) -> None:
    before = "print('working …')\nprint(json.dumps({'n': 1}))\nprint('nearly {there}')\n"
    workshop.add("chatty", f"{READ}{before}print(json.dumps({{'n': 2}}, indent=2))\n")
    assert workshop.call("chatty").value == {"n": 2}


def test_arguments_of_the_entry_point_arrive_word_by_word_and_are_no_shell_text(workshop: Workshop) -> None:
    arguments = ["--fast", "two words", "$(touch pwn)", "; touch pwn", "*", "~", ""]
    entry = {"type": "python", "command": "main.py", "args": arguments}
    workshop.add("argv", gives('{"argv": sys.argv[1:]}'), entrypoint=entry)
    assert workshop.call("argv").value == {"argv": arguments}
    assert [*workshop.root.rglob("pwn")] == []


@pytest.mark.parametrize(
    "text", ["; rm -rf x", "$(touch pwn)", "`touch pwn`", "| touch pwn", "&& touch pwn", "\n touch pwn"]
)
@pytest.mark.parametrize("kind", ["python", "shell"])
def test_shell_text_in_an_input_is_text(workshop: Workshop, text: str, kind: str) -> None:
    (workshop.root / "x").mkdir()
    programs = {"python": ECHO, "shell": "printf '{\"echo\": '; cat; printf '}'\n"}
    workshop.add("echo", programs[kind], entrypoint={"type": kind, "command": "main"})
    assert workshop.call("echo", text=text).value == {"echo": {"text": text}}
    assert (workshop.root / "x").is_dir() and [*workshop.root.rglob("pwn")] == []


def test_a_shell_script_of_its_folder_is_an_entry_point(workshop: Workshop) -> None:
    workshop.add(
        "sh",
        "cat > /dev/null\necho log >&2\necho '{\"n\": 1}'\n",
        entrypoint={"type": "shell", "command": "run.sh"},
    )
    assert workshop.call("sh").value == {"n": 1}


def test_a_program_of_node_is_an_entry_point(workshop: Workshop) -> None:
    program = (
        "const read = JSON.parse(require('fs').readFileSync(0, 'utf8'));\n"
        "console.log(JSON.stringify({n: read.n + 1}));\n"
    )
    workshop.add("js", program, entrypoint={"type": "node", "command": "main.js"})
    assert workshop.call("js", n=1).value == {"n": 2}


def test_a_program_that_is_declared_as_a_command_is_an_entry_point(workshop: Workshop) -> None:
    place = workshop.root / "tools" / "cat"
    place.mkdir(parents=True)
    entry = {"type": "shell", "command": "cat"}
    manifest = manifest_of("cat", entrypoint=entry, dependencies=[{"command": "cat"}])
    (place / "tool.yaml").write_text(yaml.safe_dump(manifest))
    trust(workshop.session)
    assert workshop.call("cat", n=1).value == {"n": 1}


def test_a_missing_program_is_named_and_nothing_runs(workshop: Workshop) -> None:
    workshop.add("lost", dependencies=[{"command": "no-such-program-anywhere"}])
    assert "no-such-program-anywhere" in problems_of(workshop.call("lost"))


def test_logs_arrive_while_the_utility_runs(workshop: Workshop) -> None:
    """The utility goes on only once somebody who read its line has left a file for it."""
    body = (
        "import time\nfrom pathlib import Path\nprint('half way there', file=sys.stderr, flush=True)\n"
        "go = Path(inputs['folder']) / 'go'\nend = time.monotonic() + 250\n"
        "while not go.exists() and time.monotonic() < end:\n    time.sleep(0.02)\n"
    )
    folder = {"type": "string", "format": "readable-path"}
    workshop.add("live", gives('{"went": go.exists()}', body), input_schema=closed(folder=folder))
    (workshop.root / "signals").mkdir()

    def listen(event: Any) -> None:
        if "half way there" in repr(event):
            (workshop.root / "signals" / "go").touch()

    trace, read = workshop.turn(utility_call("live", folder="signals"), on_event=listen)
    assert code_of(trace) == "ok" and json.loads(read.partition("\n[")[0])["went"] is True


# Inputs before, outputs after


@pytest.mark.parametrize(
    "inputs",
    [{}, {"n": "three"}, {"n": True}, {"n": None}, {"n": 11}, {"n": 1, "extra": 1}, {"n": 1, "word": "c"}],
)
def test_inputs_that_do_not_fit_are_refused_before_the_run(
    workshop: Workshop, inputs: dict[str, Any]
) -> None:
    schema = closed(n={"type": "number", "maximum": 10}, word={"enum": ["a", "b"]}, required=["n"])
    place = workshop.add("strict", gives('{"ran": True}'), input_schema=schema)
    (place / "main.py").write_text("raise SystemExit('it ran')")
    trust(workshop.session)
    result = workshop.call("strict", **inputs)
    assert result.code == "validation" and "it ran" not in problems_of(result)


def test_defaults_are_filled_in(workshop: Workshop) -> None:
    schema = closed(n=NUMBER, word={"type": "string", "default": "two words"}, required=["n"])
    workshop.add("echo", ECHO, input_schema=schema)
    assert workshop.call("echo", n=1).value == {"echo": {"n": 1, "word": "two words"}}


BAD_OUTPUTS: dict[str, str] = {
    "nothing": "",
    "garbage": "print('no JSON {')",
    "bytes": "sys.stdout.buffer.write(bytes(range(128, 256)))",
    "a list": "print('[1]')",
    "a text": "print('\"x\"')",
    "a number": "print(7)",
    "text after it": "print('{\"n\": 1}')\nprint('and so on')",
    "half an object": "print('{\"n\": 1')",
    "no number": "print('{\"n\": NaN}')",
    "endless": "print('{\"n\": Infinity}')",
    "another type": 'print(\'{"n": "one"}\')',
    "less than it promised": "print('{}')",
    "more than it promised": 'print(\'{"n": 1, "m": 2}\')',
    "a key twice": 'print(\'{"n": 1, "n": "x"}\')',
    "too deep": "print('[' * 100_000)",
    "too much": "print('{\"n\": 1, \"s\": \"' + 'x' * (40 << 20) + '\"}')",
}


@pytest.mark.parametrize("what", BAD_OUTPUTS)
def test_an_output_that_is_not_what_was_promised_is_an_error(workshop: Workshop, what: str) -> None:
    workshop.add("lies", f"{READ}{BAD_OUTPUTS[what]}\n", output_schema=closed(n=NUMBER))
    result = workshop.call("lies")
    assert result.code == "tool_invalid_output" and len(problems_of(result)) < 20_000


def test_a_lie_about_the_schema_names_the_path(workshop: Workshop) -> None:
    schema = closed(rows={"type": "array", "items": closed(n=NUMBER)})
    workshop.add("lies", gives('{"rows": [{"n": 1}, {"n": "two"}]}'), output_schema=schema)
    said = problems_of(workshop.call("lies"))
    assert "rows" in said and "1" in said and "number" in said


# Failures


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("print('the pipe is broken', file=sys.stderr)\nsys.exit(3)", ("3", "the pipe is broken")),
        ("raise ValueError('no such row')", ("no such row",)),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", ("SIGKILL",)),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", ("SIGSEGV",)),
        ("print('{\"n\": 1}')\nsys.exit(1)", ("1",)),
    ],
)
def test_a_utility_that_fails_says_how_and_what_it_wrote_last(
    workshop: Workshop, body: str, named: tuple[str, ...]
) -> None:
    workshop.add("fails", f"{READ}{body}\n")
    result = workshop.call("fails")
    assert result.code == "tool_failed"
    assert [each for each in named if each not in problems_of(result)] == []


def test_a_gigabyte_of_logs_is_bounded_and_the_output_arrives(workshop: Workshop) -> None:
    body = "line = 'x' * (1 << 20)\nfor _ in range(1024):\n    sys.stderr.write(line)\n"
    workshop.add("loud", gives('{"n": 1}', body))
    before = psutil.Process().memory_info().rss
    assert workshop.call("loud").value == {"n": 1}
    assert psutil.Process().memory_info().rss - before < 256 << 20


def test_children_that_are_left_end_with_the_run(workshop: Workshop) -> None:
    mark = f"left-{secrets.token_hex(8)}"
    body = (
        "import subprocess\n"
        f"subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', {mark!r}], start_new_session=True,\n"
        "    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
    )
    workshop.add("leaves", gives('{"n": 1}', body))
    assert workshop.call("leaves").value == {"n": 1}
    assert alive(mark) == []


def test_children_that_hold_the_pipes_do_not_hold_up_the_answer(workshop: Workshop) -> None:
    mark = f"holds-{secrets.token_hex(8)}"
    body = f"import subprocess\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', {mark!r}])\n"
    workshop.add("leaves", gives('{"n": 1}', body))
    began = time.monotonic()
    assert workshop.call("leaves").value == {"n": 1}
    assert time.monotonic() - began < 300 and alive(mark) == []


@pytest.mark.parametrize("ignores", [False, True])
def test_at_the_deadline_a_utility_ends_with_its_children_also_one_that_ignores_sigterm(
    workshop: Workshop, ignores: bool
) -> None:
    mark = f"deadline-{secrets.token_hex(8)}"
    deaf = "import signal\nfor each in (signal.SIGTERM, signal.SIGINT):\n    signal.signal(each, signal.SIG_IGN)\n"
    workshop.add("sleeps", deaf + SLEEPS if ignores else SLEEPS)
    workshop.policy(max_run_seconds=1)
    run = workshop.execute(step("a", "sleeps.run", {"mark": mark}))
    assert run["steps"][0]["error"]["code"] == "tool_timeout"
    assert alive(mark) == []


# What it is granted


def test_it_sees_nothing_of_the_workspace_but_its_own_folder(workshop: Workshop) -> None:
    body = (
        "from pathlib import Path\ndef read(path):\n"
        "    try:\n        return Path(path).read_text()\n    except OSError as error:\n        return None\n"
    )
    place = workshop.add(
        "looks",
        gives('{"notes": read(inputs["notes"]), "own": read(Path(__file__).with_name("own.txt"))}', body),
    )
    (place / "own.txt").write_text("mine")
    trust(workshop.session)
    assert workshop.call("looks", notes=str(workshop.root / "notes.txt")).value == {
        "notes": None,
        "own": "mine",
    }


def test_it_cannot_change_its_own_folder_or_anything_of_the_workspace(workshop: Workshop) -> None:
    body = (
        "from pathlib import Path\ndone = []\n"
        "for path in [*inputs['paths'], str(Path(__file__).with_name('new.txt')), __file__]:\n"
        "    try:\n        Path(path).write_text('changed')\n        done.append(path)\n"
        "    except OSError:\n        pass\n"
    )
    workshop.add("writes", gives('{"done": len(done)}', body))
    before = (workshop.root / "notes.txt").read_text()
    paths = [
        str(workshop.root / each)
        for each in ("notes.txt", "new.txt", "policy.yaml", "state/registry-cache.json")
    ]
    workshop.call("writes", paths=paths)
    assert (workshop.root / "notes.txt").read_text() == before
    assert not (workshop.root / "new.txt").exists() and not (workshop.root / "policy.yaml").exists()
    assert not (workshop.root / "tools" / "writes" / "new.txt").exists()
    assert workshop.call("writes", paths=[]).ok, "its own file is as it was, and so it is still trusted"


READABLE = {"type": "string", "format": "readable-path"}
WRITABLE = {"type": "string", "format": "writable-folder"}


def test_a_path_that_it_declares_is_read_as_a_path_from_the_workspaces_root(workshop: Workshop) -> None:
    workshop.add("reads", gives('{"text": open(inputs["path"]).read()}'), input_schema=closed(path=READABLE))
    assert workshop.call("reads", path="notes.txt").value["text"].startswith("first line")


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/passwd", "nowhere.txt", "link.txt", ""])
def test_a_path_that_leads_out_or_nowhere_is_refused(workshop: Workshop, path: str) -> None:
    (workshop.root.parent / "outside.txt").write_text("from elsewhere")
    (workshop.root / "link.txt").symlink_to(workshop.root.parent / "outside.txt")
    workshop.add("reads", gives('{"text": open(inputs["path"]).read()}'), input_schema=closed(path=READABLE))
    result = workshop.call("reads", path=path)
    assert not result.ok and "from elsewhere" not in str(result.payload)


def test_a_file_that_a_rule_denies_is_not_read_by_a_utility_either(workshop: Workshop) -> None:
    made = Workshop(workshop.root, {"permissions": {"deny": ["file__read(notes.txt)"]}})
    made.add("reads", gives('{"text": open(inputs["path"]).read()}'), input_schema=closed(path=READABLE))
    assert not made.call("reads", path="notes.txt").ok
    made.close()


def test_a_folder_that_it_declares_is_made_written_named_in_the_question_and_undone(
    workshop: Workshop,
) -> None:
    body = "from pathlib import Path\n(Path(inputs['out']) / 'made.txt').write_text('made')\n"
    workshop.add("makes", gives('{"n": 1}', body), input_schema=closed(out=WRITABLE))
    trace, _ = workshop.turn(utility_call("makes", out="results"))
    assert code_of(trace) == "ok"
    assert "results" in workshop.questions[0].text
    assert (workshop.root / "results" / "made.txt").read_text() == "made"
    workshop.session.undo()
    assert not (workshop.root / "results" / "made.txt").exists()


@pytest.mark.parametrize("folder", ["..", "/tmp", ".git", "tools", "state", ".reyn", "skills", "link"])
def test_no_utility_writes_where_nobody_may(workshop: Workshop, folder: str) -> None:
    (workshop.root / "link").symlink_to(workshop.root.parent)
    body = "from pathlib import Path\n(Path(inputs['out']) / 'made.txt').write_text('made')\n"
    workshop.add("makes", gives('{"n": 1}', body), input_schema=closed(out=WRITABLE))
    assert not workshop.call("makes", out=folder).ok
    assert [*workshop.root.parent.rglob("made.txt")] == []


def test_without_a_host_in_its_manifest_nothing_is_reached(workshop: Workshop) -> None:
    from tests.support.web_site import web_site

    body = (
        "import urllib.error, urllib.request\ntry:\n    got = urllib.request.urlopen(inputs['url'], timeout=5).status\n"
        "except urllib.error.HTTPError as error:\n"
        "    got = error.code\nexcept OSError as error:\n    got = 0\n"
    )
    with web_site() as site:
        url = f"http://localhost:{site.port}/"
        workshop.add("closed", gives('{"got": got}', body))
        workshop.add("open", gives('{"got": got}', body), dependencies=[{"host": f"localhost:{site.port}"}])
        assert workshop.call("closed", url=url).value == {"got": 0}
        assert workshop.call("open", url=url).value["got"] in (200, 404)


def test_the_question_names_the_hosts_that_it_reaches(workshop: Workshop) -> None:
    workshop.add("open", dependencies=[{"host": "api.example.org"}])
    workshop.turn(utility_call("open"))
    assert "api.example.org" in "\n".join(each.text for each in workshop.questions)


def test_what_a_utility_that_reached_hosts_gives_is_text_of_others(workshop: Workshop) -> None:
    workshop.add("open", dependencies=[{"host": "api.example.org"}])
    _, read = workshop.turn(utility_call("open"))
    assert "text of others" in read


def test_it_gets_no_environment_of_the_persons(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_PRIVATE_TOKEN", "only-mine")
    workshop.add("env", gives('{"env": dict(os.environ)}', "import os\n"))
    assert "only-mine" not in str(workshop.call("env").value)


# Artifacts


ARTIFACT = {"type": "string", "format": "artifact-path"}


def test_a_file_that_it_made_is_given_on_as_a_path_of_the_workspace(workshop: Workshop) -> None:
    body = "from pathlib import Path\nPath('made.txt').write_text('made')\n"
    workshop.add(
        "makes",
        gives('{"file": str(Path("made.txt").absolute())}', body),
        output_schema=closed(file=ARTIFACT),
    )
    given = workshop.call("makes").value["file"]
    assert not Path(given).is_absolute() and (workshop.root / given).read_text() == "made"


@pytest.mark.parametrize("path", ["/etc/passwd", "../../../../notes.txt", "nowhere.txt", "link.txt", ""])
def test_a_file_that_it_did_not_make_is_no_artifact(workshop: Workshop, path: str) -> None:
    body = "import os\nos.symlink('/etc/passwd', 'link.txt')\n"
    workshop.add("lies", gives(f'{{"file": {path!r}}}', body), output_schema=closed(file=ARTIFACT))
    assert workshop.call("lies").code == "tool_invalid_output"


def test_what_a_step_made_is_read_by_the_next(workshop: Workshop) -> None:
    body = "from pathlib import Path\nPath('made.txt').write_text('made')\n"
    workshop.add(
        "makes",
        gives('{"file": str(Path("made.txt").absolute())}', body),
        output_schema=closed(file=ARTIFACT),
    )
    workshop.add("reads", gives('{"text": open(inputs["path"]).read()}'), input_schema=opened(path=READABLE))
    run = workshop.execute(step("a", "makes.run"), step("b", "reads.run", {"path": "steps.a.outputs.file"}))
    assert run["status"] == "executed" and run["steps"][1]["outputs"] == {"text": "made"}
