"""What a workspace brought and the user may trust: each thing is shown with its values, asked about, and then trusted.

Invariants: nothing is trusted without an answer to a question that showed it whole, or the hash of it that the user
gave. What is trusted are the bytes that were shown. If they have changed when the answer comes, nothing is trusted.
Everything that a question says of a thing is read from these bytes, and its content stands behind the question's bar.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from reyn_jupyter.backends.mcp_servers.server_file import ServerFileError
from reyn_jupyter.backends.mcp_servers.server_store import StoredServer
from reyn_jupyter.backends.memory.memory_format import MemoryStoreError
from reyn_jupyter.backends.memory.memory_store import MemoryFacts, MemoryStore
from reyn_jupyter.catalog.action import PartialPreview
from reyn_jupyter.categories.memory import memory_store
from reyn_jupyter.config import PROJECT_FILE, load
from reyn_jupyter.guard.diff import whole_diff
from reyn_jupyter.guard.state_folder import StateError, StateFolder
from reyn_jupyter.guard.trust import MANIFEST, SERVERS_FILE
from reyn_jupyter.runtime.questions.consent import Question
from reyn_jupyter.runtime.questions.question_detail import MASKED, question_detail
from reyn_jupyter.sessions.assembly import ENGINE
from reyn_jupyter.sessions.overviews.server_overview import describe_server
from reyn_jupyter.sessions.result_objects import Card
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.sanitize import printable, printable_path
from reyn_jupyter.support.secret_names import secret_variable
from reyn_jupyter.support.text import count, did_you_mean, enumerate_words, nearest_names, shorten
from reyn_jupyter.support.user_errors import UserError
from reyn_jupyter.workflows.planning.policy import POLICY_FILE
from reyn_jupyter.workflows.utilities.program import command_of
from reyn_jupyter.workflows.utilities.utility_files import UtilityFolderError, read_folder, trust_content
from reyn_jupyter.workflows.workflow_library import RULES

if TYPE_CHECKING:
    from reyn_jupyter.sessions.assembly import Parts
    from reyn_jupyter.workflows.utilities.manifest import Utility

MEMORIES = ".reyn/memory"
_MOST_TOGETHER = 1 << 18  # bytes of memories that one question shows
_MOST_NAMED = 20  # things that a card names
_PAIR = re.compile(r'("(?P<key>(?:[^"\\\n]|\\.)*)"[ \t]*:(?:\s|^[+-])*)"(?P<value>(?:[^"\\\n]|\\.)+)"', re.M)
HIDDEN_VALUES = "The values of names like a secret's are not shown; one that changed is on a changed line."

Fact = tuple[str, str]


class TrustError(UserError):
    """What should be trusted is not there, or cannot be; the message says why, `hint` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip())
        self.message, self.hint = message, hint


@dataclass(frozen=True)
class Waiting:
    """One thing that waits for trust.

    Attributes:
        name: under which it is trusted, a path from the workspace's root on.
        content: the bytes that are trusted, by their hash.
        text: what the user reads of it: `content`, or all that it stands for.
        about: what it would do, in sentences about `content`.
        now: gives what `content` is now; None if it is gone.
        keep: trusts `content`, and returns what the card says of it.
        problem: why it cannot be used and so is not asked about; "" if it can.
        is_kept: whether the text is kept to show later what changed.
    """

    name: str
    content: bytes
    text: bytes
    about: tuple[str, ...]
    now: Callable[[], bytes | None]
    keep: Callable[[], list[Fact]]
    problem: str = ""
    is_kept: bool = True

    @property
    def sha256(self) -> str:
        """The hash of the content, as the program sha256sum prints it for a file."""
        return hashlib.sha256(self.content).hexdigest()


def trust(parts: Parts, name: str | None = None, sha256: str | None = None) -> Card:
    """Show what waits for trust, ask about each thing by itself, and trust what the user agrees to.

    Args:
        name: of the one thing that is meant, or of a folder with several; everything if None.
        sha256: the hash of that one thing, which is then trusted without a question.

    Raises:
        TrustError: nothing of this name waits, or a hash has no name.
        StateError: the trust cannot be kept.
    """
    if sha256 is not None and name is None:
        raise TrustError("A hash stands for one thing.", "Name it too: %reyn trust NAME --hash SHA256")
    workspace = ("workspace", str(parts.root))
    trusted: list[str] = []
    left: list[tuple[Waiting, str]] = []
    facts: list[Fact] = []
    is_there = True
    for each in _named(_waiting(parts, name), name):
        refusal = each.problem
        if not refusal:
            refusal = (
                _given(each, sha256) if sha256 is not None else _asked(parts, each) if is_there else _NOBODY
            )
            is_there = is_there and refusal not in (_NOBODY, _UNANSWERED)
        if not refusal and each.now() != each.content:
            refusal = "it changed after it was shown, so nothing of it is trusted; look at it again"
        if refusal:
            left.append((each, refusal))
            continue
        found = each.keep()
        if each.is_kept:
            _remember(parts, each)
        trusted.append(each.name)
        facts += found
    if not trusted and not left:
        return Card(
            "trust",
            "Nothing to trust",
            (workspace, ("waiting", "there is nothing that is not trusted already")),
        )
    return _card(workspace, trusted, left, facts)


