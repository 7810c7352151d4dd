import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import { EpitomeError, load } from "../index.js";

const epitome = await load();

function conversation(turns) {
  const messages = [{ role: "system", content: "You are brief." }];
  for (let turn = 0; turn < turns; turn += 1) {
    const id = `call_${turn}`;
    messages.push({ role: "user", content: `Question ${turn}: 日本 🙂 ${"word ".repeat(turn % 7)}` });
    messages.push({
      role: "assistant",
      content: null,
      tool_calls: [{ id, type: "function", function: { name: "read", arguments: `{"line":${turn}}` } }],
    });
    messages.push({ role: "tool", tool_call_id: id, content: "line ".repeat(40) });
    messages.push({ role: "assistant", content: `Answer ${turn}.` });
  }
  return messages;
}

test("a list of messages is compacted, and what stays is as it was", () => {
  for (const strategy of ["truncate", "agent", "tool-results|truncate"]) {
    const messages = conversation(60);
    const before = structuredClone(messages);
    const { transcript, report } = epitome.compact(messages, { keep: "30%", strategy });
    assert.deepEqual(messages, before);
    assert.equal(report.messages_after, transcript.length);
    assert.ok(report.tokens_after <= report.tokens_before * 0.3, strategy);
    assert.deepEqual(transcript.at(-1), messages.at(-1));
    const { violations } = epitome.validate(transcript, { profile: "openai-chat" });
    assert.deepEqual(violations, []);
  }
});

test("a text comes back as a text, byte for byte where nothing is due", () => {
  const text = JSON.stringify({ model: "m", messages: conversation(3) }, null, 3);
  const { transcript, report } = epitome.compact(text, { window: 100000 });
  assert.equal(transcript, text);
  assert.equal(report.unchanged_reason, "not_due");
});

test("what is unchanged is the input itself, and odd values are refused by name", () => {
  const messages = conversation(3);
  assert.equal(epitome.compact(messages, { window: 100000, tokenizer: undefined }).transcript, messages);
  assert.equal(epitome.compact(conversation(40), { keep: 0.3 }).report.goal_missed, false);
  const marked = `\ufeff${JSON.stringify(messages)}`;
  assert.equal(epitome.compact(marked, { window: 100000 }).transcript, marked);
  for (const wrong of [undefined, null, 5, 5n, () => 1, new Uint16Array(3), "[{\"role\":\"user\",\"content\":\"\ud800\"}]"]) {
    assert.throws(() => epitome.compact(wrong), (error) => error instanceof EpitomeError && error.code === 2, String(wrong));
  }
  assert.throws(() => epitome.compact([{ role: "user", content: 5n }]), EpitomeError);
});

test("a model brings its window, and another format its losses", () => {
  const messages = conversation(40);
  const { report } = epitome.compact(messages, { model: "gpt-4o", keep: "50%" });
  assert.match(report.tokenizer, /estimate/);
  const { transcript, losses } = epitome.compact(messages, { keep: "30%", to: "gemini" });
  assert.ok(transcript.contents.length > 0);
  assert.ok(Array.isArray(losses));
});

test("other formats are read and written", () => {
  const { text, losses } = epitome.convert(conversation(2), "anthropic");
  assert.ok(JSON.parse(text).messages.length > 0);
  assert.deepEqual(losses, []);
  assert.equal(epitome.stats(text, { format: "anthropic" }).calls, 2);
});

test("errors name the place and the remedy", () => {
  const failure = (run, code, words) => assert.throws(run, (error) => {
    assert.ok(error instanceof EpitomeError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, words);
    return true;
  });
  failure(() => epitome.compact("no JSON"), 2, /line 1, column 2: not JSON/);
  failure(() => epitome.compact([]), 2, /empty/);
  failure(() => epitome.compact(conversation(2), { keep: "many" }), 2, /--keep/);
  failure(() => epitome.compact(conversation(2), { kepe: "30%" }), 2, /no option kepe/);
  failure(() => epitome.compact(conversation(2), { strategy: "a\0b" }), 2, /zero character/);
  failure(() => epitome.compact(conversation(2), { window: 20, reserve: 1 }), 3, /raise --window/);
  failure(() => epitome.convert(conversation(2), "morse"), 2, /morse/);
  failure(() => epitome.compact(new Uint8Array([0xff, 0xfe])), 2, /UTF-8/);
});

test("files of the machine are out of reach", () => {
  const { code, diagnostics } = epitome.call(["stats", "/etc/passwd"]);
  assert.notEqual(code, 0);
  assert.ok(diagnostics.length > 0);
});

test("the library works on after many calls, and after one that it has no memory for", () => {
  const input = JSON.stringify(conversation(20));
  for (let round = 0; round < 50; round += 1) {
    assert.equal(epitome.call(["validate", "-"], input).code, 0);
  }
  assert.equal(epitome.call(["validate", "-"], `[{"role":"user","content":"${"x".repeat(20 << 20)}"}]`).code, 0);
  assert.equal(epitome.call(["validate", "-"], input).code, 0);
});

test("calls leave no memory behind, and a failed one makes the library anew", async () => {
  const instances = [];
  const Instance = WebAssembly.Instance;
  WebAssembly.Instance = class extends Instance {
    constructor(...given) {
      super(...given);
      instances.push(this);
    }
  };
  try {
    const library = await load();
    const input = JSON.stringify([{ role: "user", content: "x".repeat(1 << 18) }]);
    const size = () => instances.at(-1).exports.memory.buffer.byteLength;
    const rounds = (count) => {
      for (let round = 0; round < count; round += 1) {
        assert.equal(library.call(["compact", "-", "--keep", "100%", "-o", "-"], input).code, 0);
      }
      return size();
    };
    const before = rounds(2);
    assert.equal(rounds(8), before);
    assert.throws(() => library.call(["stats", "-"], { length: 4e9 }), (error) => error.code === -2);
    assert.equal(library.call(["validate", "-"], input).code, 0);
    assert.equal(instances.length, 2);
  } finally {
    WebAssembly.Instance = Instance;
  }
});

test("the bytes of the library may be given", async () => {
  const bytes = await readFile(new URL("../epitome.wasm", import.meta.url));
  const other = await load(bytes);
  const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url)));
  assert.equal(other.version(), version);
});
