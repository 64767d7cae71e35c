"""`%reyn serve`: what a person sees of a session that other programs reach."""

from __future__ import annotations

from collections.abc import Callable

from reyn_jupyter.sessions import current

Run = Callable[[str], str]


def test_a_session_is_served_as_one_or_both_and_ends(run: Run) -> None:
    assert "no other program reaches this session" in run("%reyn serve")
    begun = run("%reyn serve a2a --wait 20")
    served = current.session().served
    assert served is not None and served.wait == 20
    assert (
        "as an A2A agent" in begun
        and served.agent_address in begun
        and "/.well-known/agent-card.json" in begun
    )
    assert "mcpServers" not in begun and served.file.find().token.reveal() not in begun
    assert "served already" in run("%reyn serve mcp --wait 30")
    both = run("%reyn serve mcp")
    assert "as an A2A agent and an MCP server" in both and "mcpServers" in both
    assert "A2A agent and MCP server" in run("%reyn status")
    assert "no other program" in run("%reyn serve stop") and not served.running
