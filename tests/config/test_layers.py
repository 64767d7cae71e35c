"""Layers: defaults, the user's file, reyn.yaml, an argument, the session; and where each value came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from reyn_jupyter.config import ConfigError, Effective, Settings, all_keys, load, user_path
from reyn_jupyter.config.layers import from_mapping


class Place:
    """A workspace and a user's file, both real."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self.root.mkdir()
        self.user = folder / "config.yaml"

    def load(self, project: str | None = None, user: str | None = None, **options) -> Effective:
        if project is not None:
            (self.root / "reyn.yaml").write_text(project)
        if user is not None:
            self.user.write_text(user)
        return load(self.root, user_file=self.user, **{"trusted": True, **options})


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_without_files_the_defaults_hold(place):
    effective = place.load()
    assert effective.settings == Settings()
    assert set(effective.origins.values()) == {"default"}
    assert (effective.problems, effective.held_back, effective.project) == ((), (), None)


def test_the_project_is_over_the_user_and_both_over_the_defaults(place):
    effective = place.load(
        "router: {surface: flat}",
        "router: {surface: auto, names: shown}\nllm_log: on",
        override={"llm_log": False},
    )
    assert effective.settings.router.surface == "flat"
    assert effective.settings.router.names == "shown"
    assert effective.settings.llm_log is False
    assert effective.origins["router.surface"] == "reyn.yaml"
    assert effective.origins["router.names"] == "user file"
    assert effective.origins["llm_log"] == "argument"
    assert effective.origins["router.repair"] == "default"


def test_a_model_is_replaced_whole_so_no_address_slips_under_another_model(place):
    effective = place.load(
        "models: {standard: {api_base: 'http://x', model: b}}", "models: {standard: a, light: c}"
    )
    assert effective.settings.models.standard.model == "b"
    assert effective.settings.models.light.model == "c"
    effective = place.load("models: {standard: b}", "models: {standard: {model: a, api_base: 'http://mine'}}")
    assert effective.settings.models.standard.api_base is None


def test_permission_rules_add_up_so_no_layer_takes_back_a_deny(place):
    effective = place.load(
        "permissions: {deny: [], allow: ['file__write(data/**)']}", "permissions: {deny: ['file__delete']}"
    )
    assert effective.settings.permissions.deny == ("file__delete",)
    assert effective.settings.permissions.allow == ("file__write(data/**)",)


def test_embedding_classes_join_those_that_are_built_in(place):
    effective = place.load("embedding: {classes: {light: {model: openai/x}, mine: openai/y}}")
    classes = effective.settings.embedding.classes
    assert set(classes) == {"local-mini", "multilingual", "light", "standard", "strong", "mine"}
    assert classes["light"].model == "openai/x"
    assert effective.origins["embedding.classes.light"] == "reyn.yaml"


def test_peers_of_the_layers_join_and_one_of_them_is_replaced_whole(place):
    peers = place.load(
        "peers: {checker: {prompt: You check.}}",
        "peers: {checker: {model: strong, categories: [file]}, poet: {}}",
    ).settings.peers
    assert sorted(peers) == ["checker", "poet"]
    assert peers["checker"].model is None and peers["checker"].categories == ()


@pytest.mark.parametrize(
    ("peer", "words"),
    [
        ({"a b": {}}, "the name of a peer"),
        ({"a": {"modle": "x"}}, "did you mean 'model'"),
        ({"a": {"limits": {"max_step": 2}}}, "did you mean 'max_steps'"),
        ({"a": {"url": "ftp://a.example.org"}}, "https://"),
        ({"a": {"url": "https://a.example.org", "model": "strong"}}, "has its own model"),
        ({"a": {"token": "TOKEN"}}, "remote peer"),
        ({"a": {"url": "https://a.example.org", "token": "sk live"}}, "name of a secret"),
    ],
)
def test_a_peer_that_does_not_fit_is_refused_in_words(peer, words):
    with pytest.raises(ConfigError, match=words):
        from_mapping({"peers": peer})


def test_one_field_of_a_peer_changes_and_the_others_stay():
    before = from_mapping({"peers": {"checker": {"prompt": "You check.", "limits": {"tokens": 5_000}}}})
    after = before.with_value("peers.checker.limits.max_steps", "3").with_value(
        "peers.checker.model", "strong"
    )
    peer = after.settings.peers["checker"]
    assert (peer.prompt, peer.limits.tokens, peer.limits.max_steps) == ("You check.", 5_000, 3)
    assert peer.model is not None and peer.model.model == "strong"
    assert [row["value"]["model"] for row in after.rows() if row["key"] == "peers.checker"] == ["strong"]


