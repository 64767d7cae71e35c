"""``python -m reyn_jupyter.models.offline < request.json``: the message for one request, as JSON."""

from __future__ import annotations

import json
import sys

from reyn_jupyter.models.offline.model import answer

json.dump(answer(json.load(sys.stdin)), sys.stdout, ensure_ascii=False)
