"""Files of the workspace, opened, replaced and removed inside its root and nowhere else.

Invariants: whatever is opened, replaced or removed here lies under the root when the system call happens,
not only when the path was checked. A path is first resolved (symlinks and all) and judged; then the file is
reached from the root's descriptor one component at a time, following no link, so a link swapped in between
is refused, not followed. A hard link cannot be told from the file itself: reading one reads that file;
writing replaces the name and leaves the other one as it was.

Whether a file is protected depends on its path, on the words of its name, and for a ``config`` on whether its folder
is one of git's. It depends on nothing that a file system may treat as equal: letter case, Unicode form, invisible
characters, trailing dots and spaces, a stream name behind a colon. A refusal names the path as the caller wrote it,
bounded, and tells what to do.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from contextlib import closing, contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

from reyn_jupyter.config import user_path
from reyn_jupyter.guard.held_place import (
    HeldFolder,
    HeldPlace,
    WorkspaceError,
    open_folder,
    open_regular,
    plainly,
    shown,
)
from reyn_jupyter.support.files.state_base import state_base
from reyn_jupyter.support.secret_names import secret_file
from reyn_jupyter.support.text import count

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

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


class _Beside:
    """The names in a folder, looked up one by one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __contains__(self, name: object) -> bool:
        return os.path.lexists(self._folder / str(name))


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


STATE_FOLDER = ".reyn"
_SECRET_FOLDERS = frozenset({
    STATE_FOLDER, ".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".kaggle", ".terraform.d", ".databricks",
    ".password-store", ".oci", ".snowsql", ".snowflake", ".dbt", ".cloudflared", ".bluemix", ".vault",
})  # fmt: skip
# A pattern with a dot and a star at its end holds whatever follows, as in "service.pem.bak".
_SECRET_FILES = (
    ".env*", "*.env", "*.env.local*", "*.env.bak*", "*.env.old", "*.env.dev*", "*.env.prod*", "*.env.staging*",
    "*.pem", "*.pem.*", "*.key", "*.key.*", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc*", "_netrc", ".npmrc", ".yarnrc.yml", ".pypirc",
    ".gitconfig*", ".hgrc", ".curlrc", ".wgetrc", ".authinfo*", ".msmtprc", ".fetchmailrc", ".lftprc", "nuget.config",
    ".pgpass", ".my.cnf", ".git-credentials", ".htpasswd", ".dockercfg", "credentials", "credentials.csv*",
    "credentials.db*", "credentials.ini*", "credentials.json*", "credentials.tfrc.json", "credentials.toml*",
    "credentials.xml*", "credentials.yaml*", "credentials.yml*", "client_secret*.json", "service-account*.json",
    "service_account*.json", "application_default_credentials.json", "kaggle.json", "rclone.conf*",
    "secrets.env*", "secrets.ini*", "secrets.json*", "secrets.toml*", "secrets.yaml*", "secrets.yml*",
    "*.secrets.json*", "*.secrets.toml*", "*.secrets.yaml*", "*.secrets.yml*", "terraform.tfstate*",
    "*.tfstate", "*.tfstate.backup", ".databrickscfg", ".s3cfg", ".boto", ".vault-token", ".terraformrc",
    ".renviron", ".bash_history", ".zsh_history", ".sh_history", ".python_history", ".node_repl_history",
    "*.kubeconfig", "*.tfvars", "*.tfvars.json", "*.p8", "*.keytab", "*.jceks", "*.bks", "*.kdb", "*.keychain",
    "*.keychain-db", "*.agekey", "*.ovpn", "wp-config.php", "local.settings.json", "local_settings.py",
    ".mylogin.cnf", ".dockerconfigjson",
    "*firebase-adminsdk*.json", "gha-creds-*.json", "keyfile*.json", "key.json", "rootkey.csv",
    "*accesskeys.csv", ".vault-pass*", ".vault_pass*", ".sentryclirc", ".condarc", "pip.conf", "pip.ini",
    "stored_tokens", "secrets.sh", "credentials.sh", ".psql_history", ".mysql_history", ".sqlite_history",
    ".rhistory", "history.sqlite", "history.sqlite-*",
)  # fmt: skip
_EXAMPLES = (".env.example", ".env.sample", ".env.template", ".env.dist")
# Files and folders that hold credentials where they lie: the server's token and the kernel's key among them.
_SECRET_PATHS = (
    (".docker", "config.json"), (".m2", "settings.xml"), (".m2", "settings-security.xml"),
    (".claude", ".credentials.json"), (".codex", "auth.json"), (".gemini", "oauth_creds.json"),
    (".config", "containers", "auth.json"), (".config", "hub"), (".config", "github-copilot"),
    (".config", "glab-cli"), (".config", "stripe"), (".config", "ngrok"), (".config", "doctl"), (".config", "wandb"),
    (".ngrok2", "ngrok.yml"), (".cargo", "credentials"), (".gem", "credentials"), (".composer", "auth.json"),
    (".subversion", "auth"), (".local", "share", "keyrings"), (".local", "share", "opencode", "auth.json"),
    (".gradle", "gradle.properties"), (".fly", "config.yml"), (".netlify", "config.json"), (".mc", "config.json"),
    (".circleci", "cli.yml"), (".annex", "creds"), ("annex", "creds"),
    (".config", "gh", "hosts.yml"), (".config", "rclone"), (".config", "gcloud"), (".config", "op"),
    (".config", "git", "config"), (".config", "git", "credentials"), (".config", "hg"),
    (".cache", "huggingface", "token"), (".cache", "huggingface", "stored_tokens"), (".huggingface", "token"),
    (".jupyter",), ("jupyter", "runtime"), ("jupyter", "jupyter_server_config.json"), ("jupyter", "nbsignatures.db"),
    ("jupyter", "notebook_secret"), ("jupyter", "notebook_cookie_secret"),
)  # fmt: skip
_RUN_FILES = ("state", "runs")  # the folder of the files that runs of plans are kept in
# Which programs clients of the Model Context Protocol run.
_SERVER_FILES = (
    (".cursor", "mcp.json"),
    (".vscode", "mcp.json"),
    (".gemini", "settings.json"),
    (".roo", "mcp.json"),
)
_SECRET = re.compile(
    "|".join(f"(?:{re.escape(glob).replace(chr(92) + '*', '.*')})" for glob in _SECRET_FILES), re.DOTALL
)


