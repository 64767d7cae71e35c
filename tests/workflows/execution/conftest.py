"""A workshop in a workspace of its own, and a cluster of Dask for the tests of a file."""

from __future__ import annotations

from tests.notebook.conftest import run  # noqa: F401 - a fixture
from tests.support.dask_clusters import client, cluster  # noqa: F401 - fixtures
from tests.workflows.acceptance.conftest import workshop  # noqa: F401 - a fixture
