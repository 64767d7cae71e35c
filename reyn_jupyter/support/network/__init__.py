"""Hosts and addresses: their one spelling, and how public they are."""
