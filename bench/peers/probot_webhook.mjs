// A probot app that does no more than it must: the signature, one insert.
//
//     node bench/peers/probot_webhook.mjs DATABASE_URL PORT
//
// DATABASE_URL is of PostgreSQL. Packages: npm install probot@14.3.2 pg@8.23.1. An ES module finds
// packages only beside itself, so run a copy of this file in the folder that has node_modules.

import { createServer } from "node:http";
import { generateKeyPairSync } from "node:crypto";
import { createNodeMiddleware, createProbot } from "probot";
import pg from "pg";

const [url, port] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 40 });
await pool.query("CREATE TABLE bare (id text PRIMARY KEY, event text, body jsonb)");

const { privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  privateKeyEncoding: { type: "pkcs1", format: "pem" },
  publicKeyEncoding: { type: "pkcs1", format: "pem" },
});
const probot = createProbot({
  overrides: { appId: 1, privateKey, secret: "bench", logLevel: "fatal" },
});
const app = (robot) => {
  robot.onAny(async ({ id, name, payload }) => {
    await pool.query("INSERT INTO bare VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", [
      id,
      name,
      JSON.stringify(payload),
    ]);
  });
};
const middleware = await createNodeMiddleware(app, { probot, webhooksPath: "/webhook" });
createServer(middleware).listen(Number(port), "127.0.0.1");
