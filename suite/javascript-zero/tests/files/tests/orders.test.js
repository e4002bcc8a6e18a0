const test = require("node:test");
const assert = require("node:assert");
const { quantity } = require("../orders.js");

test("given", () => {
  assert.strictEqual(quantity({ quantity: 3 }), 3);
});

test("missing", () => {
  assert.strictEqual(quantity({}), 1);
});

test("zero", () => {
  assert.strictEqual(quantity({ quantity: 0 }), 0);
});
