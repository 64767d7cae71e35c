"""What Python of a tool does is found at its line, however it is written, and ordinary code raises nothing."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from reyn_jupyter.dynamic.analysis.python_calls import PythonCalls
from reyn_jupyter.dynamic.analysis.safety import (
    SafetyAnalysis,
    Severity,
    ToolCodeError,
    analyze_safety,
    critical_issues,
)

EXECUTE = "\ndef execute(params): return params\n"


def analysis(code: str, **options: object) -> SafetyAnalysis:
    return analyze_safety(code if "execute(" in code else code + EXECUTE, **options)  # type: ignore[arg-type]


def kinds(code: str) -> set[str]:
    return {each.type for each in analysis(code).issues}


def test_a_deleted_folder_blocks_at_its_line_and_says_what_to_do() -> None:
    made = analysis("import shutil\ndef execute(params):\n    shutil.rmtree(params['d'])")
    (issue,) = made.issues
    assert (issue.severity, issue.type, issue.line) == (Severity.CRITICAL, "delete_files", 3)
    assert (
        issue.snippet == "shutil.rmtree(params['d'])"
        and "shutil.rmtree" in issue.description
        and issue.suggestion
    )
    assert (made.score, made.is_safe, made.confidence) == (0.5, False, 0.5)
    assert made.blocked_operations == ("delete_files",) and made.recommendations == (issue.suggestion,)
    assert made.to_dict()["issues"][0]["severity"] == "critical"


def test_a_file_that_is_written_costs_a_quarter_and_one_that_is_read_nothing() -> None:
    written = analysis("def execute(params):\n    return open(params['p'], 'w').write('x')")
    assert (written.score, written.is_safe, written.issues[0].line) == (0.75, True, 2)
    assert written.allowed_operations == ("write_files",) and written.confidence == 0.7
    read = analysis("def execute(params):\n    return open(params['p']).read()")
    assert (read.score, read.issues, read.confidence, read.is_safe) == (1.0, (), 0.9, True)


def test_the_score_counts_a_kind_at_a_line_once_and_stays_between_0_and_1() -> None:
    line = "open('a', 'w'); open('b', 'w')"
    assert analysis(line).score == 0.75
    assert analysis(f"{line}\n{line}").score == 0.5
    assert analysis("import os\nos.environ['A']; os.mkdir('a')").score == 0.8
    assert analysis("\n".join(["eval('1')"] * 9)).score == 0
    assert analysis("open('a', 'w')", strict=True).score == 0.625
    assert not analysis("open('a', 'w')", strict=True).is_safe
    assert analysis("import os\nos.mkdir('a')", strict=True).is_safe


def test_what_the_person_granted_stays_listed_and_does_not_block() -> None:
    code = "import os\ndef execute(params):\n    os.remove('a'); eval('1')"
    for granted in (["delete_files", "dynamic_code"], ["allow:delete_files", "allow:dynamic_code"]):
        made = analysis(code, granted=granted)
        assert made.blocked_operations == () and {each.type for each in made.issues} == {
            "delete_files",
            "dynamic_code",
        }
        assert made.allowed_operations == ("delete_files", "dynamic_code") and made.recommendations == ()
        assert critical_issues(code, granted=granted) == ()
    half = analysis(code, granted=["allow:delete_files"])
    assert half.blocked_operations == ("dynamic_code",) and not half.is_safe
    assert [each.type for each in critical_issues(code, granted=["delete_files"])] == ["dynamic_code"]
    assert critical_issues("def execute(params): open('a', 'w')") == ()
    asked = analysis("import urllib.request\nurllib.request.urlopen('http://a')")
    assert (
        asked.recommendations
        and not analysis(
            "import urllib.request\nurllib.request.urlopen('http://a')", granted=["network:a"]
        ).recommendations
    )


SEEN = {
    "delete_files": [
        "import os\nos.remove('a')",
        "from os import unlink as u\nu('a')",
        "import shutil as s\ns.rmtree('a')",
        "from pathlib import Path as P\nP('a').unlink()",
        "import pathlib\n(pathlib.Path('a') / 'b').rmdir()",
        "from pathlib import Path\nfor p in Path('a').glob('*'):\n    p.unlink()",
        "import os\nlist(map(os.remove, ['a']))",
        "from pathlib import Path\ndef clear(p: Path): p.unlink()",
        "import posix\nposix.unlink('a')",
        "from pathlib import Path\nPath.unlink(Path('a'))",
        "import pathlib\ndef f(p):\n    p.unlink()",
    ],
    "processes": [
        "from shutil import os\nos.system('a')",
        "from random import _os as x\nx.system('a')",
        "import os\nmatch os:\n    case m:\n        m.system('a')",
        "import os\nmatch [os]:\n    case [m]:\n        m.system('a')",
        "import os\ndef give():\n    yield os\nfor m in give():\n    m.system('a')",
        "import os, contextlib as c\n@c.contextmanager\ndef lend(): yield os\nwith lend() as m: m.system('a')",
        "from os import system as s\ns('a')",
        "import os as o\no.popen('a')",
        "__import__('subprocess').run(['a'])",
        "import os\ngetattr(os, 'sys' + 'tem')('a')",
        "import os\nvars(os)['system']('a')",
        "import sys\nsys.modules['os'].system('a')",
        "import os\nos.__dict__['sys' 'tem']('a')",
        "import os\nf = os.system\nf('a')",
        "import os\n(m := os).system('a')",
        "import os\nclass A:\n    m = os\nA.m.system('a')",
        "import os\ndef g(m): m.system('a')\ng(os)",
        "import os\nx = {'a': os}\nx['a'].system('a')",
        "import os\na, b = os, 1\na.system('a')",
        "import shutil\nshutil.os.system('a')",
        "from os import *\nsystem('a')",
        "import os, functools\nfunctools.reduce(getattr, ['system'], os)('a')",
        "import os, operator\noperator.attrgetter('system')(os)('a')",
        "import os, operator\noperator.methodcaller('system', 'a')(os)",
        "import os\ngetattr(os, bytes([115, 121, 115, 116, 101, 109]).decode())('a')",
        "import os\ngetattr(os, ''.join(chr(c) for c in [115, 121, 115, 116, 101, 109]))('a')",
        "import os, codecs\ngetattr(os, codecs.decode('flfgrz', 'rot13'))('a')",
        "import os\ngetattr(os, 'metsys'[::-1])('a')",
        "import os, base64\ngetattr(os, base64.b64decode('c3lzdGVt').decode())('a')",
        "import os\ngetattr(os, f\"{'sys'}tem\")('a')",
        "import os\ns = 'sys'\ns += 'tem'\ngetattr(os, s)('a')",
        "import os\ngetattr(os, '%s%s' % ('sys', 'tem'))('a')",
        "import os\ngetattr(os, '_'.join(['sys', 'tem']).replace('_', ''))('a')",
        "import os\nos.__getattribute__('system')('a')",
        "from importlib import import_module as i\ni('os').system('a')",
        "import asyncio\nasyncio.create_subprocess_shell('a')",
        "import os\n(lambda f: f('a'))(os.system)",
        "import os\n@os.system\ndef f(): ...",
        "import subprocess\nclass A(subprocess.Popen): ...",
        "import os\nos.kill(1, 9)",
        "import multiprocessing\nmultiprocessing.Process(target=print)",
        "import os\nself.m = os\nself.m.fork()",
        "def late(): return later().system('a')\ndef later(): return m\nimport os\nm = os",
        "import subprocess",
        "try:\n    import os\nexcept ImportError as os:\n    pass\nos.system('a')",
        "if 0:\n    pass\nelse:\n    import os as x\nx.system('a')",
    ],
    "dynamic_code": [
        "print.__self__.eval('1')",
        "eval('1')",
        "exec('1')",
        "compile('1', '', 'eval')",
        "__import__('json')",
        "f = eval; f('1')",
        "getattr(__builtins__, 'ev' + 'al')('1')",
        "globals()['__builtins__'].eval('1')",
        "__builtins__['exec']('1')",
        "import builtins as b\nb.eval('1')",
        "breakpoint()",
        "ｅval('1')",
        "@eval\nclass A: ...",
        "class A(metaclass=type(eval)): ...",
        "type('A', (), {'f': exec})",
        "max([eval], key=len)('1')",
        "import importlib\nimportlib.import_module('json')",
        "[eval for eval in []]\neval('1')",
        "if 0:\n    eval = len\neval('1')",
        "eval('1')\neval = len",
        "import types\ntypes.FunctionType((lambda: 1).__code__, {})",
        "import runpy\nrunpy.run_path('a')",
        "import timeit\ntimeit.timeit('1')",
        "import code\ncode.InteractiveInterpreter().runsource('1')",
        "def f(x=eval): x('1')",
        "match eval:\n    case f: f('1')",
        "lambda: eval('1')",
        "def f():\n    def g():\n        return eval\n    return g\nf()()('1')",
        "for f in (eval,): f('1')",
        "with eval as f: f('1')",
    ],
    "native_code": [
        "import ctypes\nctypes.CDLL(None)",
        "from ctypes import CDLL as c\nc(None)",
        "import ctypes",
        "import _ctypes",
    ],
    "deserialization": [
        "import pickle\npickle.loads(b'')",
        "from pickle import Unpickler as u\nu(1)",
        "import marshal\nmarshal.loads(b'')",
        "import shelve\nshelve.open('a')",
        "import yaml\nyaml.load('a')",
        "import numpy as np\nnp.load('a', allow_pickle=True)",
    ],
    "write_files": [
        "open('a', 'w')",
        "open('a', mode='a')",
        "open('a', 'r+')",
        "open('a', 'xb')",
        "import io\nio.open('a', 'w')",
        "open('a', m)",
        "o = open\no('a', 'w')",
        "open(*('a', 'w'))",
        "open('a', **{'mode': 'w'})",
        "from pathlib import Path\nPath('a').write_text('b')",
        "from pathlib import Path\nPath('a').open('w')",
        "import shutil\nshutil.copy('a', 'b')",
        "import shutil\nshutil.move('a', 'b')",
        "import os\nos.open('a', os.O_WRONLY)",
        "import os\nos.rename('a', 'b')",
        "import gzip\ngzip.open('a', 'wb')",
        "import sqlite3\nsqlite3.connect('a')",
        "m = 'w' if a else 'r'\nopen('a', m)",
        "import pandas\nframe.to_csv('a')",
    ],
    "network": [
        "import socket\nsocket.socket()",
        "import urllib.request as r\nr.urlopen('a')",
        "from requests import get\nget('a')",
        "import http.client\nhttp.client.HTTPConnection('a')",
        "import requests",
        "import asyncio\nasyncio.open_connection('a', 1)",
        "import pandas as pd\npd.read_csv('https://a/b.csv')",
    ],
    "introspection": [
        "().__class__.__base__.__subclasses__()",
        "f.__globals__['a']",
        "__builtins__",
        "globals()['__builtins__']",
        "getattr(f, '__glo' + 'bals__')",
        "'{0.__globals__}'.format(f)",
        "import sys\nsys._getframe()",
        "import os\ngetattr(os, params)",
        "import gc\ngc.get_objects()",
        "import os\ns = ''\nfor c in name:\n    s += c\ngetattr(os, s)('a')",
        "__loader__",
        "globals()[name]",
    ],
    "credentials": [
        "password = 'hunter2-horse'",
        "f(api_key='abc-123-def')",
        "x = {'secret': 'abc-123-def'}",
        "self.db_password = 'abc-123'",
        f"x = 'ghp_{'a1' * 18}'",
        "def f(password='abc-123'): ...",
        "client['api_key'] = 'abc-123-def'",
    ],
    "endless_loop": [
        "while True: pass",
        "while 1:\n    if 0:\n        break",
        "import itertools\nfor x in itertools.count(): pass",
        "n = 1\nwhile n: pass",
        "while not False:\n    for x in y:\n        break",
        "while True:\n    def f(): return 1",
        "while 1 == 1:\n    try:\n        f()\n    except Exception:\n        pass",
    ],
    "make_folders": [
        "import os\nos.makedirs('a')",
        "from pathlib import Path\nPath('a').mkdir()",
        "import tempfile\ntempfile.mkdtemp()",
    ],
    "environment": [
        "import os\nos.environ['A']",
        "from os import environ as e\ne.get('A')",
        "from os import getenv\ngetenv('A')",
    ],
    "regex_backtracking": [
        "import re\nre.match('(a+)+$', x)",
        "import re\nP = r'(.*)*'\nre.compile(P)",
        "from re import sub as s\ns(r'(\\d+|x)+', '', x)",
    ],
    "huge_work": [
        "range(10**9)",
        "import time\ntime.sleep(3600)",
        "x = [0] * 10**10",
        "x = 9**9**9",
        "x = 'a' * 1_000_000_000",
        "bytearray(10**9)",
        "1 << 10**10",
        "from asyncio import sleep\nasync def f(): await sleep(60 * 60)",
    ],
}


@pytest.mark.parametrize(("kind", "code"), [(kind, code) for kind, codes in SEEN.items() for code in codes])
def test_each_kind_is_seen_however_it_is_written(kind: str, code: str) -> None:
    assert kind in kinds(code)


@pytest.mark.parametrize(
    "code",
    [
        "# eval('1')\nx = 'eval(1); os.system()'",
        'def f():\n    """os.remove(x) deletes the token, password=abc123"""',
        "i = 0\ni += 1",
        "import re\nre.compile('a').match('b')",
        "def f(eval): return eval('1')",
        "def compile(x): return x\ncompile(1)",
        "eval = len\nx = eval([1])",
        "import platform\nplatform.system()",
        "import os\nos.path.join('a', 'b')\nos.listdir('.')",
        "x = []\nx.remove(1)\nx.copy()\nx.pop()",
        "class A:\n    def system(self): ...\nA().system()",
        "token = 'NUMBER'\npassword = ''",
        "while True:\n    if f():\n        break",
        "while True:\n    x = f()\n    if not x:\n        return_ = 1\n        raise ValueError",
        "def f():\n    while True:\n        yield 1",
        "import itertools\nfor x in itertools.count():\n    if x > 3:\n        break",
        "import re\nre.match(r'(\\d+,)*\\d+', x)",
        "range(1000)",
        "import time\ntime.sleep(1)",
        "x = [0] * 1000",
        "from urllib.parse import urlparse\nurlparse('a')",
        "import pickle\npickle.dumps(1)",
        "import importlib.metadata\nimportlib.metadata.version('a')",
        "getattr(x, 'name')",
        "getattr(x, name)",
        "x.__class__.__name__",
        "'{} {name}'.format(1, name=2)",
        "import json\njson.loads('{}')",
        "from pathlib import Path\nPath('a').read_text()",
        "import os\ndef f(system): return system('a')",
        "n = 3\nwhile n:\n    n -= 1",
        "open('a', 'rb')",
        "import collections\ncollections.namedtuple('A', 'b')",
        "a = [1, 2]\nb = {'open': 1}\nb.get('open')",
        "import yaml\nyaml.load('a', Loader=yaml.SafeLoader)",
        "import sqlite3\nsqlite3.connect(':memory:')",
        "import os\nf = os.open('a', os.O_RDONLY)",
        "x = y = None\nwhile (x := f()) is not None: pass",
    ],
)
def test_ordinary_code_comments_and_texts_raise_nothing(code: str) -> None:
    assert analysis(code).issues == ()


def test_modules_of_algorithms_in_the_standard_library_raise_nothing() -> None:
    folder = Path(sysconfig.get_path("stdlib"))
    names = (
        "statistics textwrap heapq bisect fractions colorsys difflib graphlib string calendar numbers operator copy "
        "csv json/decoder json/encoder html/parser shlex tokenize pprint reprlib quopri sched queue fnmatch argparse"
    )
    for name in names.split():
        code = (folder / f"{name}.py").read_text(encoding="utf-8")
        if len(code.encode()) > 60_000:  # more than a tool may have
            code = code[: code.rindex("\ndef ", 0, 60_000)]
        assert analysis(code + EXECUTE).issues == (), name


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("def execute(params):\n    return (", 2, "no Python"),
        ("x = 1\ndef run(params): ...", 1, "no function execute"),
        ("x = 1\ndef execute(): ...", 2, "one argument"),
        ("def execute(a, b): ...", 1, "one argument"),
        ("def execute(params, *, b): ...", 1, "one argument"),
        ("def execute(params):\n    yield 1", 1, "yields"),
        ("class A:\n    def execute(self, params): ...", 1, "no function execute"),
        ("def execute(params): ...\n%matplotlib inline", 2, "magic"),
        ("def execute(params): ...\n!ls", 2, "magic"),
        ("files = !ls\ndef execute(params): ...", 1, "magic"),
        ("def execute(params):\n    get_ipython().system('ls')", 2, "notebook"),
        ("return 1\ndef execute(params): ...", 1, "outside function"),
        ("x = '\0'" + EXECUTE, 1, "null"),
        ("x = '\ud800'" + EXECUTE, None, "Python"),
    ],
)
def test_what_is_no_code_of_a_tool_is_refused_with_its_line(code: str, line: int | None, words: str) -> None:
    for look in (analyze_safety, critical_issues):
        with pytest.raises(ToolCodeError, match=words) as raised:
            look(code)
        assert raised.value.line == line


@pytest.mark.parametrize(
    "code",
    [
        "async def execute(params): ...",
        "execute = lambda params: params",
        "def execute(params, extra=None): ...",
        "def execute(*args): ...",
        "if True:\n    def execute(params): ...",
        "def execute(params, /): ...",
        "def execute(p, *, deep=False): ...",
    ],
)
def test_every_way_to_define_execute_is_taken(code: str) -> None:
    assert analyze_safety(code).issues == ()


def test_too_much_code_is_refused_before_it_is_read() -> None:
    for code in ("x = 1\n" * 250_000, "x = '" + "é" * 40_000 + "'" + EXECUTE):
        with pytest.raises(ToolCodeError, match="64 KiB"):
            analyze_safety(code)


HOSTILE = {
    "minus signs": "x = " + "-" * 60_000 + "1",
    "brackets": "(" * 60_000,
    "sums": "x = " + "+".join(["'a'"] * 15_000),
    "attributes": "x" + ".a" * 30_000,
    "calls": "f" + "()" * 30_000,
    "elif": "if x: pass\n" + "elif y: pass\n" * 3_000,
    "towers": "x = 9" + "**9" * 800,
    "lambdas": "x = " + "lambda:" * 900 + "1",
    "digits": "x = " + "9" * 50_000,
    "lists in lists": "a0 = [1, 1]\n" + "\n".join(f"a{i + 1} = [a{i}, a{i}]" for i in range(2_500)),
    "texts that double": "s = 'a'\n" + "s = s + s\n" * 6_000,
    "texts that grow": "s = 'a'\n" + "s += s\n" * 8_000,
    "aliases backwards": "\n".join(f"a{i} = a{i + 1}" for i in range(4_000)),
    "loops": "while True: pass\n" * 3_500,
    "formats": "x = '" + "{0:9999999}" * 500 + "'.format(1)",
    "widths": "x = '%999999999s' % 'a'\ny = 'a'.zfill(10**9).ljust(10**9)",
    "patterns": "import re\nre.compile('" + "(a+" * 5_000 + "')",
    "arguments": "def f(a, b, c): return f(b, c, a)\n" + "f(eval, open, g)\n" * 3_000,
    "keys": "x = '" + "eyJ" * 18_000 + "'",
    "numbers": "x = 2 ** 9999999999\ny = 1 << 99999999999\nz = 'a' * 10 ** 4000",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_code_ends_in_an_answer(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0
    read_call = PythonCalls._result

    def counted(*args: object) -> object:
        nonlocal steps
        steps += 1
        return read_call(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(PythonCalls, "_result", counted)
    try:
        analyze_safety(HOSTILE[name] + EXECUTE)
    except ToolCodeError as error:
        assert str(error)
    assert steps < 200_000  # linear in the code, where a quadratic reading would take billions
