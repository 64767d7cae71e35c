"""`exec__run`: what a command sees, what it leaves, and when it does not run at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.categories.exec import categories
from reyn_jupyter.guard.sandbox import Sandbox, SandboxError, resolve_backend
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.outputs.content import BlobStoreError
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.sessions.assembly import ENGINE
from reyn_jupyter.sessions.result_objects import ActionFailedError
from tests.security.security_support import invoke
from tests.support.waiting import clock_of, until

try:
    IN_FORCE = resolve_backend().name
except SandboxError:
    IN_FORCE = ""
needs_sandbox = pytest.mark.skipif(not IN_FORCE, reason="no sandbox for programs is here")
needs_bubblewrap = pytest.mark.skipif(IN_FORCE != "bubblewrap", reason="bubblewrap is not here")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("before", encoding="ascii")
    (tmp_path / ".env").write_text("API_KEY=not-for-commands", encoding="ascii")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "pay.csv").write_text("not-for-commands", encoding="ascii")
    return tmp_path


def session(root: Path, **config: Any) -> reyn.Session:
    return reyn.Session(root, namespace={}, config=config)


def run(on: reyn.Session, code: str, **args: Any) -> dict[str, Any]:
    result = on.invoke_action("exec__run", {"argv": ["python", "-c", code], **args})
    said: dict[str, Any] = result.value
    return said


@needs_sandbox
def test_a_command_answers_with_what_it_wrote_and_what_held_it(root: Path) -> None:
    said = run(session(root), "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert said["status"] == "failed"
    assert (said["returncode"], said["stdout"], said["stderr"]) == (3, "out\n", "err\n")
    assert (said["backend"], said["truncated"], said["files"]) == (IN_FORCE, False, [])
    assert "system calls filtered" in said["isolation"]
    assert not (root / "reyn-scratch").exists()  # nothing was made there


@needs_sandbox
@pytest.mark.parametrize("path", [".env", "private/pay.csv", ".reyn/runs"])
def test_what_may_not_be_read_cannot_be_read_by_a_command(root: Path, path: str) -> None:
    on = session(root, permissions={"deny": ["file__read(private/**)"]})
    code = f"import os; p = {path!r}; print(os.listdir(p) if os.path.isdir(p) else open(p).read())"
    said = run(on, f"try:\n    {code}\nexcept OSError as error: print(type(error).__name__)")
    assert "not-for-commands" not in said["stdout"]
    assert "jsonl" not in said["stdout"]


@needs_sandbox
def test_the_workspace_is_read_only_but_for_the_scratch_folder_and_undo_takes_that_back(root: Path) -> None:
    on = session(root)
    said = run(on, "open('reyn-scratch/made.txt', 'w').write('x'); open('data/a.txt', 'w').write('x')")
    assert said["returncode"] == 1
    assert said["files"] == [{"path": "reyn-scratch/made.txt", "change": "created", "bytes": 1}]
    assert (root / "data" / "a.txt").read_text(encoding="ascii") == "before"
    on.undo()
    assert not (root / "reyn-scratch" / "made.txt").exists()


@needs_sandbox
def test_changes_in_a_folder_with_consent_are_named_and_undone(root: Path) -> None:
    on = session(root)
    (root / "data" / "gone.txt").write_text("was here", encoding="ascii")
    code = """import os
open('data/a.txt', 'w').write('after'); os.remove('data/gone.txt'); os.mkdir('data/new')
open('data/new/b.txt', 'w').write('b')"""
    said = run(on, code, writable=["data"])
    assert [(each["path"], each["change"]) for each in said["files"]] == [
        ("data/a.txt", "changed"), ("data/gone.txt", "deleted"), ("data/new/b.txt", "created"),
    ]  # fmt: skip
    on.undo()
    assert (root / "data" / "a.txt").read_text(encoding="ascii") == "before"
    assert (root / "data" / "gone.txt").read_text(encoding="ascii") == "was here"
    assert not (root / "data" / "new" / "b.txt").exists()


@needs_sandbox
def test_links_that_a_command_left_stop_no_undo_of_the_rest_and_are_named(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "x.txt"
    outside.write_text("not to be touched", encoding="ascii")
    (root / "data" / "sub").mkdir()
    for name in ("b.txt", "c.txt", "sub/d.txt"):
        (root / "data" / name).write_text("before", encoding="ascii")
    on = session(root)
    code = f"""import os, shutil
