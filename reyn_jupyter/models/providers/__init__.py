"""Providers of models, reached through LiteLLM: facts of them, requests, answers, failures, prices."""

from __future__ import annotations