_NOBODY, _UNANSWERED = "nobody is here to be asked", "nobody answered in time"


def _card(workspace: Fact, trusted: list[str], left: list[tuple[Waiting, str]], facts: list[Fact]) -> Card:
    named = [printable_path(each) for each in trusted[:_MOST_NAMED]]
    if len(trusted) > _MOST_NAMED:
        named.append(count(len(trusted) - _MOST_NAMED, "more thing"))
    title = f"{enumerate_words(named)} {'is' if len(trusted) == 1 else 'are'} trusted as shown"
    for each, why in left[:_MOST_NAMED]:
        word = "cannot be used" if each.problem else f"not trusted: {printable_path(each.name)}"
        facts.append((word, f"{printable_path(each.name)}: {why}" if each.problem else why))
    if len(left) > _MOST_NAMED:
        facts.append(("and", f"{count(len(left) - _MOST_NAMED, 'more thing')} not trusted"))
    lines = tuple(
        printable_path(reyn_line("trust", each.name, hash=each.sha256))
        for each, why in left[:_MOST_NAMED]
        if why in (_NOBODY, _TOO_LARGE)
    )
    sections = (("To trust what you have read without a question", lines),) if lines else ()
    hashes = {each.name: each.sha256 for each, _ in left}
    return Card(
        "trust",
        title if trusted else "Nothing was trusted",
        (workspace, *facts),
        sections,
        data={"hashes": hashes},
    )


def _named(waiting: Iterator[Waiting], name: str | None) -> Iterator[Waiting]:
    """Yield what has a name, or lies below it. Raises TrustError in the end if that was nothing."""
    if name is None:
        yield from waiting
        return
    wanted, others, is_found = name.removeprefix("./").rstrip("/"), list[str](), False
    for each in waiting:
        if each.name == wanted or each.name.startswith(f"{wanted}/"):
            is_found = True
            yield each
        else:
            others.append(each.name)
    if not is_found:
        meant = did_you_mean([printable_path(each) for each in nearest_names(wanted, others)])
        raise TrustError(f"Nothing named {printable_path(shorten(name, 200))!r} waits for trust.", meant)


def _given(each: Waiting, sha256: str) -> str:
    """Return why a hash does not stand for what is there; "" if it does."""
    if sha256.strip().lower() == each.sha256:
        return ""
    return f"its hash is {each.sha256}, not the one that was given"


_TOO_LARGE = "it is too large to be shown, or not text: read it yourself"


def _asked(parts: Parts, each: Waiting) -> str:
    """Ask about one thing; return why it is not trusted, "" if it is."""
    question = _question(parts, each)
    if set(question.detail.withheld) - {MASKED, HIDDEN_VALUES}:
        return _TOO_LARGE
    answer = ENGINE.run(parts.ask(question))
    if answer in ("once", "always"):
        return ""
    return {"nobody": _NOBODY, "unanswered": _UNANSWERED}.get(answer, "you said no")


def _question(parts: Parts, each: Waiting) -> Question:
    before = _shown_before(parts, each)
    preview = whole_diff(before, each.text, each.name)
    text = preview if isinstance(preview, str) else preview.text
    masked = _PAIR.sub(_without_secret, text) if each.name == SERVERS_FILE else text
    if isinstance(preview, PartialPreview):
        preview = replace(preview, text=masked)
    else:
        preview = PartialPreview(masked, HIDDEN_VALUES) if masked != text else text
    what = "what changed since it was trusted" if before is not None else "all of it"
    head = f"trust {each.name}; below stands {what}"
    return Question("%reyn trust", question_detail((head, *each.about), preview, {}, parts.redactor), ())


