"""Agents elsewhere, asked by the A2A protocol: their cards, what is sent to them, and what they answer."""
