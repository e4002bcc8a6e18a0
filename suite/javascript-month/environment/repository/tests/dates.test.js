const test = require("node:test");
const assert = require("node:assert");
const { isoDate } = require("../dates.js");

test("year", () => {
  assert.ok(isoDate(new Date(Date.UTC(2024, 11, 15))).startsWith("2024-"));
});
