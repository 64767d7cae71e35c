"""Secrets never leave: environment values in every form, and known key shapes; hashes and prose stay."""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reyn_jupyter.support import secrets as module
from reyn_jupyter.support.key_shapes import contains_key_shape
from reyn_jupyter.support.secrets import LONG, Redactor, SecretSpan

SECRET = "p@ss/w0rd+????>>>>~~~~ spaces&äö"
KEYS = {
    "openai": "sk-" + "aB3" * 16,
    "openai project": "sk-proj-" + "aB3_-x" * 8,
    "anthropic": "sk-ant-api03-" + "aB3_-x" * 10,
    "github": "ghp_" + "a1B2" * 9,
    "github fine-grained": "github_pat_" + "a1B2_" * 12,
    "aws": "AKIA" + "ABCDEFGH12345678",
    "google": "AIza" + "a1B2-" * 7,
    "slack": "xoxb-" + "123456789012-abcdefABCDEF",
    "hugging face": "hf_" + "aBcD" * 9,
    "npm": "npm_" + "a1B2" * 9,
    "gitlab": "glpat-" + "a1B2_" * 4,
    "stripe": "sk_live_" + "a1B2" * 6,
    "jwt": "eyJ" + "hbGciOiJI" + ".eyJ" + "zdWIiOiIx" + "." + "SflKxwRJSMeKKF2QT4",
    "private key": "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc+/=\nxyz\n-----END RSA PRIVATE KEY-----",
}
PLAIN = [
    "the quick brown fox",
    "sha256:" + "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "0192f0c1-1111-7abc-8def-0123456789ab",
    "a task-list-of-many-long-words, disk-encryption-and-more-words-behind-it",
    "class sk-toggleable__content-of-estimator fitted sk-container-id-1",
    "basic understanding, bearer of bad news, the token of affection",
    "https://example.org:8080/path?x=1#y and mail me at a:b@example",
    'AKIA is a prefix; AIza too; eyJ is base64 for {"',
    "monkey = 12345678",
]


@pytest.fixture
def redactor():
    return Redactor(
        {"DEMO_API_KEY": "correct-horse", "DB_PASSWORD": SECRET, "HOME": "/home/someone", "SHORT_KEY": "abc"}
    )


def test_the_value_of_a_secret_variable_is_replaced_by_its_name(redactor):
    assert redactor.text("key: correct-horse!") == "key: [redacted:DEMO_API_KEY]!"


def test_short_values_and_other_variables_stay(redactor):
    text = "abc lives in /home/someone"
    assert redactor.text(text) is text


@pytest.mark.parametrize(
    "form",
    [
        lambda value: value,
        lambda value: quote(value, safe=""),
        lambda value: quote(value),
        lambda value: quote_plus(value),
        lambda value: re.sub("%..", lambda code: code[0].lower(), quote(value, safe="")),
        lambda value: json.dumps({"password": value}),
        lambda value: json.dumps({"password": value}, ensure_ascii=False),
        lambda value: base64.b64encode(value.encode()).decode(),
        lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
        lambda value: base64.b64encode(f"user:{value}".encode()).decode(),
        lambda value: base64.b64encode(f"u:{value}:more".encode()).decode(),
        lambda value: base64.b64encode(f"me:{value}?".encode()).decode(),
    ],
)  # fmt: skip
def test_every_form_of_a_secret_is_found(redactor, form):
    text = f"<{form(SECRET)}>"
    redacted = redactor.text(text)
    assert "[redacted:DB_PASSWORD]" in redacted
    assert SECRET not in redacted
    assert redactor.redacts(text) and not redactor.redacts(redacted)


@pytest.mark.parametrize("name", KEYS)
def test_known_key_shapes_are_found_without_any_variable(name):
    redactor = Redactor({})
    text = f'{{"key": "{KEYS[name]}"}} and so on'
    redacted = redactor.text(text)
    assert redacted == '{"key": "[redacted:key]"} and so on'
    assert contains_key_shape(text) and not contains_key_shape(redacted)


@pytest.mark.parametrize("text", PLAIN)
def test_what_only_looks_random_or_similar_stays_the_same_object(text, redactor):
    assert redactor.text(text) is text
    assert not contains_key_shape(text)


