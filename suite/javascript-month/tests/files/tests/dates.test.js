const test = require("node:test");
const assert = require("node:assert");
const { isoDate } = require("../dates.js");

test("year", () => {
  assert.ok(isoDate(new Date(Date.UTC(2024, 11, 15))).startsWith("2024-"));
});

test("month", () => {
  assert.strictEqual(isoDate(new Date(Date.UTC(2024, 11, 15))), "2024-12-15");
});

test("padding", () => {
  assert.strictEqual(isoDate(new Date(Date.UTC(2024, 0, 5))), "2024-01-05");
});
