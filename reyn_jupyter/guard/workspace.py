"""Files of the workspace, opened, replaced and removed inside its root and nowhere else.

Invariants: whatever is opened, replaced or removed here lies under the root when the system call happens,
not only when the path was checked. A path is first resolved (symlinks and all) and judged; then the file is
reached from the root's descriptor one component at a time, following no link, so a link swapped in between
is refused, not followed. A hard link cannot be told from the file itself: reading one reads that file;
writing replaces the name and leaves the other one as it was.

Whether a file is protected depends on its path alone, and on nothing that a file system may treat as equal:
letter case, Unicode form, invisible characters, trailing dots and spaces, a stream name behind a colon. A
refusal names the path as the caller wrote it, bounded, and tells what to do.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import unicodedata
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from reyn_jupyter.config import user_path
from reyn_jupyter.guard.state_folder import state_base
from reyn_jupyter.support.plain_files import CLOSE_ON_EXEC, FOLDER, NO_FOLLOW, NO_WAIT
from reyn_jupyter.support.text import count, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FileDecision = Literal["allow", "ask", "deny"]

LONGEST_NAME = 255  # bytes of one component
LONGEST_PATH = 4096  # bytes


@dataclass
class LeftOutFiles:
    """How many files a call did not see, because a rule denies them or they need the person's consent."""

    denied: int = 0
    asking: int = 0

    def add(self, decision: FileDecision) -> None:
        """Count one more file. An allowed one is none."""
        self.denied += decision == "deny"
        self.asking += decision == "ask"

    @property
    def notes(self) -> list[str]:
        """What an answer says of them, a sentence each."""
        said = []
        if self.denied:
            said.append(f"{count(self.denied, 'file')} left out: a permission rule denies reading.")
        if self.asking:
            said.append(
                f"{count(self.asking, 'file')} left out: reading needs the person's consent; name a single file to ask."
            )
        return said


class WorkspaceError(Exception):
    """A path that may not be used, or a file that could not be; the message says why and what to do."""


def as_prefix(folder: str) -> str:
    """Return the prefix of every path below a folder."""
    return folder if folder.endswith("/") else folder + "/"


def check_kind(real: str, status: os.stat_result | None, text: str, for_write: bool) -> None:
    """Check that there is nothing at a path, a file, or for reading a folder; `status` where it is known.

    Raises:
        WorkspaceError: anything else is there.
    """
    try:
        mode = (os.lstat(real) if status is None else status).st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise WorkspaceError(f"{shown(text)} cannot be used: {error.strerror}") from None
    if stat.S_ISDIR(mode):
        if for_write:
            raise WorkspaceError(f"{shown(text)} is a folder; name a file in it")
    elif not stat.S_ISREG(mode):
        raise WorkspaceError(f"{shown(text)} is no regular file (a device, pipe, socket or circular link)")


def checked(path: str | Path) -> str:
    """Return the path as text. Raises WorkspaceError for one that no file may have."""
    text = os.fspath(path)
    if not isinstance(text, str):
        raise WorkspaceError("a path must be text")
    if not text.strip():
        raise WorkspaceError('the path is empty; "." is the workspace itself')
    if "\0" in text:
        raise WorkspaceError("the path holds a NUL character, which no file name can")
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        raise WorkspaceError(f"{shown(text)} holds characters that no file name can") from None
    parts = text.replace("\\", "/").split("/")
    if len(encoded) >= LONGEST_PATH or any(len(os.fsencode(part)) > LONGEST_NAME for part in parts):
        raise WorkspaceError(f"{shown(text)} is too long: {LONGEST_NAME} bytes a name, {LONGEST_PATH} in all")
    if ".." in parts:
        raise WorkspaceError(f"{shown(text)} climbs with '..'; name the file from the workspace root")
    if parts[0].startswith("~"):
        raise WorkspaceError(f"{shown(text)}: '~' is not expanded; name the file from the workspace root")
    return text


def shown(text: str) -> str:
    """Return a path for a message: quoted and bounded."""
    return repr(shorten(text, 120))


