"""What one workspace has for workflows: its utilities as they are now, the policy in force, where runs are kept.

Invariant: nothing is remembered but what a scan of the same process read; what the disk holds now is what counts.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import uuid
from collections.abc import Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from reyn_jupyter.catalog.names import SEPARATOR
from reyn_jupyter.config import ConfigError
from reyn_jupyter.config.yaml_document import parse, read_bytes
from reyn_jupyter.support.text import meant_clause
from reyn_jupyter.workflows.execution.run_file import RUNS, STATE
from reyn_jupyter.workflows.execution.workflow_file import FOLDER as SKILLS
from reyn_jupyter.workflows.execution.workflow_file import SUFFIX, Workflow, WorkflowFile, read_workflows
from reyn_jupyter.workflows.planning.policy import POLICY_FILE, EffectivePolicy, load_policy
from reyn_jupyter.workflows.planning.rules import RULES_FILE, PlanRules, built_in_rules, read_rules
from reyn_jupyter.workflows.utilities.registry import (
    FOLDER,
    ScanCache,
    UtilityRegistry,
    read_registry,
    utility_folders,
    write_cache,
)
from reyn_jupyter.workflows.utilities.utility_trust import trust_utility, trusted_utilities
from reyn_jupyter.workflows.workflow_error import WorkflowError

if TYPE_CHECKING:
    from reyn_jupyter.guard.trust import Trust
    from reyn_jupyter.runtime.services import Services
    from reyn_jupyter.workflows.utilities.manifest import Utility

RULES = f"{FOLDER}/{RULES_FILE}"
SKILL = "skill"  # the category whose resources are workflows
_REST = 20.0  # a look at the folders of utilities takes this part of the time at most, where looks come close together
_LONGEST_REST = 1.0  # seconds
_QUICK = 0.005  # seconds of processor time; a look that takes no more is taken each time


class WorkflowLibrary:
    """The utilities, the policy and the runs of one workspace.

    Args:
        services: of the session.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._cache = ScanCache()
        self._lock = threading.Lock()
        self._registry: UtilityRegistry | None = None
        self._next_look = 0.0
        self._trusted: Mapping[str, str] = {}
        self._written = ""
        self._files: tuple[Hashable, tuple[WorkflowFile, ...]] | None = None

    def registry(self, *, fresh: bool = True) -> UtilityRegistry:
        """Return the utilities that there are.

        Args:
            fresh: look now. Else, where there are very many, what was found less than a second ago may be given.
        """
        with self._lock:
            hashes, before = self._services.trust.hashes(), self._registry
            is_resting = time.monotonic() < self._next_look and hashes == self._trusted
            if before is not None and not fresh and is_resting:
                return before
            began = time.thread_time()
            self._trusted = hashes
            self._registry = found = read_registry(
                utility_folders(self._services.root, self._services.settings().workflows.folders),
                cache=self._cache,
                is_trusted=trusted_utilities(hashes),
            )
            took = time.thread_time() - began
            is_steady = before is not None and before.revision == found.revision and took > _QUICK
            self._next_look = time.monotonic() + (min(_LONGEST_REST, _REST * took) if is_steady else 0.0)
            return found

    def is_slow(self) -> bool:
        """Return whether a look at the utilities reads files: the last one found some, or there was none."""
        return self._registry is None or bool(self._cache.folders)

    @property
    def latest(self) -> UtilityRegistry:
        """The utilities as the last look found them; there is none before the first."""
        return self._registry or UtilityRegistry()

    def write_cache(self, *, rebuild: bool = False) -> None:
        """Write the registry to ``state/registry-cache.json``, where the workspace has utilities and it has changed.

        Args:
            rebuild: write it in any case.

        Raises:
            OSError: it cannot be written.
        """
        registry = self.registry()
        has_changed = registry.revision != self._written and (self._services.root / FOLDER).is_dir()
        if has_changed or rebuild:
            write_cache(registry, self._services.root)
            self._written = registry.revision

    def utility(self, entry: str) -> Utility:
        """Return a utility by its name, or by its name and version.

        Raises:
            WorkflowError: "validation": there is none. One that is not trusted is given, and refuses to run.
        """
        registry = self.registry()
        found = registry.by_id.get(entry) or registry.best.get(entry)
        if found is None:
            raise WorkflowError(
                f"There is no utility {entry!r}{meant_clause(entry, [*registry.best, *registry.by_id])}.",
                "%reyn utilities lists them.",
                "validation",
            )
        return found

    def policy(self) -> EffectivePolicy:
        """Return the policy in force. Raises WorkflowError "policy_invalid"."""
        trusted = self._services.trust.hashes().get(POLICY_FILE)
        return load_policy(
            self._services.root, lambda content: trusted == hashlib.sha256(content).hexdigest()
        )

    def rules(self) -> PlanRules:
        """Return the rules of the router: those of the workspace that the person trusts, before the built-in ones.

        Those that are no rules are a problem, and count for nothing.
        """
        content = self.content(RULES)
        trusted = self._services.trust.hashes().get(RULES)
        if content is not None and trusted == hashlib.sha256(content).hexdigest():
            with suppress(WorkflowError):
                return _rules(content).before(built_in_rules())
        return built_in_rules()

    def content(self, name: str) -> bytes | None:
        """Return a file of the workspace that counts for plans; None where it is not there, or cannot be read."""
        with suppress(ConfigError):
            return read_bytes(self._services.root / name, name)
        return None

    def new_run_folder(self) -> Path:
        """Return a folder for a utility that is run by itself; it is not made."""
        return self._services.root.joinpath(STATE, RUNS, str(uuid.uuid4()))

    def trust(self, utility: Utility, trust: Trust) -> None:
        """Trust a utility of the workspace as it was found. Raises StateError."""
        trust_utility(trust, utility)
        with self._lock:
            self._registry = None

    def workflow_files(self) -> tuple[WorkflowFile, ...]:
        """Return the files of workflows, those that hold none among them; read again where one has moved."""
        revision = self.workflows_revision()
        with self._lock:
            if self._files is None or self._files[0] != revision:
                hashes = self._services.trust.hashes()
                self._files = (
                    revision,
                    read_workflows(
                        self._services.root,
                        lambda content, name: hashes.get(name) == hashlib.sha256(content).hexdigest(),
                    ),
                )
            return self._files[1]

    def workflows_revision(self) -> Hashable:
        """Return a value that moves with the files of workflows and the trust in them."""
        found = []
        with suppress(OSError), os.scandir(self._services.root / SKILLS) as entries:
            for entry in entries:
                if entry.name.endswith(SUFFIX):
                    status = entry.stat(follow_symlinks=False)
                    found.append((entry.name, status.st_mtime_ns, status.st_size, status.st_ino))
        trusted = (each for each in self._services.trust.hashes().items() if each[0].startswith(f"{SKILLS}/"))
        return tuple(sorted(found)), tuple(sorted(trusted))

    def workflow(self, name: str) -> Workflow:
        """Return a workflow that the person trusts. Raises WorkflowError."""
        found = self._workflows()
        workflow = found.get(name)
        if workflow is None and (held := self._held_back(name)) is not None:
            raise held
        if workflow is None:
            raise WorkflowError(
                f"There is no workflow {name!r} that may run{meant_clause(name, found)}.",
                "%reyn workflow lists them.",
                "validation",
            )
        return workflow

    def held_back_action(self, action: str) -> WorkflowError | None:
        """Return why an action's name is that of a workflow which may not run; None for every other name."""
        category, _, name = action.partition(SEPARATOR)
        return self._held_back(name) if category == SKILL else None

    def _held_back(self, name: str) -> WorkflowError | None:
        """Return why a workflow of ``skills/`` may not run, and what to do about it; None where it may, or where there
        is no file of it."""
        for each in self.workflow_files():
            if each.name == name and each.problem is not None:
                why = f"The workflow {name} is held back: {each.problem.message}"
                return WorkflowError(why, each.problem.hint, "plan_invalid", each.problem.details)
            if each.name == name and not each.trusted:
                return WorkflowError(
                    f"The workflow {name} is held back: {each.file} lies in the workspace, and you have not trusted it "
                    "as it is now.",
                    "%reyn trust shows what would run, and asks.",
                    "validation",
                )
        return None

    def has_workflow(self, name: str) -> bool:
        """Return whether there is a workflow of this name that the person trusts."""
        return name in self._workflows()

    def _workflows(self) -> dict[str, Workflow]:
        return {each.name: each.workflow for each in self.workflow_files() if each.workflow and each.trusted}

    @property
    def problems(self) -> list[str]:
        """Return a sentence for each manifest and each workflow that cannot be used."""
        found = [f"{each.file}{each.path}: {each.message}" for each in self.registry().problems]
        found += [str(each.problem) for each in self.workflow_files() if each.problem is not None]
        if (content := self.content(RULES)) is not None:
            try:
                _rules(content)
            except WorkflowError as error:
                found.append(str(error))
        return found


def _rules(content: bytes) -> PlanRules:
    """Return the rules that a file holds. Raises WorkflowError "validation"."""
    try:
        data = parse(content, RULES).values
    except ConfigError as error:
        raise WorkflowError(f"{RULES} cannot be read: {error}.", "Mend the file.", "validation") from None
    return read_rules(data, RULES)
