"""From a package or a registry's manifest to a command line: words of a stranger become words, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reyn_jupyter.backends.mcp_servers.manifest import NeededSecret, check_variables, install_plan
from reyn_jupyter.backends.mcp_servers.packages import KINDS, package_command, package_name
from reyn_jupyter.backends.mcp_servers.server_entry import EntryError
from tests.support.registry import FAR, WEATHER


@pytest.mark.parametrize(
    ("kind", "identifier", "version", "line"),
    [
        ("npm", "@scope/server", None, "npx -y @scope/server"),
        ("npm", "server", "1.0.0-beta.1", "npx -y server@1.0.0-beta.1"),
        ("pypi", "mcp-server-time", "2025.9.25", "uvx mcp-server-time@2025.9.25"),
        ("docker", "mcp/time", "1.0", "docker run -i --rm mcp/time:1.0"),
        ("docker", "ghcr.io/a/b:2", None, "docker run -i --rm ghcr.io/a/b:2"),
        ("docker", "ghcr.io/a/b:2", "2", "docker run -i --rm ghcr.io/a/b:2"),
        ("docker", "a/b", "sha256:" + "0" * 64, "docker run -i --rm a/b@sha256:" + "0" * 64),
        ("github", "owner/repo", "v1", "uvx --from git+https://github.com/owner/repo@v1 repo"),
        (
            "github",
            "https://github.com/owner/repo.git",
            None,
            "uvx --from git+https://github.com/owner/repo repo",
        ),
    ],
)
def test_a_package_is_run_by_its_runner(kind: Any, identifier: str, version: str | None, line: str):
    assert " ".join(package_command(kind, identifier, version)) == line


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "identifier",
    ["", "-x", "--registry=https://evil.example", "a b", "a;id", "$(id)", "`id`", "a\nb", "a/../b", "../a", "/abs",
     "https://evil.example/a",
     "git+https://evil.example/a", "file:///a", "a@1 --x", "p\u0430ckage", "\u202ea", "a" * 300],
)  # fmt: skip
def test_an_identifier_that_is_more_than_a_name_is_refused(kind: Any, identifier: str):
    with pytest.raises(EntryError, match="is no name of a package"):
        package_command(kind, identifier)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "version", ["", "-1", "1 --x", "1;id", "1@2", "https://evil.example", "1\n", "١", "../..", "^1||2"]
)
def test_a_version_that_is_more_than_a_version_is_refused(kind: Any, version: str):
    with pytest.raises(EntryError):
        package_command(kind, "owner/name" if kind == "github" else "name", version)


@given(st.sampled_from(KINDS), st.text(max_size=40), st.none() | st.text(max_size=20))
def test_no_word_of_a_stranger_is_an_option(kind: Any, identifier: str, version: str | None):
    try:
        words = package_command(kind, identifier, version)
    except EntryError:
        return
    fixed = {"npx", "-y", "uvx", "--from", "docker", "run", "-i", "--rm"}
    assert all(
        word.isascii() and not word.startswith("-") and " " not in word for word in words if word not in fixed
    )
    assert package_name(kind, identifier)


def test_a_manifest_becomes_an_entry_with_its_secrets_as_references():
    plan = install_plan(WEATHER, {"WEATHER_REGION": "asia"}, has=lambda program: True)
    assert plan.entry.name == "weather"
    assert plan.entry.argv == ("uvx", "weather-mcp-server@1.2.0", "serve", "--units", "metric")
    assert plan.entry.env == {"WEATHER_API_KEY": "${input:WEATHER_API_KEY}", "WEATHER_REGION": "asia"}
    assert plan.needs == (NeededSecret("WEATHER_API_KEY", "Key of the service"),)
    assert plan.optional == ("WEATHER_PROXY_KEY",) and not plan.notes


def test_a_remote_server_gets_its_key_in_a_header():
    plan = install_plan(FAR, {})
    assert (plan.entry.url, plan.entry.transport) == ("https://far.example/mcp", "http")
    assert plan.entry.headers == {"Authorization": "Bearer ${input:API_KEY}"}
    assert plan.needs == (NeededSecret("API_KEY", "In your account"),)


def test_the_first_package_whose_runner_is_there_is_taken():
    both = {
        **WEATHER,
        "packages": [
            {"registryType": "npm", "identifier": "weather", "version": "1.0.0"},
            *WEATHER["packages"],
        ],
    }
    assert install_plan(both, {}, has={"uvx"}.__contains__).entry.command == "uvx"
    none = install_plan(both, {}, has=lambda program: False)
    assert none.entry.command == "npx" and none.notes == ("npx is not installed.",)


def test_another_place_of_packages_is_said_and_never_used():
    manifest = package(registryBaseUrl="https://packages.evil.example")
    plan = install_plan(manifest, {}, has=lambda program: True)
    assert "evil.example" not in " ".join(plan.entry.argv) and "evil.example" in plan.notes[0]


def package(**more: Any) -> dict[str, Any]:
    return {
        "name": "a.b/c",
        "packages": [{"registryType": "npm", "identifier": "c", "version": "1.0.0", **more}],
    }


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (package(identifier="c; rm -rf /"), "is no name of a package"),
        (package(identifier="--yes"), "is no name of a package"),
        (package(identifier=["c"]), "no name"),
        (package(version="1.0.0 --registry=https://evil.example"), "exact version"),
        (package(registryType="nuget"), "not supported"),
        (package(registryType=["npm"]), "not supported"),
        (package(transport={"type": "sse"}), "by hand"),
        (package(runtimeArguments=[{"type": "named", "name": "--registry", "value": "x"}]), "--registry"),
        (package(registryType="oci", runtimeArguments=[{"type": "named", "name": "-v", "value": "/:/host"}]), "-v"),
        (package(runtimeArguments="-y"), "no list"),
        (package(packageArguments=[{"type": "positional", "value": "--config=/etc/passwd"}]), "read as an option"),
        (package(packageArguments=[{"type": "named", "name": "x y", "value": "1"}]), "is no option"),
        (package(packageArguments=[{"type": "positional", "value": "a\x1bb"}]), "not drawn"),
        (package(packageArguments=[{"type": "positional", "value": "${HOME}"}]), "this machine"),
        (package(packageArguments=[{"type": "positional", "valueHint": "path", "isRequired": True}]), "only a person"),
        (package(environmentVariables=[{"name": "LD_PRELOAD", "value": "/tmp/x.so"}]), "changes what is run"),
        (package(environmentVariables=[{"name": "npm_config_registry", "default": "https://evil.example"}]), "changes"),
        (package(environmentVariables=[{"name": "A B"}]), "no name of a variable"),
        (package(environmentVariables=[{"name": "A", "value": "${OPENAI_API_KEY}"}]), "this machine"),
        (package(environmentVariables=[{"name": "A", "value": "{x}", "variables": {"x": {"value": "${K}"}}}]), "this"),
        (package(environmentVariables=[{"name": "A", "isRequired": True, "description": "Which"}]), "Which"),
        (package(environmentVariables=[{"name": f"A{n}"} for n in range(101)]), "no list"),
        ({"name": "a.b/c", "remotes": [{"type": "sse", "url": "https://a.example"}]}, "streamable HTTP is needed"),
        ({"name": "a.b/c", "remotes": [{"type": "streamable-http", "url": "http://a.example"}]}, "https://"),
        ({"name": "a.b/c", "remotes": [{"type": "streamable-http", "url": "https://{t}.example"}]}, "by hand"),
        ({"name": "a.b/c"}, "names no package"),
    ],
)  # fmt: skip
def test_a_manifest_that_asks_for_more_is_refused_with_what_it_asks_for(manifest: dict[str, Any], why: str):
    with pytest.raises(EntryError, match=r"cannot be installed|no list") as refused:
        install_plan(manifest, {}, has=lambda program: True)
    assert why in str(refused.value) and str(refused.value).isprintable()


def test_a_value_for_what_is_not_declared_is_refused():
    with pytest.raises(EntryError, match="declares no NODE_ENV"):
        install_plan(WEATHER, {"NODE_ENV": "x"})


@pytest.mark.parametrize(
    "name",
    ["PATH", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES",
     "NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "BASH_ENV", "UV_INDEX",
     "UV_INDEX_URL", "PIP_INDEX_URL", "npm_config_registry", "HTTPS_PROXY", "https_proxy", "GIT_SSH_COMMAND",
     "DOCKER_HOST", "SSL_CERT_FILE", "REYN_STATE_DIR", "HOME", "JAVA_TOOL_OPTIONS"],
)  # fmt: skip
def test_a_variable_that_changes_what_runs_is_a_persons_to_set(name: str):
    with pytest.raises(EntryError, match="only a person"):
        check_variables({name: "x"})


@pytest.mark.parametrize(
    ("name", "value"), [("GITHUB_TOKEN", "x"), ("DB_PASSWORD", ""), ("A", "${HOME}"), ("a b", "")]
)
def test_a_secret_or_a_reference_is_no_argument(name: str, value: str):
    with pytest.raises(EntryError):
        check_variables({name: value})
