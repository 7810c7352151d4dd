// The extension in Pi itself, which asks a service of our own.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";

import { newHome, Pi, run } from "./pi.js";
import { isSummary, startService, textOf } from "./service.js";

const SUMMARY = "The user asks why src/retry.rs drops an order.";
const QUESTION = "Why does src/retry.rs drop ORDER-4711? Look into notes.txt.";
const NOTES = "The limit is in config/queue.toml: it was raised for ORDER-8822.\n";
const KEY = `sk-${"a1B2".repeat(10)}`;
const BELOW = "This session was compacted.";
let service, home, pi;

before(async () => {
  service = await startService();
});

beforeEach(async () => {
  service.requests.length = 0;
  service.answer = answer;
  home = newHome(service.url);
  fs.writeFileSync(path.join(home, "work", "notes.txt"), NOTES);
  await run(home, {}, "install", path.resolve(import.meta.dirname, ".."));
});

afterEach(async () => {
  await pi?.end();
  fs.rmSync(home, { recursive: true, force: true });
});

after(() => service.stop());

/** The model reads the notes when it is asked the question, and says little else. */
function answer(request) {
  if (isSummary(request)) return { text: SUMMARY };
  const last = request.messages.at(-1);
  if (last.role === "user" && textOf(last) === QUESTION) return { tool: "read", arguments: { path: "notes.txt" } };
  return { text: "Done." };
}

/** Starts a session with the question, a file that is read, and thanks. */
async function talk(options) {
  pi = new Pi(home, options);
  await pi.say(QUESTION);
  await pi.say("Thanks.");
}

/** The summary in a request, and the list below it. */
function summaryOf(request) {
  const found = request.messages.map(textOf).filter((text) => text.includes("<summary>"));
  assert.equal(found.length, 1, JSON.stringify(request.messages));
  const [summary, ...list] = found[0].split(BELOW);
  assert.ok(list.length < 2, found[0]);
  return { summary, list: list[0] ?? "" };
}

function assertNames(text, ...identifiers) {
  for (const identifier of identifiers) assert.ok(text.includes(identifier), `${identifier} is missing: ${text}`);
}

test("after a compaction the summary of Pi's model has the identifiers that it lacks below it", async () => {
  await talk();
  const { summary } = await pi.command("compact");
  assert.ok(summary.startsWith(SUMMARY), summary);
  assert.ok(isSummary(service.requests.at(-1)));
  await pi.say("And now?");
  const last = summaryOf(service.requests.at(-1));
  assertNames(last.summary, SUMMARY);
  assertNames(last.list, "ORDER-4711", "config/queue.toml", "ORDER-8822");
  assert.ok(!last.list.includes("src/retry.rs"), last.list);
  const { sessionId } = await pi.command("get_state");
  assertNames(last.list, `of the session ${sessionId}`);
  // The list stays the same until the next compaction: providers cache the beginning of a request.
  await pi.say("Go on with ORDER-4711.");
  assert.equal(summaryOf(service.requests.at(-1)).list, last.list);
  assert.deepEqual(await pi.shown(), []);
});

test("a session that is opened again has the identifiers too", async () => {
  await talk();
  await pi.command("compact");
  await pi.end();
  pi = new Pi(home, { args: ["--continue"] });
  await pi.say("And now?");
  assertNames(summaryOf(service.requests.at(-1)).list, "ORDER-4711", "config/queue.toml");
});

test("a second compaction loses no identifiers of the first", async () => {
  await talk();
  await pi.command("compact");
  await pi.say("Raise it in config/limits.toml too.");
  await pi.say("Thanks.");
  await pi.command("compact");
  await pi.say("And now?");
  assertNames(summaryOf(service.requests.at(-1)).list, "ORDER-4711", "config/queue.toml", "config/limits.toml");
});

