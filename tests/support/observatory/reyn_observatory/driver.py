"""The driver of a dome: a program that speaks HTTP on this machine, and simulates the instruments.

Invariants: it needs the standard library alone and prints its port once it answers. What moves an instrument needs the
key of an observer, of which the driver knows the digest. An exposure waits while the sky is cloudy.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import random
import struct
import sys
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SIDE = 48  # pixels of a picture
OBSERVERS = {
    "32e2e75583115568e0dc058a9330a99bc7f2382427896d2c5b2d91aef4e619eb": "Ada"
}  # SHA-256 of a key → whose
POINTING = {
    "type": "array",
    "description": "Right ascension and declination, in degrees.",
    "items": [
        {"type": "number", "minimum": 0, "maximum": 360},
        {"type": "number", "minimum": -90, "maximum": 90},
    ],
    "minItems": 2,
    "additionalItems": False,
}
FRAMES = {"type": "integer", "minimum": 1, "maximum": 100, "description": "Frames to add up; 1 if left out."}


def instrument(name: str, description: str, moves: bool, **properties: Any) -> dict[str, Any]:
    """Return an instrument as the driver lists it, with a schema of JSON Schema draft-07."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": properties,
        "required": [each for each in properties if each != "frames"],
    }
    return {"name": name, "description": description, "moves": moves, "input_schema": schema}


class Dome:
    """The instruments, and the sky above them; its threads wait for what changes."""

    def __init__(self, site: str) -> None:
        self.site = site
        self.changed = threading.Condition()
        self.clear_frames = math.inf  # until the clouds come
        self.instruments = [
            instrument("mast", "Read temperature and wind.", moves=False),
            instrument("allsky", "Photograph the whole sky.", moves=False, frames=FRAMES),
            instrument("telescope", "Photograph a place.", moves=True, pointing=POINTING, frames=FRAMES),
        ]

    def mount(self, name: str) -> None:
        with self.changed:
            added = instrument(name, f"Take a {name}.", moves=True, pointing=POINTING, frames=FRAMES)
            self.instruments.append(added)
            self.changed.notify_all()

    def forecast(self, clear_frames: float) -> None:
        with self.changed:
            self.clear_frames = clear_frames
            self.changed.notify_all()

    def news(self) -> Iterator[dict[str, int]]:
        """Yield the number of instruments now, and again whenever it changes."""
        known = -1
        while True:
            with self.changed:
                while len(self.instruments) == known:
                    self.changed.wait()
                known = len(self.instruments)
            yield {"instruments": known}

    def observe(self, name: str, arguments: dict[str, Any], observer: str | None) -> Iterator[dict[str, Any]]:
        """Yield what an instrument has, frame by frame."""
        header = {"site": self.site, "instrument": name, "observer": observer, **arguments}
        if name == "mast":
            yield {"number": 1, "total": 1, "header": {**header, "celsius": 8.5, "wind": 3.1}}
            return
        total = arguments.get("frames", 1)
        for number in range(1, total + 1):
            with self.changed:
                self.changed.wait_for(lambda: self.clear_frames > 0)
                self.clear_frames -= 1
            picture = base64.b64encode(stars(arguments.get("pointing"), number)).decode()
            yield {"number": number, "total": total, "header": {**header, "frames": number}, "png": picture}


def stars(pointing: object, frames: int) -> bytes:
    """Return a PNG of the stars at a place, brighter with each frame."""
    chance = random.Random(str(pointing))
    rows = [bytearray(SIDE + 1) for _ in range(SIDE)]  # each begins with the byte of its filter
    for _ in range(20):
        rows[chance.randrange(SIDE)][chance.randrange(1, SIDE + 1)] = min(255, 40 * frames + 60)

    def chunk(name: bytes, held: bytes) -> bytes:
        return struct.pack(">I", len(held)) + name + held + struct.pack(">I", zlib.crc32(name + held))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"".join(rows))) + chunk(b"IEND", b"")


class Handler(BaseHTTPRequestHandler):
    """``/instruments``, ``/observe/NAME``, ``/news``, ``/sky``, and ``/plates/NAME``, which lie on another host."""

    dome: Dome

    def do_GET(self) -> None:
        if self.path == "/instruments":
            self._answer(200, json.dumps(self.dome.instruments).encode())
        elif self.path == "/news":
            self._stream(self.dome.news())
        elif self.path.startswith("/plates/"):
            port = self.headers["Host"].rpartition(":")[2]
            self._answer(302, b"", Location=f"http://localhost:{port}/archive/{self.path[8:]}")
        elif self.path == "/archive/m31":
            self._answer(200, stars([10.7, 41.3], 4))
        else:
            self._answer(404, b"")

    def do_POST(self) -> None:
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/instruments":
            self.dome.mount(given["name"])
            self._answer(200, b"")
        elif self.path == "/sky":
            self.dome.forecast(given["clear_frames"])
            self._answer(200, b"")
        else:
            self._observe(self.path.removeprefix("/observe/"), given)

    def _observe(self, name: str, arguments: dict[str, Any]) -> None:
        used = next((each for each in self.dome.instruments if each["name"] == name), None)
        key = self.headers.get("Authorization", "").removeprefix("Bearer ")
        observer = OBSERVERS.get(hashlib.sha256(key.encode()).hexdigest())
        if used is None:
            self._answer(404, b"")
        elif used["moves"] and observer is None:
            self._answer(401, b"")
        else:
            self._stream(self.dome.observe(name, arguments, observer))

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, items: Iterator[dict[str, Any]]) -> None:
        """Send each item as a line, until they or the connection end."""
        self.send_response(200)
        self.end_headers()
        try:
            for item in items:
                self.wfile.write(json.dumps(item).encode() + b"\n")
                self.wfile.flush()
        except OSError:
            return  # nobody listens any more

    def log_message(self, *said: Any) -> None:
        """Say nothing: nobody reads it."""


def main(site: str) -> None:
    Handler.dome = Dome(site)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
