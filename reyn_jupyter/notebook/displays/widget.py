"""A live view as an anywidget, for hosts without our extension: VS Code, Colab, marimo, any page of widgets.

Invariant: what draws the snapshot travels with the widget (module and style are text of this package, never an
address), so it shows without a network, without an extension and without a kernel. The code of what goes on from
there is asked of the kernel, since a widget's own is copied into every display. A cell that runs again leaves the
widget of its old output behind, and closing that would empty a page that still shows it: so widgets stay, but only
the `AWAKE` used last are told of what happens; an older one is again as soon as its view asks for something.

Example::

    LiveWidget(to_snapshot(view(session.explore()), SESSION_ID, LiveCatalog()))
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Any
from weakref import WeakValueDictionary

import anywidget
import traitlets

from reyn_jupyter.notebook import assets
from reyn_jupyter.notebook.serving.connection import Connection
from reyn_jupyter.notebook.serving.hub import kernel_hub
from reyn_jupyter.runtime.engine import running_loop

AWAKE = 50
_open: WeakValueDictionary[str, LiveWidget] = WeakValueDictionary()
_awake: OrderedDict[str, LiveWidget] = OrderedDict()  # the one used last at the end


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
    _resting = False

    def __init__(self, snapshot: dict[str, Any]) -> None:
        module, style = assets.read_module("widget")
        # One text in memory for all of them.
        super().__init__(_esm=sys.intern(module), _css=sys.intern(style), snapshot=snapshot)
        self._connection = self._connect(None)
        self.on_msg(self._receive)
        self._key = str(self.model_id)  # a closed widget has none
        _open[self._key] = self
        self._use()
        if self.comm is not None:
            self.comm.on_close(lambda message: self.close())  # the page has let go of it

    def _receive(self, widget: Any, content: Any, buffers: Any) -> None:
        self._use()
        self._connection.receive(content)

    def _connect(self, before: Connection | None) -> Connection:
        """Return a new connection, by which what was asked over the one before can still be answered."""
        hub = kernel_hub()
        key = None if before is None else before.answer_key
        return Connection(hub, self.send, running_loop() or hub.home, key)

    def _use(self) -> None:
        """Wake this widget, and let the one that was used longest ago rest."""
        if self._resting:
            self._resting = False
            hello = self._connection.hello
            self._connection = self._connect(self._connection)
            if hello is not None:
                self._connection.hello = hello
                kernel_hub().join(self._connection)
        _awake.pop(self._key, None)
        _awake[self._key] = self
        for each in list(_awake.values())[: max(0, len(_awake) - AWAKE)]:
            each._rest()

    def _rest(self) -> None:
        if self._connection.idle:  # a view that waits for an answer gets it
            _awake.pop(self._key, None)
            self._resting = True
            self._connection.close()

    def close(self) -> None:
        connection = getattr(self, "_connection", None)  # none where the front-end module is missing
        if connection is not None:
            connection.close()
            _awake.pop(self._key, None)
        super().close()


def find_widget(model_id: str) -> LiveWidget | None:
    """Return the widget of an id, None where it is not open."""
    return _open.get(model_id)
