"""`%reyn invoke` in a shell: what stands between quotes reaches the action as it was meant."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from reyn_jupyter.sessions import current
from tests.support.trusting import trust

Run = Callable[[str], str]


@pytest.fixture
def echo(run: Run) -> list[str]:
    """What an action was given, call by call."""
    given: list[str] = []

    def echo(content: str) -> str:
        given.append(content)
        return content

    current.session().action(echo)
    return given


@pytest.mark.parametrize(
    ("word", "content"),
    [
        (r'content="say \"hi\""', 'say "hi"'),
        ("content='say \"hi\"'", 'say "hi"'),
        (r'content="a\\b"', r"a\b"),
        (r'content="a\nb"', r"a\nb"),
        (r'content="C:\new"', r"C:\new"),
        ('content="🙂 $x ${y}"', "🙂 $x ${y}"),
    ],
)
def test_a_quoted_argument_arrives_as_it_was_meant(
    run: Run, echo: list[str], word: str, content: str
) -> None:
    run(f"%reyn invoke function__echo {word}")
    assert echo == [content]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('content="unclosed', "A quote is not closed."),
        ("content=one content=two", "content is given twice. Leave one of the two out."),
        ("content=one -o a -o b", "-o is given twice. Leave one of the two out."),
    ],
)
def test_a_line_that_means_two_things_is_refused_and_nothing_called(
    run: Run, echo: list[str], line: str, said: str
) -> None:
    assert said in run(f"%reyn invoke function__echo {line}")
    assert echo == []


def test_a_workflow_that_is_not_trusted_yet_is_said_to_be_so(run: Run) -> None:
    folder = current.session().parts.services.workspace.root / "skills"
    folder.mkdir()
    (folder / "look.yaml").write_text(
        "description: Lists a folder.\nsteps:\n  - step_id: list\n    action: file__list\n    inputs: {path: .}\n"
    )
    for verb in ("invoke", "describe"):
        said = " ".join(run(f"%reyn {verb} skill__look").split())
        assert "skills/look.yaml lies in the workspace, and you have not trusted it as it is now." in said
        assert "%reyn trust shows what would run, and asks." in said
        assert "Unknown" not in said
    assert "1 workflow held back: %reyn trust" in run("%reyn workflow")
    trust(current.session())
    assert "held back" not in run("%reyn workflow")
    assert "not trusted" not in run("%reyn invoke skill__look")
    assert "Unknown action 'skill__lok'" in run("%reyn invoke skill__lok")


def test_a_workflow_that_is_none_is_said_to_be_held_back_with_the_reason(run: Run) -> None:
    folder = current.session().parts.services.workspace.root / "skills"
    folder.mkdir()
    (folder / "look.yaml").write_text("description: Lists a folder.\nsteps: none\n")
    for verb in ("invoke", "describe"):
        said = " ".join(run(f"%reyn {verb} skill__look").split())
        assert "The workflow look is held back: skills/look.yaml is no workflow: /steps" in said
        assert "Mend the file." in said


def test_json_on_the_line_needs_no_quotes(run: Run, echo: list[str]) -> None:
    texts = ["two words", "it's", 'say "hi"', "{{hole}} {x} $HOME", "why?", "a=b", "--json", "C:\\new\nline"]
    for text in texts:
        run(f"%reyn invoke function__echo {json.dumps({'content': text})}")
    assert echo == texts
    said = run('%reyn invoke function__echo {"content": "a", content: "b"}')
    assert "not valid JSON" in said and "%reyn invoke file__read {" in said
    assert "content is given twice" in run('%reyn invoke function__echo {"content": "a"} content=b')
    assert "content is given twice" in run('%reyn invoke function__echo {"content": "a"} {"content": "b"}')
    assert echo == texts


def test_an_error_about_a_name_suggests_names_that_run(run: Run) -> None:
    root = current.session().parts.services.workspace.root
    (root / "it's a note.txt").write_text("kept")
    said = run("""%reyn invoke file__raed {"path": "it's a note.txt"}""")
    assert "file__read" in said
    assert "kept" in run("""%reyn invoke file__read {"path": "it's a note.txt"}""")
