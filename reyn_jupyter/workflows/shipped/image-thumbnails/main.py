"""Thumbnails, by Pillow."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF")  # no other opens programs or files of its own
ENDINGS = {".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff"}
MOST = 10_000


def main() -> None:
    given = json.load(sys.stdin)
    folder, taken = Path(given.get("into", ".")), set[str]()
    made: list[dict[str, Any]] = []
    skipped = []
    for number, (path, name) in enumerate(images(given["images"]), 1):
        if number > MOST:
            sys.exit(f"There are more than {MOST:,} images; name fewer at a time.")
        try:
            small = thumbnail(path, given["size"])
        except Exception as error:  # noqa: BLE001 - one broken image is told of, and the others are made
            skipped.append({"source": name, "reason": str(error) or type(error).__name__})
            continue
        target = folder / _free(Path(name).stem, given["type"], taken)
        save(small, target, given["type"])
        made.append({"source": name, "file": str(target), "width": small.width, "height": small.height})
        sys.stderr.write(f"{number}: {name}\n")
    if not made:
        reasons = "; ".join(f"{each['source']}: {each['reason']}" for each in skipped[:3])
        sys.exit(f"No image could be read. {reasons}")
    json.dump({"thumbnails": made, "skipped": skipped}, sys.stdout)


def images(named: list[str]) -> Iterator[tuple[Path, str]]:
    """Yield each image with the name that people know it by."""
    for each in map(Path, named):
        if each.is_dir():
            for path in sorted(each.rglob("*")):
                if path.suffix.lower() in ENDINGS and path.is_file():
                    yield path, path.relative_to(each).as_posix()
        else:
            yield each, each.name


def thumbnail(path: Path, size: int) -> Image.Image:
    """Return a small picture that stands upright."""
    with Image.open(path, formats=FORMATS) as image:
        image.draft("RGB", (size, size))
        upright = ImageOps.exif_transpose(image)
        upright.thumbnail((size, size))
        return upright


def save(image: Image.Image, target: Path, kind: str) -> None:
    """Write a picture without the notes of its camera; what is seen through becomes white where a format has none."""
    has_alpha = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    if kind == "jpeg" and has_alpha:
        clear = image.convert("RGBA")
        image = Image.new("RGB", clear.size, "white")
        image.paste(clear, mask=clear.getchannel("A"))
    elif kind == "jpeg" or image.mode not in ("RGB", "RGBA", "L"):
        image = image.convert("RGBA" if has_alpha else "RGB")
    image.info.clear()
    image.save(target, kind.upper(), quality=85)


def _free(stem: str, kind: str, taken: set[str]) -> str:
    ending = "jpg" if kind == "jpeg" else kind
    name, number = f"{stem}.{ending}", 1
    while name.lower() in taken:
        number += 1
        name = f"{stem}-{number}.{ending}"
    taken.add(name.lower())
    return name


warnings.simplefilter("error", Image.DecompressionBombWarning)
main()
