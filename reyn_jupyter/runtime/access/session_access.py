"""What of its session a category may use beside files and actions: secrets, models, an embedder, earlier runs, trust.

Invariant: all of it is for code that a person installed, and all of it asks like an action: what leaves the machine or
names a secret needs consent, a rule, or a person's call by hand. Where a session offers nothing, it says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol

from reyn_jupyter.guard.own_memories import EveryMemory, MemoryOwnership
from reyn_jupyter.runtime.access.live_notebook import NotebookCells
from reyn_jupyter.runtime.access.reversals import Reversal
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.support.secret import Secret

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SecretAccess(Protocol):
    """Named values for headers and programs."""

    async def get(self, name: str, /) -> Secret:
        """Return the value of this exact name: what the session was given under it, else the environment's variable.

        From then on the value is taken out of every text. The effect ``secret NAME`` is asked for, unless the call has
        it already; outside a call (in `start`, a task) a rule has to allow it for the action ``start`` of the category.

        Raises:
            ActionError: there is no such value, or it is too short to be found in texts. PermissionDeniedError.
        """


@dataclass(frozen=True)
class Completion:
    """The answer of a model.

    Attributes:
        text: what it said, without secrets.
        model: who said it.
        tokens: to the model and from it; estimated where the provider does not say.
        cost: US dollars; None where the price is not known.
    """

    text: str
    model: str
    tokens: int
    cost: float | None


class ModelAccess(Protocol):
    """The language model of the session."""

    def is_there(self) -> bool:
        """Return whether there is one to ask: the offline model knows its own skills alone, and is none."""

    async def complete(
        self,
        prompt: str,
        *,
        system: str = "",
        model: str | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Return what a model says to a prompt; no tools are offered to it.

        Within a call it counts as a step of the turn, in tokens and dollars too, and stands in the call's inner run.

        Args:
            prompt: redacted before it goes out.
            system: the system message; none where it is empty.
            model: "light", "standard" or "strong"; the model of the turn, or else of the session, when None.
            schema: of a JSON object that is to be the answer. A provider that does not know of it is not told, so that
                the prompt should say it too; the answer is text in any case, and nobody has checked it.

        Raises:
            ModelFailedError: the model failed, or is not configured. LimitReachedError: the turn may use no more.
            PermissionDeniedError: it runs on a host that the call may not reach.
        """


class EmbedderAccess(Protocol):
    """Who embeds for the session's search."""

    @property
    def key(self) -> str | None:
        """Return what the vectors belong to: vectors of one key may be compared, and kept. None where nobody embeds."""

    def expect(self, texts: int, /) -> None:
        """Prepare for this many short texts, as by loading what pays only for a lot."""

    async def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Return one vector of length 1 for each text, shape (len(texts), dimension).

        Raises:
            ActionError: there is no embedder here, or it failed. PermissionDeniedError: it runs on a host that the call
                may not reach.
        """


@dataclass(frozen=True)
class PastCall:
    """A call of an earlier run: its action, its arguments, and what came back. `ok` is None where it did not end."""

    action: str
    arguments: Any
    ok: bool | None
    output: str
    error: str | None


@dataclass(frozen=True)
class PastRun:
    """An earlier run, without secrets. `at` is in seconds since the epoch; `model` None for a call by hand."""

    run: str
    at: float
    kind: str
    prompt: str
    status: str
    answer: str
    model: str | None
    tokens: int
    cost: float | None
    seconds: float
    calls: tuple[PastCall, ...]


class HistoryAccess(Protocol):
    """The runs of the workspace, to be read."""

    async def recent(self, limit: int = 20) -> tuple[PastRun, ...]:
        """Return the newest runs, newest first, the one under way among them."""

    async def get(self, run: str, /) -> PastRun:
        """Return a run by any unique part of its id. Raises ActionError."""


class TrustAccess(Protocol):
    """Whether the person trusts the workspace."""

    @property
    def is_trusted(self) -> bool:
        """True if the workspace's ``reyn.yaml`` is trusted as it is now."""

    @property
    def awaits_trust(self) -> bool:
        """True if the workspace brought a file that would count, and that the person has not trusted.

        Nobody has said then that its other files are the person's own.
        """

    @property
    def memories(self) -> MemoryOwnership:
        """Return which memories are the person's own."""

    def hashes(self) -> Mapping[str, str]:
        """Return the SHA-256 of everything that the person trusts in the workspace, by its name."""

    def keep(self, content: bytes, name: str) -> None:
        """Trust what the person's own call has just made. Raises StateError where the trust cannot be kept."""


@dataclass(frozen=True)
class Proposal:
    """A cell as it was proposed.

    Attributes:
        cell: its id; "" where the front end gives it one.
        where: where it stands, in a sentence.
        reversal: takes it back.
    """

    cell: str
    where: str
    reversal: Reversal


class NotebookAccess(Protocol):
    """The notebook that the person sits at."""

    @property
    def missing(self) -> str | None:
        """Return why there is no notebook, in a sentence; None where there is one."""

    @property
    def path(self) -> str | None:
        """Return the notebook's file, from the workspace on; None where it is not known or lies elsewhere."""

    async def cells(self) -> NotebookCells:
        """Return its cells: as a front end sent them, else as its file or the kernel's history has them.

        Raises:
            ActionError: there are none to be read.
        """

    async def propose(self, source: str, kind: Literal["code", "markdown"], run: str) -> Proposal:
        """Put a cell below the one that runs, for the person to run or delete. Raises ActionError."""


class NoAccess:
    """Stands where a session offers none of it.

    Args:
        why: the end of a sentence that begins "… is not available:".
    """

    def __init__(self, why: str = "the category is used without a session") -> None:
        self._why = why

    async def get(self, name: str, /) -> NoReturn:
        self._refuse(name)

    def is_there(self) -> bool:
        return False

    async def complete(
        self,
        prompt: str,
        *,
        system: str = "",
        model: str | None = None,
        schema: Mapping[str, Any] | None = None,
    ) -> NoReturn:
        self._refuse("a model")

    @property
    def key(self) -> str | None:
        return None

    def expect(self, texts: int, /) -> None:
        """Prepare nothing: nobody embeds."""

    async def embed(self, texts: Sequence[str], /) -> NoReturn:
        self._refuse("an embedder")

    async def recent(self, limit: int = 20) -> tuple[PastRun, ...]:
        return ()

    @property
    def is_trusted(self) -> bool:
        return False

    @property
    def awaits_trust(self) -> bool:
        return False

    @property
    def memories(self) -> MemoryOwnership:
        return EveryMemory()

    def hashes(self) -> Mapping[str, str]:
        return {}

    def keep(self, content: bytes, name: str) -> None:
        """Keep nothing: there is nobody whose trust it could be."""

    @property
    def missing(self) -> str | None:
        return f"A notebook is not available: {self._why}."

    @property
    def path(self) -> str | None:
        return None

    async def cells(self) -> NoReturn:
        self._refuse("a notebook")

    async def propose(self, source: str, kind: str, run: str) -> NoReturn:
        self._refuse("a notebook")

    def _refuse(self, what: str) -> NoReturn:
        raise ActionError(f"{what} is not available: {self._why}.", "Go on without it.", code="not_available")
