"""The collector that runs are sent to: its address, and whether that is this machine.

Invariant: nothing is sent unless the setting `otel.endpoint` says so; variables of OpenTelemetry alone switch nothing
on, since they may be there for another program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reyn_jupyter.config.settings import FROM_ENVIRONMENT
from reyn_jupyter.support.network.hosts import HostError, read_host

_TRACES, _BASE = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"
_DEFAULT, _PATH = "http://localhost:4318", "/v1/traces"


@dataclass(frozen=True)
class Collector:
    """A collector.

    Attributes:
        url: what requests go to.
        shown: the same without a user's name and password.
        is_here: whether that is this machine, by its spelling.
    """

    url: str
    shown: str
    is_here: bool


def collector_of(endpoint: str, environ: Mapping[str, str]) -> Collector:
    """Return the collector that the setting names.

    Args:
        endpoint: a base URL, or the word for what the environment says.
        environ: the environment.

    Raises:
        HostError: what the environment says is no address.

    Example:
        >>> collector_of("http://localhost:4318", {}).url
        'http://localhost:4318/v1/traces'
    """
    if endpoint != FROM_ENVIRONMENT:
        url = endpoint if endpoint.rstrip("/").endswith(_PATH) else endpoint.rstrip("/") + _PATH
    elif environ.get(_TRACES):
        url = environ[_TRACES]
    else:
        url = (environ.get(_BASE) or _DEFAULT).rstrip("/") + _PATH
    if not url.startswith(("http://", "https://")):
        raise HostError(
            f"{_TRACES if environ.get(_TRACES) else _BASE} begins with neither http:// nor https://."
        )
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return Collector(url, f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}", read_host(url).is_here)
