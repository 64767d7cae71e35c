"""`web__fetch` and `web__search`: real pages over HTTP on loopback, and what the model gets to read of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import call
from reyn_jupyter.sessions.result_objects import ActionFailedError
from tests.security.security_support import Attacker
from tests.support import document_samples as samples
from tests.support.web_site import Request, Site, brave, page, searxng, tavily, web_site


@pytest.fixture
def site() -> Iterator[Site]:
    with web_site() as running:
        yield running


def session(root: Path, site: Site, **web: Any) -> reyn.Session:
    return reyn.Session(root, store="memory", namespace={}, config={"web": {**site.settings, **web}})


def fetch(on: reyn.Session, url: str, **args: Any) -> Any:
    return on.invoke_action("web__fetch", {"url": url, **args}).value


def refusal(on: reyn.Session, url: str, **args: Any) -> ActionFailedError:
    result = on.invoke_action("web__fetch", {"url": url, **args})
    with pytest.raises(ActionFailedError) as caught:
        _ = result.value
    return caught.value


def test_a_page_is_markdown_with_its_title_and_where_it_is_from(tmp_path: Path, site: Site) -> None:
    text = fetch(session(tmp_path, site), f"{site.url}/tea")
    assert text.startswith("# All about tea\n\nSource: http://localhost:")
    assert f"[two shops]({site.url}/shops)" in text
    assert "Imprint" not in text
    asked = site.requests[-1].headers
    assert asked["user-agent"].startswith("reyn-jupyter/")
    assert not {"cookie", "referer", "authorization"} & asked.keys()


def test_a_long_page_is_stored_with_its_outline_and_read_in_parts(tmp_path: Path, site: Site) -> None:
    model = Attacker(
        tmp_path, {"allow": [f"web__fetch(network:localhost:{site.port})"]}, settings={"web": site.settings}
    )
    read = model.call("web__fetch", url=f"{site.url}/tea")
    assert "text | " in read and "All about tea" in read and "## Green tea" in read
    assert len(read.encode()) <= 400
    stored = read.partition("[blob:")[2].partition("]")[0]
    line = next(line for line in read.splitlines() if line.endswith("## Green tea")).split(":")[0]
    found = model.calls(call("inspect", blob_id=stored, selector=f"lines:{line}-{int(line) + 2}"))
    assert "Green tea costs four euros" in found


def test_texts_json_and_packed_answers_are_read_as_they_are(tmp_path: Path, site: Site) -> None:
    on = session(tmp_path, site)
    assert fetch(on, f"{site.url}/plain") == "Grüße"
    assert on.invoke_action("web__fetch", {"url": f"{site.url}/data.json"}).value == {"rows": [1, 2, 3]}
    assert fetch(on, f"{site.url}/gzip") == fetch(on, f"{site.url}/deflate") == "unpacked"


def test_documents_and_images_are_read(tmp_path: Path, site: Site) -> None:
    site.routes["/report"] = (
        200,
        {"Content-Type": "application/pdf"},
        samples.pdf("Sales fell", title="Sales"),
    )
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0"
    site.routes["/dot.png"] = 200, {"Content-Type": "image/png"}, png
    word = samples.word(("Heading 1", "Plan"), ("Normal", "We go on Monday."))
    site.routes["/plan.docx"] = 200, {"Content-Type": "application/octet-stream"}, word
    on = session(tmp_path, site)
    report = fetch(on, f"{site.url}/report")
    assert report.startswith("# Sales") and "## Page 1" in report and "Sales fell" in report
    assert "# Plan\n\nWe go on Monday." in fetch(on, f"{site.url}/plan.docx")
    (part,) = fetch(on, f"{site.url}/dot.png")
    assert (part.mime, part.data, part.uri) == ("image/png", png, f"{site.url}/dot.png")


def test_a_page_is_given_in_slices_on_request(tmp_path: Path, site: Site) -> None:
    on = session(tmp_path, site)
    whole = fetch(on, f"{site.url}/tea")
    first = fetch(on, f"{site.url}/tea", max_length=100)
    assert first.startswith(whole[:100]) and f"start_index={100}" in first
    assert fetch(on, f"{site.url}/tea", start_index=100) == whole[100:]
    assert "past the end" in fetch(on, f"{site.url}/tea", start_index=10**6)


def test_a_page_that_did_not_change_is_not_sent_again(tmp_path: Path, site: Site) -> None:
    def answer(request: Request) -> Any:
        if request.headers.get("if-none-match") == '"v1"':
            return 304, {"ETag": '"v1"'}, b""
        return page("<p>Version one of the page.</p>", ETag='"v1"')

    site.routes["/tagged"] = answer
    on = session(tmp_path, site)
    assert fetch(on, f"{site.url}/tagged") == fetch(on, f"{site.url}/tagged")
    asked = [request for request in site.requests if request.path == "/tagged"]
    assert ["if-none-match" in request.headers for request in asked] == [False, True]


def test_a_redirect_on_the_same_host_is_followed_and_one_to_another_host_asks(
    tmp_path: Path, site: Site
) -> None:
    model = Attacker(tmp_path, answer="once", settings={"web": site.settings})
    read = model.call("web__fetch", url=f"{site.url}/near")
    assert "All about tea" in read and f"{site.url}/tea" in read
    assert len(model.questions) == 1
    read = model.call("web__fetch", url=f"{site.url}/away")
    assert "All about tea" in read
    assert [f"127.0.0.1:{site.port}" in question.text for question in model.questions] == [False, False, True]
    assert "sends the request on there" in model.questions[-1].text


def test_nothing_is_asked_of_a_host_that_a_redirect_names_before_consent(tmp_path: Path, site: Site) -> None:
    rules = {"allow": [f"web__fetch(network:localhost:{site.port})"]}
    model = Attacker(tmp_path, rules, answer="deny", settings={"web": site.settings})
    read = model.call("web__fetch", url=f"{site.url}/away")
    assert "Denied" in read
    assert site.paths() == ["/robots.txt", "/away"]


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("/gone", "http_404", "answered 404 (Not Found)"),
        ("/loop", "web_wrong", "more than 10 times"),
        ("/inside", "address_private", "169.254.169.254"),
        ("/file", "address_wrong", "no address of the web"),
        ("/zip", "type_unread", "application/zip"),
        ("/broken.pdf", "document_unreadable", "The document is damaged"),
        ("/private/page", "robots_refused", "robots.txt"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, site: Site, path: str, code: str, words: str) -> None:
    site.routes["/broken.pdf"] = 200, {"Content-Type": "application/pdf"}, b"%PDF-1.7 and then nothing"
    error = refusal(session(tmp_path, site), site.url + path)
    assert error.code == code
    assert words in str(error)


def test_robots_txt_can_be_passed_over_by_the_person_alone(tmp_path: Path, site: Site) -> None:
    assert "Tea" in fetch(session(tmp_path, site, robots=False), f"{site.url}/private/page")
    (tmp_path / "reyn.yaml").write_text("web: {robots: false}\n", encoding="ascii")
    assert refusal(session(tmp_path, site), f"{site.url}/private/page").code == "robots_refused"


def test_a_site_whose_robots_txt_fails_is_left_alone(tmp_path: Path, site: Site) -> None:
    site.routes["/robots.txt"] = 503, {}, b""
    assert refusal(session(tmp_path, site), f"{site.url}/tea").code == "robots_refused"


def test_endless_and_exploding_answers_end_at_the_bound(tmp_path: Path, site: Site) -> None:
    on = session(tmp_path, site)
    for path in ("/endless", "/bomb"):
        assert len(fetch(on, site.url + path)) == 16 << 20


def test_a_server_that_drips_ends_at_the_deadline(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = reyn.Session(
        tmp_path,
        store="memory",
        namespace={},
        config={"web": site.settings, "calls": {"seconds": {"web": 2}}},
    )
    assert "2" in str(refusal(on, f"{site.url}/drip"))
    assert fetch(on, f"{site.url}/plain") == "Grüße"


def test_a_proxy_is_used_where_the_settings_name_one(tmp_path: Path, site: Site) -> None:
    on = session(tmp_path, site, proxy=site.other_url)
    assert "Tea" in fetch(on, "http://pages.invalid/tea")
    assert [request.path for request in site.requests if request.method == "PROXY"] == [
        "http://pages.invalid/robots.txt",
        "http://pages.invalid/tea",
    ]
    assert refusal(on, "http://10.0.0.1/tea").code == "address_private"


def test_searxng_is_asked_and_its_results_are_cleaned(tmp_path: Path, site: Site) -> None:
    site.routes["/search"] = searxng
    on = session(tmp_path, site, search="searxng", search_url=site.url)
    found = on.invoke_action("web__search", {"query": "tea & more"}).value
    assert found[0] == {
        "title": "Tea & more",
        "url": "https://example.org/tea",
        "snippet": "A drink of leaves",
    }
    assert all(hit["url"].startswith("https://") for hit in found) and len(found) == 2
    assert "\u202e" not in json.dumps(found, ensure_ascii=False)
    assert site.requests[-1].path == "/search?q=tea+%26+more&format=json"


@pytest.mark.parametrize(
    ("engine", "answer", "key", "value"),
    [
        ("tavily", tavily, "TAVILY_API_KEY", "tvly-0123456789"),
        ("brave", brave, "BRAVE_API_KEY", "BSA0123456789"),
    ],
)
def test_an_engine_gets_its_key_with_consent_and_the_key_is_shown_nowhere(
    tmp_path: Path, site: Site, engine: str, answer: Any, key: str, value: str
) -> None:
    site.routes |= {"/search": answer, "/res/v1/web/search": answer}
    config = {"web": {**site.settings, "search": engine, "search_url": site.url}}
    on = reyn.Session(tmp_path, store="memory", namespace={}, config=config, secrets={key: value})
    found = on.invoke_action("web__search", {"query": "tea", "max_results": 1}).value
    assert [hit["url"].rpartition("/")[0] for hit in found] == ["https://example.org"]
    model = Attacker(tmp_path, settings=config)
    assert "Denied" in model.call("web__search", query="tea")
    assert f"secret {key}" in model.questions[-1].text
    assert value not in model.questions[-1].text


def test_duckduckgo_is_asked_by_its_library_at_the_host_that_was_consented_to(
    tmp_path: Path, site: Site
) -> None:
    """The site is the proxy, and lets nothing through: what the library makes of pages is its own affair."""
    config = {"web": {**site.settings, "search": "ddgs", "proxy": site.other_url}}
    model = Attacker(tmp_path, answer="once", settings=config)
    read = model.call("web__search", query="tea")
    assert "DuckDuckGo gave no answer" in read
    assert "network html.duckduckgo.com" in model.questions[0].text
    assert {request.path for request in site.requests} == {"html.duckduckgo.com:443"}


def test_a_search_without_an_engine_says_how_to_set_one(tmp_path: Path, site: Site) -> None:
    result = session(tmp_path, site).invoke_action("web__search", {"query": "tea"})
    with pytest.raises(ActionFailedError, match=r"No search engine is configured") as caught:
        _ = result.value
    assert caught.value.code == "search_not_configured"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, {}, b"<html>no json"), "something else than results"),
        ((200, {}, b'{"results": {"a": 1}}'), "something else than results"),
        ((403, {}, b""), "JSON"),
        ((429, {}, b""), "no more searches"),
        ((500, {}, b""), "answered 500"),
    ],
)
def test_an_engine_that_answers_otherwise_is_an_error(
    tmp_path: Path, site: Site, answer: Any, words: str
) -> None:
    site.routes["/search"] = answer
    on = session(tmp_path, site, search="searxng", search_url=site.url)
    result = on.invoke_action("web__search", {"query": "tea"})
    with pytest.raises(ActionFailedError, match=words):
        _ = result.value
