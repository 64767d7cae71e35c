"""Documents as Markdown: HTML, PDF and office files, read in a child process."""

from __future__ import annotations

from reyn_jupyter.backends.documents.document_reader import Document, DocumentError, DocumentReader
from reyn_jupyter.backends.documents.document_types import document_type

__all__ = ["Document", "DocumentError", "DocumentReader", "document_type"]
