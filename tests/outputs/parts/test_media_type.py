"""What bytes are is read from their headers, whatever they hold."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as some

from reyn_jupyter.outputs.parts.media_type import MediaFacts, clean_mime, media_facts
from tests.support.media_samples import jpeg_head, png, wav

WEBP_X = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
WEBP_L = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 639 | 479 << 14)


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (png(640, 480), MediaFacts("image/png", 640, 480)),
        (b"GIF89a" + struct.pack("<HH", 640, 480), MediaFacts("image/gif", 640, 480)),
        (jpeg_head(640, 480), MediaFacts("image/jpeg", 640, 480)),
        (WEBP_X, MediaFacts("image/webp", 640, 480)),
        (WEBP_L, MediaFacts("image/webp", 640, 480)),
        (wav(0.5), MediaFacts("audio/wav", seconds=0.5)),
        (b"ID3\x04" + bytes(20), MediaFacts("audio/mpeg")),
        (b"OggS" + bytes(20), MediaFacts("audio/ogg")),
        (b"\xff\xd8\xff", MediaFacts("image/jpeg")),
        (b"\xff\xd8" + b"\xff" * 5000, MediaFacts("image/jpeg")),
        (b"<svg onload=alert(1)>", MediaFacts()),
        (b"", MediaFacts()),
    ],
)
def test_images_and_sounds_are_known_by_their_headers(data: bytes, facts: MediaFacts) -> None:
    assert media_facts(data) == facts


MAGIC = some.sampled_from(
    [png()[:16], b"GIF89a", b"\xff\xd8\xff\xe0", WEBP_X[:16], wav()[:20], b"OggS", b"fLaC", b""]
)


@given(MAGIC, some.binary(max_size=80))
def test_no_bytes_make_it_fail(magic: bytes, rest: bytes) -> None:
    facts = media_facts(magic + rest)
    assert facts.width >= 0 and facts.seconds >= 0


@pytest.mark.parametrize(
    ("given", "mime"),
    [
        ("image/png", "image/png"),
        (" Image/JPG ", "image/jpeg"),
        ("text/html; charset=utf-8", "text/html"),
        ("audio/x-wav", "audio/wav"),
        ("image/svg+xml", "image/svg+xml"),
        ("image", None),
        ("", None),
        ("text/html<script>", None),
        ("text/plain\nX: y", None),
        ('image/png" onload="x', None),
        ("a/" + "b" * 500, None),
        (None, None),
        (7, None),
    ],
)
def test_a_mime_type_is_one_or_none(given: object, mime: str | None) -> None:
    assert clean_mime(given) == mime
