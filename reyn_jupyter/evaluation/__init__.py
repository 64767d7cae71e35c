"""Measuring how a model behaves on a tool surface: studies of scenarios under variants, with honest statistics."""
