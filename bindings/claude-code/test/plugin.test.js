// The plugin in Claude Code itself, which asks a service of our own. CLAUDE names the program; `epitome` is in PATH.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { startService } from "./service.js";

const plugin = path.resolve(import.meta.dirname, "..");
const home = fs.mkdtempSync(path.join(os.tmpdir(), "epitome-claude-code-"));
const IDENTIFIERS = ["src/retry.rs", "ORDER-4711", "config/queue.toml"];
let service;

before(async () => {
  service = await startService("The user asks why src/retry.rs drops an order.");
  fs.mkdirSync(path.join(home, "work"));
});

after(() => {
  service.stop();
  fs.rmSync(home, { recursive: true, force: true });
});

async function claude(...args) {
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    ANTHROPIC_BASE_URL: service.url,
    ANTHROPIC_API_KEY: "none",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
  };
  const run = promisify(execFile)(process.env.CLAUDE, args, { cwd: path.join(home, "work"), env, timeout: 120_000 });
  run.child.stdin.end();
  return (await run).stdout;
}

/** The one request since `from` that says this. */
function requestWith(words, from) {
  const found = service.requests.slice(from).filter((body) => body.includes(words));
  assert.equal(found.length, 1, `${found.length} requests say: ${words}`);
  return found[0];
}

test("the manifests are valid", async () => {
  for (const file of ["plugin.json", "marketplace.json"]) {
    await claude("plugin", "validate", path.join(plugin, ".claude-plugin", file), "--strict");
  }
});

test("a compaction keeps the identifiers", async () => {
  await claude("plugin", "marketplace", "add", plugin);
  await claude("plugin", "install", "epitome@epitome");
  const inventory = await claude("plugin", "details", "epitome");
  for (const part of [/Skills \(1\) +recall/, /Hooks \(2\) +PreCompact, SessionStart/, /MCP servers \(1\) +epitome/]) {
    assert.match(inventory, part);
  }
  const question = "Why does src/retry.rs drop ORDER-4711? The limit is in config/queue.toml.";
  const { session_id: session } = JSON.parse(await claude("-p", question, "--output-format", "json"));
  await claude("-p", "Thanks.", "--resume", session);
  const compaction = service.requests.length;
  await claude("-p", "/compact", "--resume", session);
  const instructions = requestWith("The summary must name each of these", compaction).split("The summary must name").at(-1);
  for (const identifier of IDENTIFIERS) assert.ok(instructions.includes(identifier), instructions);
  const next = service.requests.length;
  await claude("-p", "And now?", "--resume", session);
  const list = requestWith("This session was compacted.", next).split("This session was compacted.").at(-1).slice(0, 600);
  for (const identifier of IDENTIFIERS) assert.ok(list.includes(identifier), list);
  assert.ok(list.includes(`of the session ${session}`), list);
});