def test_on_and_off_are_words_where_a_word_is_meant_and_switches_elsewhere(place):
    effective = place.load("variables: off\nrouter: {repair: on, forgive: off}")
    assert effective.settings.variables == "off"
    assert (effective.settings.router.repair, effective.settings.router.forgive) == (True, False)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("routr: {}", 1, "did you mean 'router'?"),
        ("a: 1\nrouter:\n  surfce: flat", 3, "did you mean 'router.surface'?"),
        ("surface: flat", 1, "did you mean 'router.surface'?"),
        ("model: offline", 1, "did you mean 'router_model'?"),
        ("router.surface: flat", 1, None),
        ("models: {light: a}\nmodels.light: b", 2, "given twice"),
        ("router: 5", 1, "needs keys of its own"),
        ("models: {mine: a}", 1, "models holds light, standard, strong"),
        ("\nrouter:\n  surface: univrsal", 3, "did you mean 'universal'?"),
        ("router: {limits: {max_steps: yes}}", 1, "a number is needed"),
        ("router: {limits: {max_steps: 0}}", 1, "at least 1"),
        ("router: {limits: {max_steps: [1]}}", 1, "whole number"),
        ("models:\n  light: {model: a, teir: light}", 2, "did you mean 'tier'?"),
        ("models: {light: {tier: light}}", 1, "models.light.model: is missing"),
        ("models: {light: {model: a, parameters: {api_key: x}}}", 1, "environment"),
        ("models: {light: 7}", 1, "models.light"),
        ("permissions:\n  deny: [file_write]", 2, "no permission pattern"),
        ("permissions: {deny: ['file__write()']}", 1, "empty parentheses"),
        ("llm_log: perhaps", 1, "on or off"),
        ("embedding: {classes: 3}", 1, "embedding.classes"),
    ],
)
def test_what_does_not_fit_is_named_with_its_line_and_the_session_works_on(place, text, line, words):
    effective = place.load(text)
    if words is None:  # a dotted key at the top is taken for what it says
        assert effective.settings.router.surface == "flat"
        return
    problems = [problem for problem in effective.problems if words in problem]
    assert problems and f"reyn.yaml, line {line}: " in problems[0]
    assert effective.settings == Settings()


def test_an_unreadable_file_leaves_the_other_layers_in_force(place):
    effective = place.load("a: [", "router: {surface: flat}\npermissions: {deny: [file__delete]}")
    assert "reyn.yaml, line 1" in effective.problems[0]
    assert effective.settings.router.surface == "flat"
    assert effective.settings.permissions.deny == ("file__delete",)


def test_of_a_broken_file_only_what_narrows_counts_even_when_it_is_trusted(place):
    effective = place.load(
        "routr: 1\nmodels: {standard: x}\npermissions: {deny: [file__delete], allow: [file__write]}",
        trusted=True,
    )
    assert effective.settings.permissions.deny == ("file__delete",)
    assert effective.settings.permissions.allow == ()
    assert effective.settings.models.standard is None
    assert {held.why for held in effective.held_back} == {"the file has errors"}


def test_a_broken_user_file_is_named_and_never_raises(place):
    effective = place.load(None, "models: {standard: x}\nnope: 1")
    assert str(place.user) in effective.problems[0]
    assert effective.settings.models.standard is None


def test_a_wrong_argument_raises_at_once(place):
    with pytest.raises(ConfigError, match="did you mean 'router"):
        place.load(override={"router": {"surfac": "flat"}})
    with pytest.raises(ConfigError, match="does not exist"):
        place.load(override=place.root / "none.yaml")
    (place.root / "mine.yaml").write_text("llm_log: [")
    with pytest.raises(ConfigError, match=r"mine\.yaml, line"):
        place.load(override=str(place.root / "mine.yaml"))


def test_an_argument_may_be_a_file(place):
    (place.root / "mine.yaml").write_text("models: {standard: openai/gpt-4o-mini}")
    effective = place.load(override=place.root / "mine.yaml", trusted=False)
    assert effective.settings.models.standard.model == "openai/gpt-4o-mini"
    assert effective.origins["models.standard"] == "argument"


