"""Tests in a browser. A package for pytest's sake: all its files of one process share one Chromium."""
