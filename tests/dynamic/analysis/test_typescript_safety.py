"""What TypeScript of a tool does is found as what Python does."""

from __future__ import annotations

import pytest

from reyn_jupyter.dynamic.analysis.safety import ToolCodeError, analyze_safety, critical_issues
from tests.dynamic.tool_samples import CALCULATE_AVERAGE, FETCH_JSON, STRING_REVERSE

EXECUTE = "\nasync function execute(params) { return params; }\n"


def kinds(code: str) -> set[str]:
    whole = code if "execute" in code else code + EXECUTE
    return {each.type for each in analyze_safety(whole, mode="typescript").issues}


def test_the_seeds_examples_raise_nothing_but_the_network_of_the_one_that_fetches() -> None:
    assert kinds(STRING_REVERSE["code"]) == kinds(CALCULATE_AVERAGE["code"]) == set()
    made = analyze_safety(FETCH_JSON["code"], mode="typescript")
    assert [(each.type, each.line) for each in made.issues] == [("network", 10)]
    assert made.score == 0.75 and made.is_safe and made.blocked_operations == ()


SEEN = {
    "delete_files": [
        'Deno.remove("a")',
        'const {remove: r} = Deno; r("a")',
        'const D = Deno; await D.remove("a")',
        'Deno["re" + "moveSync"]("a")',
        'import { rmSync as z } from "node:fs"; z("a")',
        'import fs from "node:fs/promises"; fs.rm("a")',
        'Reflect.get(Deno, "remove")("a")',
        '((d) => d.remove("a"))(Deno)',
        'const o = {f: Deno}; o.f.removeSync("a")',
        'class A { m() { return Deno } } new A().m().removeSync("a")',
        'globalThis.Deno.remove("a")',
        'window["Deno"]["remove"]("a")',
        'let d; d = Deno; d.remove("a")',
        'Deno?.remove?.("a")',
        'const [d] = [Deno]; d.remove("a")',
        '(Deno as any).remove("a")',
        'Deno.remove.call(Deno, "a")',
        'const k = `re${"move"}`; Deno[k]("a")',
        'function f() { return Deno.remove } f()("a")',
        '[Deno].forEach(d => d.remove("a"))',
        'const {x = Deno} = {}; const {remove} = Deno; remove("a")',
        'const f = (d = Deno) => d.remove("a")',
        'this.d = Deno; this.d.removeSync("a")',
    ],
    "processes": [
        'new Deno.Command("ls")',
        'const { Command } = Deno; new Command("ls")',
        'import * as cp from "node:child_process"; cp.exec("a")',
        'import cp from "node:child_process"',
        'Deno.kill(1, "SIGKILL")',
    ],
    "dynamic_code": [
        'eval("1")',
        '(0, eval)("1")',
        'globalThis["ev" + "al"]("1")',
        'const f = eval; f("1")',
        'new Function("return 1")()',
        '[].constructor.constructor("return 1")()',
        '(() => {})["constructor"]("1")',
        '\\u0065val("1")',
        'import("node:fs")',
        'eval?.("1")',
        'globalThis[String.fromCharCode(101, 118, 97, 108)]("1")',
        'globalThis[atob("ZXZhbA==")]("1")',
        '[eval].map(f => f("1"))',
        'globalThis[["l", "a", "v", "e"].reverse().join("")]("1")',
        'globalThis["lave".split("").reverse().join("")]("1")',
        'new Worker("a")',
        'import x from "https://a/b.ts"',
        "eval`1`",
    ],
    "native_code": ['Deno.dlopen("a", {})', "WebAssembly.instantiate(b)"],
    "write_files": [
        'Deno.writeTextFile("a", "b")',
        'Deno.open("a", {write: true})',
        'Deno.rename("a", "b")',
        'Deno.open("a", options)',
    ],
    "network": [
        'fetch("http://a")',
        'new WebSocket("ws://a")',
        "Deno.connect({port: 1})",
        'globalThis.fetch("a")',
        'import net from "node:net"; net.connect(1)',
    ],
    "introspection": [
        'Deno[params.k]("a")',
        "({}).__proto__.x = 1",
        "for (const k in Deno) {}",
        "Object.entries(Deno)",
        "Deno.core.ops",
    ],
    "credentials": [
        'const apiKey = "abc-123-def-456"',
        'f({password: "hunter2-horse"})',
        f'const x = "ghp_{"a1" * 18}"',
    ],
    "endless_loop": [
        "while (true) {}",
        "for (;;) {}",
        "do {} while (1)",
        "while (true) { switch (x) { case 1: break } }",
        "while (!false) { if (false) break; }",
    ],
    "make_folders": ['Deno.mkdir("a")'],
    "environment": ['Deno.env.get("A")', "Deno.env.toObject()"],
    "regex_backtracking": ['/(a+)+$/.test("a")', 'new RegExp("(a*)*")'],
    "huge_work": [
        '"x".repeat(1e9)',
        "new Array(1e9)",
        "for (let i = 0; i < 1e12; i++) {}",
        "new Promise(r => setTimeout(r, 3600000))",
        "2n ** 99999999n",
    ],
}