def test_the_session_changes_one_key_and_keeps_it_over_a_reload(place):
    effective = place.load("router: {limits: {max_steps: 5}}")
    changed = effective.with_value("router.limits.max_steps", "12")
    assert changed.settings.router.limits.max_steps == 12
    assert changed.origins["router.limits.max_steps"] == "session"
    assert effective.settings.router.limits.max_steps == 5
    again = place.load(session=changed.session)
    assert again.settings.router.limits.max_steps == 12


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("variables", "off", "off"),
        ("llm_log", "on", True),
        ("router.surface", "null", None),
        ("router.limits.turn_cost", "0.5", 0.5),
        ("models.standard.model", "4711", "4711"),
        ("permissions.allow", "file__write(data/**)", ("file__write(data/**)",)),
        ("permissions.deny", '["file__*", "exec__run"]', ("file__*", "exec__run")),
        ("embedding.classes.mine.v2", "openai/x", None),
        ("embedding.classes.mine.model", "openai/x", "openai/x"),
        ("action_retrieval.embedding_class", "null", None),
    ],
)
def test_a_value_is_typed_as_yaml_or_json(place, key, text, value):
    changed = place.load().with_value(key, text)
    found = changed.value(key)
    assert (found.model == "openai/x") if key.endswith("v2") else (found == value)


def test_the_persons_own_line_needs_no_trust(place):
    effective = place.load("models: {standard: evil/x}", trusted=False).with_value(
        "models.standard", "openai/gpt-4o"
    )
    assert effective.settings.models.standard.model == "openai/gpt-4o"


def test_one_field_of_a_model_changes_and_the_others_stay(place):
    effective = place.load("models: {light: {model: a, api_base: 'http://localhost:1'}}")
    changed = effective.with_value("models.light.tier", "light").with_value(
        "models.light.parameters.temperature", "0"
    )
    entry = changed.settings.models.light
    assert (entry.model, entry.api_base, entry.tier, entry.parameters) == (
        "a",
        "http://localhost:1",
        "light",
        {"temperature": 0},
    )


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("router.surfac", "flat", "did you mean 'router.surface'?"),
        ("router", "flat", "needs keys of its own"),
        ("", "x", "unknown key"),
        ("models.standard.tear", "x", "unknown key"),
        ("models.huge", "x", "unknown key"),
        ("router.limits.max_steps", "many", "whole number"),
        ("router.limits.max_steps", "1000000", "1000"),
        ("models.light.tier", "light", "models.light.model: is missing"),
    ],
)
def test_a_wrong_change_is_refused_in_words(place, key, text, words):
    with pytest.raises(ConfigError) as caught:
        place.load().with_value(key, text)
    assert words in str(caught.value)


def test_every_key_can_be_read_set_and_is_described(place):
    effective = place.load()
    listed = dict(effective.values())
    for info in all_keys():
        assert info.description and info.type
        if "<name>" in info.key:
            continue
        assert listed[info.key] == info.default
        assert effective.with_value(info.key, info.default).value(info.key) == effective.value(info.key)


def test_header_values_are_not_shown(place):
    effective = place.load("models: {light: {model: a, headers: {X-Key: hunter2hunter2}}}")
    assert "hunter2" not in str({row["key"]: row["value"] for row in effective.rows()})
    assert {row["key"]: row["value"] for row in effective.rows()}["models.light"] == {
        "model": "a",
        "headers": {"X-Key": "set"},
    }


def test_the_users_file_lies_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("REYN_CONFIG_DIR", str(tmp_path))
    assert user_path() == tmp_path / "config.yaml"


def test_settings_can_be_made_of_values_alone_without_a_look_at_any_file(place, monkeypatch):
    user_path().parent.mkdir(parents=True)
    user_path().write_text("router: {limits: {max_steps: 3}}\n")
    monkeypatch.chdir(place.root)
    (place.root / "reyn.yaml").write_text("router: {limits: {max_steps: 4}}\n")
    effective = from_mapping(
        {"router": {"mandate": "generic", "names": "shown"}}, {"router": {"mandate": "none"}}
    )
    assert effective.settings.router.limits.max_steps == 8
    assert (effective.settings.router.mandate, effective.settings.router.names) == ("none", "shown")
    with pytest.raises(ConfigError):
        from_mapping({"router": {"mandat": "none"}})
