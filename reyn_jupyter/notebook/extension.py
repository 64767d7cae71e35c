"""The extension `%load_ext reyn_jupyter`: magics, completion, displays, a comm target for a shell. It prints nothing.

Invariant: loading is cheap (nothing heavy is imported until the first verb runs), can be done again, and `unload`
takes out what it put in. The session is the kernel's, not the extension's: it outlives a reload.
"""

from __future__ import annotations

import importlib
import re
import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from reyn_jupyter.evaluation.run.progress_listener import watch_with
from reyn_jupyter.notebook.shell_state import create_state, delete_state, find_state, shell_state
from reyn_jupyter.runtime.questions.cell_request import note_request
from reyn_jupyter.search.build_listener import listen_with

if TYPE_CHECKING:
    from reyn_jupyter.evaluation.run.progress_listener import ProgressListener
    from reyn_jupyter.search.build_listener import BuildListener

TARGET = "reyn.v1"  # of comms
_IMPORT_TRIES, _IMPORT_PAUSE = 60, 0.05  # of a page that connects; seconds between two tries
_COMM_MESSAGES = ("comm_open", "comm_msg", "comm_close")
# What IPython would read as a call for help on the last word. `%reyn?` and `%reyn list?` stay such calls.
_QUESTION = re.compile(r"^(\s*(?:[A-Za-z_][\w.]*\s*=\s*)?)%reyn[ \t]+([^\s?]+[ \t].*\?)[ \t]*$")


def load(shell: Any) -> None:
    """Register with a shell; again is harmless."""
    unload(shell)
    create_state(shell)
    shell.register_magic_function(_line_and_cell(shell), magic_kind="line_cell", magic_name="reyn")
    shell.events.register("pre_run_cell", _new_cell)
    shell.events.register("post_run_cell", _cell_ran)
    shell.input_transformers_cleanup.append(keep_question_marks)
    _displays(shell)
    _completion(shell)
    watch_with(lambda: _card(shell))
    listen_with(lambda: _index_card(shell))
    note_request(shell)  # of the cell that loads the extension
    comms = _comms(shell)
    if comms is not None:
        comms.register_target(TARGET, _comm_opened)
        _hear_in_cells(shell.kernel, comms)


def unload(shell: Any) -> None:
    """Take out what `load` put in. Objects that are already there keep their displays."""
    found = find_state(shell)
    if found is None:
        return
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("reyn", None)
    # After a reload of this module its functions are new objects, so they are known by name.
    for event, ours in (("pre_run_cell", _new_cell), ("post_run_cell", _cell_ran)):
        for callback in [each for each in shell.events.callbacks[event] if _same(each, ours)]:
            shell.events.unregister(event, callback)
    transformers = shell.input_transformers_cleanup
    transformers[:] = [each for each in transformers if not _same(each, keep_question_marks)]
    if found.matcher is not None and found.matcher in shell.Completer.custom_matchers:
        shell.Completer.custom_matchers.remove(found.matcher)
    comms = _comms(shell)
    if comms is not None and TARGET in comms.targets:
        # Comms that are open stay, as displays do: a reload disturbs nobody who looks.
        comms.unregister_target(TARGET, comms.targets[TARGET])
        comms.comms.pop(TARGET, None)
    watch_with(None)
    listen_with(None)
    delete_state(shell)


def _same(one: Any, other: Any) -> bool:
    names = ("__module__", "__qualname__")
    return all(getattr(one, name, None) == getattr(other, name) for name in names)


def keep_question_marks(lines: list[str]) -> list[str]:
    """An input transformer: ``%reyn ask how many rows?`` asks, where IPython would look up help on ``rows``.

    Example:
        >>> keep_question_marks(["%reyn ask how many?"])
        ["get_ipython().run_line_magic('reyn', 'ask how many?')"]
    """
    if lines and (lines[0].startswith("%%") or any('"""' in line or "'''" in line for line in lines)):
        return lines
    return [_rewrite_question(line) if "%reyn" in line else line for line in lines]


def _rewrite_question(line: str) -> str:
    found = _QUESTION.match(line.rstrip("\n"))
    if found is None:
        return line
    end = "\n" if line.endswith("\n") else ""
    return f"{found[1]}get_ipython().run_line_magic('reyn', {found[2]!r}){end}"


