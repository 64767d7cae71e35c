"""Runs as OpenTelemetry spans: what they become, and how they reach a collector that the person named.

Nothing here imports OpenTelemetry before somebody asks for spans.
"""
