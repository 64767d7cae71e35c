"""A study as logs of inspect_ai, which its models accept, read back as it was; logs of its own; hostile logs."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

import reyn_jupyter as reyn
from reyn_jupyter.evaluation.inspect_logs.log import InspectLogError
from reyn_jupyter.evaluation.inspect_logs.log_writer import write_logs
from reyn_jupyter.evaluation.results.trial_export import ExportError
from reyn_jupyter.evaluation.trial.trial import FileFact
from reyn_jupyter.models.scripted import call
from reyn_jupyter.runtime.record.call_facts import CallFact
from tests.evaluation.study_support import BASE, BEST, study
from tests.evaluation.trial_set_support import evidence, many, trial

DATA = Path(__file__).parents[2] / "data" / "inspect"
ACCEPTED = jsonschema_rs.validator_for(json.loads((DATA / "eval_log_schema.json").read_text()))


def whole(path: Path) -> dict[str, Any]:
    """The log of an archive as inspect's models read it: the header with its samples."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        header: dict[str, Any] = json.loads(archive.read("header.json"))
        header["samples"] = [json.loads(archive.read(name)) for name in names if name.startswith("samples/")]
        started = json.loads(archive.read("_journal/start.json"))
        summaries = json.loads(archive.read("summaries.json"))
    assert started == {key: header[key] for key in ("version", "eval", "plan")}
    assert [each["id"] for each in summaries] == [each["id"] for each in header["samples"]]
    return header


# --- a study as logs


def test_each_variant_of_a_study_is_a_log_that_inspects_models_accept(tmp_path: Path) -> None:
    made = study(tmp_path / "a.sqlite", 3)
    with pytest.raises(ExportError, match="no trials yet"):
        made.export_inspect_logs(tmp_path / "logs")
    made.run(BASE, BEST, repeats=2)
    paths = made.export_inspect_logs(tmp_path / "logs")
    assert paths == made.export_inspect_logs(tmp_path / "logs"), "the same study writes the same logs"
    assert sorted((tmp_path / "logs").iterdir()) == sorted(paths)
    for path, variant in zip(paths, (BASE, BEST), strict=True):
        log = whole(path)
        ACCEPTED.validate(log)
        assert log["eval"]["tags"] == ["scripted", "not a real model"]
        assert log["eval"]["metadata"]["settings"]["reinforcement"] == variant.reinforcement
        assert (log["eval"]["dataset"]["samples"], log["eval"]["config"]["epochs"]) == (3, 2)
        first = log["samples"][0]
        assert [message["role"] for message in first["messages"][:2]] == ["system", "user"]
        called = [call["function"] for message in first["messages"] for call in message.get("tool_calls", ())]
        assert (
            called[0] == "list_actions" and first["messages"][-1]["content"] == first["output"]["completion"]
        )
        (lists,) = (score for score in log["results"]["scores"] if score["name"] == "first_call_is")
        assert (
            lists["metrics"]["accuracy"]["value"] == 1.0 and first["scores"]["first_call_is"]["value"] == "C"
        )
        read = reyn.read_inspect_log(path)
        there = [each for each in made.evidence.trials if each.variant == variant.name]
        assert sorted(read.trials, key=lambda each: each.key) == sorted(there, key=lambda each: each.key)
        assert list(read.df["first_call_is"]) == [True] * 6


def test_what_is_missing_has_an_error_and_no_score_and_a_limit_is_one(tmp_path: Path) -> None:
    on = evidence({"a": {"s000": (True,), "s001": ("error",), "s002": ("timeout",), "s003": ("limit",)}})
    (path,) = write_logs(on, lambda _: (), tmp_path)
    log = whole(path)
    ACCEPTED.validate(log)
    by_id = {each["id"]: each for each in log["samples"]}
    assert by_id["s001"]["error"]["message"] == "it ended as error" and by_id["s001"]["scores"] == {}
    assert by_id["s002"]["error"] and by_id["s003"]["limit"]["reason"] == "it ended as limit"
    assert (log["results"]["total_samples"], log["results"]["completed_samples"]) == (4, 2)
    (lists,) = (score for score in log["results"]["scores"] if score["name"] == "first_call_is")
    assert (lists["scored_samples"], lists["unscored_samples"]) == (2, 2)
    frame = reyn.read_inspect_log(path).df.set_index("id")
    assert frame.loc["s001", "error"] == "it ended as error" and frame.loc["s003", "limit"] == "custom"
    assert frame["first_call_is"].isna().sum() == 2


