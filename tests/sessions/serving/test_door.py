"""What a process of this machine without the token can do at the door of a served session: nothing that lasts."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from contextlib import ExitStack

import pytest

import reyn_jupyter as reyn
from reyn_jupyter.backends.serving.client_connection import MOST_STRANGERS
from reyn_jupyter.sessions.assembly import ENGINE
from tests.support.mcp_client import posted, token_of
from tests.support.waiting import clock_of

Make = Callable[..., reyn.Session]


def connected_socket(session: reyn.Session, begins: bytes = b"") -> socket.socket:
    assert session.served is not None
    port = int(session.served.address.rpartition(":")[2].partition("/")[0])
    made = socket.create_connection(("127.0.0.1", port))
    made.settimeout(60)
    made.sendall(begins)
    return made


def rest_of(connection: socket.socket) -> bytes:
    """Return what comes until the other side closes, however it does."""
    found = b""
    try:
        while more := connection.recv(65536):
            found += more
    except ConnectionError:
        pass
    return found


HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
REFUSED = b"POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000000\r\n\r\n"


@pytest.mark.parametrize("begins", [b"", HEAD, REFUSED], ids=["nothing", "half a head", "an endless body"])
def test_a_connection_that_never_ends_what_it_began_keeps_no_place(make: Make, begins: bytes) -> None:
    session = make()
    session.serve_mcp()
    with clock_of(ENGINE.loop) as advance, connected_socket(session, begins) as slow:
        if begins is REFUSED:
            assert b" 421 " in slow.recv(65536)
        posted(session)  # the connection before it is known by then
        for _ in range(3):
            advance(2.0)
            try:
                slow.sendall(b"x" if begins else b"")
            except ConnectionError:
                break
            posted(session)
        rest_of(slow)  # it ends


def test_connections_without_a_token_shut_nobody_out(make: Make) -> None:
    session = make()
    session.serve_mcp()
    headers = {"Authorization": f"Bearer {token_of(session)}"}
    with ExitStack() as held:
        slow = [held.enter_context(connected_socket(session, HEAD)) for _ in range(3 * MOST_STRANGERS)]
        assert posted(session, headers=headers).status_code == 200
        assert rest_of(slow[0]) == b""


def test_a_request_with_an_origin_elsewhere_is_refused_wherever_that_stands(make: Make) -> None:
    session = make()
    session.serve_mcp()
    assert session.served is not None
    port = session.served.origin.rpartition(":")[2]
    own = f"Origin: http://127.0.0.1:{port}"
    for origins in ([own, "Origin: http://evil.example"], ["Origin:", "Origin: http://evil.example"]):
        head = [
            "GET /mcp HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Authorization: Bearer {token_of(session)}", *origins,
            "Connection: close",
        ]  # fmt: skip
        with connected_socket(session, "\r\n".join([*head, "", ""]).encode()) as connection:
            assert b" 403 " in rest_of(connection).partition(b"\r\n")[0]


def test_no_log_gets_the_token_however_much_is_logged(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    session = make()
    with caplog.at_level(logging.NOTSET), caplog.at_level(logging.NOTSET, "uvicorn"):
        session.serve_mcp()
        token = token_of(session)
        assert posted(session, headers={"Authorization": f"Bearer {token}"}).status_code == 200
        assert (
            posted(session, headers={"Authorization": f"Bearer {token}", "Host": "evil"}).status_code == 421
        )
        session.served.stop()  # type: ignore[union-attr]
    assert caplog.records and token not in caplog.text
