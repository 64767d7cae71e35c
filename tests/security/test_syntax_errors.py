"""Wrong Python code beside files whose names are those that the code is given: none of them is opened."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.backends.code_run import CodeError, prepare_code
from reyn_jupyter.corpora.text_readers import code_reader
from reyn_jupyter.dynamic.analysis.python_syntax import ToolCodeError, parse_python
from reyn_jupyter.dynamic.definition import detect_mode
from reyn_jupyter.support.python_source import compile_source, parse_source

SECRET = "the line of another file"
# What the parser refuses, and what only the compiler does.
WRONG = ("def execute(params):\n    return (\n", "x = 1\nreturn 5\ndef execute(params):\n    return 1\n")
PACKAGE = Path(reyn.__file__).parent


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a working folder in which each name that code was ever given is a link to a secret."""
    secret = tmp_path / "secret.txt"
    secret.write_text(f"{SECRET}\n" * 50)
    folder = tmp_path / "clone"
    folder.mkdir()
    names = ["<unknown>", "<string>", "<tool>", *(f"<reyn python {number}>" for number in range(1, 3_000))]
    for name in names:
        (folder / name).symlink_to(secret)
    monkeypatch.chdir(folder)
    yield folder


def test_a_syntax_error_quotes_no_line_of_a_linked_file(opened: Path) -> None:
    for code in WRONG:
        with pytest.raises(CodeError) as refused:
            prepare_code(code)
        assert SECRET not in str(refused.value)
        with pytest.raises(SyntaxError) as wrong:
            compile_source(parse_source(code), "<tool>")
        assert SECRET not in str(wrong.value.text)


def test_a_model_reads_no_linked_file_by_wrong_code(opened: Path) -> None:
    session = reyn.Session(opened, namespace={})
    session.python("on")
    for code in WRONG:
        result = session.invoke_action("python__run", {"code": code})
        assert result.error is not None and SECRET not in f"{result.payload}{result.error}"


def test_wrong_code_waits_for_no_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("<unknown>", "<string>", "<tool>"):
        os.mkfifo(name)

    def read() -> None:
        for code in WRONG:
            detect_mode(code)
            with pytest.raises(ToolCodeError):
                parse_python(code)
            code_reader("python")(code)

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    reading.join(30)
    assert not reading.is_alive()


def test_no_module_parses_python_under_a_name_that_a_file_can_have() -> None:
    own = PACKAGE / "support" / "python_source.py"
    # In a sandbox a program of its own does, which has no more than the sandbox shows.
    others = [each for each in PACKAGE.rglob("*.py") if each != own and "children" not in each.parts]
    found = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in others
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"\bast\.parse\((?!.*mode=\"eval\")|(?<![.\w])compile\(", line)
    ]
    assert found == []