test("an automatic compaction between two requests of one run keeps them", async () => {
  service.answer = (request) => ({ ...answer(request), tokens: request.messages.at(-1).role === "user" ? 95_000 : 100 });
  pi = new Pi(home);
  await pi.say(QUESTION);
  assert.ok(service.requests.some(isSummary));
  const last = service.requests.at(-1);
  assert.ok(!last.messages.some((message) => textOf(message) === QUESTION), JSON.stringify(last.messages));
  assertNames(summaryOf(last).list, "ORDER-4711");
});

test("the model finds the exact words of hidden messages", async () => {
  await talk();
  await pi.command("compact");
  const search = { query: "ORDER-8822 limit", limit: 3, session: "" };
  const { sessionId } = await pi.command("get_state");
  const reading = { session: sessionId, messages: "0", query: "" };
  for (const [call, words] of [[search, NOTES.trim()], [reading, QUESTION], [{ query: "zebra" }, "None of"], [{ messages: "0" }, "--session"]]) {
    service.answer = (request) =>
      request.messages.at(-1).role === "user" ? { tool: "recall_history", arguments: call } : { text: "Found." };
    await pi.say("Look it up.");
    const result = service.requests.at(-1).messages.at(-1);
    assert.equal(result.role, "tool");
    assertNames(textOf(result), words);
  }
  const declared = service.requests.at(-1).tools.filter((tool) => tool.function.name === "recall_history");
  assert.equal(declared.length, 1);
});

test("secrets are in no list and in no answer of the tool", async () => {
  await talk();
  await pi.say(`The key of ORDER-9933 is ${KEY}.`);
  await pi.say("Thanks.");
  await pi.command("compact");
  service.answer = (request) =>
    request.messages.at(-1).role === "user" ? { tool: "recall_history", arguments: { query: "key" } } : { text: "Found." };
  await pi.say("And now?");
  const last = service.requests.at(-1);
  assertNames(summaryOf(last).list, "ORDER-9933");
  assertNames(textOf(last.messages.at(-1)), "ORDER-9933", "[redacted:");
  assert.ok(!JSON.stringify(last).includes("a1B2a1B2"));
});

test("with --epitome-summary no model is asked for the summary", async () => {
  await talk({ args: ["--epitome-summary"] });
  await pi.say(`The key is ${KEY}.`);
  await pi.say("Thanks.");
  const before = service.requests.length;
  const { summary } = await pi.command("compact");
  assert.equal(service.requests.length, before);
  assertNames(summary, `> ${QUESTION}`, "config/queue.toml", "ORDER-8822", "read 1x");
  assert.ok(!summary.includes("a1B2a1B2"), summary);
  await pi.say("Raise it in config/limits.toml too.");
  await pi.say("Thanks.");
  // The second summary is made of all hidden messages, and of no earlier summary.
  const second = (await pi.command("compact")).summary;
  assertNames(second, `> ${QUESTION}`, "config/limits.toml", "config/queue.toml");
  assert.equal(second.split("# Handoff").length, 2, second);
  await pi.say("And now?");
  assertNames(summaryOf(service.requests.at(-1)).summary, "config/limits.toml");
  assert.deepEqual(await pi.shown(), []);
});

test("a session without identifiers is as Pi makes it", async () => {
  pi = new Pi(home);
  await pi.say("Hello!");
  await pi.say("Thanks.");
  await pi.command("compact");
  await pi.say("And now?");
  assert.equal(summaryOf(service.requests.at(-1)).list, "");
  assert.deepEqual(await pi.shown(), []);
});

test("a session that is not saved has no list, and takes a summary of epitome", async () => {
  const missing = { args: ["--epitome-summary"], folder: path.join(home, "nothing") };
  for (const [{ args = [], folder }, begin, lines] of [[{}, SUMMARY, 0], [{ args: missing.args }, "# Handoff", 0], [missing, SUMMARY, 1]]) {
    await talk({ args: ["--no-session", ...args], folder });
    const { summary } = await pi.command("compact");
    assert.ok(summary.startsWith(begin), summary);
    await pi.say("And now?");
    assert.equal(summaryOf(service.requests.at(-1)).list, "");
    assert.equal((await pi.shown()).length, lines);
    await pi.end();
  }
});

