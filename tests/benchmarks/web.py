"""Pages: a call of `web__fetch`, from the request to what a model reads, beside the same request and bare trafilatura.

The pages are the chapters of this package's manual as HTML, with navigation and a footer around them, once and many
times over, on a server of this machine. The peer asks with urllib and extracts in this process; ours opens its
connection to the judged address, asks for robots.txt once, reads the page in a process of its own, stores it and makes
its outline. Both take turns; medians of time on the wall.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import trafilatura
from markdown_it import MarkdownIt

import reyn_jupyter as reyn
from tests.support.web_site import Site, page, web_site

ROUNDS = 15
DOCS = Path(__file__).parents[2] / "reyn_jupyter" / "docs"
PAGES = {"one chapter": 1, "ten chapters": 10, "a hundred chapters": 100}


def main() -> None:
    as_html = MarkdownIt("commonmark").enable("table").render
    chapters = [as_html(path.read_text("utf-8")) for path in sorted(DOCS.glob("*.md"))]
    with web_site() as site, tempfile.TemporaryDirectory() as folder:
        config = {
            "action_retrieval": {"embedding_class": None},
            "web": {"private_hosts": [urlsplit(site.url).netloc]},
        }
        with closing(reyn.Session(folder, store="memory", config=config, namespace={})) as session:
            session.invoke_action("web__fetch", {"url": f"{site.url}/short"})  # its process starts
            for name, number in PAGES.items():
                _page(session, site, name, [chapters[at % len(chapters)] for at in range(number)])


def _page(session: reyn.Session, site: Site, name: str, chapters: list[str]) -> None:
    """Print the median time of one page over both ways."""
    body = "".join(f"<section>{chapter}</section>" for chapter in chapters)
    html = (
        "<html><head><title>The manual</title></head><body><nav><a href='/'>Home</a></nav>"
        f"<article>{body}</article><footer>Imprint</footer></body></html>"
    )
    path = f"/{len(chapters)}"
    site.routes[path] = page(html)
    url = f"{site.url}{path}"

    def ours() -> None:
        assert session.invoke_action("web__fetch", {"url": url}).ok

    def bare() -> None:
        with urlopen(url) as answer:
            assert trafilatura.extract(
                answer.read().decode(), output_format="markdown", include_tables=True, include_links=True,
                include_comments=False, favor_recall=True,
            )  # fmt: skip

    times: dict[Callable[[], None], list[float]] = {ours: [], bare: []}
    for _ in range(ROUNDS if len(chapters) < 100 else 5):
        for way in (ours, bare):
            began = time.perf_counter()
            way()
            times[way].append(1000 * (time.perf_counter() - began))
    here, there = (statistics.median(times[way]) for way in (ours, bare))
    print(
        f"{name}, {len(html) / 1024:,.0f} KiB: {here:.0f} ms, bare trafilatura {there:.0f} ms, ×{here / there:.2f}"
    )