os.remove('data/a.txt'); os.symlink({os.fspath(outside)!r}, 'data/a.txt')
os.remove('data/b.txt'); os.symlink('c.txt', 'data/b.txt')
shutil.rmtree('data/sub'); os.symlink({os.fspath(outside.parent)!r}, 'data/sub')
open('data/c.txt', 'w').write('after')"""
    assert run(on, code, writable=["data"])["returncode"] == 0
    card = on.undo()
    assert (root / "data" / "c.txt").read_text(encoding="ascii") == "before"
    assert outside.read_text(encoding="ascii") == "not to be touched"
    (left,) = [lines for title, lines in card.sections if title == "Not undone"]
    for path, link in (("a.txt", "a.txt"), ("b.txt", "b.txt"), ("sub/d.txt", "sub")):
        (line,) = [
            each for each in left if each.startswith(f"data/{path} stays as it is: data/{link} is a link now")
        ]
        blob = line.rpartition("[blob:")[2].rstrip("]")
        assert on.blob(blob).data == b"before"
        assert (root / "data" / link).is_symlink()


@needs_sandbox
def test_what_a_command_changed_before_its_deadline_is_named_and_undone_too(root: Path) -> None:
    on = session(root)
    changes = "import os, time; open('data/b', 'w').write('after'); os.replace('data/b', 'data/a.txt')"
    with clock_of(ENGINE.loop) as advance:

        def pass_the_time() -> None:
            until(
                lambda: any(
                    each.read_text("ascii") == "after" for each in root.glob(".reyn/commands/*/data/a.txt")
                )
            )
            advance(100)

        passing = threading.Thread(target=pass_the_time)
        passing.start()
        said = run(on, f"{changes}; time.sleep(600)", writable=["data"], timeout_seconds=100)
        passing.join()
    assert (said["status"], said["returncode"], said["reason"]) == (
        "timeout",
        None,
        "ended: more than 100 seconds",
    )
    on.undo()
    assert (root / "data" / "a.txt").read_text(encoding="ascii") == "before"


@needs_sandbox
def test_a_command_leaves_no_hook_and_no_secret_file_behind(root: Path) -> None:
    code = """import os
os.makedirs('data/.git/hooks'); open('data/.git/hooks/post-commit', 'w').write('#!/bin/sh')
open('data/.env', 'w').write('x')"""
    said = run(session(root), code, writable=["data"])
    assert "data/.env" in said["note"]
    assert "data/.git" in said["note"]
    assert sorted(path.name for path in (root / "data").iterdir()) == ["a.txt"]


IN_EACH = pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])


def in_force(root: Path, backend: str, **config: Any) -> reyn.Session:
    """Return a session with one sandbox for programs. Skips where that is not here."""
    try:
        resolve_backend("program", backend)
    except SandboxError as error:
        pytest.skip(str(error))
    return session(root, sandbox={"backend": backend}, **config)


def while_it_runs(on: reyn.Session, root: Path, work: Callable[[], None], code: str = "") -> dict[str, Any]:
    """Run Python code with consent to write in data, and let somebody work while it runs."""

    def somebody() -> None:
        until(lambda: list(root.glob(".reyn/commands/*/data/.started")))
        work()
        (root / "go").touch()

    working = threading.Thread(target=somebody)
    working.start()
    code = f"""import os, time
