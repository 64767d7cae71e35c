"""The secrets by which a connection answers questions of consent, and how much of a question it was sent.

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
        self._sent: dict[str, int] = {}

    def sent(self, question: str, start: int, count: int) -> int:
        """Remember lines of a question that go out, and return how many did from the first on, none left out."""
        before = self._sent.get(question, 0)
        self._sent[question] = max(before, start + count) if start <= before else before
        return self._sent[question]

    def secret(self, question: str, answer: str) -> str:
        """Return the secret of one answer to the question of an id."""
        return hmac.new(self._key, f"{question} {answer}".encode(), hashlib.sha256).hexdigest()

    def admits(self, question: str, answer: str, secret: str) -> bool:
        """Return whether `secret` is the one of this answer."""
        return hmac.compare_digest(self.secret(question, answer).encode(), secret.encode())
