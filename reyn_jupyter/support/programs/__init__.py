"""Processes beside this one: those that answer it, those that end with it, those that are known by it."""