here = os.open('data', os.O_RDONLY); open('data/.started', 'w')
while not os.path.exists({str(root / "go")!r}): time.sleep(.01)
os.remove('.started', dir_fd=here)
{code}"""
    said = run(on, code, writable=["data"])
    working.join()
    assert said["returncode"] == 0, said
    return said


@IN_EACH
def test_what_the_user_makes_while_a_command_runs_stays(backend: str, root: Path) -> None:
    on = in_force(root, backend)
    own = {
        "thesis/.git/HEAD": "ref",
        "thesis/a.txt": "a week of work",
        "new/.env": "NEW=2",
        "id_rsa": "key",
        ".env": "A=1",
    }

    def user() -> None:
        for name, text in own.items():
            (root / "data" / name).parent.mkdir(parents=True, exist_ok=True)
            (root / "data" / name).write_text(text, encoding="ascii")
        (root / "data" / "a.txt").write_text("changed by the user", encoding="ascii")

    said = while_it_runs(
        on, root, user, "for name in 'ab': open(f'data/{name}.txt', 'w').write('of the command')"
    )
    assert said["files"] == [{"path": "data/b.txt", "change": "created", "bytes": 14}]
    assert {name: (root / "data" / name).read_text(encoding="ascii") for name in own} == own
    assert (root / "data" / "a.txt").read_text(encoding="ascii") == "changed by the user"
    (refused,) = said["not_applied"]
    assert refused.startswith("data/a.txt was changed by another program while the command ran")
    aside = root / refused.rpartition(" is in ")[2]
    assert aside.read_text(encoding="ascii") == "of the command"
    assert "1 of the command's changes were not applied" in said["note"]
    on.undo()
    assert not (root / "data" / "b.txt").exists()
    assert {name: (root / "data" / name).read_text(encoding="ascii") for name in own} == own


@IN_EACH
@pytest.mark.parametrize("when", ["the question is open", "the sandbox starts", "it runs"])
def test_a_folder_that_is_swapped_is_not_written_behind_the_link(
    backend: str,
    when: str,
    root: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    victim = tmp_path_factory.mktemp("victim")
    (victim / "authorized_keys").write_text("mine", encoding="ascii")
    on = in_force(root, backend)

    def swap(*_: object) -> Answer:
        (root / "data").rename(root / "old")
        (root / "data").symlink_to(victim)
        return "once"

    code = "import os\nwith os.fdopen(os.open(%s, os.O_WRONLY | os.O_CREAT%s), 'w') as file: file.write('attacker')"
    if when == "it runs":
        said = while_it_runs(on, root, lambda: swap() and None, code % ("'authorized_keys'", ", dir_fd=here"))
        assert said["files"] == [] and "a folder on its path was moved" in said["not_applied"][0]
    else:
        on.parts.ask_person = swap if when == "the question is open" else lambda _: "once"
        if when == "the sandbox starts":
            opened = Sandbox.open

            async def swapped(self: Sandbox, *args: Any) -> Any:
                swap()
                return await opened(self, *args)

            monkeypatch.setattr(Sandbox, "open", swapped)
        call = invoke(
            "exec__run", argv=["python", "-c", code % ("'data/authorized_keys'", "")], writable=["data"]
        )
        model = ScriptedModel([call], "done")
        on.ask("go", model=model)
        (answer,) = [each.content for each in model.requests[-1].messages if each.role == "tool"]
        assert "not where it was" in str(answer) or "moved" in str(answer) or "bwrap: " in str(answer)
    assert [path.name for path in victim.iterdir()] == ["authorized_keys"]
    assert (victim / "authorized_keys").read_text(encoding="ascii") == "mine"
    assert (root / "old" / "a.txt").read_text(encoding="ascii") == "before"


@IN_EACH
@pytest.mark.parametrize("by", ["a link", "another folder", "nothing"])
def test_where_the_workspace_itself_is_swapped_nothing_is_written(
    backend: str, by: str, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    victim = tmp_path_factory.mktemp("victim")
    on = in_force(root, backend)
    old = root.with_name(f"{root.name}-old")

    def swap(_: object) -> Answer:
        root.rename(old)
        if by == "a link":
            root.symlink_to(victim)
        elif by == "another folder":
            root.mkdir()
        return "once"

    on.parts.ask_person = swap
    call = invoke("exec__run", argv=["python", "-c", "open('made.txt', 'w')"], writable=["data"])
    model = ScriptedModel([call], "done")
    on.ask("go", model=model)
    (answer,) = [str(each.content) for each in model.requests[-1].messages if each.role == "tool"]
    assert "was moved, removed or replaced after this session began" in answer
    assert not list(victim.iterdir())
    assert not root.exists() or not list(root.iterdir())
    assert not list(old.rglob("made.txt"))


@IN_EACH
def test_where_the_workspace_is_swapped_while_a_command_runs_nothing_is_applied(
    backend: str, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    victim, old = tmp_path_factory.mktemp("victim"), root.with_name(f"{root.name}-old")
    (victim / "data").mkdir()
    on = in_force(root, backend)

    def swap() -> None:
        root.rename(old)
        (old / "go").touch()
        root.symlink_to(victim)

    said = while_it_runs(on, root, swap, "open('data/a.txt', 'w').write('after'); open('data/b.txt', 'w')")
    assert said["files"] == [] and said["not_applied"]
    assert {path.name for path in victim.rglob("*")} == {"data", "go"}
    assert (old / "data" / "a.txt").read_text(encoding="ascii") == "before"


@IN_EACH
def test_a_file_whose_content_cannot_be_kept_for_undo_is_not_changed(
    backend: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = in_force(root, backend)
    blobs = on.parts.services.blobs
    assert blobs is not None

    async def full(*_: object, **__: object) -> str:
        raise BlobStoreError("no space left on device")

    monkeypatch.setattr(type(blobs), "store_bytes", full)
    said = run(
        on, "open('data/a.txt', 'w').write('after'); open('data/b.txt', 'w').write('new')", writable=["data"]
    )
    assert (root / "data" / "a.txt").read_text(encoding="ascii") == "before"
    assert said["files"] == [{"path": "data/b.txt", "change": "created", "bytes": 3}]
    assert "could not be kept for undo: no space left on device" in said["not_applied"][0]


@IN_EACH
def test_a_command_finds_the_workspace_around_its_copies(backend: str, root: Path) -> None:
    on = in_force(root, backend, permissions={"deny": ["file__read(private/**)"]})
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "deep" / "m.py").write_text("N = 7", encoding="ascii")
    with (root / "src" / "large").open("wb") as file:
        file.truncate(2 << 20)
    (root / "data" / "old.key").write_text("a key", encoding="ascii")
    (root / "data" / ".git").mkdir()
    (root / "data" / ".git" / "HEAD").write_text("ref", encoding="ascii")
    code = """import os, sys
