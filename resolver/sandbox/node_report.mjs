// Reports the tests of `node --test` as JUnit XML with their files, which Node's own reporter leaves out.
// It is executed by the Node of a sandbox: https://nodejs.org/api/test.html#custom-reporters
const quoted = (value) => {
  const printable = String(value ?? "").replace(/[\x00-\x09\x0b-\x1f\x7f-\x9f]/g, "?");
  return `"${printable.replace(/[\n&<>"]/g, (c) => `&#${c.charCodeAt(0)};`)}"`;
};

// What fails before a test's own function runs.
const SET_UP = ["hookFailed", "cancelledByParent", "parentAlreadyFinished"];

function outcome(type, { skip, todo, details: { error } }) {
  if (skip !== undefined || todo !== undefined) return "<skipped/>";
  if (type === "test:pass") return "";
  const text = error?.cause?.stack ?? error?.cause ?? error?.message;
  const tag = SET_UP.includes(error?.failureType) ? "error" : "failure";
  return `<${tag} message=${quoted(text)}/>`;
}

export default async function* report(source) {
  const names = [];
  yield '<testsuite name="node">\n';
  for await (const { type, data } of source) {
    if (type === "test:start") names.splice(data.nesting, Infinity, data.name);
    if (type !== "test:pass" && type !== "test:fail") continue;
    const { details, nesting, name, file } = data;
    // A suite is the sum of its tests, unless a hook of its own fails.
    const isSum = type === "test:pass" || details.error?.failureType === "subtestsFailed";
    if (details.type === "suite" && isSum) continue;
    const parents = names.slice(0, nesting).join("::");
    yield `<testcase classname=${quoted(parents)} name=${quoted(name)} file=${quoted(file)}` +
      ` time=${quoted(details.duration_ms / 1000)}>${outcome(type, data)}</testcase>\n`;
  }
  yield "</testsuite>\n";
}
