const test = require("node:test");
const assert = require("node:assert");
const { parse } = require("../query.js");

test("one", () => {
  assert.deepStrictEqual(parse("a=1&b=2"), { a: "1", b: "2" });
});
