"""One video, by yt-dlp."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def main() -> None:
    given = json.load(sys.stdin)
    url, folder = given["url"], Path(given.get("into", ".")).resolve()
    if not url.startswith(("https://", "http://")):
        sys.exit("The address has to begin with https://")
    told = Path("downloaded.txt").resolve()  # where yt-dlp writes the path of the video
    command = [
        "yt-dlp", "--ignore-config", "--no-playlist", "--restrict-filenames", "--newline", "--no-cache-dir",
        "--format", given["quality"], "--paths", str(folder), "--output", "%(title).80B-%(id)s.%(ext)s",
        "--no-simulate", "--progress", "--print-to-file", "after_move:filepath", str(told).replace("%", "%%"),
        "--", url,
    ]  # fmt: skip
    done = subprocess.run(command, stdout=sys.stderr, check=False)  # noqa: S603 - words, no shell
    if done.returncode:
        sys.exit(f"yt-dlp ended with exit code {done.returncode}.")
    file = Path(told.read_text(encoding="utf-8").splitlines()[-1])
    json.dump({"file_path": str(file), "bytes": file.stat().st_size}, sys.stdout)


main()
