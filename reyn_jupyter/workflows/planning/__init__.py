"""Plans: from a request to steps, and what is missing or forbidden in them."""