_PLACES = frozenset(path[0] for path in _SECRET_PATHS)
_KEY_FILE = re.compile(r".*_(?:rsa|dsa|ecdsa|ed25519)|ssh_host_.*_key")
_CREDENTIALS = "it is a file that may hold credentials"
_COPY = re.compile(r"(?:~|#|\.(?:bak|backup|copy|old|orig|save|sw[a-p]|tmp|\d{1,4}))+$")


def protects(parts: Sequence[str], *, for_write: bool = False) -> str | None:
    """Return why what is at these path components, a file or a folder, is off limits; None if it is not.

    Writing anywhere in ``.git`` is refused too, and files that name MCP servers: what stands there runs commands.

    >>> protects(("config", ".ENV"))
    'it is named like a file that holds secrets'
    >>> protects((".env.example",)) is None
    True
    """
    names = tuple(_plain(part) for part in parts)
    for name in names:
        if (why := _by_itself(name)) is not None:
            return why
    if not _PLACES.isdisjoint(names):
        originals = tuple(map(_original, names))
        for path in _SECRET_PATHS:
            if any(originals[at : at + len(path)] == path for at in range(len(names))):
                return _CREDENTIALS
    if _is_of_git(names[-1]) and _lies_in_git(names):
        return _CREDENTIALS
    if names[-3:-1] == _RUN_FILES and names[-1].endswith((".json", ".lock")):
        return "it holds results of a run of steps, also of what is denied by now; dispatch --resume goes on with it"
    if not for_write:
        return None
    if ".git" in names:
        return "what lies in .git can run commands"
    if names[-1:] == (".mcp.json",) or names[-2:] in _SERVER_FILES:
        return "it names programs that are run as MCP servers, which a person adds and drops"
    return None


