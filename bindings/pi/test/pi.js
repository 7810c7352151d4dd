// Pi itself, in its RPC mode. PI names its program, and EPITOME the program `epitome`.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";

/** The longest time that a step of a test may take. */
const DEADLINE_MS = 60_000;

/** A home for Pi, whose only model is `url`. It compacts all but the last message. */
export function newHome(url) {
  const home = fs.mkdtempSync(path.join(os.tmpdir(), "epitome-pi-"));
  const agent = path.join(home, ".pi", "agent");
  for (const folder of [agent, path.join(home, "work"), path.join(home, "nothing")]) fs.mkdirSync(folder, { recursive: true });
  const model = { id: "local", contextWindow: 100_000, maxTokens: 4_000 };
  const provider = { baseUrl: url, api: "openai-completions", apiKey: "none", models: [model] };
  write(path.join(agent, "models.json"), { providers: { test: provider } });
  const compaction = { keepRecentTokens: 1, reserveTokens: 10_000 };
  write(path.join(agent, "settings.json"), { defaultProvider: "test", defaultModel: "local", compaction });
  return home;
}

function write(file, value) {
  fs.writeFileSync(file, JSON.stringify(value));
}

/** The environment of Pi, in which programs are found in `folder` only. */
function environment(home, folder) {
  return { PATH: folder, HOME: home, PI_OFFLINE: "1", PI_TELEMETRY: "0", PI_SKIP_VERSION_CHECK: "1" };
}

/** Longer than the extension waits with a line for the user. */
const QUIET_MS = 500;

/** The folder where Pi finds `epitome`, if a test does not name another one. */
const PROGRAMS = path.dirname(process.env.EPITOME);

/** Runs Pi to its end. */
export function run(home, { folder = PROGRAMS }, ...args) {
  const options = { cwd: path.join(home, "work"), env: environment(home, folder), timeout: DEADLINE_MS };
  const done = promisify(execFile)(process.execPath, [process.env.PI, ...args], options);
  done.child.stdin.end();
  return done;
}

/** A running Pi. In `folder` it finds `epitome`. */
export class Pi {
  #child;
  #left = "";
  #waiting = [];
  events = [];

  constructor(home, { args = [], folder = PROGRAMS } = {}) {
    const options = { cwd: path.join(home, "work"), env: environment(home, folder), stdio: ["pipe", "pipe", "inherit"] };
    this.#child = spawn(process.execPath, [process.env.PI, "--mode", "rpc", ...args], options);
    this.#child.stdout.setEncoding("utf8").on("data", (text) => this.#read(text));
  }

  #read(text) {
    const lines = (this.#left + text).split("\n");
    this.#left = lines.pop();
    this.events.push(...lines.filter(Boolean).map((line) => JSON.parse(line)));
    this.#waiting = this.#waiting.filter((check) => !check());
  }

  /** The first event from the number `from` on that fits. */
  #event(fits, from) {
    return new Promise((resolve, reject) => {
      const late = globalThis.setTimeout(() => reject(new Error(`Pi is late: ${JSON.stringify(this.events.slice(from))}`)), DEADLINE_MS);
      const check = () => {
        const found = this.events.slice(from).find(fits);
        if (found) {
          clearTimeout(late);
          resolve(found);
        }
        return found;
      };
      if (!check()) this.#waiting.push(check);
    });
  }

  /** Sends a command, and gives the data of its response. */
  async command(type, more = {}) {
    const from = this.events.length;
    this.#child.stdin.write(`${JSON.stringify({ id: `${from}`, type, ...more })}\n`);
    const response = await this.#event((event) => event.type === "response" && event.id === `${from}`, from);
    assert.ok(response.success, `${type}: ${response.error}`);
    return response.data;
  }

  /** Says something as the user, and waits until Pi has nothing more to do. */
  async say(message) {
    const from = this.events.length;
    await this.command("prompt", { message });
    await this.#event((event) => event.type === "agent_settled", from);
  }

  /** The lines that extensions have shown to the user, once none is about to come. */
  async shown() {
    await setTimeout(QUIET_MS);
    return this.events.filter((event) => event.method === "notify").map((event) => event.message);
  }

  async end() {
    if (this.#child.exitCode !== null) return;
    const ended = new Promise((resolve) => this.#child.on("close", resolve));
    this.#child.stdin.end();
    await ended;
  }
}