TEXTS = st.text(st.characters(), max_size=30) | st.sampled_from(["\ud800", "=1+1", "\x00", "../../x", "|"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
CALLS = st.builds(
    CallFact, step=st.integers(1, 9), wrapper=TEXTS, name=st.none() | TEXTS, args=VALUES, ok=st.none() | st.booleans(),
    error=st.none() | TEXTS, listed=st.lists(TEXTS, max_size=2).map(tuple),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    answer=TEXTS, error=TEXTS, calls=st.lists(CALLS, max_size=3), outcome=st.sampled_from(["ok", "error", "limit"]),
    cost=st.none() | st.floats(0, 1e6), started=st.floats(0, 4e9), path=TEXTS, model=TEXTS,
)  # fmt: skip
def test_a_trial_is_read_again_as_it_was_whatever_a_model_wrote(
    tmp_path_factory: pytest.TempPathFactory, path: str, calls: list[CallFact], **facts: Any
) -> None:
    one = trial("a", "s000", 0, True, calls=tuple(calls), files={path: FileFact(text=path)}, **facts)
    on = evidence({"a": {}}, more=[one])
    (written,) = write_logs(on, lambda _: (), tmp_path_factory.mktemp("logs"))
    ACCEPTED.validate(whole(written))
    read = reyn.read_inspect_log(written)
    assert read.trials == (one,)


def test_names_of_variants_and_scenarios_reach_no_other_place(tmp_path: Path) -> None:
    on = evidence({"../../a": {}}, more=[trial("../../a", "../../s", 0, True)])
    (path,) = write_logs(on, lambda _: (), tmp_path / "logs")
    assert path.parent == tmp_path / "logs" and [each.name for each in tmp_path.iterdir()] == ["logs"]
    assert reyn.read_inspect_log(path).samples[0].id == "../../s"
    (tmp_path / "file").touch()
    with pytest.raises(ExportError, match="cannot be written"):
        write_logs(evidence({"a": many(1, True)}), lambda _: (), tmp_path / "file")


def test_messages_and_transcript_say_which_tool_answered_and_what_failed(tmp_path: Path) -> None:
    """Frames of messages are indexed by their ids, and a viewer takes a sample without events for one that is cut."""
    lost = call("invoke_action", action_name="file__absent", args={})
    made = study(None, 1, lost, "It is not there.")
    made.run(BASE, repeats=2)
    (path,) = made.export_inspect_logs(tmp_path)
    log = whole(path)
    ACCEPTED.validate(log)
    ids = [message["id"] for sample in log["samples"] for message in sample["messages"]]
    assert len(set(ids)) == len(ids)

    sample = log["samples"][0]
    (told,) = (message for message in sample["messages"] if message["role"] == "tool")
    assert told["function"] == "invoke_action" and told["error"]["type"] == "unknown"
    assert "file__absent" in told["error"]["message"]
    asked, ran, closed = sample["events"]
    assert (asked["event"], ran["event"], closed["event"]) == ("model", "tool", "model")
    assert [message["role"] for message in asked["input"]] == ["system", "user"]
    assert (asked["output"]["choices"][0]["stop_reason"], ran["function"]) == ("tool_calls", "invoke_action")
    assert ran["error"] == told["error"] and ran["arguments"]["action_name"] == "file__absent"
    assert closed["output"]["completion"] == sample["output"]["completion"] == "It is not there."
    assert sample["output"]["choices"][0]["message"]["id"] == sample["messages"][-1]["id"]


# --- logs that inspect_ai wrote


@pytest.mark.parametrize("name", ["sums.eval", "sums.json"])
def test_a_log_of_inspect_itself_is_read(name: str) -> None:
    log = reyn.read_inspect_log(DATA / name)
    assert repr(log) == "InspectLog('sums', 'mockllm/model', success, 3 samples)" and log.trials == ()
    missing, wrong, right = log.samples
    assert (right.input, right.answer, right.calls) == ("What is 1 + 1?", "It is 2.", ("add",))
    assert (right.scores, wrong.scores, missing.scores) == ({"includes": True}, {"includes": False}, {})
    assert (missing.id, missing.input, missing.error) == ("3", "One?\nTwo?", "ConnectionError('gone')")
    assert (right.tokens, right.cost, right.seconds) == (34, None, 2.0)
    assert list(log.df["includes"]) == [None, False, True]


# --- hostile logs


def archive(path: Path, **members: Any) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, value in members.items():
            made.writestr(
                name.replace("__", "/") + ".json", value if isinstance(value, str) else json.dumps(value)
            )
    return path


HELD = {"id": "a", "epoch": 1}
HEADER = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m", "created": "x"}}


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"other": {}}, "no header.json"),
        ({"header": "{"}, r"header\.json is no JSON"),
        ({"header": "[" * 100_000}, r"header\.json is no JSON"),
        ({"header": []}, "is no object"),
        ({"header": {"version": 2}}, "names no eval"),
        ({"header": {**HEADER, "version": 1}}, "has format 1, and 2 is read"),
        ({"header": HEADER, "samples__a": {"id": "a"}}, "no id or epoch"),
        (
            {"header": HEADER, "samples__a": {**HELD, "metadata": {"reyn_trial": "{}"}}},
            "a trial that is none",
        ),
        ({"header": HEADER, "samples__a": {**HELD, "metadata": {"reyn_trial": "["}}}, "a trial that is none"),
    ],
)
def test_what_is_no_log_is_told(tmp_path: Path, members: dict[str, Any], told: str) -> None:
    with pytest.raises(InspectLogError, match=told):
        reyn.read_inspect_log(archive(tmp_path / "a.eval", **members))