def protects_file(parts: Sequence[str], beside: Container[str] = ()) -> str | None:
    """Return why a file is off limits to reading, by its path, the words of its name, and what lies beside it.

    What may be a folder is judged by `protects` alone, since sources lie in folders that are named `auth` or `secrets`.

    Args:
        parts: its path components.
        beside: the names in its folder. In git's folders, ``config`` may hold addresses with tokens.

    >>> protects_file(("x", "config"), {"HEAD", "objects", "refs"})
    'it is a file that may hold credentials'
    """
    if (why := protects(parts)) is not None:
        return why
    name = _plain(parts[-1])
    if _is_of_git(name) and is_git_folder(beside):
        return _CREDENTIALS
    if _KEY_FILE.fullmatch(name) or secret_file(visible_name(parts[-1])):
        return "it is named like a file that holds secrets; if it holds none, give it another name"
    return None


def is_git_folder(names: Container[str]) -> bool:
    """Return whether a folder with these names in it is one of git's own: of a repository, a submodule, a worktree."""
    return "HEAD" in names and (("objects" in names and "refs" in names) or "commondir" in names)


def _lies_in_git(names: Sequence[str]) -> bool:
    """Return whether a path leads into ``.git``, or into what git keeps in a bare repository."""
    *folders, _ = names
    return ".git" in folders or any(
        name.endswith(".git") and folders[at + 1 : at + 2] in ([], ["modules"], ["worktrees"])
        for at, name in enumerate(folders)
    )


def _is_of_git(name: str) -> bool:
    return name.startswith("config") or name.endswith("credentials")


@lru_cache(16384)
def _by_itself(name: str) -> str | None:
    """Return why everything of this name, in its one spelling, is off limits."""
    if name == STATE_FOLDER:
        return f"{STATE_FOLDER}/ is the session's own state"
    for each in (name, _original(name)):
        if each in _SECRET_FOLDERS:
            return "it lies in a folder for secrets"
        if _SECRET.fullmatch(each) and name not in _EXAMPLES:
            return "it is named like a file that holds secrets"
    return None


def _original(name: str) -> str:
    """Return the name of which a name is a copy that an editor or a person made: ``.npmrc.bak``, ``auth.json~``."""
    return _COPY.sub("", name).removeprefix("#")


@lru_cache(16384)
def _plain(name: str) -> str:
    if name.isascii() and ":" not in name:
        return name.lower().rstrip(". ")
    return visible_name(unicodedata.normalize("NFKC", name).casefold())


