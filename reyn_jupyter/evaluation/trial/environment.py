"""The world of one trial: a session of its own, in a workspace of its own, with nothing of the person's.

Invariants: no configuration, trust, approval, function, variable or memory of the person's is read; what a trial writes
lies in its private copy of the template, made before the first handler runs that could write; what acts on anything
else is denied, see `confinement`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from reyn_jupyter.catalog.action import Action, Tool
from reyn_jupyter.config import Effective, Settings
from reyn_jupyter.evaluation.plan.folder_services import services_in
from reyn_jupyter.evaluation.plan.frozen_catalog import RECORDED, Catalog, SharedCategories
from reyn_jupyter.evaluation.plan.scenario import Scenario
from reyn_jupyter.evaluation.trial.confinement import TrialPolicy
from reyn_jupyter.evaluation.trial.workspaces import NAME, Template
from reyn_jupyter.guard.approvals import Approvals
from reyn_jupyter.guard.permissions import Policy, PolicyInForce
from reyn_jupyter.guard.state_folder import StateFolder
from reyn_jupyter.guard.trust import Trust
from reyn_jupyter.guard.workspace import Workspace
from reyn_jupyter.outputs.blobs.in_memory_store import MemoryBlobStore
from reyn_jupyter.router.context.conversation import Conversation
from reyn_jupyter.runtime.access.session_tasks import SessionTasks
from reyn_jupyter.runtime.action_error import ActionError
from reyn_jupyter.runtime.call.invoke import Invoker
from reyn_jupyter.runtime.call.live_call import LiveCall
from reyn_jupyter.runtime.call.session_secrets import SessionSecrets
from reyn_jupyter.runtime.call.wrappers import Wrappers
from reyn_jupyter.runtime.live_catalog.catalog_cache import CatalogCache
from reyn_jupyter.runtime.live_catalog.category_lifecycle import CategoryLifecycle
from reyn_jupyter.runtime.namespace.functions import FunctionRegister
from reyn_jupyter.runtime.questions.consent import Answer, Question
from reyn_jupyter.runtime.record.action_usage import ActionUsage
from reyn_jupyter.runtime.record.run_store import RunStore
from reyn_jupyter.runtime.run import Run, new_run_id
from reyn_jupyter.runtime.services import Services
from reyn_jupyter.search.action_index import ActionEmbeddingIndex
from reyn_jupyter.sessions.assembly import ENGINE, Parts
from reyn_jupyter.support.files.scratch import Scratch, remove
from reyn_jupyter.support.programs.child_process import ChildProcesses
from reyn_jupyter.support.programs.owned_program import OwnedPrograms
from reyn_jupyter.support.secrets import Redactor

T = TypeVar("T")
OWN = "own"  # the folder of a person's own files, outside of the workspace; that of all who only read stays empty
MOST_READING = 64  # templates that readers' catalogs are kept of


@dataclass(frozen=True)
class Readers:
    """A read-only root, and by their hash the catalogs over it, whose handlers keep nothing of a trial."""

    workspace: Workspace
    catalogs: dict[str, CatalogCache] = field(default_factory=dict)

    def catalog(
        self, catalog: Catalog, services: Services, settings: Settings, fixtures: SharedFixtures
    ) -> CatalogCache:
        """Return the catalog of a trial here; one that another package makes a part of is put together for each."""
        if catalog.foreign:
            return fixtures.live(catalog, services)
        if catalog.hash not in self.catalogs:
            own = replace(services, settings=lambda: settings, blobs=None, search=None)
            self.catalogs[catalog.hash] = fixtures.live(catalog, own)
        return self.catalogs[catalog.hash]


@dataclass(frozen=True)
class SharedFixtures:
    """The resources that the trials of one runner share: the temporary folder, and what knows secrets.

    Attributes:
        shared: template digest → the read-only root of its files.
        reading: the same → what was made over it, of the templates used last.
        made: variant and catalog → what their conversations made: system prompts and tool specs.
        searches: variant and catalog → the index of the actions, which lies in memory.
        children: the processes that work for the trials; they keep nothing of one.
        lifecycle, tasks, programs: what categories of other packages have open, for all trials.
    """

    scratch: Scratch
    redactor: Redactor
    state: StateFolder
    trust: Trust
    approvals: Approvals
    shared: dict[str, Path] = field(default_factory=dict)
    reading: dict[str, Readers] = field(default_factory=dict)
    made: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    searches: dict[tuple[str, str], ActionEmbeddingIndex] = field(default_factory=dict)
    children: ChildProcesses = field(default_factory=ChildProcesses)
    lifecycle: CategoryLifecycle = field(default_factory=CategoryLifecycle)
    tasks: SessionTasks = field(default_factory=SessionTasks)
    programs: OwnedPrograms = field(default_factory=OwnedPrograms)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def in_folder(cls, scratch: Scratch, environ: Mapping[str, str]) -> SharedFixtures:
        state = StateFolder(scratch.path, scratch.path / "state")
        return cls(scratch, Redactor(environ), state, Trust(state), Approvals(state), environ=environ)

    @cached_property
    def secrets(self) -> SessionSecrets:
        """The secrets of the environment: a call gets one where the study names its action, anything else none."""
        return SessionSecrets({}, self.environ, self.redactor, Policy)

    @cached_property
    def categories(self) -> SharedCategories:
        """The categories of other packages."""
        return SharedCategories(lambda: self._services)

    @cached_property
    def _services(self) -> Services:
        """The services that they are made with, over an empty folder: no trial looks into it."""
        return services_in(
            _workspace(Template({}).lay_out(self.scratch.folder() / "shared", read_only=True)),
            redactor=self.redactor,
            children=self.children,
            spawn=self.tasks.spawn,
            programs=self.programs,
            secrets=self.secrets,
        )

    def live(self, catalog: Catalog, services: Services) -> CatalogCache:
        """Return a catalog that runs over a trial's services."""
        return catalog.live(services, self.categories, self.lifecycle)

    @property
    def is_idle(self) -> bool:
        """True if there is nothing that `release` would end."""
        return self.lifecycle.is_idle and self.tasks.is_idle and self.programs.is_idle

    async def release(self) -> None:
        """Close the categories that the trials started, and end their tasks; a later trial starts them again."""
        await self.lifecycle.close()
        await self.tasks.close()
        await self.programs.close()

    def readers(self, template: Template) -> Readers:
        """Return what the trials of this template share while they only read."""
        readers = self.reading.pop(template.digest, None)
        if readers is None:
            root = self.shared.get(template.digest)
            if root is None:
                root = template.lay_out(self.scratch.folder() / NAME, read_only=True)
                self.shared[template.digest] = root
            readers = Readers(_workspace(root))
        self.reading[template.digest] = readers
        if len(self.reading) > MOST_READING:
            del self.reading[next(iter(self.reading))]
        return readers

    def search(self, key: tuple[str, str], settings: Settings) -> ActionEmbeddingIndex:
        """Return the index that the trials of a variant search a catalog with."""
        if key not in self.searches:
            self.searches[key] = ActionEmbeddingIndex(
                lambda: settings, None, wait=ENGINE.wait, redact=self.redactor.text
            )
        return self.searches[key]


