"""Whether models may propose to run Python in the person's kernel.

Invariant: it is off until the person switches it on, for one session. No setting, file or action moves it.
"""

from __future__ import annotations

from dataclasses import dataclass

LINE = "%reyn python on"


@dataclass
class PythonSwitch:
    """The switch of one session.

    >>> PythonSwitch().why_not
    'Python is off in this session; %reyn python on switches it on.'
    """

    on: bool = False

    @property
    def why_not(self) -> str | None:
        """Return why Python is not on offer, with the line to type; None while it is."""
        return None if self.on else f"Python is off in this session; {LINE} switches it on."