for (const args of [[], ["--epitome-summary"]]) {
  test(`without epitome Pi compacts as always, and says why ${args}`, async () => {
    await talk({ args, folder: path.join(home, "nothing") });
    for (const times of [1, 2]) {
      const { summary } = await pi.command("compact");
      assert.ok(summary.startsWith(SUMMARY), summary);
      await pi.say("And now?");
      const last = summaryOf(service.requests.at(-1));
      assertNames(last.summary, SUMMARY);
      assert.equal(last.list, "");
      const shown = await pi.shown();
      assert.equal(shown.length, times, shown.join("\n"));
      assertNames(shown.at(-1), "not found in PATH", "cargo install --path cli", "Pi's own compaction goes on.");
    }
  });

  test(`an epitome that fails does not stop a compaction ${args}`, async () => {
    const script = path.join(home, "nothing", "epitome");
    fs.writeFileSync(script, "#!/bin/sh\necho 'epitome: the file is locked' >&2\nexit 4\n", { mode: 0o755 });
    await talk({ args, folder: path.dirname(script) });
    const { summary } = await pi.command("compact");
    assert.ok(summary.startsWith(SUMMARY), summary);
    await pi.say("And now?");
    assert.equal(summaryOf(service.requests.at(-1)).list, "");
    assert.deepEqual(await pi.shown(), ["epitome: the file is locked. Pi's own compaction goes on."]);
  });
}

test("if epitome writes no summary, Pi's model does, and the list is below it", async () => {
  const script = path.join(home, "nothing", "epitome");
  fs.writeFileSync(script, `#!/bin/sh\n[ "$1" = handoff ] && exit 4\nexec '${process.env.EPITOME}' "$@"\n`, { mode: 0o755 });
  await talk({ args: ["--epitome-summary"], folder: path.dirname(script) });
  await pi.command("compact");
  assert.deepEqual(await pi.shown(), ["epitome: ended with 4. Pi's own compaction goes on."]);
  await pi.say("And now?");
  const last = summaryOf(service.requests.at(-1));
  assertNames(last.summary, SUMMARY);
  assertNames(last.list, "ORDER-4711");
});

test("a compaction that the user stops is no failure", async () => {
  const script = path.join(home, "nothing", "epitome");
  fs.writeFileSync(script, "#!/bin/sh\n: > started\nexec /bin/sleep 120\n", { mode: 0o755 });
  await talk({ args: ["--epitome-summary"], folder: path.dirname(script) });
  const compaction = assert.rejects(pi.command("compact"), /cancelled/i);
  while (!fs.existsSync(path.join(home, "work", "started"))) await new Promise((resolve) => setTimeout(resolve, 20));
  await pi.command("abort");
  await compaction;
  await pi.say("And now?");
  assert.deepEqual(await pi.shown(), []);
});

test("an epitome that does not answer is not waited for any longer", async () => {
  const script = path.join(home, "nothing", "epitome");
  fs.writeFileSync(script, "#!/bin/sh\nexec /bin/sleep 120\n", { mode: 0o755 });
  await talk({ folder: path.dirname(script) });
  await pi.command("compact");
  assert.deepEqual(await pi.shown(), ["epitome: no answer within 15 seconds. Pi's own compaction goes on."]);
});

test("in print mode the reason is on standard error", async () => {
  await talk();
  await pi.end();
  pi = undefined;
  const script = path.join(home, "nothing", "epitome");
  fs.writeFileSync(script, "#!/bin/sh\nexit 4\n", { mode: 0o755 });
  service.answer = (request) => ({ ...answer(request), tokens: 95_000 });
  const { stdout, stderr } = await run(home, { folder: path.dirname(script) }, "-p", "--continue", "And now?");
  assert.match(stdout, /Done\./);
  assert.match(stderr, /epitome: ended with 4\. Pi.s own compaction goes on\./);
});