def test_a_number_that_is_none_is_not_known(tmp_path: Path) -> None:
    usage = {"m": {"total_tokens": float("nan"), "total_cost": float("inf")}}
    held = {**HELD, "model_usage": usage, "total_time": 10**400}
    (sample,) = reyn.read_inspect_log(archive(tmp_path / "a.eval", header=HEADER, samples__a=held)).samples
    assert (sample.tokens, sample.cost, sample.seconds) == (None, None, None)


def test_a_log_costs_no_more_than_the_bound_and_damage_is_said(tmp_path: Path) -> None:
    bomb = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(bomb, closefd=False) as writer:
        for _ in range(513):
            writer.write(b" " * (1 << 20))
    path = archive(tmp_path / "a.eval", header=HEADER)
    with zipfile.ZipFile(path, "a") as made:
        made.writestr("samples/b.json", bomb.getvalue())
    content = path.read_bytes()
    # The method of the member is stored as 0; 93 is Zstandard. Both headers of the archive say it.
    at, central = content.index(b"samples/b.json"), content.rindex(b"samples/b.json")
    changed = bytearray(content)
    changed[at - 22 : at - 20] = changed[central - 36 : central - 34] = (93).to_bytes(2, "little")
    path.write_bytes(changed)
    with pytest.raises(InspectLogError, match="the log holds more than 512 MiB"):
        reyn.read_inspect_log(path)
    damaged = (DATA / "sums.eval").read_bytes()
    (tmp_path / "b.eval").write_bytes(damaged.replace(b"\x28\xb5\x2f\xfd", b"nope"))  # how each frame begins
    (tmp_path / "c.eval").write_bytes(damaged[: len(damaged) // 2])
    (tmp_path / "d.json").write_text('{"samples": 3}')
    (tmp_path / "e.txt").touch()
    told = {
        "b.eval": "is damaged",
        "c.eval": "cannot be read",
        "d.json": "names no eval",
        "e.txt": "give an .eval",
    }
    for name, why in {**told, "f.eval": "cannot be read"}.items():
        with pytest.raises(InspectLogError, match=why):
            reyn.read_inspect_log(tmp_path / name)


@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_a_pipe_makes_no_reader_wait_and_a_damaged_archive_is_named(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(InspectLogError, match="no regular file"):
        reyn.read_inspect_log(tmp_path / name)

    broken = tmp_path / "broken.eval"
    with zipfile.ZipFile(broken, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"version": 2, "filler": "abc" * 500}))
    raw = bytearray(broken.read_bytes())
    raw[45:55] = b"\xff" * 10
    broken.write_bytes(raw)
    with pytest.raises(InspectLogError, match="cannot be read"):
        reyn.read_inspect_log(broken)
