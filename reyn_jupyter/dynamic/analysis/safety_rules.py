"""What the analysis of a tool's code looks for: kinds of findings, and the names behind which they stand.

Invariant: names here are resolved ones, as `os.remove` or `pathlib.Path.unlink`, whatever the code called them; nothing
here is looked for in a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

MOST_CODE = 64 << 10  # bytes of a tool's code


class Severity(StrEnum):
    """How much a finding weighs; a critical one blocks the tool until a person grants its operation."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


PENALTIES = {Severity.CRITICAL: 0.5, Severity.HIGH: 0.25, Severity.MEDIUM: 0.1, Severity.LOW: 0.05}


class ToolCodeError(ValueError):
    """A text that is no code of a tool: it does not parse, defines no `execute`, or belongs into a notebook.

    Attributes:
        line: of the code, from 1; None where the whole is meant.

    Example:
        >>> ToolCodeError("there is no function execute", 1).line
        1
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


class Finding(NamedTuple):
    """What the analysis saw at a line: the name of a kind, and what the code does there."""

    kind: str
    line: int
    what: str


class FindingKind(NamedTuple):
    """A kind of finding.

    Attributes:
        severity: how much it weighs.
        effect: what it means, as the end of a sentence.
        suggestion: what to do instead.
        is_operation: whether it is something that the tool does, not a weakness of its code.
    """

    severity: Severity
    effect: str
    suggestion: str
    is_operation: bool = True


KINDS: dict[str, FindingKind] = {
    "delete_files": FindingKind(
        Severity.CRITICAL,
        "which deletes files",
        'Return the names of what is to go, and let an action delete it; or let the person grant "allow:delete_files".',
    ),
    "processes": FindingKind(
        Severity.CRITICAL,
        "which starts or signals processes",
        'Use exec__run for commands, or a library; or let the person grant "allow:processes".',
    ),
    "dynamic_code": FindingKind(
        Severity.CRITICAL,
        "which runs code that is made while it runs",
        'Write the code out, import by name, or parse data with json; or let the person grant "allow:dynamic_code".',
    ),
    "native_code": FindingKind(
        Severity.CRITICAL,
        "which runs native code",
        'Use a library that does it; or let the person grant "allow:native_code".',
    ),
    "deserialization": FindingKind(
        Severity.CRITICAL,
        "which runs whatever the data say while it loads them",
        'Use json; or let the person grant "allow:deserialization".',
    ),
    "write_files": FindingKind(
        Severity.HIGH,
        "which writes files",
        'Return the content as the result; or ask for permissions=["write:FOLDER/"].',
    ),
    "network": FindingKind(
        Severity.HIGH,
        "which reaches the network",
        'Take the data as a parameter; or ask for permissions=["network:HOST"].',
    ),
    "introspection": FindingKind(
        Severity.HIGH,
        "which reaches into the interpreter",
        "Use names that are written out.",
    ),
    "credentials": FindingKind(
        Severity.HIGH,
        "which is a credential",
        "Take it out, and have it withdrawn: a tool's code is stored and shown as it is.",
        is_operation=False,
    ),
    "endless_loop": FindingKind(
        Severity.HIGH,
        "which never ends by itself",
        "Add a bound, or a break.",
        is_operation=False,
    ),
    "make_folders": FindingKind(
        Severity.MEDIUM,
        "which makes folders",
        'Return the content as the result; or ask for permissions=["write:FOLDER/"].',
    ),
    "environment": FindingKind(
        Severity.MEDIUM,
        "which reads or changes the environment",
        "Take what it needs as a parameter: the sandbox's environment has none of the person's variables.",
    ),
    "regex_backtracking": FindingKind(
        Severity.MEDIUM,
        "which may take forever on a short text",
        "Let only one of the nested quantifiers repeat.",
        is_operation=False,
    ),
    "huge_work": FindingKind(
        Severity.MEDIUM,
        "which takes very much time or memory",
        "Bound it, or take the number as a parameter with a maximum.",
        is_operation=False,
    ),
}

HUGE_COUNT = 10_000_000  # of a range
HUGE_ITEMS = 100_000_000  # of an allocation
HUGE_EXPONENT = 1_000_000
LONG_SLEEP = 30.0  # seconds: the time that a run has, if nothing else is said


def _names(**kinds: str) -> dict[str, str]:
    return {name: kind for kind, names in kinds.items() for name in _spelled_out(names)}


def _listed(names: str) -> list[str]:
    return names.split()


def _spelled_out(names: str) -> Iterator[str]:
    """Give the names of a text of `module: name name …` lines."""
    for line in names.strip().splitlines():
        module, _, members = line.strip().partition(": ")
        yield from (f"{module}.{member}" for member in members.split())


# A name here is found wherever it is mentioned, called or not: `map(os.remove, names)` deletes as well.
PYTHON_NAMES = _names(
    delete_files="""
        os: remove unlink rmdir removedirs
        shutil: rmtree
        pathlib.Path: unlink rmdir
        send2trash: send2trash""",
    processes="""
        os: system popen popen2 popen3 popen4 execl execle execlp execlpe execv execve execvp execvpe fork forkpty fork1
        os: spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe posix_spawn posix_spawnp startfile
        os: kill killpg pidfd_open setuid setgid setsid ptrace unshare
        pty: spawn fork
        signal: pthread_kill pidfd_send_signal
        concurrent.futures: ProcessPoolExecutor
        concurrent.futures.process: ProcessPoolExecutor
        asyncio: create_subprocess_exec create_subprocess_shell subprocess
        webbrowser: open open_new open_new_tab get
        psutil: Popen""",
    dynamic_code="""
        builtins: eval exec compile __import__ breakpoint execfile reload
        code: interact InteractiveConsole InteractiveInterpreter compile_command
        codeop: compile_command Compile CommandCompiler
        runpy: run_path run_module
        pdb: set_trace run runeval runcall
        bdb: Bdb
        cProfile: run runctx
        profile: run runctx
        trace: Trace
        zipimport: zipimporter
        pkgutil: resolve_name find_loader get_loader
        pydoc: locate safeimport importfile
        site: addsitedir main
        test.support.script_helper: assert_python_ok
        pandas: eval
        numexpr: evaluate
        sympy: sympify parse_expr
        sympy.parsing.sympy_parser: parse_expr
        logging.config: dictConfig fileConfig listen
        sys: breakpointhook addaudithook""",
    native_code="""
        numpy: ctypeslib
        sys: setdlopenflags
        readline: read_init_file""",
    deserialization="""
        pickle: load loads Unpickler _load _loads _Unpickler
        _pickle: load loads Unpickler
        cPickle: load loads Unpickler
        marshal: load loads
        shelve: open Shelf DbfilenameShelf
        dill: load loads
        cloudpickle: load loads
        joblib: load
        torch: load
        pandas: read_pickle
        yaml: unsafe_load unsafe_load_all full_load UnsafeLoader
        jsonpickle: decode
        multiprocessing.connection: Client Listener
        multiprocessing.reduction: ForkingPickler""",
    write_files="""
        os: rename renames replace truncate ftruncate link symlink mkfifo mknod chmod lchmod fchmod chown lchown fchown
        os: utime setxattr removexattr
        shutil: copy copy2 copyfile copyfileobj copytree copymode copystat move make_archive unpack_archive chown
        pathlib.Path: write_text write_bytes rename replace touch symlink_to hardlink_to link_to chmod lchmod copy move
        tempfile: NamedTemporaryFile TemporaryFile SpooledTemporaryFile mkstemp
        zipfile.ZipFile: extract extractall
        tarfile.open: extract extractall
        tarfile.TarFile: extract extractall
        logging: FileHandler
        logging.handlers: RotatingFileHandler TimedRotatingFileHandler WatchedFileHandler
        numpy: save savez savez_compressed savetxt
        dbm: open""",
    network="""
        asyncio: open_connection open_unix_connection start_server start_unix_server
        logging.handlers: SocketHandler DatagramHandler HTTPHandler SMTPHandler SysLogHandler
        sys: remote_exec""",
    introspection="""
        sys: _getframe _current_frames settrace setprofile _current_exceptions modules meta_path path_hooks
        inspect: currentframe stack trace getouterframes getinnerframes getclosurevars
        gc: get_objects get_referrers get_referents
        threading: settrace setprofile""",
    make_folders="""
        os: mkdir makedirs
        pathlib.Path: mkdir
        tempfile: mkdtemp TemporaryDirectory""",
    environment="""
        os: environ environb getenv getenvb putenv unsetenv""",
)

# Whatever is in these modules is of one kind.
PYTHON_MODULES: dict[str, str] = {
    module: kind
    for kind, modules in {
        "processes": "subprocess _posixsubprocess multiprocessing _multiprocessing pexpect plumbum sh fabric invoke",
        "native_code": "ctypes _ctypes cffi _cffi_backend cython pyximport",
        "dynamic_code": "importlib imp _frozen_importlib _frozen_importlib_external _imp _interpreters "
        "_xxsubinterpreters interpreters",
        "network": "socket _socket socketserver http.client http.server urllib.request urllib3 requests httpx "
        "aiohttp ftplib smtplib poplib imaplib nntplib telnetlib xmlrpc.client xmlrpc.server websockets websocket "
        "paramiko pycurl grpc boto3 botocore psycopg psycopg2 pymysql redis pymongo wsgiref.simple_server dns",
    }.items()
    for module in modules.split()
}
_HARMLESS = frozenset({"importlib.metadata", "importlib.resources", "importlib.abc", "http.client.responses"})

# Attributes that are found whatever they are attributes of.
PYTHON_ATTRIBUTES: dict[str, str] = {
    **dict.fromkeys(
        _listed(
            "__subclasses__ __globals__ __builtins__ __code__ __closure__ __loader__ __getattribute__ "
            "f_globals f_builtins f_locals f_back f_code gi_frame gi_code cr_frame cr_code ag_frame ag_code "
            "tb_frame func_globals __self_class__ "
        ),
        "introspection",
    ),
    **dict.fromkeys(
        _listed("load_module exec_module create_module run_line_magic run_cell_magic run_cell"), "dynamic_code"
    ),
    **dict.fromkeys(["subprocess_exec", "subprocess_shell"], "processes"),
}  # fmt: skip

# Names that hardly anything else has: found on a receiver that is not known, where the code imports a module
# that has them.
DISTINCTIVE: dict[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        _listed(
            "system popen execl execle execlp execlpe execv execve execvp execvpe fork forkpty spawnl spawnle "
            "spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe posix_spawn posix_spawnp killpg "
        ),
        ("processes", ("os", "posix")),
    ),
    **dict.fromkeys(_listed("check_output check_call getoutput getstatusoutput Popen"), ("processes", ("subprocess",))),
    **dict.fromkeys(["rmdir", "removedirs"], ("delete_files", ("os", "posix", "pathlib"))),
    "unlink": ("delete_files", ("os", "posix", "pathlib")), "rmtree": ("delete_files", ("shutil",)),
    **dict.fromkeys(["write_text", "write_bytes"], ("write_files", ("pathlib",))), **dict.fromkeys(
        _listed(
            "to_csv to_excel to_parquet to_pickle to_feather to_hdf write_csv write_parquet write_excel "
            "sink_csv "
        ),
        ("write_files", ("pandas", "polars")),
    ),
    "import_module": ("dynamic_code", ("importlib",)),
    "urlopen": ("network", ("urllib",)),
}  # fmt: skip

# Modules of which an attribute must be written out: one that is made while the code runs could be any of the
# above.
SENSITIVE_MODULES = frozenset({
    "builtins", "os", "shutil", "sys", "subprocess", "importlib", "ctypes", "pickle", "marshal", "socket",
    "pathlib.Path", "types", "io", "signal", "pty", "runpy", "code", "asyncio", "multiprocessing",
})  # fmt: skip

# What stands for another name. Modules that import these as an attribute give them away, as shutil.os does.
PYTHON_ALIASES: dict[str, str] = {
    "posix": "os", "nt": "os", "io.open": "builtins.open", "_io.open": "builtins.open", "_io": "io",
    "pathlib.PosixPath": "pathlib.Path", "pathlib.WindowsPath": "pathlib.Path",
    "pathlib._local.Path": "pathlib.Path", "__builtin__": "builtins",
    "asyncio.subprocess.create_subprocess_exec": "asyncio.create_subprocess_exec",
    "io.FileIO": "builtins.open", "anyio.Path": "pathlib.Path", "tokenize.open": "builtins.open_to_read",
}  # fmt: skip
LENT_MODULES = frozenset({
    "os", "sys", "subprocess", "builtins", "shutil", "io", "socket", "importlib", "posix", "nt", "ctypes",
    "pickle", "marshal", "types", "urllib",
})  # fmt: skip


@lru_cache(8192)
def python_kind(path: str) -> str | None:
    """Return the kind of what a resolved name stands for, or None where it is harmless.

    >>> python_kind("os.remove"), python_kind("subprocess.run"), python_kind("os.path.join")
    ('delete_files', 'processes', None)
    """
    if path.endswith("()"):  # what a call gave; the call was mentioned itself
        return None
    kind = PYTHON_NAMES.get(path.replace("()", ""))
    if kind is not None or "()" in path:
        return kind
    parts = path.split(".")
    for length in range(1, len(parts)):
        prefix = ".".join(parts[:length])
        if (kind := PYTHON_MODULES.get(prefix)) is not None:
            harmless = any(path == each or path.startswith(f"{each}.") for each in _HARMLESS)
            return None if harmless else kind
    return None


TYPESCRIPT_NAMES = _names(
    delete_files="""
        Deno: remove removeSync
        node:fs: rm rmSync unlink unlinkSync rmdir rmdirSync
        node:fs.promises: rm unlink rmdir""",
    processes="""
        Deno: Command run kill spawn spawnChild
        node:process: kill
        process: kill""",
    dynamic_code="""
        globalThis: eval Function Worker SharedWorker require importScripts
        node:module: createRequire
        process: binding dlopen""",
    native_code="""
        Deno: dlopen UnsafePointer UnsafePointerView UnsafeFnPointer UnsafeCallback
        WebAssembly: instantiate instantiateStreaming compile compileStreaming Module Instance""",
    deserialization="""
        node:v8: deserialize Deserializer""",
    write_files="""
        Deno: writeFile writeFileSync writeTextFile writeTextFileSync create createSync copyFile copyFileSync rename
        Deno: renameSync truncate truncateSync symlink symlinkSync link linkSync chmod chmodSync chown chownSync
        Deno: makeTempFile makeTempFileSync openKv utime utimeSync
        node:fs: writeFile writeFileSync appendFile appendFileSync createWriteStream copyFile copyFileSync cp cpSync
        node:fs: rename renameSync truncate truncateSync symlink symlinkSync link linkSync chmod chmodSync
        node:fs.promises: writeFile appendFile copyFile cp rename truncate symlink link chmod
        globalThis: localStorage""",
    network="""
        Deno: connect connectTls connectQuic listen listenTls listenDatagram serve startTls resolveDns createHttpClient
        Deno: upgradeWebSocket
        globalThis: fetch WebSocket WebSocketStream EventSource XMLHttpRequest""",
    introspection="""
        Deno: internal core permissions
        Object: setPrototypeOf
        Reflect: setPrototypeOf
        Error: prepareStackTrace
        process: mainModule""",
    make_folders="""
        Deno: mkdir mkdirSync makeTempDir makeTempDirSync
        node:fs: mkdir mkdirSync mkdtemp mkdtempSync
        node:fs.promises: mkdir mkdtemp""",
    environment="""
        Deno: env
        process: env
        node:process: env""",
)
TYPESCRIPT_MODULES: dict[str, str] = {
    "node:child_process": "processes", "node:cluster": "processes", "node:vm": "dynamic_code",
    "node:worker_threads": "dynamic_code", "node:repl": "dynamic_code", "node:net": "network",
    "node:http": "network", "node:https": "network", "node:http2": "network", "node:dgram": "network",
    "node:tls": "network", "node:dns": "network", "node:inspector": "introspection", "node:ffi": "native_code",
    "node:sqlite": "write_files",
}  # fmt: skip
TYPESCRIPT_PROPERTIES: dict[str, str] = {"__proto__": "introspection", "__defineGetter__": "introspection"}
TYPESCRIPT_SENSITIVE = frozenset(
    {"globalThis", "Deno", "node:fs", "node:child_process", "node:process", "process"}
)
