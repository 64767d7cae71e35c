"""The gate: deny wins everywhere; a call runs unasked only when every one of its effects may."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.catalog.action import Effect, Purity
from reyn_jupyter.config import Settings
from reyn_jupyter.guard.permissions import (
    ActionPattern,
    PatternError,
    Policy,
    suggest_pattern,
)


def policy(allow=(), ask=(), deny=(), approvals=()) -> Policy:
    settings = Settings.model_validate({"permissions": {"allow": allow, "ask": ask, "deny": deny}})
    return Policy.from_settings(settings, approvals)


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
    assert ActionPattern.parse(pattern).covers(action, target) is covered


@pytest.mark.parametrize(
    "text", ["", "file", "file_write", "file__write(", "file__write)", "file__write()", "file__write( )", "__", "(x)",
             "file__wr ite", "file__write(a\nb)", "file__write(a\u202eb)", "x" * 600, "file__write(x) y"]
)  # fmt: skip
def test_a_malformed_pattern_is_refused_in_words(text):
    with pytest.raises(PatternError, match=r"pattern|parentheses"):
        Policy.from_settings(Settings(), [text])


def test_a_hostile_pattern_costs_no_time():
    # A backtracking matcher would not come back within the life of this machine.
    pattern = ActionPattern.parse(f"file__*a*a*a*a*a*a*a*b({'**/*a' * 60}b)")
    assert not pattern.covers("file__" + "a" * 2000, "a/" * 1500)


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


def test_always_means_exactly_this_target():
    suggested = suggest_pattern("file__write", [Effect("write", "./data/out.csv")])
    assert suggested == "file__write(data/out.csv)"
    rules = policy(approvals=[suggested])
    assert write("data/out.csv", rules=rules) == "allow"
    assert write("data/out2.csv", rules=rules) == "ask"


@pytest.mark.parametrize("target", ["data/*.csv", "a?b", "a\nb", "a\u202eb", "x" * 600])
def test_always_is_not_offered_where_no_pattern_says_just_that(target):
    assert suggest_pattern("file__write", [Effect("write", target)]) is None
    assert suggest_pattern("file__write", [Effect("write", "a"), Effect("write", "b")]) is None


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_suggested_pattern_covers_its_target_and_no_other(target, other):
    suggested = suggest_pattern("mcp__call_tool", [Effect("mcp", target)])
    if suggested is not None:
        pattern = ActionPattern.parse(suggested)
        assert pattern.covers("mcp__call_tool", target)
        assert target == other or not pattern.covers("mcp__call_tool", other)
