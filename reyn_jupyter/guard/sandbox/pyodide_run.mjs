// Runs a Python file in Pyodide, under Deno: reads what it needs, gives up the right to read, then runs the code.
const [folder, script, ...words] = Deno.args;
const { loadPyodide } = await import(`${folder}/pyodide.mjs`);
const source = Deno.readTextFileSync(script);
const indexURL = decodeURIComponent(new URL(`${folder}/`).pathname);
const python = await loadPyodide({ indexURL, env: { HOME: "/home/pyodide" } });
Deno.permissions.revokeSync({ name: "read" });

function writes(stream) {
  return {
    write(bytes) {
      let done = 0;
      while (done < bytes.length) done += stream.writeSync(bytes.subarray(done));
      return bytes.length;
    },
  };
}
python.setStdout(writes(Deno.stdout));
python.setStderr(writes(Deno.stderr));
python.setStdin({ read: (bytes) => Deno.stdin.readSync(bytes) ?? 0 });

const main = python.runPython(`
async def main(source, name, words):
    import ast, sys, traceback
    sys.argv = [name, *words]
    scope = sys.modules["__main__"].__dict__
    scope["__file__"] = name
    try:
        code = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        waiting = eval(code, scope)
        if waiting is not None:
            await waiting
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        error.__traceback__ = error.__traceback__.tb_next
        traceback.print_exception(error)
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0
main
`);
Deno.exit(await main.callPromising(source, script, python.toPy(words)));