def _without_secret(match: re.Match[str]) -> str:
    """Return a pair of JSON with its value covered if its name is a secret's; a path is shown, since it may be run."""
    try:
        key = json.loads(f'"{match["key"]}"')
    except ValueError:
        return match[0]
    value = match["value"]
    if not secret_variable(key) or "/" in value or value.startswith("${"):
        return match[0]
    return f'{match[1]}"••• {count(len(value), "character")}"'


# What was shown when a thing was trusted


def _kept_as(name: str) -> str:
    return f"trusted-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"


def _remember(parts: Parts, each: Waiting) -> None:
    try:
        text = each.text.decode()
    except UnicodeDecodeError:
        return
    value = {"version": 1, "name": each.name, "sha256": each.sha256, "text": text}
    with suppress(StateError):  # then all of it is shown the next time
        StateFolder(parts.root).change(_kept_as(each.name), lambda before: value)


def _shown_before(parts: Parts, each: Waiting) -> bytes | None:
    """Return the text that was trusted last under a name; None if there is none, or it is not known."""
    try:
        value = StateFolder(parts.root).read(_kept_as(each.name))
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(text := value.get("text"), str):
        return None
    known = value.get("sha256") == parts.trust.hashes().get(each.name)
    return text.encode() if known and value.get("name") == each.name else None


# What there is


def _waiting(parts: Parts, name: str | None) -> Iterator[Waiting]:
    yield from _settings(parts)
    yield from _servers(parts)
    yield from _utilities(parts)
    yield from _plan_files(parts)
    yield from _workflows(parts)
    yield from _unusable(parts)
    yield from _memories(parts, is_one=name is not None and name.strip("./") != MEMORIES.strip("."))


def _file(
    parts: Parts, name: str, content: bytes, about: tuple[str, ...], keep: Callable[[], list[Fact]]
) -> Waiting:
    return Waiting(name, content, content, about, lambda: parts.workflows.content(name), keep)


def _settings(parts: Parts) -> Iterator[Waiting]:
    # Read again: the file may have been written or changed since the session began.
    present = load(parts.root, override=parts.config, trusted=parts.trust.is_trusted)
    content = present.project
    if content is None or parts.trust.is_trusted(content):
        return
    keys = sorted({item.key for item in present.held_back})
    values = [
        f"in force from then on: {item.key} = {json.dumps(item.value, default=str)}"
        for item in present.held_back
    ]

    def keep() -> list[Fact]:
        parts.trust.trust(content)
        parts.effective = load(
            parts.root, override=parts.config, trusted=parts.trust.is_trusted, session=parts.effective.session
        )
        problems = (("cannot be used", problem) for problem in parts.effective.problems)
        return [("now in force", ", ".join(keys) or "nothing was held back"), *problems]

    yield _file(parts, PROJECT_FILE, content, tuple(values), keep)


def _servers(parts: Parts) -> Iterator[Waiting]:
    store = parts.mcp_store
    if store is None:
        return
    try:
        document = store.workspace_document()
    except ServerFileError as error:
        yield replace(_file(parts, SERVERS_FILE, b"", (), list), problem=str(error))
        return
    content = document.content
    if content is None or parts.trust.is_trusted(content, SERVERS_FILE):
        return
    stored = {name: StoredServer(entry, "workspace") for name, entry in document.entries.items()}
    about = [f"server {name}: {_with_values(each)}" for name, each in stored.items()]

    def keep() -> list[Fact]:
        store.trust_workspace(content)
        mine = {each.entry.name: each for each in store.stored() if each.scope == "workspace"}
        facts = [(f"server {name}", describe_server(mine[name])) for name in document.entries if name in mine]
        return [*facts, *(("cannot be used", each) for each in document.problems)]

    yield _file(parts, SERVERS_FILE, content, (*about, *document.problems), keep)


def _with_values(stored: StoredServer) -> str:
    values = stored.entry.values.items()
    shown = (f"{name}={value}" for name, value in values if not secret_variable(name) or "/" in value)
    return "; ".join((describe_server(stored), *shown))


def _utilities(parts: Parts) -> Iterator[Waiting]:
    for each in parts.workflows.registry(fresh=True).utilities:
        if each.trust_name and not each.trusted:
            yield _utility(parts, each)


def _utility(parts: Parts, utility: Utility) -> Waiting:
    library, contents = parts.workflows, dict[str, bytes]()
    hosts = utility.manifest.needs("host")
    said = f"{utility.id} runs {' '.join(command_of(utility))}"
    said += f", reaches {', '.join(hosts)}" if hosts else ""

    def now() -> bytes | None:
        with suppress(UtilityFolderError, OSError):
            return trust_content(read_folder(utility.folder, MANIFEST).hashes)
        return None

    def keep() -> list[Fact]:
        library.trust(utility, parts.trust)
        return [(utility.trust_name, said)]

    with suppress(UtilityFolderError, OSError):
        read_folder(utility.folder, MANIFEST, contents)
    content = trust_content(utility.files)
    text = b"".join(
        _file_text(path, mark, contents.get(path)) for path, mark in sorted(utility.files.items())
    )
    return Waiting(utility.trust_name, content, text, (said,), now, keep)


