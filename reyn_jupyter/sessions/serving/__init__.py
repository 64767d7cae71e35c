"""What a session offers as an MCP server: the wrappers as tools, the notebook's resources, each call a run."""
