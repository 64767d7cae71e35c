"""Utilities with manifests, plans of steps over them, and their execution."""
