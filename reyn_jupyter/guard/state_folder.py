"""The folder of what the person decided about one workspace: trust and approvals.

Invariant: it is chosen by the workspace's resolved path and lies in the user's own state folder, never in the
workspace, so a cloned or moved workspace brings no decisions along. Files are 0600, replaced in one step, and
changed under a lock, so two kernels lose nothing of each other's.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import stat
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reyn_jupyter.support.files.locks import open_lock_file, release, wait_for_lock
from reyn_jupyter.support.files.plain_files import CLOSE_ON_EXEC, NO_FOLLOW, NO_WAIT, parse_json
from reyn_jupyter.support.files.state_base import state_base

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LARGEST = 1 << 20  # bytes
NOT_THERE = (0, 0, 0)  # the stamp of a file that does not exist


class StateError(Exception):
    """The state folder cannot be used; the message says what to do."""


class StateFolder:
    """The files that are kept for one workspace.

    Args:
        root: the workspace; links in its path are resolved.
        base: in place of the user's state folder.
    """

    def __init__(self, root: str | Path, base: Path | None = None) -> None:
        self.root = Path(os.path.realpath(root))
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:32]
        self.path = (base or state_base()) / "workspaces" / digest

    def read(self, name: str) -> Any:
        """Return the JSON value of a file, or None when it is not there.

        Raises:
            ValueError: the file is no JSON, too large, or a link.
        """
        try:
            descriptor = os.open(self.path / name, os.O_RDONLY | NO_FOLLOW | NO_WAIT | CLOSE_ON_EXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ValueError(f"{name} cannot be read: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise ValueError(f"{name} is no regular file")
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise ValueError(f"{name} is too large")
        try:
            return parse_json(content)
        except ValueError:
            raise ValueError(f"{name} is no JSON") from None

    def stamp(self, name: str) -> tuple[int, int, int] | None:
        """Return a value that moves whenever the file is made, replaced or removed; None when that cannot be told."""
        try:
            status = os.lstat(f"{self.path}/{name}")  # asked at every call: no Path is made
        except FileNotFoundError:
            return NOT_THERE
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def change(self, name: str, change: Callable[[Any], Any]) -> None:
        """Replace a file's value by ``change(value)``, alone; a damaged file is set aside and counts as absent.

        Raises:
            StateError: the folder cannot be written.
        """
        try:
            with self._locked():
                try:
                    before = self.read(name)
                except ValueError:
                    self._set_aside(name)
                    before = None
                self._write(name, change(before))
        except OSError as error:
            raise StateError(
                f"{self.path} cannot be written ({error.strerror}); "
                "set REYN_STATE_DIR to a folder of your own"
            ) from None

    def set_aside(self, name: str) -> Path | None:
        """Rename a damaged file so that it is kept but not read; return its new path, None if that failed."""
        try:
            with self._locked():
                return self._set_aside(name)
        except OSError:
            return None

    def _set_aside(self, name: str) -> Path:
        aside = self.path / f"{name}.damaged-{time.time_ns()}"
        (self.path / name).replace(aside)
        return aside

    def _write(self, name: str, value: Any) -> None:
        content = json.dumps(value, ensure_ascii=True, indent=1)
        if len(content) > LARGEST:
            raise OSError(
                errno.EFBIG, f"{name} would be larger than {LARGEST >> 20} MiB, and could not be read"
            )
        temporary = self.path / f".{name}.{secrets.token_hex(8)}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_FOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path / name)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = open_lock_file(self.path / ".lock")
        try:
            wait_for_lock(descriptor)
            yield
        finally:
            release(descriptor)
