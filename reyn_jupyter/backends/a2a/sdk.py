"""The SDK of the Agent2Agent protocol, which speaks its versions 1.0 and 0.3."""

from __future__ import annotations

from reyn_jupyter.backends.protocol_sdk import ProtocolSdk

A2A_SDK = ProtocolSdk("A2A", "a2a-sdk", {1: 3}, "a2a", ("a2a.client.client_factory", "httpx"), ("a2a",))
