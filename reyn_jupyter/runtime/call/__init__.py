"""One call, from its name to its result: resolved, judged, run, recorded."""
