"""All names below a host: whose names they are, which rules count for them, and where a program gets with them."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path

import pytest

from reyn_jupyter.config.patterns import ActionPattern
from reyn_jupyter.guard.sandbox import egress
from reyn_jupyter.support.effect_targets import EffectKind, TargetError, normalize_target
from reyn_jupyter.support.network.addresses import Address
from reyn_jupyter.support.network.hosts import HostError, read_host, read_host_pattern
from reyn_jupyter.workflows.utilities.manifest import parse_manifest
from reyn_jupyter.workflows.utilities.registry import SHIPPED
from reyn_jupyter.workflows.workflow_error import WorkflowError
from tests.support.courier import PageServer
from tests.workflows.acceptance.workshop import Workshop, gives, manifest_of, utility_call

VIDEO = "*.googlevideo.com"


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        (VIDEO, VIDEO),
        ("*.GoogleVideo.COM.", VIDEO),
        ("*.googlevideo.com:443", VIDEO),
        ("*.googlevideo.com:8443", "*.googlevideo.com:8443"),
        ("*.bücher.example", "*.xn--bcher-kva.example"),
        ("*.our.co.uk", "*.our.co.uk"),
        ("*.www.ck", "*.www.ck"),
        ("*.city.kobe.jp", "*.city.kobe.jp"),
        ("*.our.github.io", "*.our.github.io"),
        ("*.corp.internal", "*.corp.internal"),
        ("googlevideo.com", "googlevideo.com"),
    ],
)
def test_one_spelling(text: str, spelled: str) -> None:
    assert str(read_host_pattern(text)) == normalize_target(EffectKind.NETWORK, text) == spelled


@pytest.mark.parametrize(
    "text",
    [
        "*", "*.", "*.com", "*.com.", "*.COM", "*.co.uk", "*.co.uk.", "*.com.au:443", "*.github.io",
        "*.amazonaws.com", "*.*.com", "a.*.example.org", "*a.example.org", "*.example.org/x", "*.example.org?x",
        "*.user@example.org", "https://*.example.org", "*.127.0.0.1", "*.[::1]", "*.0x7f.1", "*.1", "*. example.org",
        "*.example.org\\x", "*.%63om", "*.\u0441om", "\uff0a.example.org", "*..org", "*.a..org",
        "*.nsw.edu.au", "*.foo.ck", "*.kobe.jp", "*.s3.amazonaws.com", "*.blob.core.windows.net", "*.on.aws",
        "*.eu-west-1.amazonaws.com", "*.windows.net", "*.sharepoint.com", "*.r2.dev",
        "*.公司.cn", "*.xn--55qx5d.cn", "*.møre-og-romsdal.no", "*.localhost",
    ],
)  # fmt: skip
def test_names_of_everybody_and_what_is_no_pattern_are_refused(text: str) -> None:
    with pytest.raises(HostError):
        read_host_pattern(text)
    with pytest.raises(TargetError):
        normalize_target(EffectKind.NETWORK, text)
    with pytest.raises(WorkflowError, match="/dependencies/0/host"):
        parse_manifest(manifest_of("reaches", dependencies=[{"host": text}]))


@pytest.mark.parametrize(
    ("name", "admitted"),
    [
        ("rr3---sn-x.googlevideo.com", True),
        ("a.b.googlevideo.com", True),
        ("RR3.GoogleVideo.com.", True),
        ("rr3.googlevideo.com:443", True),
        ("googlevideo.com", False),
        ("evilgooglevideo.com", False),
        ("googlevideo.com.evil.org", False),
        ("a.googlevideo.com.evil.org", False),
        ("a.googlevideo.com:8443", False),
        ("a.g\u043eoglevideo.com", False),
        ("xn--a-.xn--gglevideo-ejg.com", False),
        ("142.250.1.1", False),
        ("[2a00:1450::1]", False),
    ],
)
def test_who_is_below(name: str, admitted: bool) -> None:
    assert read_host_pattern(VIDEO).admits(read_host(name)) is admitted


@pytest.mark.parametrize(
    ("rule", "allows", "restricts"),
    [
        ("googlevideo.com", False, False),
        ("a.googlevideo.com", False, True),
        ("*.googlevideo.com", True, True),
        ("*.a.googlevideo.com", False, True),
        ("*.com", True, True),
        ("*", True, True),
        ("*.evil.org", False, False),
        ("evilgooglevideo.com", False, False),
        ("*.googlevideo.com:443", True, True),
        ("*.googlevideo.com:8443", False, True),
        ("a.*.com", False, True),
        ("A.GOOGLEVIDEO.COM", False, True),
    ],
)
def test_a_rule_allows_all_names_or_none_and_tightens_where_one_is_meant(
    rule: str, allows: bool, restricts: bool
) -> None:
    pattern = ActionPattern.parse(f"utility__*(network:{rule})")
    asked = ("utility__tube", EffectKind.NETWORK, VIDEO)
    assert (pattern.allows(*asked), pattern.restricts(*asked)) == (allows, restricts)


REACHES = gives(
    '{"got": got}',
    """import urllib.request
got = {}
for name in inputs["urls"]:
    try:
        got[name] = urllib.request.urlopen(name, timeout=20).read().decode()
    except OSError as error:
        got[name] = str(error)
""",
)


async def leads_here(name: str, port: int) -> tuple[Address, ...]:
    """Look a name up as a resolver does that knows those of this machine, which not every one does."""
    assert name.endswith(".localhost")
    return (ipaddress.ip_address("127.0.0.1"),)


def test_a_program_reaches_names_below_and_no_other(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress, "look_up", leads_here)
    bench = Workshop(workspace)
    try:
        with PageServer({"/": "served"}) as server:
            port = server.url("/").rpartition(":")[2].rstrip("/")
            bench.add("reaches", REACHES, dependencies=[{"host": f"*.site.localhost:{port}"}])
            below = ("a.site.localhost", "B.a.Site.LOCALHOST", "a.site.localhost.")
            beside = ("site.localhost", "evilsite.localhost", "a.site.localhost.evil.localhost", "127.0.0.1")
            good = [f"http://{name}:{port}/" for name in below]
            bad = [f"http://{name}:{port}/" for name in (*beside, "localhost")]
            got = bench.call("reaches", urls=[*good, *bad]).value["got"]
        assert {got[each] for each in good} == {'"served"'}, got
        assert all("served" not in got[each] for each in bad) and len(server.requests) == len(good)
    finally:
        bench.close()


def test_the_question_names_the_pattern_and_a_rule_for_one_name_denies_it_all(workspace: Path) -> None:
    bench = Workshop(workspace, config={"permissions": {"deny": ["*(network:bad.example.org)"]}})
    try:
        bench.add("open", dependencies=[{"host": "*.googlevideo.com"}])
        bench.add("closed", dependencies=[{"host": "*.example.org"}])
        bench.turn(utility_call("open"))
        assert "*.googlevideo.com" in "\n".join(each.text for each in bench.questions)
        assert bench.call("closed").code == "permission_denied"
    finally:
        bench.close()


def test_the_shipped_downloader_declares_where_films_come_from() -> None:
    text = (SHIPPED / "youtube-downloader" / "tool.yaml").read_text()
    assert f'- {{host: "{VIDEO}"}}' in text and json.dumps("redirector") not in text
