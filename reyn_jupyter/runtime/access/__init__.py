"""What of its session a category may use; `sessions.access` gives it."""
