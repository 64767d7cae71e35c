"""Names like a secret's: one list of words for columns, keys, variables, the environment and files.

Invariant: a name is judged by its words, never by a part of one (compass, passenger and pinned are nobody's
secret), after Unicode's compatibility forms became the plain letters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

_LONGEST = 200  # characters of a name that are looked at
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRETS = frozenset({
    "auth", "authorization", "bearer", "cookie", "cookies", "credential", "credentials", "creds", "hotp", "jwt",
    "kennwort", "otp", "passcode", "passcodes", "passphrase", "passw", "passwd", "password", "passwords", "passwort",
    "passwrd", "psswd", "pswd", "pwd", "secret", "secrets", "token", "totp",
})  # fmt: skip
# Words written as one: PGPASS, DBPASS, apikey, BASICAUTH.
_GLUED = re.compile(
    r"[a-z]*(?:password|passwd|passphrase|passwort|apikey|authtoken|accesstoken|apitoken|secretkey|privatekey|"
    r"accesskey|clientsecret)s?"
    r"|(?:admin|app|db|email|ftp|imap|key|ldap|login|mail|master|my|mysql|pg|proxy|redis|root|smtp|ssh|sudo|user|vpn|"
    r"wifi)(?:pass|pwd|pw)"
    r"|(?:basic|http|proxy)auth"
)
_KEYS = frozenset({"key", "keys", "tokens"})
_BEFORE_KEY = frozenset({
    "access", "account", "anthropic", "api", "auth", "aws", "azure", "bot", "client", "cohere", "deploy",
    "encryption", "gcp", "gemini", "github", "gitlab", "google", "groq", "hf", "hmac", "huggingface", "license",
    "master", "mistral", "openai", "openrouter", "private", "refresh", "secret", "service", "session", "signing",
    "slack", "ssh", "storage", "stripe", "tavily", "twilio",
})  # fmt: skip
# `pass` and `pw` name a password at the end of a name and before these words: not in pass_rate.
_SHORT = frozenset({"pass", "pw"})
_AFTER_SHORT = frozenset({
    "admin", "b64", "dev", "enc", "encrypted", "hash", "live", "new", "old", "phrase", "plain", "prod", "production",
    "ro", "root", "rw", "staging", "test", "word",
})  # fmt: skip
_NO_PASSWORD = frozenset({
    "all", "band", "boarding", "bus", "bypass", "day", "did", "first", "high", "low", "mountain", "multi", "one",
    "rail", "season", "second", "single", "ski", "third",
})  # fmt: skip
_BEFORE_PIN = frozenset({"card", "debit", "door", "security", "sim", "user"})
# A name that ends like this is a figure or a fact about a secret.
_ABOUT = frozenset({
    "age", "at", "attempts", "budget", "count", "counts", "date", "enabled", "expired", "expires", "expiry", "len",
    "length", "limit", "limits", "policy", "required", "sock", "status", "strength", "total", "ttl", "type", "types",
    "usage", "used",
})  # fmt: skip
# In an environment these are credentials; in a table they are a sort key, a patient or a grain of salt.
_ENVIRONMENT = frozenset({"dsn", "key", "keys", "pat", "private", "salt", "tokens", "webhook", "webhooks"})
_ENVIRONMENT_GLUED = re.compile(r"key(?:b|base|data|file|hex|id|json|pem|str|value)")
_FOLDERS = frozenset({"PWD", "OLDPWD"})  # the shell's own

# Files: what a name ends in says whether it is a source, a text about secrets, or a table of something.
_SOURCES_AND_PAGES = frozenset({
    "adoc", "asm", "bat", "bib", "c", "cc", "cfm", "clj", "cmake", "cmd", "cpp", "cs", "css", "cu", "cxx", "d",
    "dart", "ex", "exs", "f90", "fs", "gif", "go", "gradle", "groovy", "h", "hpp", "hs", "htm", "html", "ico",
    "ics", "idx", "ipynb", "java", "jpeg", "jpg", "js", "jsx", "kt", "lean", "less", "lock", "lua", "m", "map",
    "md", "mdx", "mjs", "ml", "mp3", "mp4", "nim", "npy", "npz", "org", "php", "pl", "png", "po", "pot", "pptx",
    "proto", "ps1", "pxd", "py", "pyi", "pyx", "qmd", "r", "rb", "rmd", "rs", "rst", "s", "sass", "scala", "scss",
    "sh", "sol", "svelte", "svg", "swift", "tex", "tf", "ts", "tsx", "v", "vb", "vue", "wasm", "webp", "xsd", "zig",
})  # fmt: skip
_ROWS = frozenset({
    "arrow", "avro", "csv", "doc", "docx", "feather", "jsonl", "log", "ndjson", "ods", "odt", "orc", "parquet",
    "pdf", "rtf", "sql", "sqlite", "tab", "tsv", "txt", "xls", "xlsm", "xlsx",
})  # fmt: skip
_AROUND_FILES = frozenset({
    "asc", "b64", "backup", "bak", "bz2", "copy", "enc", "gpg", "gz", "old", "orig", "save", "swp", "tmp", "xz",
    "zip", "zst",
})  # fmt: skip
_EXAMPLE = frozenset({
    "dist", "dummy", "example", "examples", "fake", "mock", "sample", "samples", "template", "tpl",
})  # fmt: skip
_ABOUT_FILES = _ABOUT | frozenset({
    "checker", "form", "generator", "reset", "rotation", "rules", "scan", "scanner", "scanning", "schema", "validator",
})  # fmt: skip
# Words behind the one that says what a file holds: which one of several, and that it is a file.
_VARIANTS = frozenset({
    "admin", "all", "aws", "azure", "backup", "bak", "cfg", "conf", "config", "copy", "current", "db", "default",
    "dev", "development", "dump", "enc", "encrypted", "export", "file", "files", "final", "gcp", "github", "gitlab",
    "google", "hashes", "info", "list", "live", "local", "main", "my", "new", "old", "orig", "original", "personal",
    "plain", "private", "prod", "production", "qa", "real", "root", "settings", "shared", "stage", "staging",
    "storage", "store", "team", "test", "tmp", "user", "users", "value", "values",
})  # fmt: skip
_SECRET_FILES = frozenset({
    "apikey", "apikeys", "contrasena", "contrasenas", "credential", "credentials", "creds", "htpasswd", "kennwort",
    "kennworter", "kubeconfig", "netrc", "passcode", "passcodes", "passphrase", "passphrases", "passw", "passwd",
    "password", "passwords", "passwort", "pgpass", "pswd", "pwd", "secrets", "senhas", "wachtwoorden",
})  # fmt: skip
# These name a secret only where they are what the file is: in a token.json, not in token_counts.csv.
_SECRET_HEADS = frozenset({
    "auth", "authorization", "bearer", "cookie", "cookies", "jwt", "keychain", "keyring", "keystore", "oauth",
    "otp", "pat", "secret", "token", "totp", "vault",
})  # fmt: skip
_BEFORE_FILE_KEY = frozenset({
    "access", "anthropic", "api", "auth", "aws", "azure", "cohere", "deploy", "encryption", "gcp", "gemini",
    "github", "gitlab", "google", "groq", "hf", "hmac", "huggingface", "master", "mistral", "oauth", "oauth2",
    "openai", "openrouter", "private", "refresh", "secret", "service", "signing", "slack", "ssh", "stripe",
    "tavily", "twilio",
})  # fmt: skip


@lru_cache(16384)
def secret_file(name: str) -> bool:
    """Return whether a file is named like one that holds secrets; sources and pages about secrets are not.

    >>> [secret_file(name) for name in ("db-passwords.xlsx", "github_token", "oauth_creds.json", "secrets.prod.yaml")]
    [True, True, True, True]
    >>> [secret_file(name) for name in ("tokenizer.json", "token_counts.csv", "secretary.csv", "author.rs", "auth.go")]
    [False, False, False, False, False]
    """
    plain = unicodedata.normalize("NFKC", name[:_LONGEST]).rstrip("~#. ").lstrip("#")
    parts = plain.lstrip(".").split(".")
    while len(parts) > 1 and (parts[-1].lower() in _AROUND_FILES or parts[-1].isdecimal()):
        parts.pop()
    suffix = parts.pop().lower() if len(parts) > 1 else ""
    words = [word for word in _words("_".join(parts)) if not word.isdecimal()]
    if suffix in _SOURCES_AND_PAGES or not words or not _EXAMPLE.isdisjoint((*words, suffix)):
        return False
    if (
        suffix and suffix not in _ROWS and suffix in _SECRET_HEADS | _SECRET_FILES
    ):  # ci.token, prod.credentials
        return True
    while len(words) > 1 and words[-1] in _VARIANTS:
        words.pop()
    if words[-1] in _ABOUT_FILES:
        return False
    # A row of anything may have such a word in its name: there it is about the last one.
    named = words[-2:] if suffix in _ROWS else words
    glued = [*(named[-1:] if suffix in _ROWS else named), *("".join(pair) for pair in pairwise(named))]
    if (
        not _SECRET_FILES.isdisjoint(glued)
        or any(map(_GLUED.fullmatch, glued))
        or any(word in _KEYS and before in _BEFORE_FILE_KEY for before, word in pairwise(named))
        or (suffix == "json" and ("service", "account") in pairwise(words))
    ):
        return True
    if suffix in _ROWS and suffix != "txt":
        return False
    return words[-1] in _SECRET_HEADS or (words[-1] in _SHORT and _ends_in_a_password(words))


@lru_cache(8192)
def secret_name(name: str) -> bool:
    """Return whether a variable, column or key is named like a secret.

    >>> [secret_name(name) for name in ("api_key", "dbPassword", "token", "db_pass", "pin_code")]
    [True, True, True, True, True]
    >>> [secret_name(name) for name in ("tokens", "sort_key", "keyboard", "compass", "pass_rate", "cookie_count")]
    [False, False, False, False, False, False]
    """
    words = _words(name)
    if not words or words[-1] in _ABOUT:
        return False
    pairs = list(pairwise(words))
    glued = (*words, *("".join(pair) for pair in pairs))
    return (
        not _SECRETS.isdisjoint(glued)
        or any(map(_GLUED.fullmatch, glued))
        or any(word in _KEYS and before in _BEFORE_KEY for before, word in pairs)
        or any(pair == ("pin", "code") or (pair[0] in _BEFORE_PIN and pair[1] == "pin") for pair in pairs)
        or _ends_in_a_password(words)
    )


def secret_variable(name: str) -> bool:
    """Return whether a variable of the environment is named like a secret.

    >>> [secret_variable(name) for name in ("MY_KEY", "SENTRY_DSN_2", "PWD", "SSH_AUTH_SOCK", "KEYBOARD_LAYOUT")]
    [True, True, False, False, False]
    """
    if name in _FOLDERS:
        return False
    words = _words(name)
    if not words or words[-1] in _ABOUT:
        return False
    return (
        secret_name(name)
        or not _ENVIRONMENT.isdisjoint(words)
        or any(map(_ENVIRONMENT_GLUED.fullmatch, (*words, *("".join(pair) for pair in pairwise(words)))))
    )


def _words(name: str) -> list[str]:
    """Return the words of a name in small letters, numbers at its end left out."""
    words = [word.lower() for word in _WORD.findall(unicodedata.normalize("NFKC", name[:_LONGEST]))]
    while words and words[-1].isdecimal():
        words.pop()
    return words


def _ends_in_a_password(words: list[str]) -> bool:
    for at, word in enumerate(words):
        if word not in _SHORT or (at and words[at - 1] in _NO_PASSWORD):
            continue
        if at == len(words) - 1 or words[at + 1] in _AFTER_SHORT:
            return True
    return False
