"""Speed figures, each printed beside a peer or a limit in the same run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # as pytest has it, for what the tests share
