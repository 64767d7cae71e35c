"""An archive to a folder: what leads out of it, links, devices and bombs are refused, and then nothing is left."""

from __future__ import annotations

import gzip
import json
import lzma
import shutil
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, NoReturn

ENDINGS = (".tar.gz", ".tar.bz2", ".tar.xz", ".tgz", ".tbz2", ".txz", ".tar", ".zip")
PIECE = 1 << 20
BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError,
)  # fmt: skip
# A name in the archive, whether it is a folder, and how its content is opened.
Member = tuple[str, bool, "AbstractContextManager[IO[bytes]] | None"]


def main() -> None:
    given = json.load(sys.stdin)
    archive, into = Path(given["archive"]), Path(given.get("into", "."))
    target = into / _name(archive.name)
    if target.exists():
        refuse(f"{target.name!r} is there already; move it away, or unpack into another folder")
    unfinished = target.with_name(f".{target.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    try:
        files, size = unpack(archive, unfinished, given["max_files"], given["max_bytes"])
        unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    json.dump({"folder": str(target), "files": files, "bytes": size}, sys.stdout)


def unpack(archive: Path, folder: Path, most_files: int, most_bytes: int) -> tuple[int, int]:
    """Write the files of an archive, counting what comes out of it rather than what it says; return both numbers."""
    files = seen = size = 0
    for name, is_folder, content in members(archive):
        seen += 1
        if seen > 2 * most_files or (files >= most_files and not is_folder):
            refuse(f"it holds more than {most_files:,} files")
        path = folder / inside(name)
        (path if is_folder else path.parent).mkdir(parents=True, exist_ok=True)
        if content is None:
            continue
        files += 1
        with content as source, path.open("xb") as opened:
            while piece := source.read(PIECE):
                size += len(piece)
                if size > most_bytes:
                    refuse(f"it unpacks to more than {most_bytes:,} bytes")
                opened.write(piece)
    return files, size


def members(archive: Path) -> Iterator[Member]:
    """Yield what an archive holds, in its order."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                kind = info.external_attr >> 28
                if kind not in (0, 0o4, 0o10):  # none told, a folder, a file
                    refuse(f"{info.filename!r} is a link or a device")
                if info.flag_bits & 1:
                    refuse("it is encrypted")
                yield info.filename, info.is_dir(), None if info.is_dir() else packed.open(info)
        return
    if not tarfile.is_tarfile(archive):
        refuse("it is broken, or no archive of a kind that is known (ZIP, tar)")
    with tarfile.open(archive, "r:*") as packed_tar:
        for member in packed_tar:
            if not (member.isfile() or member.isdir()):
                refuse(f"{member.name!r} is a link or a device")
            yield member.name, member.isdir(), packed_tar.extractfile(member) if member.isfile() else None


def inside(name: str) -> Path:
    """Return the path of a name below the folder."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if name.startswith(("/", "\\")) or ".." in parts or "\0" in name or name[1:2] == ":":
        refuse(f"{name!r} leads out of the folder")
    return Path(*parts)


def refuse(reason: str) -> NoReturn:
    sys.exit(f"The archive was not unpacked: {reason}.")


def _name(name: str) -> str:
    for ending in ENDINGS:
        if name.lower().endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)]
    return f"{name}.unpacked"


try:
    main()
except FileExistsError as error:
    refuse(f"{Path(str(error.filename)).name!r} is in it twice, or once as a file and once as a folder")
except BROKEN as error:
    refuse(f"it is broken ({' '.join(str(error).split())[:200]})")
