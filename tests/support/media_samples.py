"""Small images and sounds, made here: a PNG of one colour, headers of other images, a WAV of a tone."""

from __future__ import annotations

import math
import struct
import zlib


def png(width: int = 4, height: int = 3, colour: tuple[int, int, int] = (200, 30, 30)) -> bytes:
    """A PNG of one colour."""
    rows = (b"\0" + bytes(colour) * width) * height
    return _png(width, height, zlib.compress(rows))


def png_bomb(side: int = 60_000) -> bytes:
    """A PNG of a few hundred bytes that says it is huge."""
    return _png(side, side, zlib.compress(b"\0" * 1000))


def _png(width: int, height: int, data: bytes) -> bytes:
    def chunk(name: bytes, held: bytes) -> bytes:
        return (
            struct.pack(">I", len(held))
            + name
            + held
            + struct.pack(">I", zlib.crc32(name + held) & 0xFFFFFFFF)
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def jpeg_head(width: int, height: int) -> bytes:
    """The beginning of a JPEG, up to its frame header."""
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9)
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, height, width, 3) + bytes(9)
    return b"\xff\xd8" + app + frame


def wav(seconds: float = 0.25, rate: int = 8000) -> bytes:
    """A tone of 440 Hz, 8 bits, one channel."""
    held = bytes(
        int(128 + 100 * math.sin(2 * math.pi * 440 * at / rate)) for at in range(int(seconds * rate))
    )
    head = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, rate, 1, 8)
    return (
        b"RIFF"
        + struct.pack("<I", 36 + len(held))
        + b"WAVE"
        + head
        + b"data"
        + struct.pack("<I", len(held))
        + held
    )
