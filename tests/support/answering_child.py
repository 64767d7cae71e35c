"""A child process for tests: it does what a request says."""

from __future__ import annotations

import os
import time
from pathlib import Path

from reyn_jupyter.support.programs.child_process import ChildMessage, serve


def answer(request: ChildMessage) -> ChildMessage:
    what = request.header.get("do")
    if what == "hang":
        if began := request.header.get("began"):
            Path(began).touch()
        time.sleep(1000)
    if what == "end":
        os._exit(3)
    if what == "crash":
        os.kill(os.getpid(), 11)
    if what == "flood":
        return ChildMessage({}, [b"x" * request.header["bytes"]])
    if what == "grow":
        return ChildMessage({"held": len(bytearray(request.header["bytes"]))})
    if what == "lie":
        return ChildMessage(["no", "object"])  # type: ignore[arg-type]
    if what == "read":
        return ChildMessage(
            {"read": [os.read(descriptor, 100).decode() for descriptor in request.descriptors]}
        )
    return ChildMessage({"pid": os.getpid(), "open": len(list(Path("/dev/fd").iterdir()))})


if __name__ == "__main__":
    serve(answer, lambda: None)