def _line_and_cell(shell: Any) -> Any:
    def reyn(line: str, cell: str | None = None) -> Any:
        """%reyn VERB … · %%reyn [options] and a question below. %reyn help lists the verbs."""
        from reyn_jupyter.notebook.magic import run

        return run(shell, line, cell)

    reyn._ipython_magic_no_var_expand = True  # type: ignore[attr-defined]  # what `no_var_expand` sets
    return reyn


def _loaded(name: str) -> Any:
    """Return a module if something has imported it, once that import is over: a page's first message may begin it."""
    return importlib.import_module(name) if name in sys.modules else None


def _new_cell(info: Any = None) -> None:
    note_request(sys.modules["IPython"].get_ipython())
    live = _loaded("reyn_jupyter.notebook.displays.updating_display")
    if live is not None:
        live.forget_silenced()


def _cell_ran(result: Any = None) -> None:
    hub = _loaded("reyn_jupyter.notebook.serving.hub")
    if hub is not None:
        hub.kernel_hub().look()
    current = _loaded("reyn_jupyter.sessions.current")
    if current is not None and current.session_exists() and (served := current.session().served) is not None:
        served.look()


def _comms(shell: Any) -> Any:
    """Return the manager of comms: a kernel has one, plain IPython has none."""
    return getattr(getattr(shell, "kernel", None), "comm_manager", None)


def _hear_in_cells(kernel: Any, comms: Any) -> None:
    """Take our comms' messages on the control channel too, which a kernel reads while a cell runs.

    A front end asks for the open comms to find out whether they are taken: one of our target is there from now on.
    """

    def taking(kind: str) -> Any:
        def take(stream: Any, ident: Any, message: Any) -> None:
            content = message["content"]
            comm = comms.comms.get(content.get("comm_id"))
            if (content.get("target_name") if comm is None else comm.target_name) == TARGET:
                getattr(comms, kind)(stream, ident, message)

        return take

    kernel.control_handlers.update({kind: taking(kind) for kind in _COMM_MESSAGES})
    comms.comms[TARGET] = SimpleNamespace(comm_id=TARGET, target_name=TARGET)  # nobody sends to it


def _comm_opened(comm: Any, message: Any) -> None:
    """Serve a page.

    A page may connect on the control thread while a cell imports the same modules. Python then lets one of the two
    threads see a module that is not complete, instead of letting both wait for ever; so the import is tried again.
    """
    for _ in range(_IMPORT_TRIES):
        try:
            from reyn_jupyter.notebook.serving.connection import open_comm
        except (ImportError, AttributeError):
            time.sleep(_IMPORT_PAUSE)
        else:
            open_comm(comm, message)
            return
    raise ImportError("reyn_jupyter.notebook.serving.connection cannot be imported")


def _displays(shell: Any) -> None:
    from reyn_jupyter.notebook.displays.ipython_formatters import display_by_name, register
    from reyn_jupyter.notebook.render.displayables import DISPLAYABLES

    register(shell)
    for kind in DISPLAYABLES:
        if kind.updates:
            display_by_name(shell.display_formatter.ipython_display_formatter, kind, _skip_silenced)
            if kind.name == "ResultFrame":
                display_by_name(shell.display_formatter.formatters["text/plain"], kind, _print_frame)


def _skip_silenced(shown: object) -> None:
    live = _loaded("reyn_jupyter.notebook.displays.updating_display")
    if live is None:
        raise NotImplementedError  # IPython's word for: show it in the ordinary way
    live.skip_silenced(shown)


def _print_frame(frame: Any, printer: Any, cycle: bool) -> None:
    from reyn_jupyter.notebook.displays.updating_display import print_frame

    print_frame(frame, printer, cycle)


def _card(shell: Any) -> ProgressListener | None:
    from reyn_jupyter.notebook.displays.updating_display import study_card

    return study_card(shell)


def _index_card(shell: Any) -> BuildListener | None:
    from reyn_jupyter.notebook.displays.updating_display import index_card

    return index_card(shell)


def _completion(shell: Any) -> None:
    from reyn_jupyter.notebook.completion import matcher

    found = matcher()
    shell_state(shell).matcher = found
    shell.Completer.custom_matchers.append(found)
