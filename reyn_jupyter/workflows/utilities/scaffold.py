"""A new utility to start from: its folder, a manifest, a program that runs, a README, and whether it all holds.

Invariant: nothing that is there is overwritten, and a folder comes into being whole or not at all. The program's text
is the package's own: of what was asked for only names of the pattern of capabilities and quoted JSON get into it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shlex
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any, Literal

from reyn_jupyter.config.yaml_document import parse
from reyn_jupyter.support.encoding import clip_line
from reyn_jupyter.workflows.utilities.contract import Schema, schema_fault
from reyn_jupyter.workflows.utilities.manifest import FILE, Utility, is_capability, manifest_of
from reyn_jupyter.workflows.utilities.schema_sample import sample_object
from reyn_jupyter.workflows.utilities.schema_values import texts_of_format, value_faults
from reyn_jupyter.workflows.utilities.utility_files import read_folder
from reyn_jupyter.workflows.workflow_error import WorkflowError

Language = Literal["python", "node", "shell"]
TEMPLATES = Path(__file__).parent.parent / "templates"
_PROGRAMS: Mapping[str, str] = {"python": "main.py", "node": "main.js", "shell": "main.sh"}
_ARTIFACT = "artifact.txt"
_NOTHING: Mapping[str, Any] = {"type": "object"}

# Runs a utility once: its inputs to its outputs. Raises WorkflowError.
SmokeRun = Callable[[Utility, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True)
class ScaffoldCheck:
    """What was looked at, whether it holds (None: it could not be tried), and a sentence."""

    name: str
    passed: bool | None
    message: str


@dataclass(frozen=True)
class Scaffold:
    """A utility that was begun.

    Attributes:
        utility: as the registry will find it. Who has it made trusts it: see `utility_trust.trust_utility`.
        files: their names in its folder.
        checks: of the manifest, and a run.
    """

    utility: Utility
    files: tuple[str, ...]
    checks: tuple[ScaffoldCheck, ...]


def name_for(capability: str) -> str:
    """Return the name of a utility for a capability.

    >>> name_for("tg.scrape")
    'tg-scrape'
    """
    return capability.replace(".", "-")[:64]


async def scaffold(
    capability: str,
    folder: Path,
    *,
    name: str | None = None,
    description: str | None = None,
    input_schema: Schema | None = None,
    output_schema: Schema | None = None,
    language: Language = "python",
    smoke_run: SmokeRun | None = None,
) -> Scaffold:
    """Begin a utility: its folder, manifest, program and README, the manifest checked and the program run once.

    Args:
        capability: ``domain.action``; of a gap, its ``missing_capability``.
        folder: the ``tools`` folder of a workspace; made if it is not there.
        name: of the utility; made of the capability when left out.
        description: at least ten characters.
        input_schema: copied into the manifest; any object when left out.
        output_schema: copied into the manifest; any object when left out.
        language: of the program.
        smoke_run: runs the utility; without one the program is not run.

    Returns:
        the utility and its checks. A run that fails is a check that does not hold: the folder stays.

    Raises:
        WorkflowError: "validation": the folder is there already, or what was asked for makes no manifest. Nothing is
            left behind then.

    Example:
        >>> made = await scaffold("tg.scrape", Path("tools"))  # doctest: +SKIP
        >>> made.utility.id, made.files  # doctest: +SKIP
        ('tg-scrape@0.1.0', ('README.md', 'main.py', 'tool.yaml'))
    """
    name = name_for(capability) if name is None and is_capability(capability) else name
    _check(capability, name, language, input_schema, output_schema)
    assert name is not None
    takes, gives = dict(input_schema or _NOTHING), dict(output_schema or _NOTHING)
    program = _PROGRAMS[language]
    output = sample_object(gives, texts={"artifact-path": _ARTIFACT})
    texts = {
        FILE: _manifest_text(name, capability, description, takes, gives, language),
        program: _program_text(program, capability, gives, output),
        "README.md": _readme(name, capability, program),
    }
    utility = await asyncio.to_thread(_written, folder, name, texts)
    checks = [ScaffoldCheck("schema", True, "tool.yaml fits the schema of manifests")]
    checks.append(await _tried(utility, output, smoke_run))
    return Scaffold(utility, tuple(sorted(texts)), tuple(checks))


def _check(
    capability: str,
    name: str | None,
    language: str,
    input_schema: Schema | None,
    output_schema: Schema | None,
) -> None:
    if not is_capability(capability):
        raise _refused(
            f"{clip_line(repr(capability), 100)} is no capability.",
            "It is domain.action in small letters, digits and -: tg.scrape.",
        )
    if name is None or not re.fullmatch(r"[a-z0-9-]{1,64}", name):
        raise _refused("A utility's name has small letters, digits and -, at most 64 of them.")
    if language not in _PROGRAMS:
        raise _refused(
            f"There is no template for {clip_line(language, 50)!r}.", "Take python, node or shell."
        )
    for kind, schema in (("input", input_schema), ("output", output_schema)):
        if schema is not None and (fault := schema_fault(schema)):
            raise _refused(f"The {kind} schema {fault}.")


def _manifest_text(
    name: str, capability: str, description: str | None, takes: Schema, gives: Schema, language: str
) -> str:
    """Return the manifest, in the order of the template's keys."""
    import yaml

    template = parse((TEMPLATES / "tool" / FILE).read_bytes(), FILE).values
    text = " ".join((description or "").split())
    values = {
        "name": name,
        "description": text if len(text) >= 10 else f"Serves {capability}; write here what it does.",
        "capabilities": [capability],
        "entrypoint": {"type": language, "command": _PROGRAMS[language]},
        "input_schema": takes,
        "output_schema": gives,
    }
    # By JSON, so that no part is the same object twice, which YAML would write as an alias.
    plain = json.loads(json.dumps({**template, **values}))
    dumped: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=110)
    return f"# The manifest of a utility; docs/utilities.md describes every key.\n{dumped}"


