"""Which files are off limits because they may hold credentials: by list, by the words of their names, and git's own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reyn_jupyter.guard.sandbox.hidden_files import hidden_files
from reyn_jupyter.guard.workspace import Workspace, WorkspaceError, protects_file
from tests.security.security_support import Attacker

OFF_LIMITS = [
    "api-token.txt",
    "db_password.txt",
    "my-credentials.json",
    "github_token",
    "GitHubToken.json",
    "secrets.json.bak",
    "passwords.csv",
    "Passwords.xlsx",
    "passwords_old.txt",
    "oauth2_tokens.json",
    "prod-secrets.yml",
    "secrets.prod.yaml",
    "private_key.json",
    "apikey.txt",
    "api_keys.yaml",
    "access_token",
    "token.json",
    "token.pickle",
    ".token",
    ".vault_pass",
    ".vault-pass.txt",
    "vault.yml",
    "htpasswd",
    ".htpasswd",
    "kubeconfig",
    "kubeconfig-eu.yaml",
    "auth.json",
    "auth.json.bak",
    ".netrc",
    ".netrc~",
    ".pgpass",
    "my-service-account.json",
    "serviceAccountKey.json",
    ".npmrc",
    ".npmrc.bak",
    ".docker/config.json",
    ".gitconfig",
    "sub/.gitconfig",
    "sub/.gitconfig.bak",
    "sub/.config/git/config",
    "sub/.hgrc",
    "sub/.curlrc",
    "sub/.authinfo",
    "sub/NuGet.Config",
    ".config/gh/hosts.yml",
    ".config/containers/auth.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".aws/config",
    ".azure/msal_token_cache.json",
    ".kaggle/kaggle.json",
    ".huggingface/token",
    "terraform.tfstate",
    "prod.tfvars",
    "id_rsa",
    "deploy_ed25519",
    "server.pem",
    "server.key",
    "a.p12",
    "a.kdbx",
    ".env",
    ".env.local",
    "prod.env",
    ".streamlit/secrets.toml",
    "local.settings.json",
    "wp-config.php",
    ".git-credentials",
    ".s3cfg",
    "rclone.conf",
    ".my.cnf",
    ".Renviron",
    ".envrc",
    ".git/config",
    ".git/config.worktree",
    ".git/config.lock",
    ".git/modules/sub/config",
    ".git/modules/a/modules/b/config",
    ".git/worktrees/w/config.worktree",
    "x.git/config",
    "X.GIT/Config",
    ".GIT/MODULES/sub/CONFIG",
    "x.git/modules/s/config",
    "accessKeys.csv",
    "cookies.txt",
    "secret.txt",
    "PASSWORD.TXT",
    "dbPass.txt",
    "openai_api_key.txt",
    "secrets.yaml.gpg",
    "ci.token",
    "db-credentials-2024.json",
    "passwort.txt",
    ".secrets.baseline",
    "config/credentials.yml.enc",
    "login_credentials.docx",
    "ｐａｓｓｗｏｒｄｓ.txt",
    "pass\u200bwords.txt",
]
OPEN = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "tokens.json",
    "tokens.csv",
    "token_counts.csv",
    "token_type_ids.npy",
    "token_embeddings.parquet",
    "secretary.csv",
    "author.py",
    "authors.csv",
    "authority.csv",
    "auth.py",
    "oauth_flow.md",
    "password_strength.ipynb",
    "password_strength.csv",
    "password_policy.json",
    "passwordless.json",
    "secrets.py",
    "credentials.go",
    "keyboard.json",
    "monkey.csv",
    "keys.json",
    "compass.csv",
    "passengers.csv",
    "boarding_pass.csv",
    "pass_rates.csv",
    "cookie_recipes.csv",
    "vault.md",
    "public_key.txt",
    "primary_keys.csv",
    "secret_garden.txt",
    "secret_agents.csv",
    ".env.example",
    "config",
    "config.yaml",
    "data/config",
    "src/config.py",
    "docs/secrets.md",
    "src/auth/login.py",
    "src/secrets/manager.go",
    "credentials.example.json",
    "secrets.template.yaml",
    "authentication.csv",
    "tokenized.txt",
    "history.csv",
    "keypoints.json",
    "README.md",
    ".gitignore",
    "notes.git.md",
]


def test_names_of_credentials_are_off_limits_and_names_of_data_and_sources_are_not() -> None:
    assert [name for name in OFF_LIMITS if protects_file(name.split("/")) is None] == []
    assert [name for name in OPEN if protects_file(name.split("/")) is not None] == []


@pytest.fixture
def repositories(tmp_path: Path) -> Path:
    """A workspace with real repositories: plain, bare, with a submodule and a worktree, with a ``.git`` file."""

    def git(*words: str, at: Path = tmp_path) -> None:
        options = ["-c", "protocol.file.allow=always", "-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(
            [shutil.which("git") or "git", *options, *words], cwd=at, check=True, capture_output=True
        )

    git("init", "-q", "part")
    git("commit", "-q", "--allow-empty", "-m", "x", at=tmp_path / "part")
    git("init", "-q", "plain")
    git("commit", "-q", "--allow-empty", "-m", "x", at=tmp_path / "plain")
    git("submodule", "add", "-q", str(tmp_path / "part"), "sub", at=tmp_path / "plain")
    git("worktree", "add", "-q", "../tree", at=tmp_path / "plain")
    git("config", "extensions.worktreeConfig", "true", at=tmp_path / "plain")
    git("config", "--worktree", "a.b", "c", at=tmp_path / "tree")
    git("init", "-q", "--bare", "mirror")
    git("init", "-q", "--separate-git-dir", str(tmp_path / "elsewhere"), "away")
    return tmp_path


CONFIGS = [
    "part/.git/config", "plain/.git/config", "plain/.git/modules/sub/config", "mirror/config", "elsewhere/config",
    "plain/.git/worktrees/tree/config.worktree",
]  # fmt: skip


def test_what_git_configures_is_off_limits_wherever_git_keeps_it(repositories: Path) -> None:
    (repositories / "app").mkdir()
    (repositories / "app" / "config").write_text("mine\n")
    workspace = Workspace(repositories, off_limits=())
    for path in CONFIGS:
        assert (repositories / path).is_file(), path
        with pytest.raises(WorkspaceError, match="credentials"):
            workspace.read_bytes(path)
    assert workspace.read_bytes("app/config") == b"mine\n"
    found = [workspace.relative(each) for each in workspace.walk()]
    assert "app/config" in found and "mirror/HEAD" in found and not set(found) & set(CONFIGS)
    hidden = {each.relative_to(repositories).as_posix() for each in hidden_files(workspace)}
    assert hidden == set(CONFIGS)


SECRET = "hunter2-plain-word"
WAYS = [
    "db-passwords.txt",
    ".git/modules/sub/config",
    "mirror/config",
    ".codex/auth.json",
    "notes/api_keys.json",
]


def test_no_action_of_a_model_reads_a_credential_file(workspace: Path) -> None:
    for name in ("HEAD", "objects/x", "refs/x"):
        (workspace / "mirror" / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / "mirror" / name).write_text("x")
    for path in WAYS:
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(f'{{"a": "{SECRET}"}}')
    (workspace / "link.json").symlink_to("notes/api_keys.json")
    (workspace / "notes" / "plain.md").write_text("nothing\n")
    attacker = Attacker(workspace, answer="once")
    calls = [
        ("file__grep", {"pattern": "hunter2|plain"}),
        ("file__list", {"path": "notes"}),
    ]
    for path in [*WAYS, "link.json"]:
        calls += [
            ("file__read", {"path": path}),
            ("table__query", {"sql": "SELECT * FROM t", "sources": {"t": path}}),
            ("file__grep", {"pattern": "hunter2", "path": path}),
            ("memory_operation__import", {"path": path}),
        ]
    code = f"for p in {[*WAYS, 'link.json']!r}:\n    try: print(open(p).read())\n    except OSError as e: print(e)\n"
    calls.append(("exec__run", {"argv": [sys.executable, "-c", code]}))
    for action, arguments in calls:
        said = attacker.call(action, **arguments)
        assert SECRET not in said and "Unknown" not in said and "unknown action" not in said, (action, said)
        assert action != "file__list" or ("plain.md" in said and "api_keys" not in said)
