"""A rule about a host holds for every spelling of it that a library takes to the same server.

The spellings come from a generator, and from the parsers themselves: whatever a parser accepts either names the host
that the rules judge, or is refused before anything is asked or sent.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reyn_jupyter.catalog.action import Effect, Purity
from reyn_jupyter.catalog.effects import TargetError
from reyn_jupyter.config import Settings
from reyn_jupyter.guard.permissions import Policy
from reyn_jupyter.support.network.hosts import HostError, read_host
from tests.security.security_support import Attacker, invoke
from tests.support.till import Till

NAMES = ["a.evil.org", "deep.down.evil.org", "xn--bcher-kva.evil.org", "127.0.0.1", "::1"]
ADDRESSES = {
    "127.0.0.1": [
        "0x7f.1",
        "2130706433",
        "127.1",
        "0177.0.0.1",
        "0x7f000001",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
    ],
    "::1": ["[::1]", "[0:0:0:0:0:0:0:1]", "[::0001]", "[::1%25lo]"],
}
FULL_WIDTH = {
    ord(each): ord(each) + 0xFEE0 for each in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
}


@st.composite
def spellings(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a host, and a URL or text that names it."""
    host = draw(st.sampled_from(NAMES))
    name = draw(st.sampled_from(ADDRESSES.get(host, [host])))
    if not name.startswith("["):
        name = "".join(draw(st.sampled_from((each, each.upper()))) for each in name)
        if "xn--" in name.lower() and draw(st.booleans()):
            name = name.lower().replace(
                "xn--bcher-kva", draw(st.sampled_from(("bücher", "BÜCHER", "bu\u0308cher")))
            )
        name = "".join(draw(st.sampled_from((each, each.translate(FULL_WIDTH)))) for each in name)
        name = name.replace(".", draw(st.sampled_from(".。．｡"))) + draw(st.sampled_from(("", ".")))
        if draw(st.booleans()):
            name = name.replace("e", "\u00ade", 1)
        at = draw(st.integers(0, len(name) - 1))
        if draw(st.booleans()):
            name = name[:at] + "".join(f"%{byte:02x}" for byte in name[at].encode()) + name[at + 1 :]
    user = draw(
        st.sampled_from(("", "user@", "user:pass@", "good.org@", "good.org:80@", "a@b@", "good.org%2f@"))
    )
    port = draw(st.sampled_from(("", ":", ":80", ":443", ":0443")))
    scheme = draw(
        st.sampled_from(("http://", "HTTPS://", "wss://", "//", "http:/", "https:///", "http:\\\\"))
    )
    path = draw(st.sampled_from(("", "/", "/x@good.org", "?q=good.org", "#@good.org", "/../good.org")))
    text = f"{scheme}{user}{name}{port}{path}"
    at = draw(st.integers(0, len(text)))
    return host, draw(st.sampled_from(("", " ", "\t"))) + text[:at] + draw(
        st.sampled_from(("", "\t", "\n"))
    ) + text[at:]


@given(spellings())
def test_every_spelling_reaches_one_target_and_a_deny_holds_for_it(spelled: tuple[str, str]) -> None:
    host, text = spelled
    effect = Effect("network", text)
    assert effect.target == host
    for rule in (f"*(network:{host})", "*(network:*.evil.org)", "*(*.evil.org)", f"*({host})"):
        rules = Policy.from_settings(
            Settings.model_validate({"permissions": {"deny": [rule], "allow": ["*"]}})
        )
        expected = "deny" if "*.evil" not in rule or host.endswith(".evil.org") else "allow"
        assert rules.decide("web__get", Purity.NETWORK, [effect], "model", "all").decision == expected


def names_of(url: str) -> list[str]:
    """Return the host of a URL as each parser has it that accepts the URL."""
    found = []
    for parse in (
        lambda: urlsplit(url).hostname,
        lambda: httpx.URL(url).host,
        lambda: httpx.URL(url).raw_host.decode(),
    ):
        try:
            name = parse()
        except (ValueError, httpx.InvalidURL, UnicodeError):
            continue
        if name:
            found.append(f"[{name}]" if ":" in name else name)
    return found


PIECES = st.lists(
    st.sampled_from(
        ["http:", "https:", "//", "/", "\\", "@", ":", "80", "?", "#", ".", "a", "evil.org", "good.org", "127.0.0.1",
         "0x7f", "[", "]", "::1", "%", "%61", "%2f", "%40", "。", "ａ", "ß", "ü", "\u00ad", "\u200d", "\t", " ", "-",
         "_", ";", "℀"]
    ),
    max_size=9,
)  # fmt: skip


@settings(max_examples=1500)
@given(PIECES)
@example(["80", ":", "::1"])
@example(["a", ":", ":", "1"])
@example(["::1", ":", "80"])
@example(["a", "@", "::1"])
@example(["http:", "80", "80"])
def test_no_parser_goes_to_a_host_that_was_not_judged(pieces: list[str]) -> None:
    url = "http://" + "".join(pieces)
    try:
        target = Effect("network", url).target
    except TargetError:
        return  # refused: nothing is sent
    judged = read_host(target).name
    for name in names_of(url):
        try:
            read = read_host(name).name
        except HostError:
            continue  # no name that a resolver takes either
        assert read == judged, (url, name)


@settings(max_examples=10, suppress_health_check=list(HealthCheck), deadline=None)
@given(spellings())
def test_a_model_is_denied_whatever_it_writes_and_the_record_names_the_host(
    workspace: Path, spelled: tuple[str, str]
) -> None:
    host, text = spelled
    web = Till(effects=lambda args: [Effect.network(args["amount"])])
    attacker = Attacker(
        workspace, {"deny": [f"*(network:{host})"]}, answer="once", categories=(web.category(),)
    )
    trace, said = attacker.trace(invoke("till__pay", amount=text))
    assert '"error"' in said and not attacker.questions and not web.calls
    for decided in [call.decision for call in trace.calls if call.decision is not None]:
        assert decided.decision == "denied" and decided.effects == (f"network {host}",)


@pytest.mark.parametrize("url", ["http://good.org\\@evil.org/", "http://faß.example/", "http://a..org/"])
def test_a_url_that_is_read_in_two_ways_runs_nothing_and_asks_nothing(workspace: Path, url: str) -> None:
    web = Till(effects=lambda args: [Effect.network(args["amount"])])
    attacker = Attacker(workspace, answer="once", categories=(web.category(),))
    said = attacker.call("till__pay", amount=url)
    assert "no host" in said or "two different hosts" in said
    assert not attacker.questions and not web.calls
