"""From the settings to an embedder, or to the reason why there is none.

Three questions are kept apart: which class is configured (`Settings`), what it comes to on this machine (`resolve`,
pure over what it is given), and who then embeds (`ResolvedClass.embedder`). Nothing is imported, downloaded or asked
of a provider to resolve a class. Source: Universal Action Catalog (FP-0034), embedding classes and their degradation.

The class counts as switched off, silently, only where its model is one of sentence-transformers, nothing on this
machine can run it, and the class is configured. Anything else that does not work is an error that says what to do.
"""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Literal

from reyn_jupyter.config import Settings
from reyn_jupyter.config.settings import MULTILINGUAL
from reyn_jupyter.search.embedders.embedder import LOCAL, MINI, EmbedderError
from reyn_jupyter.support.reyn_line import reyn_line
from reyn_jupyter.support.text import nearest

if TYPE_CHECKING:
    from reyn_jupyter.search.embedders.embedder import Embedder, Wait
    from reyn_jupyter.search.embedders.local import LocalEmbedder

    Create = Callable[[Wait | None, Callable[[str], str], Mapping[str, str] | None], Embedder]

INSTALL = "pip install 'reyn-jupyter[local-embed]'"
Kind = Literal["off", "absent", "local", "hosted", "wrong"]

# Who embeds, by what a model string begins with, the longest that fits; LiteLLM takes the rest. Models of
# sentence-transformers stand apart: they alone may be absent without a fault, and one is shared by the whole process.
EMBEDDERS = {
    MULTILINGUAL: "reyn_jupyter.search.embedders.universal:UniversalSentenceEncoder",
    "": "reyn_jupyter.search.embedders.hosted:HostedEmbedder",
}


@dataclass(frozen=True)
class InstalledModels:
    """The packages and weights that are installed here, probed without an import."""

    sentence_transformers: bool
    packaged: bool

    @classmethod
    def probe(cls) -> InstalledModels:
        from reyn_jupyter.search.embedders.packaged import weights_folder

        return cls(
            importlib.util.find_spec("sentence_transformers") is not None, weights_folder() is not None
        )


@dataclass(frozen=True)
class ResolvedClass:
    """The result of resolving the configured class.

    Attributes:
        kind: "local" and "hosted" have an embedder; "off" was opted out of; "absent" has nothing that could run its
            model, and counts as off; "wrong" is a mistake in the configuration.
        name, model: the class and its model, as configured; None where there is none.
        reason, hint: where it has no embedder, why, and what to do.
        create: makes the embedder; None where it has none. See `embedder`.
    """

    kind: Kind
    name: str | None = None
    model: str | None = None
    reason: str = ""
    hint: str = ""
    create: Create | None = field(default=None, repr=False, compare=False)

    @property
    def in_force(self) -> str | None:
        """Return the class that search by meaning stands on; None where it is off."""
        return self.name if self.create is not None else None

    def embedder(
        self,
        wait: Wait | None = None,
        redact: Callable[[str], str] = str,
        environ: Mapping[str, str] | None = None,
    ) -> Embedder | None:
        """Return who embeds for the class; None where it has nobody. Arguments as of `Embedder.create`."""
        return self.create(wait, redact, environ) if self.create is not None else None


def resolve(
    settings: Settings,
    environ: Mapping[str, str] | None = None,
    probe: Callable[[], InstalledModels] = InstalledModels.probe,
) -> ResolvedClass:
    """Return what `action_retrieval.embedding_class` comes to.

    Args:
        environ: where a provider's key is looked for; the process's environment when None.
        probe: says what is installed; asked only where it matters.

    >>> resolve(Settings(), {}, lambda: InstalledModels(False, False)).kind
    'absent'
    >>> resolve(Settings(), {}, lambda: InstalledModels(False, True)).in_force
    'local-mini'
    """
    name = settings.action_retrieval.embedding_class
    if name is None:
        return ResolvedClass(
            "off",
            reason="no embedding class is in force (action_retrieval.embedding_class is null)",
            hint="%reyn config action_retrieval.embedding_class local-mini",
        )
    classes = settings.embedding.classes
    if name not in classes:
        near = nearest(name, classes)
        meant = f"Did you mean {near!r}? " if near else ""
        known = ", ".join(sorted(classes))
        hint = f"{meant}embedding.classes has {known}; "
        hint += f"to add it: {reyn_line('config', f'embedding.classes.{name}', 'PROVIDER/MODEL')}"
        return ResolvedClass("wrong", name, None, f"there is no embedding class {name!r}", hint)
    model = classes[name].model
    if model.startswith(LOCAL):
        return _on_this_machine(name, model, probe())
    return _registered(name, model, os.environ if environ is None else environ)