def need_regular(status: os.stat_result, name: str) -> None:
    """Check that a file is a regular one. Raises WorkspaceError."""
    if stat.S_ISDIR(status.st_mode):
        raise WorkspaceError(f"{shown(name)} is a folder; name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise WorkspaceError(f"{shown(name)} is no regular file (a device, pipe or socket)")


def mode_to_keep(last: str, folder: int, name: str) -> int | None:
    """Return the permission bits of the file that is to be replaced; None for a new one. Raises WorkspaceError.

    Args:
        last: its name in the open `folder`.
        name: what messages call it.
    """
    try:
        status = os.stat(last, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    need_regular(status, name)
    if not status.st_mode & 0o222:
        raise WorkspaceError(f"{shown(name)} is read-only; make it writable first (chmod u+w)")
    return stat.S_IMODE(status.st_mode) & 0o777


@contextmanager
def plainly(name: str) -> Iterator[None]:
    """Raise the operating system's refusals in the block as WorkspaceError, in words."""
    try:
        yield
    except FileNotFoundError:
        raise WorkspaceError(f"{shown(name)} does not exist") from None
    except NotADirectoryError:
        raise WorkspaceError(
            f"{shown(name)}: a part of this path is a file or a link, not a folder"
        ) from None
    except OSError as error:
        raise WorkspaceError(f"{shown(name)} cannot be used: {error.strerror or error}") from None


STATE_FOLDER = ".reyn"
_SECRET_FOLDERS = frozenset({
    STATE_FOLDER, ".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".kaggle", ".terraform.d", ".databricks",
    ".password-store",
})  # fmt: skip
# A pattern with a dot and a star at its end holds whatever follows, as in "service.pem.bak".
_SECRET_FILES = (
    ".env*", "*.env", "*.env.local*", "*.env.bak*", "*.env.old", "*.env.dev*", "*.env.prod*", "*.env.staging*",
    "*.pem", "*.pem.*", "*.key", "*.key.*", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc*", "_netrc", ".npmrc", ".yarnrc.yml", ".pypirc",
    ".pgpass", ".my.cnf", ".git-credentials", ".htpasswd", ".dockercfg", "credentials", "credentials.csv*",
    "credentials.db*", "credentials.ini*", "credentials.json*", "credentials.tfrc.json", "credentials.toml*",
    "credentials.xml*", "credentials.yaml*", "credentials.yml*", "client_secret*.json", "service-account*.json",
    "service_account*.json", "application_default_credentials.json", "kaggle.json", "rclone.conf*",
    "secrets.env*", "secrets.ini*", "secrets.json*", "secrets.toml*", "secrets.yaml*", "secrets.yml*",
    "*.secrets.json*", "*.secrets.toml*", "*.secrets.yaml*", "*.secrets.yml*", "terraform.tfstate*",
    "*.tfstate", "*.tfstate.backup", ".databrickscfg", ".s3cfg", ".boto", ".vault-token", ".terraformrc",
    ".renviron", ".bash_history", ".zsh_history", ".sh_history", ".python_history", ".node_repl_history",
    ".psql_history", ".mysql_history", ".sqlite_history", ".rhistory", "history.sqlite", "history.sqlite-*",
)  # fmt: skip
_EXAMPLES = (".env.example", ".env.sample", ".env.template", ".env.dist")
# Files and folders that hold credentials where they lie: the server's token and the kernel's key among them.
_SECRET_PATHS = (
    (".git", "config"), (".git", "credentials"), (".docker", "config.json"), (".m2", "settings.xml"),
    (".config", "gh", "hosts.yml"), (".config", "rclone"), (".config", "gcloud"), (".config", "op"),
    (".cache", "huggingface", "token"), (".cache", "huggingface", "stored_tokens"), (".huggingface", "token"),
    (".jupyter",), ("jupyter", "runtime"), ("jupyter", "jupyter_server_config.json"), ("jupyter", "nbsignatures.db"),
    ("jupyter", "notebook_secret"), ("jupyter", "notebook_cookie_secret"),
)  # fmt: skip
_SECRET = re.compile(
    "|".join(f"(?:{re.escape(glob).replace(chr(92) + '*', '.*')})" for glob in _SECRET_FILES), re.DOTALL
)


def protects(parts: Sequence[str], *, for_write: bool = False) -> str | None:
    """Return why the file at these path components is off limits, or None when it is not.

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


__all__ = ["Workspace", "WorkspaceError"]


class Workspace:
    """The folder that file actions may touch.

    Args:
        root: an existing folder; links in the path to it are resolved once, here.
        off_limits: folders that are nobody's business even when they lie inside the root, as they do when the root
            is the home folder; in place of those with the user's configuration, trust and approvals.
        durable: whether what was written is on the disk when a call returns. A folder that is thrown away
            with its process needs no more than the operating system's word.

    Example:
        >>> workspace = Workspace(".")                       # doctest: +SKIP
        >>> workspace.relative(workspace.resolve("data/orders.csv"))   # doctest: +SKIP
        'data/orders.csv'
    """

    def __init__(
        self, root: str | Path, *, off_limits: Sequence[Path] | None = None, durable: bool = True
    ) -> None:
        self.root = Path(os.path.realpath(root))
        self.durable = durable
        self._root = os.fspath(self.root)
        self._prefix = as_prefix(self._root)
        folders = (state_base(), user_path().parent) if off_limits is None else off_limits
        self._off_limits = tuple(os.path.realpath(folder) for folder in folders)
        self._verdict: Callable[[str], FileDecision] | None = None
        self.left_out = LeftOutFiles()
        if not self.root.is_dir():
            raise WorkspaceError(f"the workspace {self.root} is no folder; create it or name another root")

    def judged(self, verdict: Callable[[str], FileDecision]) -> Workspace:
        """Return the same folder as one call may see it: each file is judged when it is opened, listed or found.

        Args:
            verdict: the rules' word on a file, given as its path from the root; what they do not allow is left out,
                and counted in `left_out` of the workspace that is returned.
        """
        view = copy(self)
        view._verdict = verdict
        view.left_out = LeftOutFiles()
        return view

    def decision(self, place: str) -> FileDecision:
        """Return the rules' word on the file at a place, as `place` gives it."""
        return "allow" if self._verdict is None else self._verdict(place)

    def resolve(self, path: str | Path, *, for_write: bool = False) -> Path:
        """Return the absolute path that `path` leads to, links followed, proved to lie inside the root.

        Args:
            path: relative to the root, or absolute inside it. It need not exist.
            for_write: the file is to be written, replaced or removed: folders and ``.git`` are refused as well.

        Raises:
            WorkspaceError: outside the root, protected, ``..``, no file or folder (a device, pipe or socket), or a
                name that no file can have.
        """
        return Path(self._prefix + self.place(path, for_write=for_write))

    def place(self, path: str | Path, *, for_write: bool = False) -> str:
        """Return what `resolve` gives as text from the root, with ``/`` (".": the root). Raises WorkspaceError."""
        text = checked(path)
        if text.startswith("/"):
            lexical = os.path.normpath(text)
            below = self._below(lexical)
        else:
            below = "/".join(part for part in text.split("/") if part not in ("", "."))
            lexical = self._prefix + below if below else self._root
        real, status = self._led_to(lexical, below)
        place = self._below(real)
        if place is None:
            raise WorkspaceError(
                f"{shown(text)} leads outside the workspace; only files inside it can be used"
            )
        if any(real == folder or real.startswith(as_prefix(folder)) for folder in self._off_limits):
            raise WorkspaceError(f"{shown(text)} is protected: permissions and trust are kept there")
        for candidate in dict.fromkeys((below or "", place)):
            reason = protects(candidate.split("/"), for_write=for_write)
            if reason is not None:
                raise WorkspaceError(f"{shown(text)} is protected: {reason}")
        check_kind(real, status, text, for_write)
        return place or "."

    def relative(self, path: str | Path) -> str:
        """Return a path inside the root as text with ``/``, relative to the root ("." for the root itself)."""
        text = os.fspath(path if isinstance(path, Path) else Path(path))
        below = self._below(text) if text.startswith("/") else text
        if below is None:
            raise WorkspaceError(f"{shown(str(path))} is not inside the workspace {self.root}")
        return below or "."

    def _below(self, absolute: str) -> str | None:
        """Return the part of a path below the root, "" for the root itself; None for one outside."""
        if absolute == self._root:
            return ""
        return absolute[len(self._prefix) :] if absolute.startswith(self._prefix) else None

    def _led_to(self, lexical: str, below: str | None) -> tuple[str, os.stat_result | None]:
        """Return the real path that a path leads to, and its status where that is known already.

        Links in the path to the root were resolved once; where none lies below it either, a path leads to itself.
        """
        if below:
            here, status = self._root, None
            try:
                for part in below.split("/"):
                    here = as_prefix(here) + part
                    status = os.lstat(here)
                    if stat.S_ISLNK(status.st_mode):
                        break
                else:
                    return lexical, status
            except FileNotFoundError:
                return lexical, None
            except OSError:
                pass
        return os.path.realpath(lexical), None

    def open_read(self, path: str | Path) -> BinaryIO:
        """Open a regular file for reading. Raises WorkspaceError, also for a file that the rules do not allow."""
        name = self.place(path)
        decision = self.decision(name)
        if decision != "allow":
            why = "a permission rule denies it" if decision == "deny" else "that needs the person's consent"
            raise WorkspaceError(f"{shown(name)} is not read: {why}")
        with plainly(name), self._parent(name) as (folder, last):
            # Without O_NONBLOCK, opening a pipe that was swapped in would wait for a writer.
            flags = os.O_RDONLY | NO_FOLLOW | NO_WAIT | CLOSE_ON_EXEC
            descriptor = os.open(last, flags, dir_fd=folder)
            try:
                need_regular(os.fstat(descriptor), name)
                return os.fdopen(descriptor, "rb")
            except BaseException:
                os.close(descriptor)
                raise

    def read_bytes(self, path: str | Path, limit: int | None = None) -> bytes:
        """Return the content of a regular file, at most `limit` bytes of it. Raises WorkspaceError."""
        with self.open_read(path) as file:
            return file.read() if limit is None else file.read(limit)

    def mode(self, path: str | Path) -> int | None:
        """Return the permission bits of a file, or None when it does not exist."""
        try:
            return stat.S_IMODE(os.lstat(self.resolve(path)).st_mode)
        except FileNotFoundError:
            return None

    def write_atomic(self, path: str | Path, data: bytes, *, mode: int | None = None) -> Path:
        """Put `data` in place of a file in one step; readers see the old content or the new, never a part.

        Missing folders are made. The permission bits of a file that is there are kept, or set to `mode`.

        Returns:
            The absolute path written.

        Raises:
            WorkspaceError: the path may not be written, or the system refused (disk full, read-only).
        """
        name = self.place(path, for_write=True)
        with plainly(name), self._parent(name, make=True) as (folder, last):
            kept = mode_to_keep(last, folder, name)
            temporary = f".{secrets.token_hex(8)}.tmp"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW | CLOSE_ON_EXEC
            descriptor = os.open(temporary, flags, 0o666, dir_fd=folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                    wanted = kept if mode is None else mode & 0o777
                    if wanted is not None:
                        os.fchmod(file.fileno(), wanted)
                    file.flush()
                    if self.durable:
                        os.fsync(file.fileno())
                os.replace(temporary, last, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise
            if self.durable:
                os.fsync(folder)
        return self.root / name

    def delete(self, path: str | Path) -> Path:
        """Remove a regular file. Raises WorkspaceError."""
        name = self.place(path, for_write=True)
        with plainly(name), self._parent(name) as (folder, last):
            need_regular(os.stat(last, dir_fd=folder, follow_symlinks=False), name)
            os.unlink(last, dir_fd=folder)
        return self.root / name

    def walk(
        self,
        base: str | Path = ".",
        skip: Callable[[str], bool] | None = None,
        wanted: Callable[[Path], bool] | None = None,
    ) -> Iterator[Path]:
        """Yield the regular files under a folder, in a stable order, without protected ones, ``.git`` and links.

        Args:
            base: the folder to begin with; a file is its own only one.
            skip: asked with the name of each folder below; True leaves it out.
            wanted: asked with each file; False leaves it out before it is judged.
        """
        folder = self.resolve(base)
        files = iter((folder,)) if folder.is_file() else self._walk(os.fspath(folder), skip)
        for file in files:
            if wanted is not None and not wanted(file):
                continue
            if self._verdict is not None and (said := self._verdict(self.relative(file))) != "allow":
                self.left_out.add(said)
                continue
            yield file

    def _walk(self, folder: str, skip: Callable[[str], bool] | None) -> Iterator[Path]:
        pending = [folder]
        while pending:
            current = pending.pop()
            if Path(current).is_symlink():  # swapped since it was listed
                continue
            try:
                with os.scandir(current) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError:
                continue
            folders: list[str] = []
            # The folders above were judged on the way down; at most two of their names matter for what is in it.
            above = tuple(current[len(self._prefix) :].rsplit("/", 2)[-2:]) if current != self._root else ()
            for entry in entries:
                if entry.name == ".git" or protects((*above, entry.name)) or entry.path in self._off_limits:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if skip is None or not skip(entry.name):
                        folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield Path(entry.path)
            pending.extend(reversed(folders))

    @contextmanager
    def _parent(self, place: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Yield the open folder of a place, reached from the root without following a link, and the name in it."""
        *folders, last = place.split("/")
        descriptor = os.open(self._root, FOLDER)
        try:
            for part in folders:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=descriptor)
                deeper = os.open(part, FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = deeper
            yield descriptor, last
        finally:
            os.close(descriptor)