def visible_name(name: str) -> str:
    """Return a name without what a file system may ignore: invisible characters, a stream, dots at its end."""
    visible = "".join(character for character in name if unicodedata.category(character) != "Cf")
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
        self._held = HeldFolder(self._root, ".")

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

    def check(self) -> None:
        """Check that the path of the root still leads to the folder of this object. Raises WorkspaceError."""
        try:
            self._held.check()
        except WorkspaceError:
            raise WorkspaceError(
                f"the workspace {self.root} was moved, removed or replaced after this session began"
            ) from None

    def decision(self, place: str) -> FileDecision:
        """Return the rules' word on the file at a place, as `place` gives it."""
        return "allow" if self._verdict is None else self._verdict(place)

    @property
    def has_rules(self) -> bool:
        """True if rules have a say on each file."""
        return self._verdict is not None

    def is_off_limits(self, place: str) -> bool:
        """Return whether a place is a folder that is nobody's business, wherever the root lies."""
        return self._prefix + place in self._off_limits

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
        is_folder = Path(real).is_dir() if status is None else stat.S_ISDIR(status.st_mode)
        for candidate in dict.fromkeys((below or "", place)):
            reason = protects(candidate.split("/"), for_write=for_write)
            if reason is None and not is_folder:
                reason = protects_file(candidate.split("/"), _Beside(Path(self._prefix + candidate).parent))
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
        return self.open_place(self.place(path))

    def open_place(self, place: str) -> BinaryIO:
        """Open the file at a place, as `place` gave it, through no link. Raises WorkspaceError as `open_read` does."""
        decision = self.decision(place)
        if decision != "allow":
            why = "a permission rule denies it" if decision == "deny" else "that needs the person's consent"
            raise WorkspaceError(f"{shown(place)} is not read: {why}")
        *folders, name = place.split("/")
        with plainly(place):
            folder = open_folder(self._root, folders)
            try:
                return open_regular(name, folder, place)
            finally:
                os.close(folder)

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

    def held(self, path: str | Path) -> HeldPlace:
        """Return the place that `path` leads to, links followed, for one change; it is the caller's to close.

        Raises:
            WorkspaceError: the path may not be written.
        """
        return HeldPlace(self._root, self.place(path, for_write=True), durable=self.durable)

    def write_atomic(self, path: str | Path, data: bytes, *, mode: int | None = None) -> Path:
        """Put `data` in place of a file in one step; see `HeldPlace.replace`.

        Returns:
            The absolute path written.

        Raises:
            WorkspaceError: the path may not be written, or the system refused (disk full, read-only).
        """
        with closing(self.held(path)) as place:
            place.replace(data, mode=mode)
        return self.root / place.path

    def delete(self, path: str | Path) -> Path:
        """Remove a regular file. Raises WorkspaceError."""
        with closing(self.held(path)) as place:
            place.remove()
        return self.root / place.path

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
        return self.walk_place(self.place(base), skip, wanted)

    def walk_place(
        self,
        place: str,
        skip: Callable[[str], bool] | None = None,
        wanted: Callable[[Path], bool] | None = None,
    ) -> Iterator[Path]:
        """Yield what `walk` does, from a folder or file at a place, as `place` gave it, and through no link."""
        mode = self._mode(place)
        files = self._walk(place, skip) if stat.S_ISDIR(mode) else (place,) if stat.S_ISREG(mode) else ()
        for found in files:
            file = Path(self._prefix + found)
            if wanted is not None and not wanted(file):
                continue
            if self._verdict is not None and (said := self._verdict(found)) != "allow":
                self.left_out.add(said)
                continue
            yield file

    def _mode(self, place: str) -> int:
        """Return the mode of what is at a place; 0 where nothing is, or where a link is on the way."""
        *folders, name = place.split("/")
        with suppress(OSError):
            folder = open_folder(self._root, folders)
            try:
                return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            finally:
                os.close(folder)
        return 0

    @contextmanager
    def listing(self, place: str) -> Iterator[list[os.DirEntry[str]]]:
        """Yield what lies in a folder, by name, reached through no link and held open as long as the block runs.

        Args:
            place: as `place` gave it.

        Raises:
            OSError: it is not there, no folder, or a link.
        """
        descriptor = open_folder(self._root, [] if place == "." else place.split("/"))
        try:
            with os.scandir(descriptor) as found:
                entries = sorted(found, key=lambda entry: entry.name)
            yield entries
        finally:
            os.close(descriptor)

    def _walk(self, folder: str, skip: Callable[[str], bool] | None) -> Iterator[str]:
        pending = [folder]
        while pending:
            current = pending.pop()
            files, folders = self._listed(current, skip)
            yield from files
            pending.extend(reversed(folders))

    def _listed(self, folder: str, skip: Callable[[str], bool] | None) -> tuple[list[str], list[str]]:
        """Return the places of the files and of the folders in one folder; none where it cannot be listed."""
        files: list[str] = []
        folders: list[str] = []
        above = "" if folder == "." else folder + "/"
        names = tuple(folder.split("/")) if above else ()
        with suppress(OSError), self.listing(folder) as entries:
            beside = {entry.name for entry in entries}
            for entry in entries:
                place = above + entry.name
                if entry.name == ".git" or protects((*names, entry.name)):
                    continue
                if self._prefix + place in self._off_limits:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if skip is None or not skip(entry.name):
                        folders.append(place)
                elif entry.is_file(follow_symlinks=False) and not protects_file((*names, entry.name), beside):
                    files.append(place)
        return files, folders
