"""What left the kernel in a run: the requests that its record says went out, and the person's contents in them.

Invariant: only what a `RequestSent` stands for is said to have left. A request that was refused before it went, a
recorded answer and a model in this process send nothing, whatever host a model is configured for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reyn_jupyter.models.providers.provider_facts import is_local
from reyn_jupyter.runtime.record.events import RequestSent


@dataclass(frozen=True)
class Sent:
    """What left the kernel.

    Attributes:
        hosts: bytes of request bodies by host, of other machines.
        local: bytes of request bodies by address, of servers on this machine.
        requests: how many requests these are.
        counted: True if every body was counted on the wire; the bytes are estimates otherwise.
        contents: the person's contents in these requests: [{kind, name, bytes}], biggest first.

    Example:
        >>> trace.sent.hosts                                       # doctest: +SKIP
        {'api.openai.com': 8123}
    """

    hosts: Mapping[str, int]
    local: Mapping[str, int]
    requests: int
    counted: bool
    contents: Sequence[Mapping[str, Any]]

    @property
    def bytes(self) -> int:
        """Return the bytes of all bodies."""
        return sum(self.hosts.values()) + sum(self.local.values())

    @classmethod
    def of(cls, requests: Iterable[RequestSent], contents: Iterable[Mapping[str, Any]]) -> Sent:
        """Sum up requests, and the contents that were in them."""
        hosts: dict[str, int] = {}
        local: dict[str, int] = {}
        listed = tuple(requests)
        for each in listed:
            of_host = local if is_local(each.host) else hosts
            of_host[each.host] = of_host.get(each.host, 0) + each.size
        counted = all(each.counted for each in listed)
        return cls(hosts, local, len(listed), counted, total_by_name(contents))


def total_by_name(contents: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return contents, one entry a kind and name with the sum of its bytes, biggest first."""
    total: dict[tuple[str, str], int] = {}
    for item in contents:
        key = (str(item["kind"]), str(item["name"]))
        total[key] = total.get(key, 0) + int(item["bytes"])
    return [
        {"kind": kind, "name": name, "bytes": size}
        for (kind, name), size in sorted(total.items(), key=lambda item: -item[1])
    ]
