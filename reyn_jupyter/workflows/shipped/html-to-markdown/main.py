"""HTML to Markdown, by markdownify."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bs4 import BeautifulSoup
from markdownify import MarkdownConverter

LARGEST = 32 << 20  # bytes of a page
UNSEEN = ("script", "style", "noscript", "template", "head")


def main() -> None:
    given = json.load(sys.stdin)
    source = Path(given["file"])
    if source.stat().st_size > LARGEST:
        sys.exit(f"The page is larger than {LARGEST >> 20} MiB.")
    page = BeautifulSoup(source.read_bytes(), "html.parser", from_encoding=given.get("encoding"))
    title = page.title.get_text(" ", strip=True) if page.title else ""
    for element in page.find_all(UNSEEN):
        element.decompose()
    left_out = [tag for tag, name in (("a", "links"), ("img", "images")) if not given[name]]
    text = (
        MarkdownConverter(heading_style="ATX", bullets="-", strip=left_out).convert_soup(page).strip() + "\n"
    )
    target = Path(given.get("into", ".")) / f"{source.stem}.md"
    target.write_text(text, encoding="utf-8")
    json.dump({"file": str(target), "title": title, "characters": len(text)}, sys.stdout)


try:
    main()
except RecursionError:
    sys.exit("The page is nested too deeply to be converted.")
except LookupError as error:
    sys.exit(f"The encoding is not known: {error}")
