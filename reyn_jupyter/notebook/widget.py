"""A live view as an anywidget, for hosts without our extension: VS Code, Colab, marimo, any page of widgets.

Invariant: what draws the snapshot travels with the widget (module and style are text of this package, never an
address), so it shows without a network, without an extension and without a kernel. The code of what goes on from
there is asked of the kernel, since a widget's own is copied into every display.

Example::

    LiveWidget(to_snapshot(view(session.explore()), SESSION_ID, LiveCatalog()))
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

import anywidget
import traitlets

from reyn_jupyter.notebook import front_end
from reyn_jupyter.notebook.serving.connection import Connection, running_loop
from reyn_jupyter.notebook.serving.hub import kernel_hub

_open: WeakValueDictionary[str, LiveWidget] = WeakValueDictionary()


class LiveWidget(anywidget.AnyWidget):
    """A snapshot and what goes on from it.

    Args:
        snapshot: what `to_snapshot` makes.

    Raises:
        FileNotFoundError: this installation lacks the front-end module; `%reyn doctor` says so too.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    snapshot = traitlets.Dict().tag(sync=True)

    def __init__(self, snapshot: dict[str, Any]) -> None:
        module, style = front_end.read("widget")
        super().__init__(_esm=module, _css=style, snapshot=snapshot)
        hub = kernel_hub()
        self._connection = Connection(hub, self.send, running_loop() or hub.home)
        self.on_msg(self._received)
        _open[self.model_id] = self
        if self.comm is not None:
            self.comm.on_close(lambda message: self.close())  # the page has let go of it

    def _received(self, widget: Any, content: Any, buffers: Any) -> None:
        self._connection.receive(content)

    def close(self) -> None:
        connection = getattr(self, "_connection", None)  # none where the front-end module is missing
        if connection is not None:
            connection.close()
        super().close()


def opened(model_id: str) -> LiveWidget | None:
    """The widget of that id, while it is open."""
    return _open.get(model_id)
