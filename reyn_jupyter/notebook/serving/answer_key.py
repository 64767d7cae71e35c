"""The secrets by which a connection answers questions of consent.

Invariant: a connection that was not sent an answer's secret cannot give that answer, whatever it guesses.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets


class AnswerKey:
    """The key of one connection, from which the secrets of its answers derive.

    Example:
        >>> key = AnswerKey()
        >>> key.admits("0123456789ab", "once", key.secret("0123456789ab", "once"))
        True
        >>> AnswerKey().admits("0123456789ab", "once", key.secret("0123456789ab", "once"))
        False
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def secret(self, question: str, answer: str) -> str:
        """Return the secret of one answer to the question of an id."""
        return hmac.new(self._key, f"{question} {answer}".encode(), hashlib.sha256).hexdigest()

    def admits(self, question: str, answer: str, secret: str) -> bool:
        """Return whether `secret` is the one of this answer."""
        return hmac.compare_digest(self.secret(question, answer).encode(), secret.encode())
