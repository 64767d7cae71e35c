"""From the words after `%reyn` to the object that a verb returns; whatever goes wrong becomes one clear line."""

from __future__ import annotations

import keyword
import re
import traceback
from typing import Any

from reyn_jupyter.config import ConfigError, PatternError
from reyn_jupyter.guard.file_restore import UndoRefusedError
from reyn_jupyter.guard.state_folder import StateError
from reyn_jupyter.models.base import ModelError
from reyn_jupyter.notebook import verbs
from reyn_jupyter.notebook.errors import ReynError, ReynInterrupt
from reyn_jupyter.notebook.magic_line.corrected_calls import LABEL
from reyn_jupyter.notebook.magic_line.options import Options, parse, parse_leading
from reyn_jupyter.notebook.magic_line.verb import Context, Verb
from reyn_jupyter.notebook.shell_state import shell_state
from reyn_jupyter.runtime.pump import Interrupted
from reyn_jupyter.runtime.record.run_store import RunNotFoundError
from reyn_jupyter.runtime.record.runlog import RunLogError
from reyn_jupyter.runtime.record.script import ScriptError
from reyn_jupyter.sessions.blob_lookup import BlobNotNamedError
from reyn_jupyter.sessions.result_objects import ActionCard, ActionTable, Card, Inspection, Result
from reyn_jupyter.sessions.runs.undo import NothingToUndoError, UndoDeclinedError
from reyn_jupyter.sessions.trusting import TrustError
from reyn_jupyter.support.reyn_line import quote_word
from reyn_jupyter.support.text import shorten

_MODEL_OPTION = re.compile(r"(?:^|\s)(?:-m|--model)(?:\s+|=)([^\s\"']+)")

# Errors whose own words are for the person; any other one is named by its type.
PLAIN = (
    BlobNotNamedError,
    ConfigError,
    PatternError,
    StateError,
    UndoRefusedError,
    RunLogError,
    ScriptError,
    RunNotFoundError,
    NothingToUndoError,
    UndoDeclinedError,
    TrustError,
    ModelError,
    IndexError,
    ValueError,
)


def run(shell: Any, line: str, cell: str | None) -> Any:
    """Run ``%reyn line`` or ``%%reyn line`` with its cell.

    Raises:
        ReynError: whatever went wrong, in one line; `%reyn debug` has the traceback.
        ReynInterrupt: the person interrupted a verb that shows no card of its own.
    """
    state = shell_state(shell)
    debug = state.debug
    try:
        verb, options, rest = _read(line, cell)
        debug = debug or options.debug
        return _run(shell, verb, options, rest, cell)
    except KeyboardInterrupt as error:
        raise _interrupt_error(error) from None
    except ReynError as error:
        state.last_traceback = traceback.format_exc()
        error.debug = debug
        _offer(shell, error.lines)
        raise
    except Exception as error:
        state.last_traceback = traceback.format_exc()
        raise ReynError(*_words(error), debug=debug) from error


def _offer(shell: Any, lines: tuple[str, ...]) -> None:
    """Show ready lines above an error, where a front end draws them with buttons; a terminal has the hint."""
    if lines and getattr(shell, "kernel", None) is not None:
        from IPython.display import display

        display(Card("instead", LABEL, tries=lines))


def _read(line: str, cell: str | None) -> tuple[Verb, Options, str]:
    """Return the verb that is meant, its options, and the text after them."""
    verb, rest = _verb(line, cell)
    if verb.literal:
        options, rest = parse_leading(verb.options, rest)
    else:
        options = parse(verb.options, rest)
    if options.output is not None and not _is_name(options.output):
        raise ReynError(f"-o {options.output!r} is no variable name.", "For example: -o result")
    if cell is not None and cell.strip() and not verb.takes_body and not options.help:
        raise ReynError(f"%%reyn {verb.name} takes no cell body.", f"Use a line: %reyn {verb.name}")
    return verb, options, rest


def _run(shell: Any, verb: Verb, options: Options, rest: str, cell: str | None) -> Any:
    if options.help:
        from reyn_jupyter.notebook.verbs.help import help_card

        return help_card(verb.name)
    result = verb.run(Context(shell, cell, rest), options)
    # What the Python face answers as an object with `.error`, a verb raises as one line.
    if isinstance(result, ActionTable | ActionCard | Result | Inspection) and result.error is not None:
        raise ReynError.of(result.payload)
    if options.output is not None:
        shell.user_ns[options.output] = result
    return result


def _verb(line: str, cell: str | None) -> tuple[Verb, str]:
    word, *others = line.split(None, 1)[:2] or [""]
    rest = others[0] if others else ""
    if not word and cell is None:
        return _find_verb("status"), ""
    if cell is not None and (not word or word.startswith("-")) and word not in ("--help", "-h"):
        return _find_verb("ask"), line
    if word in ("--help", "-h"):
        return _find_verb("help"), ""
    if word.startswith("-"):
        named = _MODEL_OPTION.search(line)
        example = f'%reyn ask -m {quote_word(shorten(named.group(1), 80)) if named else "offline"} "…"'
        raise ReynError("A verb comes before its options.", f"For example: {example}")
    if cell is not None and verbs.find(word) is None and verbs.meant(word) is None:
        raise ReynError(
            f"There is no verb {word!r}.",
            "Beside %%reyn stand options; the question goes into the cell below.",
        )
    return _find_verb(word), rest


def _find_verb(name: str) -> Verb:
    verb = verbs.find(name)
    if verb is None:
        from reyn_jupyter.notebook.verbs.help import unknown_verb

        raise unknown_verb(name)
    return verb


def _is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


def _interrupt_error(error: KeyboardInterrupt) -> ReynInterrupt:
    if isinstance(error, ReynInterrupt):
        return error
    why = error.why if isinstance(error, Interrupted) else ""
    return ReynInterrupt(why or "Interrupted.", "What was done until then is in the record: %reyn trace last")


def _words(error: Exception) -> tuple[str, str]:
    """Return an exception as a sentence and a hint."""
    if not isinstance(error, PLAIN):
        said = " ".join(str(error).split())
        return f"{type(error).__name__}: {said}", "%reyn debug shows where it happened."
    if isinstance(error, ModelError):
        return error.message, error.hint
    text = str(error)
    if isinstance(error, UndoRefusedError) and error.diff:
        text += f"\n{error.diff}"
    first = text.partition(" ")[0]
    said = text[:1].upper() + text[1:] if first.isalpha() else text
    if "\n" not in said and not said.endswith((".", "!", "?", ")")):
        said += "."
    return said, str(getattr(error, "hint", "") or "")
