"""WebM to MP4, by ffmpeg."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

# What players take: H.264 has two pixels to a color, so sides are even; the index stands first, so that it streams.
ENCODED = (
    "-map", "0:v:0", "-map", "0:a:0?", "-vf", "scale=trunc(iw/2)*2:trunc(ih/2)*2", "-c:v", "libx264", "-crf", "20",
    "-pix_fmt", "yuv420p", "-c:a", "aac", "-b:a", "160k", "-movflags", "+faststart", "-f", "mp4",
)  # fmt: skip


def main() -> None:
    given = json.load(sys.stdin)
    folder, made = Path(given.get("into", ".")), list[str]()
    sources = named(given)
    targets = [folder / f"{source.stem}.mp4" for source in sources]
    if len(set(targets)) < len(targets):
        sys.exit(
            "Two of the videos have the same name; convert them one after the other into folders of their own."
        )
    for number, (source, target) in enumerate(zip(sources, targets, strict=True), 1):
        sys.stderr.write(f"{number} of {len(sources)}: {source.name}\n")
        convert(source, target)
        made.append(str(target))
    json.dump({"files": made}, sys.stdout)


def named(given: dict[str, object]) -> list[Path]:
    """Return the videos that are asked for."""
    if given["mode"] == "all":
        if "folder" not in given:
            sys.exit("Mode all needs a folder.")
        folder = Path(str(given["folder"]))
        found = sorted(path for path in folder.glob("*") if path.suffix.lower() == ".webm" and path.is_file())
        if not found:
            sys.exit(f"There is no .webm file in {folder.name}.")
        return found
    files = given.get("files")
    if not isinstance(files, list):
        sys.exit("Mode selected needs files.")
    paths = [Path(str(each)) for each in files]
    for path in paths:
        if path.suffix.lower() != ".webm" or not path.is_file():
            sys.exit(f"{path.name} is no .webm file.")
    return paths


def convert(source: Path, target: Path) -> None:
    """Write one video; a file of the same name is replaced once the new one is whole."""
    unfinished = target.with_name(f".{target.name}.unfinished")
    command = [
        "ffmpeg", "-hide_banner", "-nostdin", "-loglevel", "warning", "-stats", "-y", "-protocol_whitelist", "file",
        "-f", "matroska", "-i", f"file:{source}", *ENCODED, f"file:{unfinished}",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, stdout=sys.stderr, check=False)  # noqa: S603 - words, no shell
        if done.returncode:
            sys.exit(f"ffmpeg could not convert {source.name} (exit code {done.returncode}).")
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


main()
