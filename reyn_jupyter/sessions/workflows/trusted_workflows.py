"""The utilities, rules and workflows of a workspace that a person trusts as they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.workflows.planning.policy import POLICY_FILE
from reyn_jupyter.workflows.utilities.program import command_of
from reyn_jupyter.workflows.utilities.utility_trust import changes_since_trust
from reyn_jupyter.workflows.workflow_library import RULES

if TYPE_CHECKING:
    from reyn_jupyter.sessions.assembly import Parts


def trusted_workflows(parts: Parts) -> tuple[tuple[str, str], ...]:
    """Trust the utilities, rules and workflows of the workspace as they are now, and return what each of them is.

    Raises:
        StateError: the trust cannot be kept.
    """
    library, facts, state = parts.workflows, [], StateFolder(parts.root)
    for each in library.registry(fresh=True).utilities:
        if each.trust_name:
            changed = changes_since_trust(state, each)
            library.trust(each, parts.trust, state)
            hosts = each.manifest.needs("host")
            said = f"{each.id} runs {' '.join(command_of(each))}"
            said += f", reaches {', '.join(hosts)}" if hosts else ""
            said += f"; since it was trusted: {', '.join(changed)}" if changed else ""
            facts.append((each.trust_name, said))
    for name, about in ((RULES, "rules for plans"), (POLICY_FILE, "the policy of plans")):
        if (content := library.content(name)) is not None:
            parts.trust.trust(content, name)
            facts.append((name, about))
    for file in library.workflow_files():
        if file.workflow is not None:
            parts.trust.trust(file.content, file.file)
            steps = ", ".join(step.operation for step in file.workflow.steps)
            facts.append((file.file, f"runs {steps}"))
    for name in tuple(parts.trust.unseen()):
        # It cannot be used, and no content of it is trusted; it does not wait any more.
        parts.trust.trust(b"", name)
        facts.append((name, "cannot be used: %reyn utilities --validate and %reyn workflow say why"))
    return tuple(facts)
