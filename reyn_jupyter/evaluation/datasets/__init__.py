"""Datasets of others as scenarios: rows of files, the formats that they come in, and the suite that they become."""
