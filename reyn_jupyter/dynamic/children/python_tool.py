"""The process in which a Python tool runs, inside of a sandbox; started by its path, never imported.

Reads one JSON object from standard input (`nonce`, `name`, `code`, `parameters`, `at_home`), writes the nonce as the
first line of its output, runs ``execute(parameters)``, and writes the nonce again and what came of it at the end.
What the tool prints stands between these. The frame tells them apart and guards nothing: the code shares this process.

Invariants: nothing of this program's own is imported before the tool's code but what it needs to read its task, so that
a start is that of Python itself; the process ends with the last line, whatever threads the tool left.
"""

from __future__ import annotations

import json
import os
import sys

DEEPEST = 100  # levels of a result
LARGEST = 16 << 20  # bytes of a result as JSON
_LONGEST_TRACE = 20_000  # characters
_DIGITS = 4_300  # of an integer: more are neither written nor read
# What a system says where a sandbox holds something back; the last one where there is no network but the own loopback.
_REFUSALS = ("EACCES", "EPERM", "EROFS", "ENETUNREACH", "EAFNOSUPPORT", "ECONNREFUSED")


class _NoJsonError(Exception):
    """A result that JSON cannot hold; the message is a sentence."""


def main() -> None:
    out = os.dup(1)  # the tool may close or replace its own
    task = json.loads(sys.stdin.buffer.read())
    frame = task["nonce"].encode()
    if task["at_home"]:
        os.chdir(os.environ.get("TMPDIR") or os.environ["HOME"])
    sys.argv[:] = [""]
    _write(out, frame + b"\n")
    try:
        told = _outcome(task)
    except BaseException as error:  # noqa: BLE001 - its own report fails when memory is used up
        told = {"error": type(error).__name__, "memory": isinstance(error, MemoryError)}
    for stream in (sys.stdout, sys.stderr):
        try:  # noqa: SIM105 - contextlib would be one more import
            stream.flush()
        except BaseException:  # noqa: BLE001, S110 - the tool may have put anything there
            pass
    text = told if isinstance(told, str) else json.dumps(told)
    _silence()
    _write(out, b"\n%b\n%b\n" % (frame, text.encode()))
    os._exit(0)


def _outcome(task: dict[str, object]) -> str | dict[str, object]:
    """Run the tool and return what came of it, as JSON or as what becomes JSON."""
    name = f"<tool {task['name']}>"
    code = str(task["code"])
    try:
        result = _run(code, name, task["parameters"])
    except SystemExit as error:
        return {
            "error": f"The tool ended its own process with exit code {str(error.code)[:100]}; return instead."
        }
    except MemoryError as error:
        return {
            "error": "MemoryError: the tool used more memory than it may",
            "memory": True,
            "traceback": _trace(error, name, code),
        }
    except BaseException as error:  # noqa: BLE001 - whatever the tool raised
        return {"error": _words(error), "refused": _is_refusal(error), "traceback": _trace(error, name, code)}
    try:
        text = _to_json(result)
    except _NoJsonError as error:
        return {"error": str(error)}
    if len(text) > LARGEST:
        return {
            "error": f"The result is larger than {LARGEST >> 20} MiB as JSON. Return less, or write a file."
        }
    return f'{{"value": {text}}}'


def _run(code: str, name: str, parameters: object) -> object:
    module = type(sys)("dynamic_tool")
    sys.modules["dynamic_tool"] = module
    exec(compile(code, name, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the sandbox holds it
    execute = module.__dict__.get("execute")
    if not callable(execute):
        raise TypeError("the code defines no function execute(params)")
    result = execute(parameters)
    return _awaited(result) if hasattr(type(result), "__await__") else result


def _awaited(awaitable: object) -> object:
    async def wait() -> object:
        return await awaitable  # type: ignore[misc]

    if sys.platform == "emscripten":
        from pyodide.ffi import run_sync  # type: ignore[import-not-found]

        return run_sync(wait())
    import asyncio

    return asyncio.run(wait())


def _to_json(value: object) -> str:
    """Return a value as JSON in ASCII. Raises _NoJsonError."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(_plain(value, "result", 0))


def _plain(value: object, path: str, depth: int) -> object:
    """Return a value with what JSON lacks as the outputs of actions have it. Raises _NoJsonError that says where."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, float):
        if value - value == 0:
            return value
        return {"$number": "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, int):
        if value.bit_length() > _DIGITS * 3.32:
            raise _NoJsonError(
                f"{path} is an integer of more than {_DIGITS:,} digits. Return it as text: hex(number)."
            )
        return int(value)
    if depth == DEEPEST:
        raise _NoJsonError(
            f"The result is nested deeper than {DEEPEST} levels, or holds itself: {path[:200]}."
        )
    if isinstance(value, list | tuple):
        return [_plain(each, f"{path}[{at}]", depth + 1) for at, each in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if key is not None and not isinstance(key, str | int | float):
                raise _NoJsonError(
                    f"{path} has a key of type {type(key).__name__}, and JSON has text alone. Use str(key)."
                )
        return {key: _plain(each, f"{path}[{str(key)[:40]!r}]", depth + 1) for key, each in value.items()}
    raise _NoJsonError(
        f"{path[:200]} is of type {type(value).__name__}, which JSON does not have. Return dictionaries, lists, text, "
        "numbers, true, false or None."
    )


def _words(error: BaseException) -> str:
    try:
        message = str(error)
    except BaseException:  # noqa: BLE001 - the tool's own class
        message = ""
    return f"{type(error).__name__}: {message}"[:2_000] if message else type(error).__name__


def _is_refusal(error: BaseException) -> bool:
    """Return whether the sandbox may have refused what the tool tried."""
    import errno

    numbers = {getattr(errno, each, None) for each in _REFUSALS}
    seen: BaseException | None = error
    for _ in range(10):
        for each in (seen, getattr(seen, "reason", None)):
            if isinstance(each, OSError) and (each.errno in numbers or type(each).__name__ == "gaierror"):
                return True
        seen = None if seen is None else seen.__cause__ or seen.__context__
    return False


def _trace(error: BaseException, name: str, code: str) -> str:
    """Return the traceback from the tool's own lines on."""
    try:
        import linecache
        import traceback

        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != name:
            trace = trace.tb_next
        lines = traceback.format_exception(type(error), error, trace, chain=trace is not None)
        return "".join(lines)[-_LONGEST_TRACE:]
    except BaseException:  # noqa: BLE001 - no memory is left, or the error's class is the tool's own
        return ""


def _silence() -> None:
    """Lead what threads of the tool still print nowhere, so that the last line stays whole."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    except OSError:
        pass


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


if __name__ == "__main__":
    main()
