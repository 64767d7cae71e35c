"""What a sign-in to a remote server gave: its tokens, and the client that was registered for it.

Invariants: a sign-in belongs to one server of one place and to one address; an entry of the same name with another
address has none. It is kept where secrets are, in the keyring or a 0600 file; what was read is known to the redactor
before anybody has it. Whoever renews tokens holds the lock, so that two kernels do not spend one refresh token twice.

Sources: OAuth 2.1 (draft-ietf-oauth-v2-1), the authorization chapter of the Model Context Protocol.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from reyn_jupyter.backends.mcp_servers.secret_store import LONGEST, SecretTooShortError, ServerSecrets
from reyn_jupyter.guard.state_folder import StateError, StateFolder
from reyn_jupyter.support.files.locks import open_lock_file, release, wait_for_lock
from reyn_jupyter.support.files.plain_files import parse_json
from reyn_jupyter.support.secrets import SHORTEST

FILE = "mcp-sign-ins.json"
_NAME = "oauth:sign-in"  # no name that a secret of a person's may have
_LOCK = ".mcp-sign-in-lock"
_EARLY = 30.0  # seconds before its end that a token counts as over


class SignInBusyError(Exception):
    """Another kernel has been renewing a sign-in for too long; the message is a clause."""


@dataclass(frozen=True)
class KeptSignIn:
    """A sign-in to one server.

    Attributes:
        url: the server's address that it is for.
        issuer: the authorization server; empty where it named none.
        token_endpoint, revocation_endpoint: where tokens are renewed and taken back; the second may be empty.
        resource: what the tokens are for (RFC 8707); empty where that is not said.
        client: the registered client, as RFC 7591 answers a registration.
        redirect_uri: the address that the client was registered with.
        access_token, refresh_token: empty where there is none (any more).
        expires_at: when the access token ends, in seconds since the epoch; None where that is not known.
        scope: what was granted, names between blanks.
        wanted_scope: what the server asked for since, beyond that.
    """

    url: str
    issuer: str = ""
    token_endpoint: str = ""
    revocation_endpoint: str = ""
    resource: str = ""
    client: Mapping[str, Any] = field(default_factory=dict, repr=False)
    redirect_uri: str = ""
    access_token: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    expires_at: float | None = None
    scope: str = ""
    wanted_scope: str = ""

    @property
    def is_over(self) -> bool:
        """True once the access token has ended, or is about to."""
        return self.expires_at is not None and time.time() > self.expires_at - _EARLY

    @property
    def secrets(self) -> tuple[tuple[str, str], ...]:
        """Names and values of what may stand in no text."""
        found = (
            ("access token", self.access_token),
            ("refresh token", self.refresh_token),
            ("client secret", str(self.client.get("client_secret") or "")),
        )
        return tuple((name, value) for name, value in found if value)


class ServerSignIn:
    """The place of one server's sign-in.

    Args:
        folder: of the server's place: the person's, or that of a workspace.
        learn: takes a name and a value that is a secret from now on.
        server, url: the server's name and address.
    """

    def __init__(self, folder: StateFolder, learn: Callable[[str, str], None], server: str, url: str) -> None:
        self._folder = folder
        self._learn = learn
        self._server = server
        self.url = url
        self._kept = ServerSecrets(folder, self._learn_tokens, FILE)

    def stamp(self) -> tuple[int, int, int] | None:
        """Return a value that moves whenever any sign-in of this place does. Cheap."""
        return self._folder.stamp(FILE)

    def read(self) -> KeptSignIn | None:
        """Return the sign-in; None where there is none for this address."""
        found = self._kept.get(self._server, _NAME)
        kept = None if found is None else _parsed(found.reveal())
        return kept if kept is not None and kept.url == self.url else None

    def write(self, sign_in: KeptSignIn) -> str:
        """Keep a sign-in in place of the one before; return where: "keyring" or "file".

        Raises:
            SecretTooShortError: a token could not be kept out of texts, or is too long. StateError.
        """
        for name, value in sign_in.secrets:
            if len(value.strip()) < SHORTEST:
                raise SecretTooShortError(
                    f"The {name} has under {SHORTEST} characters: it could not be kept out of texts."
                )
        text = json.dumps(asdict(sign_in))
        if len(text) > LONGEST:
            raise SecretTooShortError(f"What the sign-in gave has over {LONGEST:,} characters.")
        return self._kept.set(self._server, _NAME, text)

    def forget(self) -> bool:
        """Forget the sign-in; return whether there was one. Raises StateError."""
        return bool(self._kept.forget(self._server))

    @contextmanager
    def renewing(self, seconds: float) -> Iterator[None]:
        """Hold the lock of all that renew sign-ins of this place. Blocks: for a thread.

        Raises:
            SignInBusyError: it is held by another for that many seconds. StateError.
        """
        try:
            self._folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = open_lock_file(self._folder.path / _LOCK)
        except OSError as error:
            raise StateError(f"{self._folder.path} cannot be written ({error.strerror})") from None
        try:
            if not wait_for_lock(descriptor, seconds, required=False):
                raise SignInBusyError("another kernel has been renewing it for too long")
            yield
        finally:
            release(descriptor)

    def _learn_tokens(self, name: str, value: str) -> None:
        kept = _parsed(value)
        for what, secret in () if kept is None else kept.secrets:
            self._learn(f"{what} of {self._server}", secret)


def _parsed(text: str) -> KeptSignIn | None:
    try:
        return KeptSignIn(**parse_json(text))
    except (TypeError, ValueError):
        return None