sys.path.insert(0, 'src/deep'); import m; print(m.N, os.path.getsize('src/large'), open('data/.git/HEAD').read())
print(sorted(name for _, _, names in os.walk('src') for name in names))
for work in (lambda: open('data/old.key').read(), lambda: open('data/.git/new', 'w'),
             lambda: open('src/deep/m.py', 'w'),
             lambda: open('private/pay.csv').read(), lambda: open('data/old.key', 'w')):
    try: print(work() or 'nothing')
    except OSError: print('no')
os.remove('data/a.txt'); os.makedirs('data/x/y'); open('data/x/y/z', 'w').write('z')"""
    said = run(on, code, writable=["data"])
    out = said["stdout"].splitlines()
    assert out[:2] == ["7 2097152 ref", "['large', 'm.py']"], said
    assert set(out[2:]) <= {"no", "nothing"} and out[3:5] == ["no", "no"] and out[6] == "no"
    assert [each["path"] for each in said["files"]] == ["data/a.txt", "data/x/y/z"]
    assert (root / "data" / "old.key").read_text(encoding="ascii") == "a key"
    assert "not_applied" not in said
    argv = ["cp", str(root / "src" / "deep" / "m.py"), str(root / "data" / "copy.py")]
    on.invoke_action("exec__run", {"argv": argv, "writable": ["data"]})
    assert (root / "data" / "copy.py").read_text(encoding="ascii") == "N = 7"


@needs_bubblewrap
@pytest.mark.parametrize("kind", ["file", "link"])
def test_which_servers_a_workspace_names_is_not_changed_by_a_command(kind: str, root: Path) -> None:
    (root / "other.json").write_text("{}", encoding="ascii")
    if kind == "file":
        (root / ".mcp.json").write_text("{}", encoding="ascii")
    else:
        (root / ".mcp.json").symlink_to("other.json")
    code = "import os\nopen('new', 'w').write('{1}')\nos.replace('new', '.mcp.json')"
    said = run(session(root), code, writable=["."])
    if kind == "file":
        assert "busy" in said["stderr"]
        assert (root / ".mcp.json").read_text(encoding="ascii") == "{}"
    else:  # the link in the copy may be replaced, and the user's stays
        assert ".mcp.json" in said["note"]
        assert (root / ".mcp.json").readlink() == Path("other.json")


@needs_bubblewrap
def test_a_hook_of_an_existing_repository_cannot_be_written(root: Path) -> None:
    (root / ".git" / "hooks").mkdir(parents=True)
    said = run(session(root), "open('.git/hooks/post-commit', 'w')", writable=["."])
    assert "Read-only file system" in said["stderr"]


@needs_sandbox
@pytest.mark.parametrize("folder", ["..", "/etc", ".git", ".reyn", "data/a.txt", "nowhere"])
def test_a_folder_that_nobody_may_write_in_is_refused(root: Path, folder: str) -> None:
    (root / ".git").mkdir()
    with pytest.raises(ActionFailedError):
        run(session(root), "pass", writable=[folder])


@needs_sandbox
def test_a_scratch_folder_that_leads_elsewhere_is_refused(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    (root / "reyn-scratch").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(ActionFailedError, match="no place to write"):
        run(session(root), "pass")


@needs_sandbox
def test_a_model_asks_for_the_command_and_for_each_folder(root: Path) -> None:
    on, asked = session(root), []

    def answer(question: Question) -> Answer:
        asked.extend(line.text for line in question.detail.lines)
        return "deny"

    on.parts.ask_person = answer
    call = invoke("exec__run", argv=["touch", "data/new"], writable=["data"])
    trace = on.ask("go", model=ScriptedModel([call], "done"))
    assert trace.calls[0].decision is not None
    assert trace.calls[0].decision.effects == ("exec touch data/new", "write data")
    assert asked
    assert not (root / "data" / "new").exists()


@needs_sandbox
def test_each_host_is_asked_for_and_without_consent_nothing_runs(root: Path) -> None:
    on, asked = session(root, permissions={"allow": ["exec__run(exec:touch **)"]}), []

    def answer(question: Question) -> Answer:
        asked.extend(line.text for line in question.detail.lines)
        return "deny"

    on.parts.ask_person = answer
    hosts = ["HTTPS://Data.Example.org:443/x", "0x7f.1:8080"]
    trace = on.ask(
        "go",
        model=ScriptedModel([invoke("exec__run", argv=["touch", "reyn-scratch/x"], hosts=hosts)], "done"),
    )
    assert trace.calls[0].decision is not None
    assert trace.calls[0].decision.effects == (
        "exec touch reyn-scratch/x", "network data.example.org", "network 127.0.0.1:8080",
    )  # fmt: skip
    assert any("data.example.org" in line for line in asked)
    assert not (root / "reyn-scratch").exists()


@needs_sandbox
def test_a_result_names_the_hosts_that_were_reached_and_those_that_were_not(root: Path) -> None:
    code = """import urllib.request
