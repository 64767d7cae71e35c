"""Read a log of inspect_ai: what it holds of trials.

Invariants: a log costs a bounded amount of memory, whatever its archive says of itself; nothing in it is run, and no
path in it is followed; a sample without a score has none, never a failure.
Source: UKGovernmentBEIS/inspect_ai, log._log and log._recorders.eval.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reyn_jupyter.evaluation.inspect_logs.sample_record import CORRECT, INCORRECT, trial_of
from reyn_jupyter.evaluation.suites.suite_document import LARGEST
from reyn_jupyter.evaluation.trial.trial import Trial
from reyn_jupyter.support.files.bounded_reading import BoundExceededError, open_regular, read_at_most
from reyn_jupyter.support.text import count
from reyn_jupyter.support.user_errors import UserError
from reyn_jupyter.support.validation_messages import quote_value

if TYPE_CHECKING:
    import pandas as pd

_LARGEST_LOG = 8 * LARGEST  # bytes of all members, unpacked
_ZSTANDARD = 93  # the method of zip, which the standard library knows from Python 3.14 on
_LARGEST_NUMBER = 1e300
_LOCAL_HEADER = 30  # bytes, before the name


class InspectLogError(UserError, ValueError):
    """A log that cannot be read; says which part, why and what to do."""


@dataclass(frozen=True, kw_only=True)
class InspectSample:
    """One sample at one epoch.

    Attributes:
        id, epoch, input, target: as in the log; epochs count from 1, an input of several messages is their text.
        answer: what the model said last.
        scores: scorer → value: True or False for "C" and "I", else the value as it stands.
        calls: the tools that the model called, in order.
        error, limit: what ended it early.
        tokens, cost, seconds: effort; None where the log does not say.
        trial: the trial that it was written of, where this package wrote the log.
    """

    id: str
    epoch: int
    input: str
    target: str
    answer: str
    scores: Mapping[str, Any]
    calls: tuple[str, ...] = ()
    error: str | None = None
    limit: str | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    trial: Trial | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True, repr=False)
class InspectLog:
    """A log of inspect_ai.

    Attributes:
        task, model, status, created: as in its header.
        metadata: of the eval; a variant's settings where this package wrote it.
        samples: by epoch and id.

    Example:
        >>> log = read_inspect_log("logs/sums.eval")   # doctest: +SKIP
        >>> log.df[["id", "includes"]]                 # doctest: +SKIP
    """

    task: str
    model: str
    status: str
    created: str
    metadata: Mapping[str, Any]
    samples: tuple[InspectSample, ...]

    def __repr__(self) -> str:
        return (
            f"InspectLog({self.task!r}, {self.model!r}, {self.status}, {count(len(self.samples), 'sample')})"
        )

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials that were written into it; none in a log of another program."""
        return tuple(sample.trial for sample in self.samples if sample.trial is not None)

    @property
    def df(self) -> pd.DataFrame:
        """One row a sample and epoch, and a column for each scorer; one that is called like another column has
        `score_` before its name."""
        import pandas as pd

        facts = ("id", "epoch", "input", "target", "answer", "error", "limit", "tokens", "cost", "seconds")
        scorers = dict.fromkeys(name for sample in self.samples for name in sample.scores)
        columns = {name: f"score_{name}" if name in facts else name for name in scorers}
        rows = [
            {
                **{name: getattr(sample, name) for name in facts},
                **{column: sample.scores.get(name) for name, column in columns.items()},
            }
            for sample in self.samples
        ]
        return pd.DataFrame(rows, columns=[*facts, *columns.values()])


def read_inspect_log(path: str | Path) -> InspectLog:
    """Return a log of inspect_ai, of its format 2.

    Args:
        path: an ``.eval`` or ``.json`` file.

    Raises:
        InspectLogError: it is no such file, too large, or not whole.
    """
    place = Path(path).expanduser()
    try:
        if place.suffix == ".eval":
            header, samples = _archive(place)
        elif place.suffix == ".json":
            header = _json(place.name, _bounded(place.name, open_regular(place), _LARGEST_LOG))
            samples = header.get("samples") or []
        else:
            raise InspectLogError(f"{place.name} is no log of inspect_ai; give an .eval or a .json file")
    except (OSError, zipfile.BadZipFile, EOFError, zlib.error) as error:
        told = getattr(error, "strerror", None) or str(error)
        raise InspectLogError(f"{place} cannot be read: {told}") from error
    spec = header.get("eval")
    if not isinstance(spec, Mapping) or not isinstance(samples, list):
        raise InspectLogError(f"{place.name} is no log of inspect_ai: it names no eval")
    if header.get("version") != 2:
        raise InspectLogError(
            f"{place.name} has format {quote_value(header.get('version'))}, and 2 is read; convert it with inspect_ai"
        )
    found = [_sample(place.name, sample) for sample in samples]
    metadata = spec.get("metadata")
    return InspectLog(
        task=str(spec.get("task", "")),
        model=str(spec.get("model", "")),
        status=str(header.get("status", "")),
        created=str(spec.get("created", "")),
        metadata=metadata if isinstance(metadata, Mapping) else {},
        samples=tuple(sorted(found, key=lambda sample: (sample.epoch, sample.id))),
    )