def _file_text(path: str, mark: str, content: bytes | None) -> bytes:
    """Return a file as the user reads it: path, hash, and lines; a link or a binary file by its hash alone."""
    head = f"── {json.dumps(path)} {mark}\n".encode()
    # What does not have the hash that would be trusted is not shown as if it had.
    if content is None or not mark.startswith(hashlib.sha256(content).hexdigest()):
        return head
    try:
        content.decode()
    except UnicodeDecodeError:
        return head + f"   binary, {count(len(content), 'byte')}\n".encode()
    lines = content.replace(b"\r\n", b"\n").split(b"\n")
    return head + b"".join(b"   " + line + b"\n" for line in lines)


def _plan_files(parts: Parts) -> Iterator[Waiting]:
    for name, about in ((RULES, "rules for plans"), (POLICY_FILE, "the policy of plans")):
        content = parts.workflows.content(name)
        if content is not None and not parts.trust.is_trusted(content, name):
            yield _file(parts, name, content, (), partial(_kept, parts, name, content, about))


def _workflows(parts: Parts) -> Iterator[Waiting]:
    for file in parts.workflows.workflow_files():
        if file.workflow is not None and not parts.trust.is_trusted(file.content, file.file):
            runs = f"runs {', '.join(step.operation for step in file.workflow.steps)}"
            keep = partial(_kept, parts, file.file, file.content, runs)
            yield _file(parts, file.file, file.content, (runs,), keep)


def _unusable(parts: Parts) -> Iterator[Waiting]:
    """Yield what cannot be used: no content of it is ever trusted; it only does not wait any more."""
    usable = {each.trust_name for each in parts.workflows.registry(fresh=False).utilities}
    usable |= {file.file for file in parts.workflows.workflow_files() if file.workflow is not None} | {RULES}
    why = "cannot be used: %reyn utilities --validate and %reyn workflow say why"
    for name in sorted(set(parts.trust.unseen()) - usable):
        keep = partial(_kept, parts, name, b"", why)
        yield Waiting(
            name, b"", f"{why}\nNo content is trusted.".encode(), (), lambda: b"", keep, is_kept=False
        )


def _kept(parts: Parts, name: str, content: bytes, about: str) -> list[Fact]:
    parts.trust.trust(content, name)
    return [(name, about)]


def _memories(parts: Parts, *, is_one: bool) -> Iterator[Waiting]:
    """Yield the memories that are held back, several in one question as far as they can be read there.

    Args:
        is_one: one memory is meant, so each stands by itself.
    """
    store = memory_store(parts.services)
    together: list[MemoryFacts] = []
    for each in store.listing().held_back:
        if together and (is_one or sum(known.size for known in together) + each.size > _MOST_TOGETHER):
            yield _some_memories(store, together)
            together = []
        together.append(each)
    if together:
        yield _some_memories(store, together)


def _some_memories(store: MemoryStore, found: list[MemoryFacts]) -> Waiting:
    paths = [store.path(each.layer, each.slug) for each in found]

    def now() -> bytes | None:
        contents = [store.content(each) for each in found]
        if None in contents:
            return None
        if len(contents) == 1:
            return contents[0]
        return b"".join(
            _file_text(path, hashlib.sha256(content).hexdigest(), content)
            for path, content in zip(paths, contents, strict=True)
            if content is not None
        )

    def keep() -> list[Fact]:
        try:
            store.trust([each.digest for each in found])
        except MemoryStoreError as error:
            raise StateError(str(error)) from None
        facts = [
            (f"memory {each.slug}", printable(shorten(f"{each.memory.name}: {each.memory.description}", 120)))
            for each in found[:_MOST_NAMED]
        ]
        more = len(found) - len(facts)
        return facts + ([("and", f"{more:,} more memories")] if more else [])

    content = now()
    name, about = (
        (paths[0], ()) if len(found) == 1 else (MEMORIES, (f"{len(found):,} memories, each in full",))
    )
    problem = "a memory changed while it was read; try again" if content is None else ""
    return Waiting(name, content or b"", content or b"", about, now, keep, problem, is_kept=False)
