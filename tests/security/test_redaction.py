"""A secret is covered in the whole of a source, before a window, a search or SQL sees a part of it.

Each test is an attack that a model makes on a file, a result or a variable that it may read.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import random
import re
import string
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import reyn_jupyter as reyn
from reyn_jupyter.backends.files import masked_files
from reyn_jupyter.models.scripted import ScriptedModel
from tests.security.security_support import Attacker, invoke

random.seed(7)
BODY = [base64.b64encode(random.randbytes(48)).decode() for _ in range(26)]
PEM = ["-----BEGIN RSA PRIVATE KEY-----", *BODY, "-----END RSA PRIVATE KEY-----"]
ACCESS = "AKIA" + "QWERTYUIOPASDFGH"
PASSWORD = "Zq7-correct-horse-battery-staple-Xy9"
FILLER = "an ordinary line of about sixty characters without a secret 1\n"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_PASSWORD", PASSWORD)


@pytest.fixture
def notes(workspace: Path) -> Path:
    """A workspace with a text that holds a key block, an access key and a password."""
    lines = ["start", *PEM, f"key = {ACCESS}", f"password: {PASSWORD}", "end"]
    (workspace / "deploy.txt").write_text("\n".join(lines) + "\n")
    return workspace


def leaks(text: str) -> list[str]:
    """Return the secrets of which a text holds twelve characters in a row or more, in any spelling."""
    squeezed = re.sub(r"[^A-Za-z0-9+/=-]", "", text)
    return [
        secret
        for secret in (*BODY, ACCESS, PASSWORD)
        for form in (secret, secret[::-1])
        if any(form[at : at + 12] in squeezed for at in range(len(form) - 11))
    ]


@pytest.mark.parametrize("lines", [1, 2, 3, 7])
def test_a_key_block_cannot_be_read_a_few_lines_at_a_time(notes: Path, lines: int) -> None:
    attacker = Attacker(notes)
    said = "\n".join(
        attacker.call("file__read", path="deploy.txt", offset=offset, limit=lines)
        for offset in range(1, 33, lines)
    )
    assert leaks(said) == [] and "start" in said and "end" in said and "[redacted:key]" in said


def test_windows_keep_their_line_numbers_and_the_whole_agrees_with_them(notes: Path) -> None:
    attacker = Attacker(notes)
    whole = attacker.call("file__read", path="deploy.txt").split("\n")
    for number in range(1, 33):
        window = attacker.call("file__read", path="deploy.txt", offset=number, limit=1)
        line, _, after = window.partition("\n")
        assert line == whole[number - 1]
        assert re.fullmatch(r"\n?|\n\[\d+ lines? left: offset=\d+ reads on\]", after)


@pytest.mark.parametrize("offset", [0, 1, 500, 1500])
def test_a_key_block_across_the_border_of_two_blocks_stays_covered(workspace: Path, offset: int) -> None:
    before = FILLER * ((1 << 20) // len(FILLER))
    start = before[: (1 << 20) - offset]
    text = start[: start.rfind("\n") + 1] + "\n".join(PEM) + "\n" + FILLER * 20_000 + f"{ACCESS}\n"
    (workspace / "large.log").write_text(text)
    attacker = Attacker(workspace)
    first = text[: text.index("-----BEGIN")].count("\n") + 1
    for at in range(first, first + 28, 3):
        assert leaks(attacker.call("file__read", path="large.log", offset=at, limit=3)) == []
    assert leaks(attacker.call("file__grep", pattern="^[A-Za-z0-9+/=]{60,}$")) == []
    rest = attacker.call("file__read", path="large.log", offset=first)
    blob = re.search(r"blob:([0-9a-f-]{36})", rest)
    assert blob and leaks(rest) == []
    said = attacker.call("table__query", sql="SELECT reverse(line) AS r FROM t", sources={"t": blob[1]})
    assert leaks(said) == []


@pytest.mark.parametrize("before", [10, 1, 19])
def test_a_secret_across_the_border_of_two_blocks_in_one_line_stays_covered(
    workspace: Path, before: int
) -> None:
    text = "x" * ((1 << 20) - before - 1) + f" {ACCESS} " + "y" * (1 << 20)
    (workspace / "line.txt").write_text(text)
    attacker = Attacker(workspace)
    blob = re.search(r"blob:([0-9a-f-]{36})", attacker.call("file__read", path="line.txt"))
    assert blob is not None
    stored = asyncio.run(attacker.session.parts.services.blobs.load_bytes(blob[1]))  # type: ignore[union-attr]
    assert stored.decode() == text.replace(ACCESS, "[redacted:key]")


@pytest.mark.parametrize(
    "pattern",
    [
        ACCESS[:12],
        f"{ACCESS[:6]}[A-R]",
        f"{PASSWORD[:9]}",
        f"word: {PASSWORD[0]}",
        BODY[3][:20],
        f"^{BODY[9][:2]}",
        "(?i)" + PASSWORD.upper()[:10],
    ],
)
def test_a_guess_finds_nothing(notes: Path, pattern: str) -> None:
    said = Attacker(notes).call("file__grep", pattern=pattern.replace("+", "\\+"), path="deploy.txt")
    assert "no match" in said


def test_a_line_with_a_secret_is_still_found_by_its_other_words(notes: Path) -> None:
    said = Attacker(notes).call("file__grep", pattern="^key = ")
    assert "deploy.txt:30:key = " in said and leaks(said) == []


@pytest.mark.parametrize("guess", [ACCESS[:12], PASSWORD[:9], BODY[3][:20], "Q" * 12])
def test_an_edit_is_no_oracle_for_a_guess(notes: Path, guess: str) -> None:
    attacker = Attacker(notes, answer="once")
    said = attacker.call("file__edit", path="deploy.txt", old_string=guess, new_string="x")
    assert "0 matches" in said and leaks(said) == []


HIDING = [
    "reverse(v)",
    "substr(v, 1, 14)",
    "substr(v, 9)",
    "array_to_string(string_split(v, ''), '.')",
    "hex(v)",
]


def rows_of_secrets() -> list[str]:
    return ["plain", *PEM, f"key = {ACCESS}", PASSWORD, "\n".join(PEM)]


def write_source(folder: Path, kind: str) -> str:
    cells = rows_of_secrets()
    records = "\n".join(json.dumps({"v": cell}) for cell in cells) + "\n"
    match kind:
        case "a.csv":
            data = pd.DataFrame({"v": cells}).to_csv(index=False).encode()
        case "a.tsv":
            data = pd.DataFrame({"v": cells}).to_csv(index=False, sep="\t").encode()
        case "a.jsonl":
            data = records.encode()
        case "a.json":
            data = json.dumps([{"v": cell} for cell in cells]).encode()
        case "a.csv.gz":
            data = gzip.compress(pd.DataFrame({"v": cells}).to_csv(index=False).encode())
        case _:
            data = gzip.compress(records.encode())
    (folder / kind).write_bytes(data)
    return kind


def unhexed(text: str) -> str:
    """Return a text with its longer hexadecimal words as what they spell beside it."""
    words = re.findall(r"(?:[0-9A-Fa-f]{2}){6,}", text)
    return text + " ".join(bytes.fromhex(word).decode("utf-8", "replace") for word in words)


@pytest.mark.parametrize("kind", ["a.csv", "a.tsv", "a.jsonl", "a.json", "a.csv.gz", "a.jsonl.gz"])
def test_sql_over_a_file_sees_no_secret_and_says_so(workspace: Path, kind: str) -> None:
    attacker = Attacker(workspace)
    source = write_source(workspace, kind)
    for hidden in HIDING:
        said = attacker.call("table__query", sql=f"SELECT {hidden} AS r FROM t", sources={"t": source})
        assert leaks(unhexed(said)) == []
    said = attacker.call("table__query", sql="SELECT count(*) AS n FROM t", sources={"t": source})
    assert "masked" in said and str(len(rows_of_secrets())) in said


def test_sql_over_a_parquet_file_with_a_secret_is_refused(workspace: Path) -> None:
    import duckdb

    frame = pd.DataFrame({"v": rows_of_secrets(), "n": range(len(rows_of_secrets()))})
    with duckdb.connect() as database:
        database.register("whole", frame)
        database.sql("FROM whole").write_parquet(str(workspace / "a.parquet"))
        database.sql("SELECT n FROM whole").write_parquet(str(workspace / "b.parquet"))
    attacker = Attacker(workspace)
    said = attacker.call("table__query", sql="SELECT reverse(v) AS r FROM t", sources={"t": "a.parquet"})
    assert leaks(said) == [] and "secret" in said
    assert "32" in attacker.call(
        "table__query", sql="SELECT count(*) AS n FROM t", sources={"t": "b.parquet"}
    )


@pytest.mark.parametrize(
    "kind", ["frame", "category", "series", "list", "records", "nested", "index", "dict"]
)
@pytest.mark.parametrize("given", ["name", "reference", "blob"])
def test_sql_over_a_variable_or_a_result_sees_no_secret(workspace: Path, kind: str, given: str) -> None:
    cells = rows_of_secrets()
    values: dict[str, Any] = {
        "frame": pd.DataFrame({"n": range(len(cells)), "v": cells}),
        "category": pd.DataFrame({"v": pd.Categorical(cells)}),
        "series": pd.Series(cells, name="v"),
        "list": cells,
        "records": [{"v": cell} for cell in cells],
        "nested": pd.DataFrame({"v": [[cell, {"deep": cell}] for cell in cells]}),
        "index": pd.DataFrame({"n": range(len(cells))}, index=pd.Index(cells, name="v")),
        "dict": {"v": cells},
    }
    attacker = Attacker(workspace, names={"secretive": values[kind]}, settings={"variables": "head"})
    source: Any = {"$var": "secretive"} if given == "reference" else "secretive"
    if given == "blob":
        source = attacker.stored(values[kind])
    column = "value" if kind == "list" else "v"
    for hidden in HIDING:
        if kind == "nested":
            hidden = hidden.replace("v", "v::VARCHAR", 1) if "(v" in hidden else hidden
        sql = f"SELECT {hidden.replace('(v', '(' + column)} AS r FROM t"
        said = attacker.call("table__query", sql=sql.replace(f"({column}::", "(v::"), sources={"t": source})
        assert leaks(unhexed(said)) == []


def test_a_stored_result_cannot_be_read_a_few_lines_at_a_time_either(notes: Path) -> None:
    attacker = Attacker(notes)
    blob = attacker.stored("\n".join(PEM) + "\n")
    from reyn_jupyter.models.scripted import call

    looks = [
        call("inspect", blob_id=blob, selector=selector)
        for selector in ("lines:2-4", "lines:10-12", "lines:-5", "bytes:100..300", f"grep:{BODY[2][:8]}")
    ]
    assert leaks(attacker.calls(*looks)) == []


def test_the_person_reads_and_queries_what_is_there(notes: Path) -> None:
    session = Attacker(notes, names={"keys": pd.DataFrame({"v": [ACCESS]})}).session
    assert ACCESS in session.invoke_action("file__read", {"path": "deploy.txt"}).value
    frame = session.invoke_action("table__query", {"sql": "FROM t", "sources": {"t": "keys"}}).value
    assert frame["v"].tolist() == [ACCESS]


def test_sources_without_a_secret_stay_as_they_are(workspace: Path) -> None:
    letters = "".join(random.choice(string.ascii_letters) for _ in range(50))
    (workspace / "plain.csv").write_text(f"v\n{letters}\n")
    said = Attacker(workspace).calls(
        invoke("table__query", sql="SELECT reverse(v) AS r FROM t", sources={"t": "plain.csv"}),
        invoke("file__read", path="plain.csv", offset=2, limit=1),
    )
    assert letters in said and letters[::-1] in said and "masked" not in said


def _reversed_in_sql(session: reyn.Session, name: str) -> str:
    query = invoke("table__query", sql="SELECT reverse(value) AS r FROM t", sources={"t": name})
    model = ScriptedModel(query, "done")
    session.ask("go", model=model, new=True)
    return model.requests[-1].messages[-1].content


def test_what_holds_no_secret_of_one_session_is_searched_for_those_of_another(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masked_files, "_SETTLED", -(1 << 62))  # a change of a moment ago counts as settled
    value = "super-confidential-9"
    (workspace / "export.csv").write_text(f"id,value\n1,{value}\n")
    other = reyn.Session(workspace, store="memory", secrets={"OTHER_KEY": "something-else-entirely"})
    owner = reyn.Session(workspace, store="memory", secrets={"EXPORT_KEY": value})
    assert value[::-1] in _reversed_in_sql(other, "export.csv")  # to that session it is a text
    assert value[::-1] not in _reversed_in_sql(owner, "export.csv")


def test_a_compressed_file_is_searched_though_its_bytes_were_searched_under_another_name(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masked_files, "_SETTLED", -(1 << 62))
    value = "super-confidential-9"
    monkeypatch.setenv("EXPORT_KEY", value)
    (workspace / "export.csv.gz").write_bytes(gzip.compress(f"id,value\n1,{value}\n".encode()))
    os.link(workspace / "export.csv.gz", workspace / "export.csv")
    session = reyn.Session(workspace, store="memory")
    _reversed_in_sql(session, "export.csv")
    assert value[::-1] not in _reversed_in_sql(session, "export.csv.gz")
