"""Results: content, blobs, summaries and inspection. Importing the package teaches `convert` to convert tables."""

from __future__ import annotations

from reyn_jupyter.outputs.frames import records as records
