"""Which workspace files no action may touch.

Invariant: the answer depends on the path alone, and on nothing that a file system may treat as equal:
letter case, Unicode form, invisible characters, trailing dots and spaces, a stream name behind a colon.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

STATE_FOLDER = ".reyn"
_SECRET_FOLDERS = frozenset({STATE_FOLDER, ".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube"})
_SECRET_FILES = (
    ".env*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc*", "_netrc", ".npmrc", ".yarnrc.yml",
    ".pypirc", ".pgpass", ".my.cnf", ".git-credentials", ".htpasswd", ".dockercfg", "credentials",
    "credentials.json", "credentials.db", "client_secret*.json", "service-account*.json",
    "service_account*.json", "application_default_credentials.json", "secrets.toml", "secrets.json",
    "secrets.yaml", "secrets.yml",
)  # fmt: skip
_EXAMPLES = (".env.example", ".env.sample", ".env.template", ".env.dist")
_SECRET_PATHS = ((".git", "config"), (".git", "credentials"), (".docker", "config.json"))
_SECRET = re.compile(
    "|".join(f"(?:{re.escape(glob).replace(chr(92) + '*', '.*')})" for glob in _SECRET_FILES), re.DOTALL
)


def protects(parts: Sequence[str], *, for_write: bool = False) -> str | None:
    """Why the file at these path components is off limits, or None when it is not.

    Writing anywhere in ``.git`` is refused too: a hook or a configuration there runs commands.

    >>> protects(("config", ".ENV"))
    'it is named like a file that holds secrets'
    >>> protects((".env.example",)) is None
    True
    """
    names = tuple(_plain(part) for part in parts)
    for name in names:
        if name == STATE_FOLDER:
            return f"{STATE_FOLDER}/ is the session's own state"
        if name in _SECRET_FOLDERS:
            return "it lies in a folder for secrets"
        if _SECRET.fullmatch(name) and name not in _EXAMPLES:
            return "it is named like a file that holds secrets"
    for path in _SECRET_PATHS:
        if any(names[at : at + len(path)] == path for at in range(len(names))):
            return "it is a file that may hold credentials"
    if for_write and ".git" in names:
        return "what lies in .git can run commands"
    return None


def _plain(name: str) -> str:
    if name.isascii() and ":" not in name:
        return name.lower().rstrip(". ")
    folded = unicodedata.normalize("NFKC", name).casefold()
    visible = "".join(character for character in folded if unicodedata.category(character) != "Cf")
    return visible.partition(":")[0].rstrip(". ")
