"""A cluster of Dask for the tests of a file."""

from __future__ import annotations

from tests.support.dask_clusters import client, cluster  # noqa: F401 - fixtures
