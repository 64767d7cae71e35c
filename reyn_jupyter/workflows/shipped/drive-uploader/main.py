"""One file to Google Drive, by its API: in one request up to 5 MB, as a resumable upload beyond.

Source: Google Drive API v3, "Upload file data" (multipart and resumable uploads).
"""

from __future__ import annotations

import json
import mimetypes
import os
import re
import secrets
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

MULTIPART = 5_000_000  # bytes, as Google bounds it
SECONDS = 300
WANTED = "fields=id,name,size,webViewLink&supportsAllDrives=true"


class Passed(urllib.request.HTTPRedirectHandler):
    """Follow no redirection: the token is for the server that it was given to."""

    def redirect_request(self, *args: Any) -> None:
        return None


def main() -> None:
    given = json.load(sys.stdin)
    file, address = Path(given["file_path"]), f"{sys.argv[1]}/upload/drive/v3/files"
    if not file.is_file():
        sys.exit("A folder cannot be uploaded; name a file, such as an archive of it.")
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    about: dict[str, Any] = {"name": given.get("name", file.name), "mimeType": kind}
    if "folder_url" in given:
        about["parents"] = [folder_id(given["folder_url"])]
    size = file.stat().st_size
    sys.stderr.write(f"uploading {file.name}, {size:,} bytes\n")
    found = json.loads(
        multipart(address, about, file, kind) if size <= MULTIPART else resumable(address, about, file, size)
    )
    result = {"file_id": found["id"], "name": found["name"], "bytes": int(found.get("size", size))}
    link = {"link": found["webViewLink"]} if found.get("webViewLink") else {}
    json.dump({**result, **link}, sys.stdout)


def folder_id(text: str) -> str:
    """Return the id of a folder from its address, or from itself."""
    match = (
        re.search(r"/folders/([\w-]+)", text)
        or re.search(r"[?&]id=([\w-]+)", text)
        or re.fullmatch(r"([\w-]+)", text)
    )
    if match is None:
        sys.exit(
            "The address names no folder of Google Drive; it looks like https://drive.google.com/drive/folders/…"
        )
    return match[1]


def multipart(address: str, about: dict[str, Any], file: Path, kind: str) -> bytes:
    """Send what a file is and its content in one request."""
    between = f"part-{secrets.token_hex(16)}"
    head = (
        f"--{between}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{json.dumps(about)}\r\n"
        f"--{between}\r\nContent-Type: {kind}\r\n\r\n"
    )
    body = head.encode() + file.read_bytes() + f"\r\n--{between}--\r\n".encode()
    headers = {"Content-Type": f"multipart/related; boundary={between}"}
    return sent("POST", f"{address}?uploadType=multipart&{WANTED}", body, headers)[0]


def resumable(address: str, about: dict[str, Any], file: Path, size: int) -> bytes:
    """Begin an upload, and send the content to the address that Drive gave for it."""
    headers = {
        "Content-Type": "application/json; charset=UTF-8",
        "X-Upload-Content-Type": about["mimeType"], "X-Upload-Content-Length": str(size),
    }  # fmt: skip
    begun = sent("POST", f"{address}?uploadType=resumable&{WANTED}", json.dumps(about).encode(), headers)[1]
    place = begun.get("Location", "")
    if not place.startswith(f"{sys.argv[1]}/"):
        sys.exit("Drive named no address of its own for the content.")
    with file.open("rb") as content:
        return sent("PUT", place, content, {"Content-Type": about["mimeType"], "Content-Length": str(size)})[
            0
        ]


def sent(method: str, address: str, body: Any, headers: dict[str, str]) -> tuple[bytes, Any]:
    """Send a request with the token, and return the body and the headers of its answer."""
    token = os.environ["GOOGLE_DRIVE_TOKEN"]
    request = urllib.request.Request(  # noqa: S310 - the address is the manifest's
        address, data=body, method=method, headers={**headers, "Authorization": f"Bearer {token}"}
    )
    try:
        with urllib.request.build_opener(Passed).open(request, timeout=SECONDS) as answer:
            return answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        sys.exit(refusal(error.code, error.read(100_000)))
    except urllib.error.URLError as error:
        sys.exit(f"Google Drive was not reached: {error.reason}")


def refusal(code: int, body: bytes) -> str:
    """Return why Drive refused, as it says itself."""
    try:
        said = str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        said = "it gave no reason"
    hint = " The token is not valid any more: get a new one." if code == 401 else ""
    return f"Google Drive refused ({code}): {said[:500]}{hint}"


main()
