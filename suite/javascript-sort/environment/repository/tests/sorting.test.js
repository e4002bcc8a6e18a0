const test = require("node:test");
const assert = require("node:assert");
const { sorted } = require("../sorting.js");

test("one digit", () => {
  assert.deepStrictEqual(sorted([3, 1, 2]), [1, 2, 3]);
});
