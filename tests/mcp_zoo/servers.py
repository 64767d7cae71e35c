"""The servers of ``make mcp-zoo``: packages of npm and PyPI as they are published, which need no key and no network.

In the words of a row `{folder}` is its folder of sample files, `{page}` the address of a local page, and `{port}` a
free port.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, eq=False)
class Call:
    """One call that only reads, or that writes into the sample files.

    Attributes:
        what: the name of a tool or prompt, or the address of a resource.
        args: its arguments.
        fact: a text that the answer has.
    """

    what: str
    args: Mapping[str, Any]
    fact: str
    kind: Literal["tool", "resource", "prompt"] = "tool"


@dataclass(frozen=True, eq=False)
class ZooServer:
    """One server in a pinned version.

    Attributes:
        name: as in `--only`.
        made_with: the library that speaks the protocol, and its language.
        command: the package's script and its arguments.
        tools: how many tools are offered.
        left_out: how many are not.
        beside: further packages that it needs, with their versions.
        path: of its address, for a server over HTTP; "" for one over pipes.
    """

    name: str
    registry: Literal["npm", "PyPI"]
    requirement: str
    made_with: str
    command: tuple[str, ...]
    tools: int
    calls: tuple[Call, ...]
    left_out: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    beside: tuple[str, ...] = ()
    path: str = ""


_TYPESCRIPT, _PYTHON, _GO, _RUST = "SDK for TypeScript", "SDK for Python", "SDK for Go", "SDK for Rust"
# Servers that were written for the SDK of this major version, and whose packages admit any.
_FIRST_SDK = ("mcp==1.28.0",)
_CHART = {"data": [{"c": "a", "v": 3}], "categoryAccessor": "c", "valueAccessor": "v"}

SERVERS = (
    ZooServer(
        "everything", "npm", "@modelcontextprotocol/server-everything@2026.8.31", f"{_TYPESCRIPT} 1",
        ("mcp-server-everything",), 15,
        (
            Call("get-sum", {"a": 2, "b": 3}, "5"),
            Call("get-tiny-image", {}, "image/png"),
            Call("get-structured-content", {"location": "Chicago"}, "temperature"),
            Call("trigger-long-running-operation", {"duration": 0.4, "steps": 4}, "completed"),
            Call("trigger-elicitation-request", {}, "cancel"),
            Call("demo://resource/static/document/architecture.md", {}, "Everything", "resource"),
            Call("args-prompt", {"city": "Paris"}, "Paris", "prompt"),
        ),
    ),
    ZooServer(
        "everything-http", "npm", "@modelcontextprotocol/server-everything@2026.8.31", f"{_TYPESCRIPT} 1, HTTP",
        ("mcp-server-everything", "streamableHttp"), 15,
        (Call("echo", {"message": "hello"}, "Echo: hello"), Call("get-tiny-image", {}, "image/png")),
        env={"PORT": "{port}"}, path="/mcp",
    ),
    ZooServer(
        "filesystem", "npm", "@modelcontextprotocol/server-filesystem@2026.8.31", f"{_TYPESCRIPT} 1, asks for roots",
        ("mcp-server-filesystem", "{folder}"), 14,
        (
            Call("read_text_file", {"path": "{folder}/notes.txt"}, "second line"),
            Call("directory_tree", {"path": "{folder}"}, "shapes.py"),
        ),
    ),
    ZooServer(
        "pdf-viewer", "npm", "@modelcontextprotocol/server-pdf@2.0.4", f"{_TYPESCRIPT} 2, MCP Apps",
        ("mcp-pdf-server", "--stdio", "{folder}/ocean.pdf"), 9,
        (
            Call("list_pdfs", {}, "ocean.pdf"),
            Call("display_pdf", {"url": "{folder}/ocean.pdf"}, "viewUUID"),
            Call("ui://pdf-viewer/mcp-app.html", {}, "PDF Viewer", "resource"),
        ),
    ),
    ZooServer(
        "angular", "npm", "@angular/cli@22.2.7", f"{_TYPESCRIPT} 2", ("ng", "mcp"), 9,
        (
            Call("get_best_practices", {}, "signal"),
            Call("instructions://best-practices", {}, "signal", "resource"),
        ),
    ),
    ZooServer(
        "eslint", "npm", "@eslint/mcp@0.3.13", f"{_TYPESCRIPT} 1", ("mcp",), 1,
        (Call("lint-files", {"filePaths": ["{folder}/unused.js"]}, "no-unused-vars"),),
    ),
    ZooServer(
        "excel-go", "npm", "@negokaz/excel-mcp-server@0.12.0", "mcp-go, a Go program in a package of npm",
        ("excel-mcp-server",), 6,
        (
            Call("excel_describe_sheets", {"fileAbsolutePath": "{folder}/people.xlsx"}, "People"),
            Call("excel_read_sheet", {"fileAbsolutePath": "{folder}/people.xlsx", "sheetName": "People"}, "Ada"),
        ),
    ),
    ZooServer(
        "kubernetes", "npm", "kubernetes-mcp-server@0.0.67", f"{_GO}, a program in a package of npm",
        ("kubernetes-mcp-server", "--kubeconfig", "{folder}/kube.yaml"), 20,
        (Call("configuration_view", {}, "zoo"),),
    ),
    ZooServer(
        "calendar", "npm", "@temporal-cortex/cortex-mcp-linux-x64@0.9.1", f"{_RUST} 1.1, a program in a package of npm",
        ("../@temporal-cortex/cortex-mcp-linux-x64/bin/cortex-mcp",), 18,
        (
            Call("convert_timezone", {"datetime": "2026-03-16T12:00:00Z", "target_timezone": "Asia/Tokyo"}, "21:00"),
        ),
    ),
    ZooServer(
        "azure", "npm", "@azure/mcp@2.0.5", "SDK for C#, a program in a package of npm", ("azmcp", "server", "start"), 61,
        (Call("azureterraformbestpractices", {"intent": "get", "learn": True}, "azureterraformbestpractices_get"),),
    ),
    ZooServer(
        "pdf-reader", "npm", "@sylphx/pdf-reader-mcp@2.4.0", "a library of its own", ("pdf-reader-mcp",), 1,
        (
            Call("read_pdf", {"sources": [{"path": "{folder}/ocean.pdf"}], "include_full_text": True}, "ocean is blue"),
        ),
    ),
    ZooServer(
        "desktop-commander", "npm", "@wonderwhy-er/desktop-commander@0.2.52", f"{_TYPESCRIPT} 1, much log", ("desktop-commander",), 26,
        (
            Call("read_file", {"path": "{folder}/notes.txt"}, "second line"),
            Call("list_directory", {"path": "{folder}"}, "people.csv"),
        ),
    ),
    ZooServer(
        "git-node", "npm", "@cyanheads/git-mcp-server@2.15.3", "SDK for TypeScript 1 in one file, structured answers",
        ("git-mcp-server",), 28,
        (Call("git_log", {"path": "{folder}"}, "Write the first notes"),),
    ),
    ZooServer(
        "n8n", "npm", "n8n-mcp@2.87.0", f"{_TYPESCRIPT} 1, a database of 60 MB", ("n8n-mcp",), 7,
        (Call("get_node", {"nodeType": "nodes-base.webhook", "detail": "minimal"}, "Webhook"),),
        env={"N8N_MCP_TELEMETRY_DISABLED": "true"},
    ),
    ZooServer(
        "calc", "npm", "@coo-quack/calc-mcp@2.1.1", f"{_TYPESCRIPT} 1", ("calc-mcp",), 21,
        (
            Call("math", {"expression": "2^10"}, "1024"),
            Call("base", {"value": "ff", "from": 16, "to": 10}, "255"),
        ),
    ),
    ZooServer(
        "semiotic", "npm", "semiotic@3.8.9", f"{_TYPESCRIPT} 1 in one file", ("semiotic-mcp",), 18,
        (Call("renderChart", {"component": "BarChart", "props": _CHART}, "<svg"),),
    ),
    ZooServer(
        "supergateway", "npm", "supergateway@4.0.0", "a gateway from HTTP to a program",
        ("supergateway", "--stdio", "mcp-hello-world", "--outputTransport", "streamableHttp", "--port", "{port}"), 3,
        (Call("echo", {"message": "you"}, "you"), Call("greeting://Ada", {}, "Ada", "resource")),
        beside=("mcp-hello-world@1.1.2",), path="/mcp",
    ),
    ZooServer(
        "time", "PyPI", "mcp-server-time==2026.10.19", f"{_PYTHON} 2", ("mcp-server-time", "--local-timezone=UTC"), 2,
        (
            Call("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}, "21:00"),
        ),
    ),
    ZooServer(
        "git", "PyPI", "mcp-server-git==2026.10.19", f"{_PYTHON} 2", ("mcp-server-git", "--repository", "{folder}"), 12,
        (Call("git_log", {"repo_path": "{folder}"}, "Write the first notes"),),
    ),
    ZooServer(
        "fetch", "PyPI", "mcp-server-fetch==2026.10.24", f"{_PYTHON} 2",
        ("mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"), 1,
        (Call("fetch", {"url": "{page}", "raw": True}, "a fine day"),),
    ),
    ZooServer(
        "sqlite", "PyPI", "mcp-server-sqlite==2025.4.25", f"{_PYTHON} 1.6, silent at an unknown request", ("mcp-server-sqlite", "--db-path", "{folder}/a.db"), 6,
        (
            Call("read_query", {"query": "SELECT 6 * 7 AS answer"}, "42"),
            Call("memo://insights", {}, "No business insights", "resource"),
            Call("mcp-demo", {"topic": "birds"}, "assistants goal", "prompt"),
        ),
        beside=("mcp==1.6.0", "pydantic==2.11.10"),
    ),
    ZooServer(
        "calculator", "PyPI", "mcp-server-calculator==0.2.1", f"{_PYTHON} 1, FastMCP", ("mcp-server-calculator",), 1,
        (Call("calculate", {"expression": "6*7"}, "42"),),
    ),
    ZooServer(
        "excel", "PyPI", "excel-mcp-server==2.2.2", f"{_PYTHON} 2, unions in its schemas", ("excel-mcp-server", "stdio"), 46,
        (Call("create_workbook", {"path": "{folder}/made.xlsx"}, "made.xlsx"),),
    ),
    ZooServer(
        "powerpoint", "PyPI", "office-powerpoint-mcp-server==2.0.7", f"{_PYTHON} 1, FastMCP", ("ppt_mcp_server",), 37,
        (Call("create_presentation", {}, "presentation"),),
        beside=_FIRST_SDK,
    ),
    ZooServer(
        "tree-sitter", "PyPI", "mcp-server-tree-sitter==0.7.0", f"{_PYTHON} 1, FastMCP, many prompts", ("mcp-server-tree-sitter",), 26,
        (
            Call("register_project_tool", {"path": "{folder}/code", "name": "shapes"}, "shapes"),
            Call("list_projects_tool", {}, "shapes"),
        ),
        beside=_FIRST_SDK,
    ),
    ZooServer(
        "biomcp", "PyPI", "biomcp-cli==0.9.3", f"{_RUST} 1.7, a program in a package of PyPI", ("biomcp", "serve"), 7,
        (Call("biomcp", {"command": "biomcp list gene"}, "gene"), Call("biomcp://help", {}, "BioMCP", "resource")),
    ),
    ZooServer(
        "motherduck", "PyPI", "mcp-server-motherduck==1.1.0", "FastMCP 4",
        ("mcp-server-motherduck", "--db-path", ":memory:", "--read-write"), 4,
        (Call("execute_query", {"sql": "SELECT 6 * 7 AS answer"}, "42"),),
    ),
    ZooServer(
        "aws-iac", "PyPI", "awslabs-aws-iac-mcp-server==1.0.26", "FastMCP 3", ("awslabs.aws-iac-mcp-server",), 8,
        (
            Call(
                "validate_cloudformation_template",
                {"template_content": '{"Resources": {"B": {"Type": "AWS::S3::Bucket", "Properties": {"Nmae": "x"}}}}'},
                "Nmae",
            ),
        ),
    ),
    ZooServer(
        "jcodemunch", "PyPI", "jcodemunch-mcp==1.108.399", f"{_PYTHON} 1, tools behind a tool", ("jcodemunch-mcp",), 6,
        (Call("menu", {"query": "index a folder"}, "index_folder"),),
    ),
    ZooServer(
        "markitdown", "PyPI", "markitdown-mcp==0.0.1a8", f"{_PYTHON} 2", ("markitdown-mcp",), 1,
        (Call("convert_to_markdown", {"uri": "file://{folder}/people.csv"}, "| Grace | 45 |"),),
    ),
    ZooServer(
        "alchemy", "PyPI", "mcp-alchemy==2026.10.15.202659", f"{_PYTHON} 2", ("mcp-alchemy",), 4,
        (Call("execute_query", {"query": "SELECT 6 * 7 AS answer"}, "42"),),
        env={"DB_URL": "sqlite:///{folder}/a.db"},
    ),
    ZooServer(
        "lunar", "PyPI", "lunar-mcp-server==1.2.1", f"{_PYTHON} 1", ("lunar-mcp-server",), 20,
        (Call("get_festival_details", {"festival_name": "Spring Festival"}, "Spring Festival"),),
    ),
    ZooServer(
        "mcp-proxy", "PyPI", "mcp-proxy==0.13.0", f"{_PYTHON} 1, HTTP to a program",
        ("mcp-proxy", "--port", "{port}", "mcp-server-time"), 2,
        (Call("get_current_time", {"timezone": "UTC"}, "day_of_week"),),
        beside=("mcp-server-time==2025.9.25",), path="/mcp",
    ),
)  # fmt: skip