def _on_this_machine(name: str, model: str, machine: InstalledModels) -> ResolvedClass:
    from reyn_jupyter.search.embedders.identity import given_path, untrusted_model

    untrusted = None if given_path(model) is None else untrusted_model(model)
    if untrusted is not None:
        reason = f"{model} lies in {untrusted}, which is not trusted"
        hint = "Trust that folder by its reyn.yaml (%reyn trust), or move the model to another one."
        return ResolvedClass("wrong", name, model, reason, hint)
    if machine.sentence_transformers or (machine.packaged and model == MINI):
        return ResolvedClass("local", name, model, create=partial(_create_local, model, machine))
    if machine.packaged:  # something local is there, but not for this model: that is for the person to decide
        reason = f"the class {name!r} wants {model}, which sentence-transformers alone can run"
        return ResolvedClass("wrong", name, model, reason, f"{INSTALL}, or use the class local-mini.")
    reason = f"nothing here can run {model}: neither sentence-transformers nor packaged weights are installed"
    return ResolvedClass("absent", name, model, reason, INSTALL)


def _registered(name: str, model: str, environ: Mapping[str, str]) -> ResolvedClass:
    path = EMBEDDERS[max((start for start in EMBEDDERS if model.startswith(start)), key=len)]
    serving: type[Embedder] = resolve_name(path)
    problem = serving.problem(name, model, environ)
    if problem is not None:
        return ResolvedClass("wrong", name, model, f"the class {name!r} {problem[0]}", problem[1])
    kind: Kind = "hosted" if serving.is_remote else "local"
    return ResolvedClass(kind, name, model, create=partial(serving.create, model))


_made: dict[tuple[str, InstalledModels], LocalEmbedder] = {}
_making = threading.Lock()


def _create_local(
    model: str,
    machine: InstalledModels,
    wait: Wait | None,
    redact: Callable[[str], str],
    environ: Mapping[str, str] | None,
) -> LocalEmbedder:
    return _local(model, machine)


def _local(model: str, machine: InstalledModels) -> LocalEmbedder:
    """Return the one embedder of this process for a model as it lies on the disk now."""
    from reyn_jupyter.search.embedders.identity import key_of

    key = key_of(model)
    with _making:
        held = _made.get((model, machine))
        if held is None or held.key != key:
            _made[model, machine] = held = _embedder(model, machine, key)
        return held


def _embedder(model: str, machine: InstalledModels, key: str) -> LocalEmbedder:
    from reyn_jupyter.search.embedders.identity import is_on_this_machine
    from reyn_jupyter.search.embedders.local import LocalEmbedder
    from reyn_jupyter.search.embedders.packaged import PackagedMiniLM, weights_folder

    def heavy() -> Embedder:
        from reyn_jupyter.search.embedders.sentence import SentenceTransformerEmbedder

        made = SentenceTransformerEmbedder(model)
        if made.key != key:
            raise EmbedderError(f"{model} was saved again. The next turn or search takes it as it is now.")
        return made

    def light() -> Embedder:
        folder = weights_folder()
        assert folder is not None
        return PackagedMiniLM(folder)

    mini = model == MINI
    made = LocalEmbedder(
        key,
        PackagedMiniLM.dimension if mini else None,
        light if mini and machine.packaged else None,
        heavy if machine.sentence_transformers else None,
        is_there=lambda: (mini and machine.packaged) or is_on_this_machine(model),
        renew=lambda: _local(model, machine),
    )
    made.english_only = mini
    return made
