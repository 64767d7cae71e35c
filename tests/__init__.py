"""The tests. Folders mirror the package; what tests share is imported by its whole name, `tests.support.waiting`."""
