const test = require("node:test");
const assert = require("node:assert");
const { sorted } = require("../sorting.js");

test("one digit", () => {
  assert.deepStrictEqual(sorted([3, 1, 2]), [1, 2, 3]);
});

test("numbers", () => {
  assert.deepStrictEqual(sorted([10, 9, 1]), [1, 9, 10]);
});

test("unchanged", () => {
  const given = [2, 1];
  sorted(given);
  assert.deepStrictEqual(given, [2, 1]);
});
