"""What bytes are, by their first bytes: the kind of an image or a sound, how large it is drawn, how long it plays.

Invariant: nothing is decoded. Only headers of bounded size are read, whatever the bytes claim, and nothing raises.
Sources: PNG (ISO/IEC 15948), JPEG (ITU T.81, annex B), GIF89a, WebP (RFC 9649), RIFF/WAVE, RFC 6838 for type names.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

UNKNOWN = "application/octet-stream"
MIME_LENGTH = 127
# Type and subtype of RFC 6838, and parameters that hold nothing else than words.
_MIME = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,62}/[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,62})(?:[ \t]*;[ \t]*[\w=\"., +/-]*)*"
)
_SEGMENTS = 2_000  # of a JPEG that are skipped until its size stands there
# Names that servers use for what has a registered one.
_ALIASES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/mp3": "audio/mpeg",
    "audio/x-flac": "audio/flac",
    "audio/opus": "audio/ogg",
    "audio/x-m4a": "audio/mp4",
    "audio/m4a": "audio/mp4",
    "text/json": "application/json",
}


@dataclass(frozen=True)
class MediaFacts:
    """What the first bytes say.

    Attributes:
        mime: the type that they are, None where they are none of those known here.
        width, height: pixels of an image; 0 where its header does not say.
        seconds: how long a sound plays; 0.0 where its header does not say.
    """

    mime: str | None = None
    width: int = 0
    height: int = 0
    seconds: float = 0.0

    @property
    def pixels(self) -> int:
        return self.width * self.height


def clean_mime(text: object) -> str | None:
    """Return a MIME type in lower case without parameters, under its registered name; None where it is none.

    >>> clean_mime("Image/JPG"), clean_mime("text/html; charset=utf-8"), clean_mime("<b>")
    ('image/jpeg', 'text/html', None)
    """
    if not issubclass(type(text), str) or len(str.__str__(text)) > MIME_LENGTH:
        return None
    found = _MIME.fullmatch(str.__str__(text).strip())
    if found is None:
        return None
    mime = found[1].lower()
    return _ALIASES.get(mime, mime)


def media_facts(data: bytes) -> MediaFacts:
    """Return what bytes are by their first bytes.

    Args:
        data: the whole content, or at least its first 64 KiB.

    >>> media_facts(b"GIF89a" + b"\\x02\\x00\\x03\\x00")
    MediaFacts(mime='image/gif', width=2, height=3, seconds=0.0)
    """
    try:
        return _image(data) or _sound(data) or MediaFacts()
    except (struct.error, IndexError):
        return MediaFacts()


def _image(data: bytes) -> MediaFacts | None:
    if data[:8] == b"\x89PNG\r\n\x1a\n" and data[12:16] == b"IHDR":
        return MediaFacts("image/png", *struct.unpack(">II", data[16:24]))
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return MediaFacts("image/gif", *struct.unpack("<HH", data[6:10]))
    if data[:3] == b"\xff\xd8\xff":
        return MediaFacts("image/jpeg", *_jpeg_size(data))
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return MediaFacts("image/webp", *_webp_size(data))
    return None


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Return width and height from the frame header (SOFn); zeros where none is found."""
    at = 2
    for _ in range(_SEGMENTS):
        while data[at : at + 2] == b"\xff\xff":  # fill bytes
            at += 1
        if at + 9 > len(data) or data[at] != 0xFF:
            return 0, 0
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + length
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    form = data[12:16]
    if form == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if form == b"VP8L":
        bits = struct.unpack("<I", data[21:25])[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 ":
        width, height = struct.unpack("<HH", data[26:30])
        return width & 0x3FFF, height & 0x3FFF
    return 0, 0


def _sound(data: bytes) -> MediaFacts | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return MediaFacts("audio/wav", seconds=_wave_seconds(data))
    if data[:4] == b"OggS":
        return MediaFacts("audio/ogg")
    if data[:4] == b"fLaC":
        return MediaFacts("audio/flac")
    if data[:3] == b"ID3" or (len(data) > 1 and data[0] == 0xFF and data[1] & 0xE6 == 0xE2):
        return MediaFacts("audio/mpeg")
    if data[4:8] == b"ftyp" and data[8:12] in (b"M4A ", b"M4B "):
        return MediaFacts("audio/mp4")
    return None


def _wave_seconds(data: bytes) -> float:
    """Return bytes of sound by bytes a second; 0.0 where the header has no such figures."""
    if data[12:16] != b"fmt ":
        return 0.0
    rate = int(struct.unpack("<I", data[28:32])[0])
    at = 20 + int(struct.unpack("<I", data[16:20])[0])
    while at + 8 <= len(data):
        name, size = data[at : at + 4], int(struct.unpack("<I", data[at + 4 : at + 8])[0])
        if name == b"data":
            return size / rate if rate else 0.0
        at += 8 + size + size % 2
    return 0.0
