"""Everything shown is untrusted text: whatever stands in any field, nothing runs, loads, hides or breaks out."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.notebook.displays.mime import mimebundle
from reyn_jupyter.notebook.render import to_html, to_text, view
from reyn_jupyter.sessions.result_objects import Result
from reyn_jupyter.support.sanitize import visible
from tests.notebook.render.samples import ALLOWED, HOSTILE, Reader, every_kind, running, trace

KINDS = tuple(every_kind("x"))


def html_of(name: str, text: str) -> Reader:
    return Reader(to_html(view(every_kind(text)[name], tail=text if name == "live" else None)))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", KINDS)
def test_only_harmless_tags_and_attributes_are_ever_written(name: str, text: str) -> None:
    page = html_of(name, text)
    for tag, attributes in page.tags:
        assert tag in ALLOWED, f"<{tag}>"
        assert set(attributes) <= ALLOWED[tag], f"<{tag} {attributes}>"
        assert (attributes.get("href") or "http").startswith("http")


@pytest.mark.parametrize("name", KINDS)
def test_the_style_is_the_same_whatever_is_shown_and_loads_nothing(name: str) -> None:
    css = html_of(name, HOSTILE[-2]).css
    assert css == html_of(name, "harmless").css
    assert "url(" not in css and "@import" not in css


@pytest.mark.parametrize("name", KINDS)
def test_no_hidden_character_reaches_html_or_text(name: str) -> None:
    bundle = mimebundle(every_kind(HOSTILE[5])[name], tail=HOSTILE[5] if name == "live" else None)
    for drawn in (Reader(bundle["text/html"]).text, bundle["text/plain"]):
        hidden = [
            letter
            for letter in drawn
            if unicodedata.category(letter) in ("Cc", "Cf", "Cs") and letter not in "\n\t"
        ]
        assert hidden == []
        assert "␛[31m" in drawn and "⟨U+202E⟩" in drawn


@given(st.text(st.characters(codec=None), max_size=60))
def test_making_text_visible_twice_changes_nothing_more(text: str) -> None:
    once = visible(text)
    assert visible(once) == once
    once.encode()


def test_words_of_every_script_and_joined_emoji_stay_as_they_are() -> None:
    for text in ("naïve 漢字 עברית العربية", "👩\u200d👩\u200d👧", "می\u200cخواهم"):
        assert visible(text) == text


def test_a_link_shows_where_it_leads_and_other_schemes_stay_text() -> None:
    answer = (
        "[bank](https://bank.example@evil.example/x) [run](javascript:alert(1)) [data](data:text/html,x) "
        "[file](file:///etc/passwd) [mail](mailto:a@b.example) <https://plain.example/y>"
    )
    page = Reader(to_html(view(trace(answer=answer))))
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert links == ["https://bank.example@evil.example/x", "https://plain.example/y"]
    assert "bank (evil.example)" in page.text
    assert "file (file:///etc/passwd)" in page.text or "[file](file:///etc/passwd)" in page.text


def test_an_image_is_never_loaded_but_named_with_its_host() -> None:
    page = Reader(to_html(view(trace(answer="![a chart](https://evil.example/?secret=1)"))))
    assert "[image: a chart (evil.example), not loaded]" in page.text
    assert not [tag for tag, _ in page.tags if tag in ("img", "a")]


def test_html_in_an_answer_is_shown_as_text() -> None:
    text = to_text(view(trace(answer="<b>bold</b> & <script>x</script>")))
    assert "<b>bold</b> & <script>x</script>" in text


def test_a_person_s_objects_are_named_and_never_asked_anything() -> None:
    class Touchy:
        def _touched(self, *_: object) -> str:
            raise AssertionError("a method of the person's object was called")

        __repr__ = __str__ = __format__ = __eq__ = __len__ = __iter__ = __getattr__ = _touched  # type: ignore[assignment]
        __hash__ = object.__hash__

        @property
        def __class__(self) -> type:  # type: ignore[override]
            raise AssertionError("asked for its class")

    value = {"plain": 1, "mine": Touchy(), "deep": [{"x": Touchy()}]}
    assert to_text(view(Result("f", "x", value))).count("<Touchy>") == 2
    assert "Touchy" in to_text(view(Result("f", "x", Touchy())))


def test_a_secret_is_taken_out_before_a_cut_could_split_it() -> None:
    secret = "sk-" + "a1" * 30
    bundle = mimebundle(
        Result("f", "x", {"key": "k" * 200 + secret}), redact=lambda text: text.replace(secret, "[redacted]")
    )
    for drawn in bundle.values():
        assert "sk-a1" not in drawn
    assert "[redacted]" in bundle["text/plain"] or "[redacted]" in bundle["text/html"]


def test_a_secret_of_several_lines_is_taken_out_as_a_whole() -> None:
    key = "-----BEGIN KEY-----\nabc\ndef\n-----END KEY-----"
    text = mimebundle(
        Result("f", "x", f"one\n{key}\nlast"), redact=lambda text: text.replace(key, "[redacted]")
    )["text/plain"]
    assert "abc" not in text and "[redacted]" in text and "last" in text


def test_the_streamed_text_of_a_running_run_is_no_markup_either() -> None:
    page = Reader(to_html(view(running(), tail="<img src=x> **not yet bold**")))
    assert "<img src=x> **not yet bold**" in page.text
