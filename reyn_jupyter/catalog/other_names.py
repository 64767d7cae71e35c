"""Names that other agents have for what the actions here do, so that a habit of a model leads to a real action.

Invariant: a name in this table is only ever suggested. It never runs anything. Sources: the documented tools of Claude
Code, Codex, Gemini CLI, Cursor, Cline, SWE-agent, OpenHands, the built-in tools of OpenAI and Anthropic, LangChain,
LlamaIndex, smolagents, and the reference servers of MCP (filesystem, fetch, memory, sqlite, git).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reyn_jupyter.catalog.ranking import stems

if TYPE_CHECKING:
    from collections.abc import Mapping

# Words of a name are compared without order, case, separators, and plural: `ReadFile` is `read_file`.
_NAMES: Mapping[str, str] = {
    "file__read": """
        cat head tail view view_file open open_file read_file read_text_file read_media_file read_multiple_files
        read_many_files file_read load_file get_file_contents get_file show_file text_file_read type
        """,
    "file__write": """
        write_file write_to_file file_write create_file create_new_file save_file new_file put_file touch store_file
        write_text_file
        """,
    "file__edit": """
        edit_file multi_edit str_replace str_replace_editor str_replace_based_edit_tool text_editor replace
        replace_in_file insert_edit_into_file apply_patch apply_diff patch patch_file search_replace edit_block
        insert_line modify_file update_file change_file sed file_edit
        """,
    "file__delete": """
        rm delete_file remove_file file_delete file_remove unlink erase_file delete_path del
        """,
    "file__list": """
        ls dir list_directory list_dir list_files list_folder list_directory_with_sizes directory_tree tree read_folder
        read_directory file_list get_directory_contents scandir listdir
        """,
    "file__glob": "find glob glob_file_search find_files find_by_name search_files_by_name file_glob match_files",
    "file__grep": """
        grep rg ripgrep grep_search search_files search_file search_in_files file_search search_file_content
        search_text search_code codebase_search code_search find_in_files find_text search_dir find_in_file
        search_directory
        """,
    "python__run": """
        python python_repl python_repl_ast python_interpreter python_exec code_interpreter code_execution execute_python
        run_python ipython jupyter run_code execute_code ipython_cell run_ipython execute_ipython_cell
        """,
    "exec__run": """
        bash sh zsh shell terminal exec execute cmd command powershell pwsh local_shell container_exec shell_command
        exec_command run_command run_shell run_shell_command run_bash run_in_terminal run_terminal_cmd execute_command
        execute_bash execute_shell execute_shell_command bash_tool bash_command cmd_run system subprocess
        run_terminal_command
        launch_process run_process terminal_execute command_line python python_repl python_interpreter code_interpreter
        code_execution execute_python run_python run_code execute_code
        """,
    "table__query": """
        sql query sql_query sql_db_query query_sql run_sql execute_sql execute_query run_query read_query query_database
        sqlite_query duckdb duckdb_query query_table db_query database_query execute_sql_query
        """,
    "chart__draw": """
        plot chart draw graph figure create_chart make_chart draw_chart draw_plot plot_chart make_plot create_plot
        plot_data generate_chart render_chart visualize visualise show_chart line_chart bar_chart histogram
        """,
    "web__fetch": """
        fetch fetch_url fetch_page fetch_webpage web_fetch get_url url_fetch browse browser open_url read_url
        visit_webpage visit_page curl wget http_get http_request requests_get scrape scrape_page read_web_page navigate
        url_context fetch_website load_url read_url_content download_page
        """,
    "web__search": """
        web_search web_search_preview google_search google_web_search google bing bing_search internet_search
        search_web search_the_web duckduckgo duckduckgo_search duckduckgo_results_json tavily tavily_search
        tavily_search_results_json brave_search brave_web_search serpapi google_serper search_internet online_search
        """,
    "memory_operation__remember_shared": """
        remember save_memory add_memory memory_save memory_add store_memory update_memory create_memory create_entities
        add_observations core_memory_append memorize
        """,
    "memory_operation__search": """
        search_memory recall_memory search_memories memory_search retrieve_memory search_nodes archival_memory_search
        get_memory query_memory
        """,
    "memory_operation__list": "list_memories list_memory read_graph show_memories",
    "memory_operation__forget": "forget delete_memory remove_memory forget_memory delete_entities",
    "rag_operation__recall": """
        knowledge_base_search search_documents document_search retrieve retriever vector_search semantic_search
        similarity_search query_engine search_docs search_corpus rag_search vector_store_search
        """,
    "rag_operation__index": "index_documents ingest add_documents index_folder ingest_documents",
    "mcp__call_tool": "call_mcp_tool use_mcp_tool mcp_call mcp_call_tool call_tool run_mcp_tool invoke_mcp_tool",
    "mcp__list_tools": "list_mcp_tools get_mcp_tools mcp_tools",
    "mcp__list_servers": "list_mcp_servers mcp_servers",
    "mcp__list_resources": "list_mcp_resources list_mcp_resource_templates",
    "mcp__read_resource": "read_mcp_resource access_mcp_resource",
    "dynamic_tool_operation__create": "make_tool define_tool create_function new_tool create_dynamic_tool",
    "dynamic_tool_operation__run": "run_tool execute_dynamic_tool run_custom_tool",
    "dynamic_tool_operation__list": "list_custom_tools list_tools_made",
    "dynamic_tool_operation__delete": "remove_dynamic_tool delete_tool remove_tool drop_tool",
    "notebook__read_cell": "read_notebook notebook_read get_cell",
    "notebook__propose_cell": "notebook_edit edit_notebook_file edit_notebook add_cell insert_cell create_cell",
    "notebook__list_cells": "list_notebook_cells get_cells",
}
_VERBS: Mapping[str, str] = {
    "delete": "remove rm erase unlink del drop",
    "drop": "delete remove uninstall",
    "forget": "delete remove drop",
    "read": "get cat open view show load",
    "write": "create save put touch",
    "edit": "update modify patch replace change",
    "list": "ls show enumerate dir all",
    "glob": "find match",
    "grep": "search find rg",
    "run": "execute exec call invoke shell bash command",
    "create": "make new add define",
    "query": "sql select execute run",
    "draw": "plot chart render make create",
    "fetch": "get download open read browse",
    "search": "find lookup query",
    "recall": "search query find retrieve",
    "index": "add ingest create",
}


def _table(names: Mapping[str, str]) -> dict[frozenset[str], list[str]]:
    found: dict[frozenset[str], list[str]] = {}
    for action, others in names.items():
        for other in others.split():
            actions = found.setdefault(stems(other), [])
            if action not in actions:
                actions.append(action)
    return found


_BY_NAME, _BY_VERB = _table(_NAMES), _table(_VERBS)


def known_elsewhere(text: str) -> list[str]:
    """Return the qualified names of what a name of another agent means, whether or not they are on offer.

    >>> known_elsewhere("Bash"), known_elsewhere("functions.read_file"), known_elsewhere("read_fly")
    (['exec__run'], ['file__read'], [])
    """
    for part in (text, text.rpartition(".")[2], text.rpartition("__")[2], text.rpartition("/")[2]):
        if (found := _BY_NAME.get(stems(part))) and part:
            return found
    return []


def verbs_meant(entry: str) -> list[str]:
    """Return the entries that a verb stands for: `remove` is a word for `delete`.

    >>> verbs_meant("remove")
    ['delete', 'drop', 'forget']
    """
    return _BY_VERB.get(stems(entry), [])
