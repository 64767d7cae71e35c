"""Names that other agents have for what the actions here do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.catalog.other_names import known_elsewhere
from reyn_jupyter.catalog.suggest import suggest, suggest_entries
from tests.catalog.samples import published

OFF = {"action_retrieval": {"embedding_class": None}}
ELSEWHERE = {
    "exec__run": """bash Bash shell sh terminal execute run_command local_shell container.exec shell_command
        exec_command run_shell_command execute_bash run_in_terminal run_terminal_cmd execute_command system
        powershell BashTool""",
    "file__read": "read_file ReadFile cat view open_file read_text_file read_many_files functions.read_file Read head",
    "file__write": "write_file create_file write_to_file Write save_file touch",
    "file__edit": """str_replace_editor str_replace_based_edit_tool apply_patch MultiEdit Edit replace_in_file edit_file
        text_editor""",
    "file__delete": "file__remove rm delete_file remove_file file__rm file__unlink file_remove",
    "file__list": "ls LS list_directory list_dir list_files directory_tree file__ls",
    "file__glob": "find glob Glob find_files file__find",
    "file__grep": "grep Grep rg grep_search search_files file_search codebase_search search_file_content",
    "table__query": "sql sql_query sql_db_query query_sql run_query execute_sql read_query",
    "chart__draw": "plot chart draw_plot create_chart visualize plot_data",
    "web__fetch": "fetch fetch_url WebFetch get_url curl visit_webpage browse url_context requests_get",
    "web__search": """web_search web_search_preview google_search WebSearch duckduckgo_search tavily_search
        brave_web_search""",
    "memory_operation__remember_shared": "save_memory remember create_entities add_memory",
    "memory_operation__search": "search_memory search_nodes",
}
DYNAMIC = {
    "create_tool": "create",
    "run_dynamic_tool": "run",
    "list_dynamic_tools": "list",
    "delete_dynamic_tool": "delete",
    "tool_reflection": "reflect",
}


@pytest.fixture
def session(workspace: Path) -> reyn.Session:
    return reyn.Session(workspace, config=OFF, store="memory")


def test_names_of_other_agents_lead_to_the_action_first(session: reyn.Session) -> None:
    wrong = {}
    for meant, others in ELSEWHERE.items():
        for other in others.split():
            first = (suggest(session.catalog, other) or [""])[0]
            if first != meant:
                wrong[other] = (first, meant)
    assert not wrong


def test_a_name_of_another_agent_runs_nothing_and_is_answered_with_the_action(
    session: reyn.Session, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("kept")
    for name in ("rm", "file__remove", "bash"):
        found = session.invoke_action(name, {"path": "a.txt"})
        assert found.error is not None and "Unknown action" in str(found.error)
        assert found.payload["suggestions"][0] == ("exec__run" if name == "bash" else "file__delete")
    assert (workspace / "a.txt").read_text() == "kept"


def test_an_action_with_the_very_words_comes_before_one_from_elsewhere() -> None:
    snapshot = published()
    for name in ("file.read", "file__read_file", "read_files"):
        assert suggest(snapshot, name)[0] == "file__read"


def test_a_name_from_elsewhere_is_not_suggested_if_its_action_is_not_on_offer() -> None:
    assert known_elsewhere("code_interpreter")[0] == "python__run"
    snapshot = published()
    assert all(snapshot.named(name) for name in suggest(snapshot, "code_interpreter"))


@pytest.mark.parametrize("config", [OFF, {}], ids=["words", "meaning"])
def test_other_unknown_names_are_answered_with_what_a_search_finds(workspace: Path, config: Any) -> None:
    session = reyn.Session(workspace, config=config, store="memory")
    if not config:
        session.build_embeddings()
    for name, meant in {
        "download_video": "utility__youtube-downloader",
        "resize_image": "utility__image-thumbnails",
        "zip_folder": "utility__folder-archive",
    }.items():
        for found in (session.invoke_action(name, {}), session.describe_action(name)):
            assert found.payload["suggestions"][0] == meant and "suggestions" in found.payload["hint"]


def test_names_of_the_dynamic_tool_reference_resolve_to_their_actions(session: reyn.Session) -> None:
    code = "def execute(params):\n    return params['text'].upper()\n"
    made = session.invoke_action(
        "create_tool",
        {"name": "shout", "description": "Shout.", "code": code, "parameters": {"text": {"type": "string"}}},
    )
    assert made.error is None and made.name == "dynamic_tool_operation__create"
    ran = session.invoke_action("run_dynamic_tool", {"tool_name": "shout", "parameters": {"text": "a"}})
    assert ran.error is None and ran.name == "dynamic_tool_operation__run"
    assert "shout" in str(session.invoke_action("list_dynamic_tools", {}).payload)
    assert (
        session.invoke_action("tool_reflection", {"task_description": "sum", "last_tool_result": "3"}).error
        is None
    )
    gone = session.invoke_action("delete_dynamic_tool", {"tool_name": "shout", "confirm": True})
    assert gone.error is None and gone.name == "dynamic_tool_operation__delete"
    for name, entry in DYNAMIC.items():
        described = session.describe_action(name).payload
        assert described["qualified_name"] == f"dynamic_tool_operation__{entry}"


def test_near_misses_of_the_dynamic_tool_reference_are_suggestions(session: reyn.Session) -> None:
    for name, entry in DYNAMIC.items():
        for near in (name.title().replace("_", ""), name.replace("_", "-"), f"{name}s", name[:-1]):
            assert suggest(session.catalog, near)[0] == f"dynamic_tool_operation__{entry}", near


def test_entries_are_suggested_without_the_fixed_actions() -> None:
    assert suggest_entries(published(), "nothing__x") == []