def test_only_the_secret_part_of_a_header_and_of_a_url_goes(redactor):
    assert (
        redactor.text("Authorization: Bearer abcdef1234567890xyz.-_")
        == "Authorization: Bearer [redacted:key]"
    )
    assert redactor.text("authorization: basic dXNlcjpwYXNzd29yZDEy") == "authorization: basic [redacted:key]"
    assert redactor.text("postgres://me:hunter2@db.local/x") == "postgres://me:[redacted:key]@db.local/x"


def test_a_private_key_cut_off_in_the_middle_is_still_found(redactor):
    assert redactor.text("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg") == "[redacted:key]"


def test_each_line_of_a_key_block_in_a_variable_is_a_secret():
    block = KEYS["private key"].replace("MIIEabc+/=", "MIIEabc+/=MIIEabc+/=AAAA")
    redactor = Redactor({"SSH_PRIVATE_KEY": block})
    assert redactor.text("line 2: MIIEabc+/=MIIEabc+/=AAAA") == "line 2: [redacted:SSH_PRIVATE_KEY]"


def test_overlapping_secrets_go_as_one():
    redactor = Redactor(
        {"A_TOKEN": "password1", "B_TOKEN": "1supersecret", "C_TOKEN": "password1supersecretlonger"}
    )
    assert redactor.text("password1supersecret") == "[redacted:A_TOKEN]"
    assert redactor.text("(password1supersecretlonger)") == "([redacted:C_TOKEN])"


def test_a_secret_that_repeats_itself_is_found_once_a_stretch_not_at_each_place(monkeypatch):
    made = []

    def counted(*place):
        made.append(place)
        return SecretSpan(*place)

    monkeypatch.setattr(module, "SecretSpan", counted)
    redactor = Redactor({"DEMO_API_KEY": "abababababab"})
    text = "ab" * 50_000 + " and " + "ab" * 6 + "a."
    assert redactor.text(text) == "[redacted:DEMO_API_KEY] and [redacted:DEMO_API_KEY]a."
    assert len(made) < 100


def test_a_secret_that_is_part_of_a_mark_does_not_grow_without_end():
    redactor = Redactor({"A_KEY": "redacted", "MY_KEY": "OTHER_KEY", "OTHER_KEY": "12345678"})
    once = redactor.text("redacted 12345678")
    assert redactor.text(once) == once == "redacted [redacted:OTHER_KEY]"


def test_a_secret_cannot_hide_in_a_made_up_mark(redactor):
    assert "correct-horse" not in redactor.text("[redacted:correct-horse]")


def test_marks_are_told_from_other_text(redactor):
    assert redactor.marked("x = [redacted:DEMO_API_KEY]") and redactor.marked("[redacted:key]")
    assert not redactor.marked("[redacted:something] correct-horse")


def test_spans_say_where_the_secrets_are(redactor):
    text = "a correct-horse b " + KEYS["aws"]
    assert [(text[span.start : span.end], span.name) for span in redactor.spans(text)] == [
        ("correct-horse", "DEMO_API_KEY"),
        (KEYS["aws"], "key"),
    ]


def test_json_values_are_redacted_inside_and_stay_the_same_object_without_a_secret(redactor):
    value = {"a": ["x", {"correct-horse": 1}], "b": (1, None, True, "see correct-horse")}
    assert redactor.value(value) == {
        "a": ["x", {"[redacted:DEMO_API_KEY]": 1}],
        "b": (1, None, True, "see [redacted:DEMO_API_KEY]"),
    }
    clean = {"a": [1, "x"], "b": {"c": [None, 2.5]}}
    assert redactor.value(clean) is clean


def test_json_that_is_nested_without_end_is_cut_not_crashed(redactor):
    value: object = "correct-horse"
    for _ in range(5000):
        value = [value]
    assert "correct-horse" not in str(redactor.value(value))


def test_a_changed_environment_is_seen_after_a_refresh(monkeypatch):
    redactor = Redactor(os.environ)
    monkeypatch.setenv("NEW_SERVICE_TOKEN", "brand-new-value")
    redactor.refresh()
    assert redactor.text("brand-new-value") == "[redacted:NEW_SERVICE_TOKEN]"
    monkeypatch.delenv("NEW_SERVICE_TOKEN")
    redactor.refresh()
    assert redactor.text("brand-new-value") == "brand-new-value"


