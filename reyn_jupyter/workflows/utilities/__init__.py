"""Utilities: what a manifest declares, which utility serves a capability, how one runs and how one is begun."""
