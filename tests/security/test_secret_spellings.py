"""A secret in another spelling is the same secret: in what a model reads, in the run file, and in SQL."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import os
import unicodedata
from pathlib import Path
from urllib.parse import quote

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.models.scripted import ScriptedModel
from reyn_jupyter.support.secrets import Redactor
from tests.security.security_support import Attacker, invoke

KEY = "ghp_" + "a1B2c3D4e5" * 4
ACCESS = "AKIA" + "QWERTYUIOPASDFGH"
OPENAI = "sk-" + "a1B2c3D4e5" * 4
PASSWORD = "pa\"ss,wo'rd/123&xyz<ü>" + "q7Wz" * 20
BEFORE = [
    "\x1b[33m", "\x1b[01;31m\x1b[K", "\\n", "\\t", "\\r\\n", "%3D", "%0A", "%20", "_", "-", "token_", "\\x1b[0m",
    "\\u001b[0m", "\\033[1m", "é", "\u200b", "&lt;b&gt;", "&#61;", "\\\\n", "=\\u0022", "b'",
]  # fmt: skip


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_PASSWORD", PASSWORD)


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize("key", [KEY, ACCESS, OPENAI], ids=["github", "aws", "openai"])
def test_a_key_behind_an_escape_is_a_key(before: str, key: str) -> None:
    for text in (f"{before}{key}", f"word{before}{key}\x1b[0m more", json.dumps({"a": f"{before}{key}"})):
        assert key not in Redactor({}).text(text)
        masked = Redactor({}).masked(text)
        assert key not in masked and len(masked.encode()) == len(text.encode())


def quoted(value: str) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow([1, value])
    return buffer.getvalue()


SPELLINGS = {
    "json": lambda value: json.dumps({"a": value}),
    "json with escaped slashes": lambda value: json.dumps(value).replace("/", "\\/"),
    "json with escaped signs": lambda value: (
        json.dumps(value).replace("&", "\\u0026").replace("<", "\\u003c")
    ),
    "json in json": lambda value: json.dumps(json.dumps({"a": value})),
    "every character escaped": lambda value: "".join(f"\\u{ord(each):04x}" for each in value),
    "html": html.escape,
    "html in numbers": lambda value: "".join(f"&#{ord(each)};" for each in value),
    "csv": quoted,
    "sql": lambda value: "'" + value.replace("'", "''") + "'",
    "shell": lambda value: "'" + value.replace("'", "'\\\\''".replace("\\\\", "\\")) + "'",
    "url": lambda value: quote(value, safe=""),
    "url twice": lambda value: quote(quote(value, safe=""), safe=""),
    "bytes": lambda value: repr(value.encode()),
    "base64 in lines": lambda value: base64.encodebytes(f"user:{value}".encode()).decode(),
    "base64 in lines of json": lambda value: json.dumps(base64.encodebytes(value.encode()).decode()),
    "decomposed": lambda value: unicodedata.normalize("NFD", value),
    "coloured": lambda value: value[:20] + "\x1b[01;31m\x1b[K" + value[20:30] + "\x1b[m" + value[30:],
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_value_of_the_environment_is_found_in_every_spelling(spelling: str) -> None:
    text = f"before {SPELLINGS[spelling](PASSWORD)} after"
    redactor = Redactor(os.environ)
    redacted = redactor.text(text)
    assert "[redacted:DEMO_PASSWORD]" in redacted and redactor.text(redacted) == redacted
    assert not any(PASSWORD[at : at + 8] in redacted for at in range(len(PASSWORD) - 8))
    assert redacted.startswith("before ") and redacted.endswith(" after")
    assert len(redactor.masked(text).encode()) == len(text.encode())


def test_no_spelling_reaches_the_model_or_the_run_file(workspace: Path) -> None:
    @reyn.action
    def logs() -> dict[str, str]:
        "Return logs."
        return {"coloured": f"\x1b[33m{KEY}", "nested": json.dumps({"log": f"start\n{KEY}"}), "php": php}

    php = json.dumps(PASSWORD).replace("/", "\\/")
    (workspace / "a.jsonl").write_text(json.dumps({"message": f"tokens:\n{KEY}\n"}) + php)
    model = ScriptedModel([invoke("function__logs"), invoke("file__read", path="a.jsonl")], "done")
    session = reyn.Session(workspace, model=model, store="files")
    session.ask("go")
    read = [message.content for message in model.requests[-1].messages]
    written = [file.read_text() for file in (workspace / ".reyn" / "runs").glob("*.jsonl")]
    for text in (*read, *written):
        assert KEY not in text and "wo'rd" not in text
    assert written


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.jsonl"])
def test_sql_decodes_nothing_that_was_not_covered(workspace: Path, name: str) -> None:
    escaped = json.dumps(PASSWORD).replace("/", "\\/"), '"\\u0067' + KEY[1:] + '"'
    record = f'{{"a": 1, "v": {escaped[0]}, "k": {escaped[1]}}}'
    text = {"a.csv": "a,v\r\n" + quoted(PASSWORD), "a.json": f"[{record}]", "a.jsonl": record + "\n"}[name]
    (workspace / name).write_text(text)
    column = "reverse(v) || ' ' || reverse(k)" if name != "a.csv" else "reverse(v)"
    said = Attacker(workspace).call("table__query", sql=f"SELECT {column} AS r FROM t", sources={"t": name})
    assert PASSWORD[-12:][::-1] not in said and "321/dr" not in said and KEY[-12:][::-1] not in said
    assert "masked" in said


@pytest.mark.parametrize("first", [KEY, "AIza" + "x" * 35, OPENAI, ACCESS])
@pytest.mark.parametrize("second", ["AIza" + "SECOND" + "y" * 29, KEY, OPENAI, ACCESS])
def test_of_keys_without_a_gap_each_is_covered(first: str, second: str) -> None:
    text = f"{first}{second}"
    if first == OPENAI == second[: len(first)] or (first.isupper() and not second.isupper()):
        text = f"{first} {second}"
    masked, redacted = Redactor({}).masked(text), Redactor({}).text(text)
    assert second[6:] not in masked and second[6:] not in redacted and first not in masked


def test_many_keys_without_a_gap_are_covered_one_by_one() -> None:
    for text in (("AIza" + "x" * 35) * 5000, ("[redacted:key] AKIA" + "A" * 16 + " ") * 10_000):
        redacted = Redactor({}).text(text)
        assert "xxx" not in redacted and "AAA" not in redacted


def test_a_secret_that_a_call_puts_into_the_environment_does_not_leave_with_its_answer(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DEMO_SESSION_TOKEN", raising=False)
    token = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"

    @reyn.action
    def login() -> str:
        "Log in."
        monkeypatch.setenv("DEMO_SESSION_TOKEN", token)
        return f"logged in, session {token}"

    assert "[redacted:DEMO_SESSION_TOKEN]" in Attacker(workspace).call("function__login")


HEX = "a1b2c3d4" * 4
KEYS = {
    "slack webhook": "https://hooks.slack.com/services/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",
    "discord webhook": "https://discord.com/api/webhooks/112233445566778899/" + "aB3dE5fG7hI9" * 5,
    "azure storage": "AccountName=x;AccountKey=" + "aB3dE5fG7hI9jK1l" * 5 + "abcdef==;EndpointSuffix=core",
    "azure signature": "https://x.blob.core.windows.net/c/b?sv=2022&sig=" + "aB3dE5fG7hI9" * 3 + "%3D",
    "databricks": "dapi" + HEX,
    "telegram": "123456789:AA" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3",
    "shopify": "shpat_" + HEX,
    "google": "GOCSPX-" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9t",
    "vault": "hvs." + "aB3dE5fG7hI9jK1lM3nO5pQ7",
    "age": "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" + "QPZRY9X8GF2TVDW0S3JN54KHCE",
    "docker": "dckr_pat_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9",
    "atlassian": "ATATT3xFfGF0" + "aB3dE5fG7hI9jK1l" * 10,
    "notion": "ntn_" + "aB3dE5fG7hI9jK1l" * 3,
    "linear": "lin_api_" + "aB3dE5fG7hI9jK1l" * 2 + "abcdefgh",
    "grafana": "glsa_" + "aB3dE5fG7hI9jK1l" * 2 + "_a1b2c3d4",
    "putty": "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n" + "aB3dE5fG7hI9" * 3,
    "password with an at sign": "postgres://u:p@ss:w/rd99aB3d@host/db",
    "user of a url": f"https://{HEX}@host/x",
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_many_providers_are_known_by_their_shape(name: str) -> None:
    redacted = Redactor({}).text(f"({KEYS[name]}\n")
    assert (
        "[redacted:key]" in redacted
        and "dE5f" not in redacted
        and HEX not in redacted
        and "rd99" not in redacted
    )


@pytest.mark.parametrize(
    "text",
    [
        "https://example.org:8080/path?mail=me@example.org",
        "mongodb://one:27017,two:27017/db?x=me@example.org",
        "git@github.com:someone/project.git and ssh://someone@host/x",
        "C:\\new\\table\\disk-of-the-risk-and-task-with-many-words",
        "MKAKIAQWERTYUIOPASDFGHKLM is a protein",
        "at 12:34:56:AA or 100% of &amp; and %20 and \\n",
    ],
)
def test_ordinary_text_with_escapes_and_addresses_stays(text: str) -> None:
    assert Redactor({"A_TOKEN": "never-in-there"}).text(text) is text


def test_a_long_block_of_a_private_key_is_covered_to_its_end(workspace: Path) -> None:
    body = "\n".join("mQINBF" + "Ab3/" * 14 + "xy" for _ in range(600))
    block = f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{body}\n-----END PGP PRIVATE KEY BLOCK-----\nend\n"
    (workspace / "pgp.txt").write_text(block)
    attacker = Attacker(workspace)
    assert "Ab3" not in attacker.call("file__read", path="pgp.txt", offset=400, limit=3)
    assert "no match" in attacker.call("file__grep", pattern="Ab3/", path="pgp.txt")


@pytest.mark.parametrize(
    "path",
    [
        ".local/share/jupyter/runtime/jpserver-1.json", ".local/share/jupyter/runtime/kernel-1.json",
        ".jupyter/jupyter_server_config.json", ".kaggle/kaggle.json", ".cargo/credentials.toml", ".config/gh/hosts.yml",
        ".databrickscfg", ".s3cfg", ".vault-token", ".m2/settings.xml", ".config/rclone/rclone.conf",
        "terraform.tfstate",
        "terraform.tfstate.backup", "credentials.csv", "secrets.env.local", "prod.secrets.yaml", "service.pem.bak",
        ".bash_history", ".python_history", ".ipython/profile_default/history.sqlite",
    ],
)  # fmt: skip
def test_files_of_credentials_are_off_limits_where_the_home_folder_is_the_workspace(
    workspace: Path, path: str
) -> None:
    (workspace / path).parent.mkdir(parents=True, exist_ok=True)
    (workspace / path).write_text("token = tr0ub4dor")
    attacker = Attacker(workspace)
    assert "protected" in attacker.call("file__read", path=path)
    assert "tr0ub4dor" not in attacker.call("file__grep", pattern="token = .*")


@pytest.mark.parametrize(
    "path", ["runtime/a.json", "settings.xml", "hosts.yml", "history.csv", "env.py", "tokens.csv", "key.csv"]
)
def test_files_with_ordinary_names_are_read(workspace: Path, path: str) -> None:
    (workspace / path).parent.mkdir(parents=True, exist_ok=True)
    (workspace / path).write_text("ordinary")
    assert "ordinary" in Attacker(workspace).call("file__read", path=path)
