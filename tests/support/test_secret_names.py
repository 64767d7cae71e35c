"""Names like a secret's, by their words: columns, keys and variables of the environment."""

from __future__ import annotations

import pytest

from reyn_jupyter.support.secret_names import secret_name, secret_variable


@pytest.mark.parametrize(
    "name",
    [
        "pass", "db_pass", "userPass", "pass word", "pw", "db_pw", "otp", "pin_code", "sim_pin", "ｐａｓｓｗｏｒｄ",
        "passw",
        "PASSWORD_2", "pgpass", "basicauth", "session_cookie", "Authorization", "jwt", "apikey1", "api-key", "kennwort",
        "client secret", "clientSecret", "access_tokens",
    ],
)  # fmt: skip
def test_a_column_or_key_is_named_like_a_secret(name: str) -> None:
    assert secret_name(name) and secret_variable(name)


@pytest.mark.parametrize(
    "name",
    [
        "compass", "passenger", "passengers", "pinned", "pin", "bypass", "cookie_count", "pass_rate", "first_pass",
        "boarding_pass", "tokens", "prompt_tokens", "token_count", "password_length", "sort_key", "keyboard", "author",
        "authority", "secretary", "spin_code", "bandpass", "monkey", "patient", "dsn", "salt", "tokenized", "pwm",
    ],
)  # fmt: skip
def test_a_column_or_key_is_no_secret_for_a_part_of_a_word(name: str) -> None:
    assert not secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "PGPASS", "DBPASS", "SMTPPASS", "DB_PASS_RO", "DB_PW", "JWT", "AUTHORIZATION", "HTTP_AUTHORIZATION", "COOKIE",
        "GH_PAT_RO", "SENTRY_DSN_2", "SLACK_WEBHOOK", "APP_PWD_1", "BASICAUTH", "KEYFILE_CONTENT", "SIGNING_KEYSTR",
        "ENCRYPTION_SALT", "A_KEY", "SORT_KEY",
    ],
)  # fmt: skip
def test_a_variable_of_the_environment_is_named_like_a_secret(name: str) -> None:
    assert secret_variable(name)


@pytest.mark.parametrize(
    "name",
    ["PWD", "OLDPWD", "PATH", "SSH_AUTH_SOCK", "SSH_ASKPASS", "KEYBOARD_LAYOUT", "COMPASS_HOME", "BYPASS_PROXY",
     "XAUTHORITY",
     "TOKENIZERS_PARALLELISM", "PASSENGER_APP_ENV", "PATIENT_DATA", "MAX_TOKEN_COUNT"],
)  # fmt: skip
def test_an_ordinary_variable_of_the_environment_is_no_secret(name: str) -> None:
    assert not secret_variable(name)
