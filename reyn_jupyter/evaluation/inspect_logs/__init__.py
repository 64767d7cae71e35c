"""Logs of inspect_ai: a study written as some, so that inspect view opens it, and logs read back."""
