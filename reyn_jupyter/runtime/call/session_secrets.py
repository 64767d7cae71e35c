"""The secrets of a session, by name.

Invariants: a name is given to a category only where the call has consent, or a rule says so; what was given is known to
the redactor before anybody has it. The value stands in no environment but that of a program which it was handed to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from reyn_jupyter.catalog.action import Effect, Purity
from reyn_jupyter.guard.permissions import Policy
from reyn_jupyter.runtime.action_error import ActionError, PermissionDeniedError
from reyn_jupyter.runtime.call.call_scope import current_call
from reyn_jupyter.runtime.live_catalog.category_scope import current_category
from reyn_jupyter.support.secret import Secret
from reyn_jupyter.support.secrets import SHORTEST, Redactor, cover_in_displays

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")


class SessionSecrets:
    """Gives named values to categories, see `SecretAccess`.

    Args:
        given: what the session was given, by name; it goes before the environment.
        environ: the environment.
        redactor: learns each value that is given out.
        policy: the rules now, for what no call asks about.
    """

    def __init__(
        self,
        given: Mapping[str, str],
        environ: Mapping[str, str],
        redactor: Redactor,
        policy: Callable[[], Policy],
    ) -> None:
        self._given = {name: Secret(name, value) for name, value in given.items()}
        self._environ = environ
        self._redactor = redactor
        self._policy = policy
        for name, value in given.items():
            self._learn(name, value)

    async def get(self, name: str, /) -> Secret:
        """See `SecretAccess.get`."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ActionError(
                f"{str(name)[:80]!r} is no name of a secret.", "Name one variable, such as RATES_API_KEY."
            )
        held = self._given.get(name)
        value = self._environ.get(name) if held is None else held.reveal()
        if not value:
            raise ActionError(
                f"The secret {name} is not set.",
                f'Set {name} in the environment of the kernel, or give it: Session(secrets={{"{name}": "…"}}).',
                code="secret_missing",
            )
        if len(value.strip()) < SHORTEST:
            raise ActionError(
                f"The secret {name} is shorter than {SHORTEST} characters, so it could not be kept out of texts.",
                "Use a longer one.",
                code="secret_too_short",
            )
        await self._permit(name)
        self._learn(name, value)
        return Secret(name, value)

    def _learn(self, name: str, value: str) -> None:
        self._redactor.learn(name, value)
        cover_in_displays(name, value)

    async def _permit(self, name: str) -> None:
        """Wait for consent. Raises PermissionDeniedError."""
        call, effect = current_call(), Effect("secret", name)
        if call is not None:
            await call.permit(effect, "")
            return
        action = f"{current_category() or 'session'}__start"
        verdict = self._policy().decide(action, Purity.UNKNOWN, (effect,))
        if verdict.decision != "allow":
            raise PermissionDeniedError(
                f"Denied: {action} may not {effect} (nobody can be asked outside a call).",
                f'A rule allows it: permissions: {{allow: ["{action}({effect.kind}:{name})"]}}.',
            )
