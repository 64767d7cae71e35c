"""A session that other programs reach: where it is written down, the door to it, what it offers, and who came in."""