def _program_text(program: str, capability: str, gives: Schema, output: Mapping[str, Any] | None) -> str:
    """Return a program that gives an example of an output, or nothing where none could be made."""
    shown = output if output is not None else {}
    artifacts = (
        sorted({_ARTIFACT for _ in texts_of_format(gives, shown, ("artifact-path",))}) if shown else []
    )
    text = json.dumps(shown)
    if program.endswith(".sh"):
        quoted, names = shlex.quote(text), " ".join(map(shlex.quote, artifacts))
    else:
        quoted, names = json.dumps(text), json.dumps(json.dumps(artifacts))
    template = Template((TEMPLATES / "tool" / f"{program}.template").read_text("utf-8"))
    return template.substitute(capability=capability, output=quoted, artifacts=names)


def _readme(name: str, capability: str, program: str) -> str:
    return (
        f"# {name}\n\n"
        f"Serves `{capability}`. What it takes and gives stands in `{FILE}`, what it does in `{program}`.\n\n"
        "It reads one JSON object on standard input and prints one JSON object as the last thing on standard output;\n"
        "what it logs goes to standard error. Hosts, programs, packages and secrets that it needs are declared under\n"
        f"`dependencies` of `{FILE}`. After a change, trust it again: `%reyn trust`.\n"
    )


def _written(folder: Path, name: str, texts: Mapping[str, str]) -> Utility:
    """Write the files into a folder of their own, check the manifest, and put the folder in its place."""
    if os.path.lexists(folder / name):
        raise _refused(
            f"{folder.name}/{name} is there already, and nothing is overwritten.", "Name another one."
        )
    if folder.is_symlink():
        raise _refused(f"{folder.name} is a link, and links are not followed.")
    draft = folder / f".{name}.{secrets.token_hex(8)}.part"
    try:
        folder.mkdir(exist_ok=True)
        draft.mkdir()
        for file, text in texts.items():
            (draft / file).write_text(text, encoding="utf-8", newline="\n")
            if file.endswith(".sh"):
                (draft / file).chmod(0o755)
        files = read_folder(draft, FILE)
        assert files.manifest is not None
        manifest = manifest_of(files.manifest, draft, f"{name}/{FILE}")
        if os.path.lexists(folder / name):
            raise FileExistsError(f"{folder.name}/{name} is there already")
        draft.rename(folder / name)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise _refused(f"{folder.name}/{name} could not be made: {error}.") from None
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    trust_name = f"{folder.name}/{name}"
    return Utility(manifest, folder / name, "workspace", files.digest, True, trust_name, files.hashes)


async def _tried(
    utility: Utility, output: Mapping[str, Any] | None, smoke_run: SmokeRun | None
) -> ScaffoldCheck:
    """Run the program once with an example of its inputs."""
    if smoke_run is None:
        return ScaffoldCheck("smoke run", None, "it was not run")
    own = f"{utility.trust_name}/README.md"
    inputs = sample_object(
        utility.manifest.input_schema, texts={"readable-path": own, "writable-folder": "state/scaffold"}
    )
    if inputs is None or output is None:
        side = "inputs" if inputs is None else "outputs"
        return ScaffoldCheck("smoke run", None, f"it was not run: no example of its {side} could be made")
    try:
        given = await smoke_run(utility, inputs)
    except WorkflowError as error:
        return ScaffoldCheck("smoke run", False, str(error))
    if faults := value_faults(utility.manifest.output_schema, given):
        return ScaffoldCheck("smoke run", False, f"its output does not fit: {faults[0]['message']}")
    return ScaffoldCheck(
        "smoke run", True, "it ran once, with examples of inputs, and gave what its manifest says"
    )


def _refused(message: str, hint: str = "") -> WorkflowError:
    return WorkflowError(message, hint, "validation")
