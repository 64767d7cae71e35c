"""Where MCP servers come from: files of the common ``mcpServers`` JSON, packages, a registry, other clients."""
