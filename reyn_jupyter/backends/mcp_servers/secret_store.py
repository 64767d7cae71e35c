"""Secrets that the person gave to servers: in the keyring of the system where there is one, else in a 0600 file.

Invariants: a value belongs to one server of one place (the person's servers, or those of one workspace) and is handed
to nobody else; it stands in no entry, no notebook and no workspace; what was read is known to the redactor before
anybody has it. Names alone are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from reyn_jupyter.support.secret import Secret
from reyn_jupyter.support.secrets import SHORTEST

if TYPE_CHECKING:
    from reyn_jupyter.guard.state_folder import StateFolder

FILE = "mcp-secrets.json"
SERVICE = "reyn-jupyter"  # what the keyring calls them
LONGEST = 16_384  # characters
_KEYRING = "keyring"


class SecretTooShortError(ValueError):
    """A value that could not be kept out of texts; the message is a sentence."""


class ServerSecrets:
    """The secrets of the servers of one place.

    Args:
        folder: whose file holds them, or says that the keyring does.
        learn: takes a name and a value that is a secret from now on.
        file: the name of the file.
    """

    def __init__(self, folder: StateFolder, learn: Callable[[str, str], None], file: str = FILE) -> None:
        self._folder = folder
        self._learn = learn
        self._file = file

    def names(self, server: str) -> tuple[str, ...]:
        """Return the names of the secrets that a server has."""
        return tuple(self._kept().get(server, {}))

    def get(self, server: str, name: str) -> Secret | None:
        """Return a secret of a server, None where it has none of this name."""
        kept = self._kept().get(server, {}).get(name)
        value = (
            _from_keyring(self._user(server, name)) if kept == {"in": _KEYRING} else (kept or {}).get("value")
        )
        if not isinstance(value, str) or not value:
            return None
        self._learn(name, value)
        return Secret(name, value)

    def set(self, server: str, name: str, value: str) -> str:
        """Keep a secret for a server, in place of one of this name; return where: "keyring" or "file".

        Raises:
            SecretTooShortError: it has under 8 characters or over 16,384. StateError.
        """
        if not len(value.strip()) >= SHORTEST or len(value) > LONGEST:
            raise SecretTooShortError(
                f"{name} must have {SHORTEST} to {LONGEST:,} characters: a shorter one could not be kept out of texts."
            )
        self._learn(name, value)
        in_keyring = _to_keyring(self._user(server, name), value)
        kept = {"in": _KEYRING} if in_keyring else {"value": value}
        self._change(lambda all_kept: {**all_kept, server: {**all_kept.get(server, {}), name: kept}})
        return _KEYRING if in_keyring else "file"

    def forget(self, server: str) -> tuple[str, ...]:
        """Forget all secrets of a server; return their names. Raises StateError."""
        names = self.names(server)
        if names:
            for name in names:
                _forget_in_keyring(self._user(server, name))
            self._change(lambda kept: {name: each for name, each in kept.items() if name != server})
        return names

    def _user(self, server: str, name: str) -> str:
        return f"{self._folder.path.name}/{server}/{name}"

    def _kept(self) -> dict[str, dict[str, Any]]:
        try:
            return _checked(self._folder.read(self._file))
        except ValueError:
            return {}

    def _change(self, change: Callable[[dict[str, dict[str, Any]]], Mapping[str, Any]]) -> None:
        self._folder.change(self._file, lambda value: {"version": 1, "servers": change(_checked(value))})


def _checked(value: Any) -> dict[str, dict[str, Any]]:
    servers = value.get("servers") if isinstance(value, dict) else None
    if not isinstance(servers, dict):
        return {}
    return {
        server: {name: kept for name, kept in names.items() if isinstance(kept, dict)}
        for server, names in servers.items()
        if isinstance(names, dict)
    }


# A keyring may be there and locked, or have no place to keep anything: each of its errors means the file.


def _keyring() -> Any:
    try:
        import keyring
    except ImportError:
        return None
    return keyring


def _from_keyring(user: str) -> str | None:
    if (keyring := _keyring()) is None:
        return None
    with suppress(Exception):
        found = keyring.get_password(SERVICE, user)
        return found if isinstance(found, str) else None
    return None


def _to_keyring(user: str, value: str) -> bool:
    if (keyring := _keyring()) is None:
        return False
    with suppress(Exception):
        keyring.set_password(SERVICE, user, value)
        return bool(keyring.get_password(SERVICE, user) == value)
    return False


def _forget_in_keyring(user: str) -> None:
    if (keyring := _keyring()) is not None:
        with suppress(Exception):
            keyring.delete_password(SERVICE, user)
