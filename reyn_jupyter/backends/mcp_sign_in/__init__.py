"""Signing in to remote MCP servers by OAuth, and what requests carry then."""