class TrialEnvironment:
    """One trial's session parts, and its workspace: shared while it only reads, its own from the first write on.

    Args:
        scenario: for the template and the planned errors.
        catalog: the frozen catalog.
        effective: the settings that hold in it.
        variant: names what its conversation shares with those of the same variant.
        policy: the rules of its gate.
    """

    def __init__(
        self,
        fixtures: SharedFixtures,
        scenario: Scenario,
        template: Template,
        catalog: Catalog,
        effective: Effective,
        variant: str,
        policy: TrialPolicy,
    ) -> None:
        self._fixtures = fixtures
        self._template = template
        self._catalog = catalog
        self._planned = dict(scenario.setup_error)
        self.private: Path | None = None
        readers = fixtures.readers(template) if template.shareable else None
        workspace = readers.workspace if readers else _workspace(self._own_root())
        blobs = MemoryBlobStore()
        key = (variant, catalog.hash)
        search = fixtures.search(key, effective.settings)
        # Two steps choose from what the words of the request find, as in a session, without any embedder.
        wanted = effective.settings.action_retrieval.embedding_class is not None
        offered = search if wanted or effective.settings.router.discovery == "two_steps" else None
        services = services_in(
            workspace,
            lambda: self.parts.settings,
            fixtures.redactor,
            blobs,
            offered,
            fixtures.children,
            fixtures.tasks.spawn,
            fixtures.programs,
            fixtures.secrets,
            fixtures.scratch.path / OWN if self.private is None else self.private.parent / OWN,
            lambda category: self.parts.catalog.push(category),
        )
        runs = RunStore(None, blobs)
        invoker = Invoker(
            services,
            lambda _: policy,
            _nobody,
            fixtures.approvals.remember,
            self._enter,
            runs,
            lambda: self.parts.catalog.refresh(),
        )
        self.parts = Parts(
            root=workspace.root,
            services=services,
            workspace=workspace,
            redactor=fixtures.redactor,
            effective=effective,
            trust=fixtures.trust,
            approvals=fixtures.approvals,
            rules=PolicyInForce(fixtures.approvals.entries),
            functions=FunctionRegister(),
            wrappers=Wrappers(services, invoker),
            catalog=readers.catalog(catalog, services, effective.settings, fixtures)
            if readers
            else fixtures.live(catalog, services),
            lifecycle=fixtures.lifecycle,
            tasks=fixtures.tasks,
            runs=runs,
            usage=ActionUsage(None),
            search=search,
            conversation=Conversation(new_run_id(), kept=fixtures.made.setdefault(key, {})),
        )

    async def index(self) -> None:
        """Give every action a vector, so that what a trial can find does not depend on how many ran before.

        Raises:
            EmbeddingClassError: no class of embeddings is there to be used.
        """
        await self.parts.search.build(await self.parts.catalog.refresh())

    async def _enter(self, call: LiveCall) -> tuple[Tool, Services] | None:
        planned = self._planned.pop(call.title, None)
        if planned is not None:
            raise ActionError(planned)
        if self.private is None and _may_write(call.action, call.tool):
            await self._move(call.run)
        if self.private is None:
            return None
        return call.run.snapshot.tools[call.tool.name], self.parts.services

    async def _move(self, run: Run) -> None:
        """Go on in a private copy of the template."""
        parts = self.parts
        workspace = _workspace(self._own_root())
        parts.root, parts.workspace = workspace.root, workspace
        own_folder = workspace.root.parent / OWN
        parts.services = replace(
            parts.services, root=workspace.root, workspace=workspace, own_folder=own_folder
        )
        parts.catalog = self._fixtures.live(self._catalog, parts.services)
        snapshot = await parts.catalog.refresh()
        for each in (run, *(caller.run for caller in run.callers)):
            each.see(snapshot)

    def _own_root(self) -> Path:
        self.private = self._template.lay_out(self._fixtures.scratch.folder() / NAME)
        return self.private

    def close(self) -> None:
        """Remove the private copy."""
        if self.private is not None:
            remove(self.private.parent)


def _workspace(root: Path) -> Workspace:
    """Return a folder that is thrown away: nothing in it has to outlive a loss of power."""
    return Workspace(root, off_limits=(), durable=False)


def _may_write(action: Action, tool: Tool) -> bool:
    """Return whether a call could change the workspace. Of readers, only our own are believed, and recording
    handlers."""
    if tool.name == RECORDED:
        return False
    if not action.purity.repeatable or action.name.category == "function":
        return True
    return not tool.is_built_in


async def _nobody(question: Question) -> Answer:
    return "nobody"
