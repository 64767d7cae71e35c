"""What a sign-in gave is kept for one server at one address, where secrets are."""

from __future__ import annotations

import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest

from reyn_jupyter.backends.mcp_servers.secret_store import SecretTooShortError
from reyn_jupyter.backends.mcp_servers.sign_in_store import FILE, KeptSignIn, ServerSignIn, SignInBusyError
from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.support.secrets import Redactor

URL = "https://a.example/mcp"
KEPT = KeptSignIn(URL, access_token="at-correct-horse", refresh_token="rt-battery-staple")


def place(folder: Path, redactor: Redactor, url: str = URL, server: str = "docs") -> ServerSignIn:
    return ServerSignIn(StateFolder(folder, folder / "state"), redactor.learn, server, url)


def test_another_name_and_another_address_have_none(tmp_path: Path):
    assert place(tmp_path, Redactor({})).write(KEPT) == "file"
    redactor = Redactor({})
    assert place(tmp_path, redactor, url="https://b.example/mcp").read() is None
    assert place(tmp_path, redactor, server="other").read() is None
    assert place(tmp_path, redactor).read() == KEPT
    assert redactor.text("at-correct-horse rt-battery-staple").count("[redacted:") == 2
    assert "horse" not in repr(KEPT) and "staple" not in repr(KEPT)


def test_a_keyring_that_works_holds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    held: dict[tuple[str, str], str] = {}
    keyring = types.ModuleType("keyring")
    keyring.set_password = lambda service, user, value: held.update({(service, user): value})  # type: ignore[attr-defined]
    keyring.get_password = lambda service, user: held.get((service, user))  # type: ignore[attr-defined]
    keyring.delete_password = lambda service, user: held.pop((service, user))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", keyring)
    kept = place(tmp_path, Redactor({}))
    assert kept.write(KEPT) == "keyring" and kept.read() == KEPT
    (found,) = tmp_path.rglob(FILE)
    assert "horse" not in found.read_text()
    before = kept.stamp()
    kept.write(replace(KEPT, access_token="at-another-horse"))
    assert kept.stamp() != before  # other kernels see it
    assert kept.forget() and not held and kept.read() is None


def test_a_token_that_cannot_be_kept_out_of_texts_is_refused(tmp_path: Path):
    with pytest.raises(SecretTooShortError, match="access token has under"):
        place(tmp_path, Redactor({})).write(replace(KEPT, access_token="abc"))


def test_one_renews_at_a_time(tmp_path: Path):
    first, second = place(tmp_path, Redactor({})), place(tmp_path, Redactor({}))
    with first.renewing(1), pytest.raises(SignInBusyError), second.renewing(0):
        pass
    with second.renewing(0):
        pass


def test_a_damaged_file_is_no_sign_in(tmp_path: Path):
    kept = place(tmp_path, Redactor({}))
    kept.write(KEPT)
    (found,) = tmp_path.rglob(FILE)
    found.write_text('{"version": 1, "servers": {"docs": {"oauth:sign-in": {"value": "[1]"}}}}')
    assert kept.read() is None