@pytest.mark.parametrize(("kind", "code"), [(kind, code) for kind, codes in SEEN.items() for code in codes])
def test_each_kind_is_seen_however_it_is_written(kind: str, code: str) -> None:
    assert kind in kinds(code)


@pytest.mark.parametrize(
    "code",
    [
        '// eval("x")\n/* Deno.remove */ const s = "eval(1)"; const t = `Deno.remove`; const r = /eval/;',
        'function g(eval) { return eval("x"); }',
        "let i = 0; i += 1;",
        'const token = "NUMBER";',
        "for (;;) { if (x) break; }",
        "while (true) { return; }".replace("return", "throw x"),
        "outer: while (true) { for (const a of b) { break outer; } }",
        "[1, 2].map((x) => x * 2).join()",
        'Deno.open("x", {read: true})',
        'Deno.readTextFile("a")',
        "const remove = (x) => x; remove(1);",
        "items.remove(1)",
        "/(\\d+,)*/.test(x)",
        "new Array(10)",
        "class A { constructor() { this.x = 1; } } new A();",
        "const { a, ...rest } = params0;",
        "type A = { eval: string }; interface B { fetch(): void }",
    ],
)
def test_ordinary_code_comments_and_texts_raise_nothing(code: str) -> None:
    assert kinds(code) == set()


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("function execute(params) {\n  return (;\n}", 2, "no TypeScript"),
        ("const x = 1;", 1, "execute"),
        ("const x = 1;\nfunction execute(a, b) {}", 2, "one argument"),
        ("function* execute(params) {}", 1, "yields"),
        ("class A { execute(params) {} }", 1, "execute"),
    ],
)
def test_what_is_no_code_of_a_tool_is_refused_with_its_line(code: str, line: int, words: str) -> None:
    with pytest.raises(ToolCodeError, match=words) as raised:
        critical_issues(code, mode="typescript")
    assert raised.value.line == line


@pytest.mark.parametrize(
    "code",
    [
        "const execute = async (params) => params;",
        "export async function execute(params: {a: string}): Promise<string> { return params.a; }",
        "const execute = function (params) { return 1; };",
        "function execute({ text }) { return text; }",
        "function execute(a, b = 1) { return a; }",
        "function execute() { return 1; }",
        "export const execute = params => params;",
    ],
)
def test_every_way_to_define_execute_is_taken(code: str) -> None:
    assert analyze_safety(code, mode="typescript").issues == ()


HOSTILE = {
    "brackets": "x=" + "(" * 20_000 + "1" + ")" * 20_000,
    "loops in loops": "while(true){" * 2_600 + "}" * 2_600,
    "choices": "x=" + "a?b:" * 15_000 + "1",
    "closings": "} ) ] " * 10_000,
    "generics": "f<" * 20_000 + ">" * 20_000,
    "quotes": "'" * 60_001,
    "functions": "x=" + "()=>" * 15_000 + "1",
    "lists in lists": "let a0=[1,1];" + "".join(f"let a{i + 1}=[a{i},a{i}];" for i in range(2_000)),
    "texts that grow": "let s='a';" + "s+=s;" * 10_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_code_ends_in_an_answer(name: str) -> None:
    try:
        analyze_safety(HOSTILE[name] + EXECUTE, mode="typescript")
    except ToolCodeError as error:
        assert str(error)