def test_a_text_that_was_clean_is_looked_through_again_when_it_has_become_a_secret(monkeypatch):
    redactor = Redactor(os.environ)
    told = {"note": "brand-new-value", "brand-new-value": ["x"]}
    for _ in range(2):
        assert redactor.value(told) is told
        assert redactor.masked("brand-new-value") == "brand-new-value"
    monkeypatch.setenv("NEW_SERVICE_TOKEN", "brand-new-value")
    redactor.refresh()
    assert "brand-new-value" not in str(redactor.value(told))
    assert "brand-new-value" not in redactor.masked("brand-new-value")
    assert redactor.redacts("brand-new-value")


def test_what_is_remembered_of_clean_texts_is_bounded_and_changes_no_answer():
    redactor = Redactor({"DEMO_API_KEY": "correct-horse"})
    texts = [f"{number} " + "word " * 100 for number in range(30_000)]
    for text in texts:
        assert redactor.text(text) is text
    for text in (*texts[:3], *texts[-3:], "a" * 100_000):
        assert redactor.text(text) is text
        assert redactor.text(f"{text} correct-horse").endswith("[redacted:DEMO_API_KEY]")
    assert sys.getsizeof(redactor._secrets.clean) < 4 << 20
    assert sum(map(len, redactor._secrets.clean)) <= 4 << 20


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("OPENAI_API_KEY", True), ("AWS_ACCESS_KEY_ID", True), ("PGPASSWORD", True), ("github_token", True),
        ("MY_SECRET", True),
        ("GOOGLE_CREDENTIALS", True), ("DB_PWD", True), ("SSH_PRIVATE", True), ("SENTRY_DSN", True),
        ("PWD", False), ("OLDPWD", False), ("PATH", False), ("KEYBOARD_LAYOUT", False),
        ("TOKENIZERS_PARALLELISM", False),
        ("SSH_AUTH_SOCK", False), ("HOME", False),
    ],
)  # fmt: skip
def test_variables_count_by_their_name(name, secret):
    assert Redactor({name: "some-long-value"}).redacts("some-long-value") is secret


def test_odd_values_do_no_harm():
    environ = {
        "A_KEY": "x" * 100_000,
        "B_KEY": "a.*(b|c)+[",
        "C_KEY": "tab\tand\nbreak",
        "D_KEY": "\udc80\udcff12345678",
    }
    redactor = Redactor({**environ, "E KEY]": "bracket-name"})
    for value in environ.values():
        assert value not in redactor.text(f"<{value}>")
    assert redactor.text("bracket-name \ud800") == "[redacted:secret] \ud800"


@settings(max_examples=60, deadline=None)
@given(
    hidden=st.lists(
        st.sampled_from([*KEYS.values(), SECRET, "correct-horse", "\udcff\udcfeab", "caf\u00e9-caf\u00e9"]),
        min_size=1,
        max_size=6,
    ),
    between=st.sampled_from(["\n", " ", ' "', " \\n", " \udcff "]),
)
def test_a_long_text_gives_away_no_more_than_a_short_one(hidden, between):
    values = {"DEMO_API_KEY": "correct-horse", "ODD_TOKEN": SECRET, "RAW_TOKEN": "\udcff\udcfeab" * 3}
    redactor = Redactor({**values, "CAFE_SECRET": "caf\u00e9-caf\u00e9"})
    short = between.join(["", *hidden, ""])
    filler = "some words of a log\n" * (LONG // 10)
    assert redactor.text(f"{filler}{short}{filler}") == f"{filler}{redactor.text(short)}{filler}"


def test_many_openings_of_a_key_block_stay_linear():
    assert "BEGIN" not in Redactor({}).text("-----BEGIN PRIVATE KEY-----" * 20_000)


readable = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="[]"), max_size=60)
secrets = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="[]:", exclude_categories=["Cc", "Z"]),
                  min_size=8, max_size=30)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    parts=st.lists(readable | st.sampled_from(list(KEYS.values())), max_size=6),
    values=st.lists(secrets, min_size=1, max_size=3),
    order=st.randoms(use_true_random=False),
)
def test_redaction_is_idempotent_and_leaves_no_secret(parts, values, order):
    environ = {f"S{number}_TOKEN": value for number, value in enumerate(values)}
    redactor = Redactor(environ)
    pieces = [*parts, *values, *(base64.b64encode(value.encode()).decode() for value in values)]
    order.shuffle(pieces)
    once = redactor.text("".join(pieces))
    assert redactor.text(once) == once
    assert redactor.value([once])[0] is once
    rest = redactor._secrets.mark.sub("[]", once)
    for value in environ.values():
        assert value.strip() not in rest
