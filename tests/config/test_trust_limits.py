"""A reyn.yaml that nobody trusts makes the session do less, never more."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reyn_jupyter.config import Settings, all_keys, load
from reyn_jupyter.config.trust_limits import held_back

SAMPLES = {
    "bool": st.booleans(),
    "number": st.sampled_from([None, 0, 1, 2, 3, 100, 400, 800, 5000, 10_000, 59.5, 1e6]),
    "variables": st.sampled_from([None, "off", "schema", "head"]),
    "patterns": st.lists(st.sampled_from(["*", "file__*", "file__write(**)", "exec__run"]), max_size=2),
    "model": st.sampled_from(
        [None, "evil/model", {"model": "x", "api_base": "http://evil", "headers": {"a": "b"}}]
    ),
    "word": st.sampled_from(
        [None, "auto", "noop", "light", "local-mini", "flat", "universal", "shown", "none"]
    ),
}
ANYTHING = st.one_of(*SAMPLES.values())
LOWER_IS_NARROWER = [key.key for key in all_keys() if key.key.startswith(("router.limits.", "outputs."))]
SHOWN = {"off": 0, "schema": 1, "head": 2, None: 1}


def yaml_of(values: dict[str, object]) -> str:
    """JSON is YAML; dotted keys are nested, and what stands within another key takes its place."""
    root: dict[str, object] = {}
    for key, value in values.items():
        place = root
        *sections, last = key.split(".")
        for section in sections:
            within = place.get(section)
            place[section] = inner = dict(within) if isinstance(within, dict) else {}
            place = inner
        place[last] = value
    return json.dumps(root)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("narrowing")


KEYS = [key.key.replace("<name>.model", "mine").replace("<name>", "mine") for key in all_keys()]


def assert_no_looser(found: Settings, base: Settings) -> None:
    assert found.models == base.models
    assert found.router_model == base.router_model
    assert found.embedding == base.embedding
    assert found.peers == base.peers
    assert found.workflows.folders == base.workflows.folders
    assert found.workflows.at_once <= base.workflows.at_once
    assert found.workflows.confidence >= base.workflows.confidence
    assert found.action_retrieval.embedding_class in (base.action_retrieval.embedding_class, None)
    for key in LOWER_IS_NARROWER:
        section, *rest = key.split(".")
        new, old = getattr(found, section), getattr(base, section)
        for part in rest:
            new, old = getattr(new, part), getattr(old, part)
        assert old is None or (new is not None and new <= old), key
    assert found.permissions.allow == base.permissions.allow
    assert set(found.permissions.deny) >= set(base.permissions.deny)
    assert set(found.permissions.untrusted_files) >= set(base.permissions.untrusted_files)
    assert set(found.permissions.ask) >= set(base.permissions.ask)
    assert found.sandbox.backend == base.sandbox.backend
    assert base.sandbox.minimum in (None, found.sandbox.minimum)
    assert SHOWN[found.variables] <= SHOWN[base.variables]
    assert (found.llm_log, found.router.repair) <= (base.llm_log, base.router.repair)
    assert found.router.forgive <= base.router.forgive


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    project=st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=8),
    user=st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=4),
)
def test_no_untrusted_file_is_looser_than_what_holds_without_it(folder, project, user):
    (folder / "config.yaml").write_text(yaml_of(user))
    (folder / "reyn.yaml").write_text("")
    base = load(folder, user_file=folder / "config.yaml").settings
    (folder / "reyn.yaml").write_text(yaml_of(project))
    effective = load(folder, trusted=False, user_file=folder / "config.yaml")
    assert_no_looser(effective.settings, base)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("models: {standard: evil/x}", "models.standard"),
        ("router_model: strong", "router_model"),
        ("embedding: {classes: {local-mini: {model: evil}}}", "embedding.classes.local-mini"),
        ("action_retrieval: {embedding_class: strong}", "action_retrieval.embedding_class"),
        ("variables: head", "variables"),
        ("router: {limits: {max_steps: 9}}", "router.limits.max_steps"),
        ("router: {limits: {retries: 4}}", "router.limits.retries"),
        ("permissions: {allow: ['*']}", "permissions.allow"),
        ("sandbox: {backend: noop}", "sandbox.backend"),
        ("outputs: {inline_bytes: 100000}", "outputs.inline_bytes"),
        ("router: {repair: on}", "router.repair"),
        ("llm_log: on", "llm_log"),
    ],
)
def test_what_would_widen_is_held_back_and_listed_until_the_file_is_trusted(tmp_path, text, key):
    (tmp_path / "reyn.yaml").write_text(text)
    user = tmp_path / "none.yaml"
    untrusted = load(tmp_path, trusted=False, user_file=user)
    assert untrusted.settings == Settings()
    assert [held.key for held in untrusted.held_back] == [key]
    assert untrusted.held_back[0].why
    trusted = load(tmp_path, trusted=True, user_file=user)
    assert trusted.held_back == ()
    assert trusted.settings != Settings()
    assert trusted.origins[key] == "reyn.yaml"


def test_what_narrows_counts_at_once(tmp_path):
    (tmp_path / "reyn.yaml").write_text(
        "variables: off\nrouter: {limits: {max_steps: 2, turn_cost: 0.1}, surface: flat}\n"
        "permissions: {deny: ['file__delete'], ask: ['file__read(private/**)']}\n"
        "action_retrieval: {embedding_class: null}\nsandbox: {minimum: bubblewrap}\n"
    )
    effective = load(tmp_path, trusted=False, user_file=tmp_path / "none.yaml")
    assert effective.held_back == ()
    assert effective.settings.variables == "off"
    assert effective.settings.router.limits.turn_cost == 0.1
    assert effective.settings.permissions.ask == ("file__read(private/**)",)
    assert effective.settings.action_retrieval.embedding_class is None
    assert effective.settings.sandbox.minimum == "bubblewrap"


def test_trust_is_asked_about_the_very_bytes_that_are_used(tmp_path):
    (tmp_path / "reyn.yaml").write_text("models: {standard: good/x}")
    seen = []

    def judge(content: bytes) -> bool:
        seen.append(content)
        (tmp_path / "reyn.yaml").write_text("models: {standard: evil/x}")  # swapped right after the look
        return True

    effective = load(tmp_path, trusted=judge, user_file=tmp_path / "none.yaml")
    assert effective.settings.models.standard.model == "good/x"
    assert effective.project == seen[0] == b"models: {standard: good/x}"


def test_a_key_that_nobody_decided_about_is_held_back():
    assert held_back("router.something_new", 1, 0) is not None
    for key in KEYS:
        assert held_back(key, None, None) is None or isinstance(held_back(key, None, None), str)


def test_a_linked_reyn_yaml_is_not_read(tmp_path):
    (tmp_path / "elsewhere").write_text("permissions: {deny: ['*']}")
    (tmp_path / "reyn.yaml").symlink_to(tmp_path / "elsewhere")
    effective = load(tmp_path, trusted=True, user_file=tmp_path / "none.yaml")
    assert "is a link" in effective.problems[0]
    assert effective.settings == Settings()
