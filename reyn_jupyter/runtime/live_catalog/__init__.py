"""The catalog of a session as its categories start, change and fail."""
