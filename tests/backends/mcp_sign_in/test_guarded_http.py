"""Requests that a stranger's metadata asks for: none of them reaches a door inside a network."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from reyn_jupyter.backends.mcp_sdk.http import httpx
from reyn_jupyter.backends.mcp_sign_in.guarded_http import GuardError, guarded_client
from reyn_jupyter.support.network.hosts import Host


async def ask(server: str, url: str) -> None:
    async def approve(host: Host) -> bool:
        return True

    async with guarded_client(server, approve, lambda host: False) as http:
        await http.get(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://10.0.0.5/.well-known/oauth-authorization-server",
        "https://192.168.1.1/token",
        "https://127.0.0.1:8443/token",
        "https://localhost/token",
        "https://2130706433/token",
        "https://[::1]/token",
        "https://[::ffff:10.0.0.5]/token",
        "https://[64:ff9b::a00:5]/token",
        "https://[2002:a00:5::]/token",
        "https://[fd00::1]/token",
        "https://169.254.169.254/latest/meta-data",
        "https://100.64.0.1/token",
        "https://0.0.0.0/token",
    ],
)
def test_a_public_server_leads_to_no_address_inside_a_network(url: str) -> None:
    with pytest.raises(GuardError, match="inside a network"):
        asyncio.run(ask("https://1.1.1.1/mcp", url))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://1.1.1.1/token", "over http, and not https"),
        ("http://127.0.0.1/token", "over http, and not https"),
        ("https://bank.example@1.1.1.1/token", "user's name"),
    ],
)
def test_an_address_that_is_not_plain_https_is_not_asked(url: str, said: str) -> None:
    with pytest.raises(GuardError, match=said):
        asyncio.run(ask("https://1.1.1.1/mcp", url))


def test_a_server_inside_a_network_may_name_another_there_and_none_on_this_machine() -> None:
    with pytest.raises(GuardError, match="inside a network"):
        asyncio.run(ask("https://10.0.0.5/mcp", "https://127.0.0.1:9/token"))
    with pytest.raises(GuardError, match="over http"):
        asyncio.run(ask("https://10.0.0.5/mcp", "http://10.0.0.6/token"))


@contextmanager
def https_server(name: str, folder: Path) -> Iterator[tuple[int, Path]]:
    """Yield the port of a server on this machine whose certificate is for a name alone, and the file to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a server of the tests")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    trusted = folder / "certificate.pem"
    trusted.write_bytes(certificate.public_bytes(Encoding.PEM))
    both = folder / "server.pem"
    both.write_bytes(
        trusted.read_bytes() + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = f"{self.headers['Host']}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server.server_port, trusted
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_the_certificate_of_a_server_is_held_to_its_name_and_not_to_the_address_that_was_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def get(url: str) -> str:
        async def approve(host: Host) -> bool:
            return True

        async with guarded_client(url, approve, lambda host: False) as http:
            return (await http.get(url)).text

    with https_server("localhost", tmp_path) as (port, trusted):
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        assert asyncio.run(get(f"https://localhost:{port}/token")) == f"localhost:{port}"
        with pytest.raises(httpx.ConnectError, match=r"(?i)certificate"):
            asyncio.run(get(f"https://127.0.0.1:{port}/token"))
    with https_server("auth.example.org", tmp_path) as (port, trusted):
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        with pytest.raises(httpx.ConnectError, match=r"(?i)certificate"):
            asyncio.run(get(f"https://localhost:{port}/token"))
