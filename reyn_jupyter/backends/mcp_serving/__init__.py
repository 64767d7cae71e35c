"""A session as an MCP server: where it is written down, the door to it, and who came in."""
