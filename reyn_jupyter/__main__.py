"""`python -m reyn_jupyter`: the same as `reyn`."""

from __future__ import annotations

import sys

from reyn_jupyter.cli import main

if __name__ == "__main__":
    sys.exit(main())
