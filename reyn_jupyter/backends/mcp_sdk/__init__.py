"""The SDK of the Model Context Protocol, in its first or its second major version.

Messages and results are those of `mcp-types` with either, so that the rest of the package knows one version of the
protocol's models. `client`, `server` and `http` give the names of the second version; with the first, `first_client`,
`first_http` and `first_server` stand behind them.
"""