for url in %r:
    try: print(urllib.request.urlopen(url).status)
    except OSError: pass"""
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        server.RequestHandlerClass.log_message = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        host = f"localhost:{server.server_port}"
        said = run(session(root), code % ([f"http://{host}/", "http://example.org/"],), hosts=[host])
        server.shutdown()
    assert said["stdout"] == "200\n"
    (reached,) = said["network"]
    assert (reached["host"], reached["connections"]) == (host, 1)
    assert reached["bytes_sent"] > 0
    assert "example.org" in said["refused"][0]
    with pytest.raises(ActionFailedError, match="is no host"):
        run(session(root), "pass", hosts=["*.example.org"])


@needs_sandbox
def test_an_allowed_command_needs_no_question_and_no_other_word(root: Path) -> None:
    on = session(root, permissions={"allow": ["exec__run(exec:echo **)"]})
    on.parts.ask_person = lambda question: "deny"
    calls = [invoke("exec__run", argv=["echo", "hi"]), invoke("exec__run", argv=["cat", ".env"])]
    trace = on.ask("go", model=ScriptedModel(calls, "done"))
    assert [call.finished is not None and call.finished.ok for call in trace.calls] == [True, False]


@pytest.mark.parametrize("sandbox", [{"backend": "noop"}, {"minimum": "noop"}, {"backend": "deno"}])
def test_without_a_sandbox_commands_are_hidden_and_refused(root: Path, sandbox: dict[str, str]) -> None:
    on = session(root, sandbox=sandbox)
    assert "exec" not in on.catalog.category_names
    with pytest.raises(ActionFailedError, match="is not available"):
        run(on, "pass")
    trace = on.ask("go", model=ScriptedModel([invoke("exec__run", argv=["true"])], "done"))
    answered = trace.calls[0].finished
    assert answered is not None
    assert not answered.ok
    why = categories(on.parts.services)[0].hidden()
    assert why is not None
    assert "sandbox" in why
