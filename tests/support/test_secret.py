"""A secret tells its name and nothing else, and stands in the environment of the program that it is for alone."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
import sys
from typing import Any

import pydantic_core
import pytest

from reyn_jupyter.outputs.convert import to_json
from reyn_jupyter.support.programs.owned_program import OwnedPrograms
from reyn_jupyter.support.secret import Secret
from reyn_jupyter.support.secrets import Redactor

VALUE = "correct-horse-battery"
SECRET = Secret("RATES_API_KEY", VALUE)


@pytest.mark.parametrize(
    "write",
    [
        repr,
        str,
        "{}".format,
        "{!r:>40}".format,
        lambda secret: f"{secret}",
        "{0} {0!r}".format,
        lambda secret: str([secret, {"key": secret}]),
        lambda secret: json.dumps({"key": secret}, default=str),
        lambda secret: json.dumps(to_json({"key": secret})),
        lambda secret: pydantic_core.to_json(secret, fallback=str),
        lambda secret: repr(copy.deepcopy({"key": secret})),
        lambda secret: repr(getattr(secret, "__dict__", "")),
        lambda secret: repr([getattr(secret, name) for name in dir(secret) if name != "reveal"]),
    ],
)
def test_no_way_of_writing_it_gives_the_value(write: Any) -> None:
    assert VALUE not in str(write(SECRET))


def test_it_is_not_pickled_and_a_copy_is_the_same_object() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="RATES_API_KEY is not pickled"):
            pickle.dumps(SECRET, protocol)
    assert copy.copy(SECRET) is copy.deepcopy(SECRET) is SECRET
    assert SECRET.reveal() == VALUE


def test_it_reaches_the_program_that_it_is_given_to_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RATES_API_KEY", VALUE)
    show = [sys.executable, "-I", "-S", "-c", "import json, os; print(json.dumps(dict(os.environ)))"]

    async def environments() -> list[Any]:
        programs = OwnedPrograms()
        started = [await programs.start(show, env=env) for env in ({"TOKEN": SECRET, "MODE": "test"}, None)]
        return [json.loads((await each.process.communicate())[0]) for each in started]

    given, plain = asyncio.run(environments())
    assert (given["TOKEN"], given["MODE"]) == (VALUE, "test")
    assert VALUE not in json.dumps(plain) and "TOKEN" not in os.environ


def test_a_value_that_the_redactor_learns_is_covered_in_every_form_and_after_a_refresh() -> None:
    environ: dict[str, str] = {}
    redactor = Redactor(environ)
    text = f"the key is {VALUE}."
    assert redactor.text(text) == text  # remembered as clean until then
    version = redactor.version
    redactor.learn("plain_name", VALUE)
    assert redactor.text(text) == "the key is [redacted:plain_name]."
    assert redactor.version > version
    environ["OTHER_TOKEN"] = "another-value"
    redactor.refresh()
    assert VALUE not in redactor.text(text) and "another-value" not in redactor.text("another-value")


def test_a_name_with_another_value_covers_the_old_the_new_and_the_environments() -> None:
    redactor = Redactor({"API_KEY": "of-the-environment"})
    redactor.learn("API_KEY", "of-the-session-1")
    redactor.learn("API_KEY", "of-the-session-2")
    text = redactor.text("of-the-environment of-the-session-1 of-the-session-2")
    assert "of-the" not in text