def _archive(path: Path) -> tuple[Mapping[str, Any], list[Any]]:
    with open_regular(path) as file, zipfile.ZipFile(file) as archive:
        members = {info.filename: info for info in archive.infolist()}  # of one name, the last counts
        if "header.json" not in members:
            raise InspectLogError(f"{path.name} has no header.json: its eval is not over, or it is no log")
        left = _LARGEST_LOG
        samples = []
        header: Mapping[str, Any] = {}
        for name, info in members.items():
            if name == "header.json" or (name.startswith("samples/") and name.endswith(".json")):
                content = _content(path, archive, info, left)
                left -= len(content)
                read = _json(f"{path.name}, {name}", content)
                if name == "header.json":
                    header = read
                else:
                    samples.append(read)
    return header, samples


def _content(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    where = f"{path.name}, {info.filename}"
    try:
        return _bounded(where, archive.open(info), most)
    except NotImplementedError:
        if info.compress_type != _ZSTANDARD or info.compress_size > most:
            raise InspectLogError(f"{where} is packed in a way that is not read") from None
    except RuntimeError as error:  # it wants a password
        raise InspectLogError(f"{where} cannot be read: {error}") from error
    try:
        import zstandard
    except ImportError as error:
        raise InspectLogError(
            f"{where} is packed with Zstandard: pip install 'reyn-jupyter[eval]', or convert the log: inspect log "
            "convert --to json"
        ) from error
    with path.open("rb") as file:
        file.seek(info.header_offset)
        name, extra = struct.unpack("<HH", file.read(_LOCAL_HEADER)[26:30])
        file.seek(name + extra, io.SEEK_CUR)
        packed = file.read(info.compress_size)
    try:
        return _bounded(
            where, zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True), most
        )
    except zstandard.ZstdError as error:
        raise InspectLogError(f"{where} is damaged: {error}") from error


def _bounded(where: str, stream: Any, most: int) -> bytes:
    try:
        return read_at_most(stream, most)
    except BoundExceededError as error:
        raise InspectLogError(
            f"{where}: the log holds more than {_LARGEST_LOG >> 20} MiB; read a smaller one"
        ) from error


def _json(where: str, content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InspectLogError(f"{where} is no JSON: {str(error)[:100]}") from error
    if not isinstance(found, Mapping):
        raise InspectLogError(f"{where} is no object")
    return found


def _sample(file: str, data: Any) -> InspectSample:
    if not isinstance(data, Mapping) or not isinstance(data.get("epoch"), int) or "id" not in data:
        raise InspectLogError(f"{file}: {quote_value(data)} is no sample; it has no id or epoch")
    where = f"{file}, sample {quote_value(data['id'])}"
    try:
        trial = trial_of(data)
    except ValueError as error:
        raise InspectLogError(f"{where} holds a trial that is none: {str(error)[:200]}") from error
    usage = [each for each in _object(data.get("model_usage")).values() if isinstance(each, Mapping)]
    scores = {
        str(name): _value(_object(score).get("value")) for name, score in _object(data.get("scores")).items()
    }
    tokens = _sum(usage, "total_tokens")
    fault, limit = _object(data.get("error")), _object(data.get("limit"))
    target = data.get("target", "")
    return InspectSample(
        id=str(data["id"]),
        epoch=data["epoch"],
        input=_text(data.get("input")),
        target="\n".join(map(str, target)) if isinstance(target, list) else str(target),
        answer=_answer(_object(data.get("output"))),
        scores=scores,
        calls=tuple(_calls(data.get("messages"))),
        error=str(fault["message"]) if "message" in fault else None,
        limit=str(limit["type"]) if "type" in limit else None,
        tokens=None if tokens is None else int(tokens),
        cost=_sum(usage, "total_cost"),
        seconds=_number(data.get("total_time")),
        trial=trial,
    )


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: Any) -> float | None:
    """Return a number that is one; None for NaN and Infinity, which Python writes as JSON."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < _LARGEST_NUMBER else None


def _sum(usage: list[Mapping[str, Any]], name: str) -> float | None:
    found = [_number(each.get(name)) for each in usage]
    known = [each for each in found if each is not None]
    return sum(known) if known and len(known) == len(found) else None


def _value(value: Any) -> Any:
    return {CORRECT: True, INCORRECT: False}.get(value, value) if isinstance(value, str) else value


def _text(content: Any) -> str:
    """Return the text of a message's content, or of a list of messages."""
    if isinstance(content, list):
        parts = (each.get("content", each.get("text", "")) for each in content if isinstance(each, Mapping))
        return "\n".join(text for part in parts if (text := _text(part)))
    return content if isinstance(content, str) else ""


def _answer(output: Mapping[str, Any]) -> str:
    choices = output.get("choices")
    first = _object(choices[0]) if isinstance(choices, list) and choices else {}
    return _text(_object(first.get("message")).get("content")) or _text(output.get("completion"))


def _calls(messages: Any) -> Iterator[str]:
    for message in messages if isinstance(messages, list) else ():
        calls = _object(message).get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            yield str(_object(call).get("function", ""))
