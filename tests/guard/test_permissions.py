"""The gate: deny wins everywhere; a call runs unasked only when every one of its effects may."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.catalog.action import Effect, EffectKind, Purity
from reyn_jupyter.catalog.effects import TargetError
from reyn_jupyter.config import Settings
from reyn_jupyter.guard.approval import Approval
from reyn_jupyter.guard.approvals import Approvals
from reyn_jupyter.guard.permissions import (
    ActionPattern,
    PatternError,
    Policy,
    suggest_patterns,
)
from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.support.sanitize import printable


def policy(allow=(), ask=(), deny=(), approvals=()) -> Policy:
    settings = Settings.model_validate({"permissions": {"allow": allow, "ask": ask, "deny": deny}})
    return Policy.from_settings(settings, [Approval(ActionPattern.parse(each)) for each in approvals])


def write(*paths: str, rules: Policy | None = None, actor="model", approve="ask") -> str:
    effects = [Effect("write", path) for path in paths]
    return (rules or policy()).decide("file__write", Purity.WRITE, effects, actor, approve).decision


@pytest.mark.parametrize(
    ("pattern", "action", "target", "covered"),
    [
        ("file__write(data/**)", "file__write", "data/out.csv", True),
        ("file__write(data/**)", "file__write", "data/2024/out.csv", True),
        ("file__write(data/**)", "file__write", "database/out.csv", False),
        ("file__write(data/**)", "file__edit", "data/out.csv", False),
        ("file__write(data/*)", "file__write", "data/2024/out.csv", False),
        ("file__write(./data/*.csv)", "file__write", "data/out.csv", True),
        ("file__write(**/*.csv)", "file__write", "out.csv", True),
        ("file__write(**/*.csv)", "file__write", "a/b/out.csv", True),
        ("file__write(a*c)", "file__write", "ac", True),
        ("file__write(a?c)", "file__write", "abc", True),
        ("file__write(a?c)", "file__write", "a/c", False),
        ("file__write(a.c)", "file__write", "abc", False),
        ("file__*", "file__delete", "x", True),
        ("file__*", "file__delete", None, True),
        ("file__*(x)", "file__delete", None, False),
        ("file__write", "file__write", "anything/at/all", True),
        ("file__write", "file__write_all", "x", False),
        ("mcp__call_tool(git/*)", "mcp__call_tool", "git/commit", True),
        ("mcp__call_tool(git/*)", "mcp__call_tool", "github/commit", False),
        ("agent.peer__*", "agent.peer__alice", None, True),
        ("agent.peer__*", "agentxpeer__alice", None, False),
        ("*", "exec__run", "rm", True),
        ("file__write((odd) name)", "file__write", "(odd) name", True),
    ],
)
def test_a_pattern_means_an_action_and_its_targets(pattern, action, target, covered):
    kind = None if target is None else EffectKind.MCP if action.startswith("mcp__") else EffectKind.WRITE
    assert ActionPattern.parse(pattern).allows(action, kind, target) is covered
    assert ActionPattern.parse(pattern).restricts(action, kind, target) is covered


@pytest.mark.parametrize(
    "text", ["", "file", "file_write", "file__write(", "file__write)", "file__write()", "file__write( )", "__", "(x)",
             "file__wr ite", "file__write(a\nb)", "file__write(a\u202eb)", "x" * 600, "file__write(x) y"]
)  # fmt: skip
def test_a_malformed_pattern_is_refused_in_words(text):
    with pytest.raises(PatternError, match=r"pattern|parentheses"):
        ActionPattern.parse(text)


def test_a_hostile_pattern_costs_no_time():
    # A backtracking matcher would not come back within the life of this machine.
    pattern = ActionPattern.parse(f"file__*a*a*a*a*a*a*a*b({'**/*a' * 60}b)")
    assert not pattern.allows("file__" + "a" * 2000, EffectKind.WRITE, "a/" * 1500)


def test_pure_actions_and_reads_need_no_consent_and_the_rest_asks():
    rules = policy()
    assert rules.decide("file__read", Purity.READ, [Effect("read", "a.txt")]).decision == "allow"
    assert rules.decide("table__query", Purity.READ, []).decision == "allow"
    assert rules.decide("x__y", Purity.PURE, []).decision == "allow"
    for purity in (Purity.WRITE, Purity.NETWORK, Purity.EXEC, Purity.UNKNOWN):
        assert rules.decide("x__y", purity, []).decision == "ask"
    assert rules.decide("web__search", Purity.READ, [Effect("network", "api.x.org")]).decision == "ask"
    assert rules.decide("odd__copy", Purity.WRITE, [Effect("read", "a.txt")]).decision == "ask"


def test_a_call_is_allowed_only_when_all_its_effects_are():
    rules = policy(allow=["file__write(data/**)"])
    assert write("data/a", rules=rules) == "allow"
    assert write("data/a", "data/b", rules=rules) == "allow"
    assert write("data/a", "src/b", rules=rules) == "ask"
    assert (
        write("data/a", "src/b", rules=policy(allow=["file__write"], deny=["file__write(src/**)"])) == "deny"
    )


def test_deny_wins_over_allow_approvals_all_and_the_person():
    rules = policy(allow=["*"], deny=["file__write(secret/**)"], approvals=["file__write(secret/x)"])
    for actor in ("model", "person", "peer", "workflow"):
        for approve in ("ask", "read", "all"):
            verdict = rules.decide("file__write", Purity.WRITE, [Effect("write", "secret/x")], actor, approve)
            assert (verdict.decision, verdict.by) == ("deny", "policy")
            assert verdict.pattern == "file__write(secret/**)" and verdict.pattern in verdict.reason


@pytest.mark.parametrize(
    "path", ["Secret/x", "SECRET/X", "secret//x", "./secret/x", "data/../secret/x", "secret\\x", "ｓecret/x"]
)
def test_a_deny_rule_is_not_dodged_by_spelling(path):
    assert write(path, rules=policy(allow=["*"], deny=["file__write(secret/**)"])) == "deny"


@pytest.mark.parametrize(
    "path",
    ["data/../secret", "data/../../etc/passwd", "../data/x", "data/..", "DATA/x", "database", "/data/x"],
)
def test_an_allow_rule_is_not_stretched_by_spelling(path):
    assert write(path, rules=policy(allow=["file__write(data/**)"])) == "ask"
    assert write(path, rules=policy(approvals=["file__write(data/**)"])) == "ask"


def test_even_the_widest_target_does_not_mean_what_lies_outside():
    for path in ("../x", "/etc/passwd"):
        assert write(path, rules=policy(allow=["file__write(**)"])) == "ask"


def test_a_call_by_the_person_is_consent():
    assert write("a", actor="person") == "allow"
    assert write("a", actor="person", rules=policy(ask=["*"])) == "allow"
    assert write("a", actor="person", approve="read") == "allow"
    assert write("a", actor="peer") == write("a", actor="workflow") == "ask"


def test_approve_read_denies_what_would_ask_and_all_allows_it():
    assert write("a", approve="read") == "deny"
    assert write("a", approve="all") == "allow"
    assert write("a", approve="read", rules=policy(allow=["file__write"])) == "allow"
    assert policy().decide("file__read", Purity.READ, [], "model", "read").decision == "allow"
    assert policy().decide("file__write", Purity.WRITE, [], "model", "read").by == "approve"


def test_an_ask_rule_is_over_an_allow_rule_and_under_an_earlier_always():
    rules = policy(allow=["file__*"], ask=["file__read(private/**)"])
    reading = [Effect("read", "private/x")]
    assert rules.decide("file__read", Purity.READ, reading).decision == "ask"
    assert rules.decide("file__read", Purity.READ, [Effect("read", "other")]).decision == "allow"
    answered = policy(ask=["file__read(private/**)"], approvals=["file__read(private/x)"])
    assert answered.decide("file__read", Purity.READ, reading).decision == "allow"


def test_a_registered_function_is_allowed_until_a_rule_says_otherwise():
    rules = policy()
    assert rules.decide("function__discount", Purity.UNKNOWN, []).by == "person"
    assert rules.decide("function__discount", Purity.UNKNOWN, [], "model", "read").decision == "allow"
    assert (
        policy(deny=["function__discount"]).decide("function__discount", Purity.UNKNOWN, []).decision
        == "deny"
    )
    assert policy(ask=["function__*"]).decide("function__discount", Purity.UNKNOWN, []).decision == "ask"


def test_always_means_exactly_this_target_and_what_is_done_to_it():
    (suggested,) = suggest_patterns("file__write", [Effect("write", "./data/out.csv")])
    assert suggested == "file__write(write:data/out.csv)"
    rules = policy(approvals=[suggested])
    assert write("data/out.csv", rules=rules) == "allow"
    assert write("data/out2.csv", rules=rules) == "ask"
    deleting = [Effect("delete", "data/out.csv")]
    assert rules.decide("file__write", Purity.WRITE, deleting).decision == "ask"


def test_always_for_several_targets_has_a_pattern_for_each_that_needs_consent():
    effects = [Effect("read", "a"), Effect("write", "b"), Effect("network", "https://c.example/x")]
    rules = policy(allow=["x__y(network:c.example)"])
    asked = rules.asked_about("x__y", Purity.WRITE, effects, "model", "ask", None)
    assert asked == (Effect("write", "b"),)
    assert suggest_patterns("x__y", effects[1:]) == ("x__y(write:b)", "x__y(network:c.example)")
    assert suggest_patterns("x__y", [None]) == ("x__y",)


@pytest.mark.parametrize("target", ["data/*.csv", "a?b", "a\nb", "a\u202eb", "x" * 600])
def test_always_is_not_offered_where_no_pattern_says_just_that(target):
    assert suggest_patterns("file__write", [Effect("write", target)]) == ()
    assert suggest_patterns("file__write", [Effect("write", "a"), Effect("write", target)]) == ()
    assert suggest_patterns("file__write", [Effect("read", "a"), None]) == ()
    assert suggest_patterns("file__write", [Effect("write", f"{number}") for number in range(21)]) == ()


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_suggested_pattern_covers_its_target_and_no_other(target, other):
    try:
        one, another = Effect("mcp", target), Effect("mcp", other)
    except TargetError:
        return
    for suggested in suggest_patterns("mcp__call_tool", [one]):
        pattern = ActionPattern.parse(suggested)
        assert pattern.allows("mcp__call_tool", one.kind, one.target)
        assert one == another or not pattern.allows("mcp__call_tool", another.kind, another.target)


SEEDS = {
    "path": [
        "data", "data/a.csv", "./data", "data/", "DATA", "data/a b", " data", "a(b)", "write:data", "a\\b", ".", "..",
        "/etc",
    ],
    "network": [
        "localhost", "a.org", "A.ORG.", "http://a.org", "https://u@a.org:443/x?q#f", "ftp://a.org", "*.a.org", "[::1]",
        "127.0.0.1", "http://0x7f.1", "bücher.example", "[::ffff:127.0.0.1]", "a.org:80", "a.org:21",
    ],
    "exec": ["git", "git status", "git push -f", "./git", "/usr/bin/git status", "git ''", "git 'a b'", "sh -c 'rm x'"],
    "mcp": ["git", "git/commit", "git/commit/all", "GIT/commit", "git /commit", "github/commit"],
    "secret": ["KEY", "key", "KEY2", "MY KEY"],
}  # fmt: skip
ADDED = [
    "",
    ":8080",
    ":22",
    ":443",
    ".",
    "/x",
    "/**",
    "*",
    " x",
    " **",
    "2",
    "\u200d",
    "?",
    "\\",
    "(",
    ")",
    "@b",
]


def seeds(kind: EffectKind) -> list[str]:
    return SEEDS["path" if kind.is_path else str(kind)]


def need_no_wider(shown: Effect, others: Iterable[Effect]) -> None:
    """Check that "always" for a target allows only what the question would show in the very same line."""
    kept = [Approval(ActionPattern.parse(each, loosens=True)) for each in suggest_patterns("x__y", [shown])]
    rules = Policy(approved=tuple(kept))
    for other in others:
        allowed = rules.decide("x__y", Purity.WRITE, [other]).by == "person"
        assert not allowed or printable(str(other)) == printable(str(shown)), (kept, other)


def effects_of(kind: EffectKind, texts: Iterable[str]) -> list[Effect]:
    found = []
    for text in texts:
        with suppress(TargetError):
            found.append(Effect(kind, text))
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("kind", EffectKind)
def test_always_allows_no_target_that_was_shown_in_another_way(kind: EffectKind) -> None:
    others = [each for other in EffectKind for each in effects_of(other, seeds(other))]
    for seed in seeds(kind):
        near = effects_of(kind, [seed + added for added in ADDED])
        for shown in near:
            need_no_wider(shown, [*near, *others])


@given(st.sampled_from(list(EffectKind)), st.text(max_size=12), st.text(max_size=12))
def test_always_for_any_text_allows_no_other_target(kind: EffectKind, one: str, other: str) -> None:
    for shown in effects_of(kind, [one]):
        need_no_wider(shown, effects_of(kind, [other, one + other, other + one]))


def test_always_for_a_call_that_shows_no_target_allows_none(tmp_path):
    approvals = Approvals(StateFolder(".", tmp_path))
    approvals.remember(suggest_patterns("x__y", [None]), None)
    rules = Policy(approved=approvals.entries())
    assert rules.decide("x__y", Purity.WRITE, []).decision == "allow"
    for kind in EffectKind:
        if kind is not EffectKind.READ:  # reading in the workspace needs no consent
            assert rules.decide("x__y", Purity.WRITE, [Effect(kind, TARGETS[kind])]).decision == "ask", kind
    approvals.add("x__z")  # a rule that the user wrote means every target
    rules = Policy(approved=approvals.entries())
    assert rules.decide("x__z", Purity.WRITE, [Effect("network", "a.org:22")]).decision == "allow"


def test_a_read_outside_the_workspace_asks_whatever_the_purity():
    for path in ("../x", "/etc/passwd"):
        assert policy().decide("x__look", Purity.READ, [Effect("read", path)]).decision == "ask"


# Rules by kind

TARGETS = {
    "read": "data/a", "write": "data/a", "edit": "data/a", "create": "data/a", "delete": "data/a",
    "network": "a.example.org", "exec": "git status", "mcp": "git/commit", "secret": "RATES_KEY",
}  # fmt: skip
RULES = TARGETS | {"network": "*.example.org", "mcp": "git/*"}


@pytest.mark.parametrize("named", EffectKind)
@pytest.mark.parametrize("kind", EffectKind)
def test_a_rule_for_one_kind_never_matches_another(named, kind):
    for action in ("x__y", "*"):
        rule = f"{action}({named}:{RULES[named]})"
        verdicts = {
            listed: policy(**{listed: [rule]}).decide("x__y", Purity.WRITE, [Effect(kind, TARGETS[kind])])
            for listed in ("allow", "ask", "deny", "approvals")
        }
        for listed, verdict in verdicts.items():
            expected = {"approvals": "allow"}.get(listed, listed)
            without = "ask"  # a write that only reads is asked about for itself
            if named is not kind or (kind is EffectKind.READ and listed in ("allow", "approvals")):
                assert verdict.decision == without, (listed, rule)
            else:
                assert verdict.decision == expected, (listed, rule)


def test_without_a_kind_a_rule_that_tightens_is_for_all_and_one_that_loosens_for_files_or_one_action():
    connect, run = Effect("network", "a.example.org"), Effect("exec", "data/run")
    for listed in ("ask", "deny"):
        assert (
            policy(**{listed: ["*(*.example.org)"]}).decide("x__y", Purity.NETWORK, [connect]).decision
            == listed
        )
        assert (
            policy(**{listed: ["*(*example*)"]}).decide("x__y", Purity.NETWORK, [connect]).decision == listed
        )
        assert policy(**{listed: ["*(data/**)"]}).decide("x__y", Purity.EXEC, [run]).decision == listed
    assert policy(allow=["*(*.example.org)"]).decide("x__y", Purity.NETWORK, [connect]).decision == "ask"
    assert policy(allow=["*(data/**)"]).decide("x__y", Purity.EXEC, [run]).decision == "ask"
    assert (
        policy(allow=["*(data/**)"]).decide("x__y", Purity.WRITE, [Effect("write", "data/a")]).decision
        == "allow"
    )
    assert policy(allow=["x__y(*.example.org)"]).decide("x__y", Purity.NETWORK, [connect]).decision == "allow"


@pytest.mark.parametrize(
    ("rule", "target", "denied", "allowed"),
    [
        ("a.example.org", "https://A.example.ORG./x", True, True),
        ("*.example.org", "a.b.example.org", True, True),
        ("*.example.org", "example.org", False, False),
        ("*.example.org", "notexample.org", False, False),
        ("*.EXAMPLE.org.", "a.example.org", True, True),
        ("*.bücher.example", "a.xn--bcher-kva.example", True, True),
        ("api.*.org", "api.example.org", True, True),
        ("*", "a.org:22", True, False),
        ("*:*", "a.org:22", True, True),
        ("0x7f.1", "127.0.0.1", True, True),
        ("10.*", "10.1.2.3", True, True),
        ("[::1]", "::1", True, True),
        ("a.org", "a.org:8443", True, False),
        ("a.org:*", "a.org:8443", True, True),
        ("a.org:*", "https://a.org/x", True, True),
        ("a.org:*", "b.a.org:8443", False, False),
        ("a.org", "ftp://a.org/x", True, False),
        ("[::1]", "http://[::1]:8080/", True, False),
        ("[::1]:*", "http://[::1]:8080/", True, True),
        ("127.0.0.1", "http://2130706433:8080/", True, False),
        ("*.a.org", "b.a.org:22", True, False),
        ("a.org:8443", "http://a.org:8443/", True, True),
        ("a.org:8443", "a.org:22", False, False),
        ("a.org:8443", "a.org", True, False),  # who names no port may mean any
        ("a.org:443", "https://a.org/", True, True),
        ("a.org:443", "a.org:22", False, False),
        ("*.org:22", "a.org:22", True, True),
        ("[::1]:22", "http://[::1]:22", True, True),
    ],
)
def test_hosts(rule, target, denied, allowed):
    held("network", rule, target, denied, allowed)


@pytest.mark.parametrize(
    ("rule", "target", "denied", "allowed"),
    [
        ("git", "git", True, True),
        (
            "git",
            "git push --force",
            True,
            False,
        ),  # a program by itself: to allow whatever it is given, say so
        ("git **", "git push --force", True, True),
        ("git **", "git", True, True),
        ("git status", "git  'status'", True, True),
        ("git status", "git status -s", False, False),
        ("git status *", "git status -s", True, True),
        ("git *", "git push --force", False, False),
        ("git **", "github push", False, False),
        ("git **", "./git push", True, False),
        ("git **", "/usr/bin/git push", True, False),
        ("git **", "GIT push", True, False),
        ("/usr/bin/git **", "/usr/bin/../bin/git push", True, True),
        ("/usr/bin/git **", "git push", True, False),
        ("git **", "git push; rm -rf /", True, True),  # one command: a shell would be a program of its own
        ("data/**", "run data/a", False, False),
        ("rm **", "sh -c 'rm -rf /'", False, False),
        ("cat data/*", "cat data/a", True, True),
        ("cat data/*", "cat data/a/../../etc/passwd", False, False),
    ],
)
def test_programs(rule, target, denied, allowed):
    held("exec", rule, target, denied, allowed)


@pytest.mark.parametrize(
    ("rule", "target", "denied", "allowed"),
    [
        ("git/*", "git/commit", True, True),
        ("git/*", "github/commit", False, False),
        ("git/*", "GIT/commit", True, False),
        ("git/commit", "git / commit", True, True),
        ("git/commit*", "git/commit/all", True, True),
        ("git", "git/commit", True, False),
        ("git", "git", True, True),
        ("git/*", "git", True, False),
        ("*/delete", "files/delete", True, True),
        ("*/delete", "a/b/delete", False, False),  # the server is what stands before the first slash
    ],
)
def test_tools_of_servers(rule, target, denied, allowed):
    held("mcp", rule, target, denied, allowed)


def held(kind: str, rule: str, target: str, denied: bool, allowed: bool) -> None:
    effect = [Effect(kind, target)]
    denying, allowing = policy(deny=[f"*({kind}:{rule})"]), policy(allow=[f"x__y({kind}:{rule})"])
    assert (denying.decide("x__y", Purity.WRITE, effect).decision == "deny") is denied
    assert (allowing.decide("x__y", Purity.WRITE, effect).decision == "allow") is allowed


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("*(network:)", "without its targets"),
        ("*(network:https://a.org/x)", "could match nothing"),
        ("*(network:a.org/x)", "could match nothing"),
        ("*(network:*a.org)", r"\*.example.org for all names below"),
        ("*(network:a..org)", "could match nothing"),
        ("*(network:a.org:99999)", "port from 0 to 65535"),
        ("*(network:300.1.1.1)", "could match nothing"),
        ("*(exec:git 'push)", "quotation mark"),
        ("*(exec:**)", "names no program"),
        ("*(mcp:/tool)", "server/tool"),
        ("*(netwrok:a.org)", "did you mean network:a.org"),
        ("*(Network:a.org)", "did you mean network:a.org"),
    ],
)
def test_a_rule_that_can_match_nothing_says_so(rule, says):
    for listed in ("allow", "ask", "deny"):
        with pytest.raises(ValueError, match=says):
            policy(**{listed: [rule]})


@pytest.mark.parametrize("rule", ["file__write(write:../x)", "file__write(write:/etc/**)"])
def test_a_rule_that_allows_what_lies_outside_is_refused(rule):
    with pytest.raises(ValueError, match="allows nothing"):
        policy(allow=[rule])
    assert write("../x", rules=policy(deny=[rule.replace("/etc/**", "../x")])) == "deny"


def test_a_path_may_begin_like_a_kind():
    rules = policy(allow=["file__write(./network:x)", "file__write(write:exec:y)", "file__write(c:z)"])
    assert [write(path, rules=rules) for path in ("network:x", "exec:y", "c:z", "x")] == ["allow"] * 3 + [
        "ask"
    ]
    (suggested,) = suggest_patterns("file__write", [Effect("write", "network:x")])
    assert write("network:x", rules=policy(approvals=[suggested])) == "allow"
