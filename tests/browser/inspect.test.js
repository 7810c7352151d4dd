/** `epitome session inspect` in a real browser. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { counted, epitome, example, folder, newPage, seriousFaults } from "./support.js";

const servers = [];
after(() => servers.forEach((server) => server.kill()));

/** The address of a server for this store, and its process. */
async function served(store, ...args) {
  const server = spawn(process.env.EPITOME, ["session", "inspect", "--store", store, ...args], { stdio: ["ignore", "pipe", "ignore"] });
  servers.push(server);
  for await (const address of createInterface({ input: server.stdout })) return { address, server };
  throw new Error("the server does not start");
}

let stores = 0;
/** A new store with the example as a session, and the program for that session. */
function stored(session = "one") {
  const store = `sqlite:${join(folder, `${(stores += 1)}.db`)}`;
  const run = (command, ...args) => epitome("session", command, ...args, "--store", store, "--session", session);
  run("import", example);
  return { store, run };
}

async function opened(store, { args = [], ...options } = {}) {
  const { address, server } = await served(store, ...args);
  const { page, faults } = await newPage(address.split("#")[0], options);
  await page.goto(address);
  return { page, faults, server };
}

test("a session is shown as it grows, with what each revision changed", async () => {
  const { store, run } = stored();
  run("compact", "--keep", "15%", "--strategy", "agent");
  const { page, faults } = await opened(store);
  await page.locator("#sessions a", { hasText: "one" }).click();
  await counted(page, "74 of 74 messages");
  const listed = () => JSON.parse(epitome("session", "list", "--store", store, "--json"))[0];
  const figures = async () => (await page.locator("#figures dd").allTextContents()).map((text) => Number(text.replaceAll(",", "")));
  const now = () => [listed().messages, listed().live_messages, listed().live_tokens, listed().revision];
  assert.deepEqual(await figures(), now());

  // What the compaction hid and shortened, expanded in place.
  await page.locator("#revisions button").first().click();
  const changed = run("expand", "--revision", "1", "--json").trim().split("\n").map((line) => JSON.parse(line));
  await counted(page, `${changed.length} of 74 messages`);
  assert.deepEqual([await page.inputValue("#from"), await page.inputValue("#to")], ["0", "1"]);
  const words = await page.locator("#list .verdict").allTextContents();
  assert.equal(words.filter((word) => word === "shortened").length, changed.filter((one) => one.hidden_by === null).length);
  const cut = changed.find((one) => one.edited_by === 1 && one.hidden_by === null).seq;
  await page.locator(`#m${cut} summary`).click();
  const said = await page.locator(`#m${cut} pre`).textContent();
  assert.ok(said.includes("The next request has:") && said.includes("The log has:"), said);
  const ledger = page.locator("#list details", { hasText: "summary" }).first();
  await ledger.locator("summary").click();
  assert.ok((await ledger.locator("pre").textContent()).includes("parcelbox/"));

  // What is opened stays open when others write, and the page follows.
  await page.selectOption("#view", "log");
  await counted(page, "74 of 74 messages");
  await page.locator("#m1 summary").click();
  await page.waitForSelector("#m1 pre");
  run("import", example, "--append");
  await counted(page, "148 of 148 messages");
  assert.ok(await page.locator("#m1[open] pre").isVisible());
  run("rewind", "--turns", "9");
  await page.waitForFunction(() => document.querySelectorAll("#revisions tr").length === 2);
  assert.ok((await page.locator("#revisions tr").first().textContent()).includes("rewind"));
  assert.deepEqual(await figures(), now());
  await page.selectOption("#view", "request");
  await page.waitForFunction((count) => document.querySelectorAll("#list details").length === count, listed().live_messages);
  run("uncompact");
  await page.waitForFunction(() => document.querySelectorAll("#revisions tr").length === 3);
  assert.ok((await page.locator("#revisions tr.undone").textContent()).includes("rewind:at=75, undone by 3"));

  // Two revisions that are not neighbours, words, a role, and the strip.
  await page.selectOption("#view", "difference");
  await page.fill("#to", "3");
  await page.fill("#from", "1");
  await page.press("#from", "Enter");
  await counted(page, "0 of 148 messages");
  await page.fill("#from", "7");
  await page.press("#from", "Enter");
  await page.waitForFunction(() => document.getElementById("status").textContent.includes("the newest revision is 3"));
  await page.fill("#from", "2");
  await page.press("#from", "Enter");
  await page.waitForFunction(() => document.getElementById("status").textContent === "");
  assert.ok((await page.locator("#list .verdict").allTextContents()).every((word) => word === "shown again"));
  await page.selectOption("#view", "log");
  await page.keyboard.press("Escape");
  await page.locator("#name").click();
  await page.keyboard.press("/");
  await page.keyboard.type("DEDUPE_TTL_SECONDS");
  await page.waitForFunction(() => /^[1-9][0-9]? of 148/.test(document.getElementById("count").textContent));
  await page.locator("svg.log").click({ position: { x: 2, y: 5 } });
  await page.waitForSelector("#m0[open] pre");
  await counted(page, "148 of 148 messages");
  const refused = faults.filter((fault) => !fault.includes("400 (Bad Request)"));
  assert.deepEqual(refused, []);
});

test("no text or name of a session is executed, and a server that ends is missed", async () => {
  const bad = "</script><script>alert(1)</script><svg onload=alert(2)><img src=x onerror=alert(3)>&lt;";
  const { store, run } = stored(bad);
  const messages = Array.from({ length: 20 }, (_, turn) => [
    { role: "user", name: bad, content: `${bad} ${turn}` },
    { role: "assistant", content: null, tool_calls: [{ id: `${bad}${turn}`, type: "function", function: { name: bad, arguments: JSON.stringify({ [bad]: bad }) } }] },
    { role: "tool", tool_call_id: `${bad}${turn}`, content: bad.repeat(20) },
  ]).flat();
  const file = join(folder, "bad.json");
  writeFileSync(file, JSON.stringify({ messages }));
  run("import", file, "--append");
  run("compact", "--keep", "20%", "--strategy", "agent");
  const { page, faults, server } = await opened(store, { args: ["--session", bad] });
  await counted(page, "134 of 134 messages");
  assert.equal(await page.textContent("#name"), bad);
  await page.locator("#revisions button").first().click();
  await page.waitForSelector("#list details");
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
  await page.waitForSelector("#list pre");
  await page.goto((await page.evaluate(() => location.href)).split("#")[0] + "#");
  await page.waitForSelector("#sessions a");
  assert.equal(await page.textContent("#sessions a"), bad);
  assert.equal(await page.locator("img, iframe, object, embed, link, base").count(), 0);
  assert.deepEqual(faults, []);
  server.kill();
  await page.waitForFunction(() => document.getElementById("status").textContent.startsWith("The server does not answer"));
});

test("what is read stays in its place, and a late answer is of the session and the comparison that asked", async () => {
  const { store, run } = stored();
  const file = join(folder, "many.json");
  const messages = Array.from({ length: 1_500 }, (_, turn) => [{ role: "user", content: `question ${turn}` }, { role: "assistant", content: `answer ${turn}` }]).flat();
  writeFileSync(file, JSON.stringify({ messages }));
  const more = join(folder, "more.json");
  writeFileSync(more, JSON.stringify({ messages: [{ role: "user", content: "one more" }] }));
  const other = (command, ...args) => epitome("session", command, ...args, "--store", store, "--session", "other");
  other("import", file);
  other("compact", "--keep", "90%", "--strategy", "truncate");
  other("clear");
  other("uncompact");
  run("compact", "--keep", "15%", "--strategy", "agent");
  const { page, faults } = await opened(store, { args: ["--session", "other"] });
  await counted(page, "3,000 of 3,000 messages");

  // A row in the middle that was opened by a click: its place, the focus and the row stay when a message comes.
  await page.evaluate(() => scrollTo(0, 50_000));
  await page.waitForTimeout(300);
  const row = page.locator("#list details").nth(await page.evaluate(() => [...document.querySelectorAll("#list details")].findIndex((row) => row.getBoundingClientRect().top > 100)));
  const id = await row.getAttribute("id");
  await page.locator(`#${id} summary`).click();
  await page.waitForSelector(`#${id}[open] pre`);
  const place = () => page.evaluate((id) => [Math.round(document.getElementById(id).getBoundingClientRect().top), document.activeElement.parentElement.id], id);
  const before = await place();
  other("import", more, "--append");
  await counted(page, "3,001 of 3,001 messages");
  assert.deepEqual(await place(), before);
  assert.ok(await page.locator(`#${id}[open] pre`).isVisible());

  // The answer to a comparison that comes when another one, and then another session, is looked at.
  let held = [];
  await page.route("**/difference?*from=0&to=1", (route) => held.push(route));
  await page.locator("#revisions button").last().click();
  await page.locator("#revisions button").nth(1).click();
  await page.waitForFunction(() => document.querySelector("#revisions tr.chosen td")?.textContent === "2");
  const shown = await page.textContent("#count");
  held.forEach((route) => route.continue());
  await page.waitForTimeout(300);
  assert.deepEqual([await page.textContent("#count"), await page.inputValue("#from")], [shown, "1"]);
  held = [];
  await page.fill("#from", "0");
  await page.fill("#to", "1");
  await page.press("#to", "Enter");
  other("import", more, "--append");
  await page.waitForTimeout(1_500);
  await page.evaluate(() => (location.hash = "#one"));
  await counted(page, "74 of 74 messages");
  held.forEach((route) => route.continue());
  await page.waitForTimeout(500);
  assert.equal(await page.textContent("#count"), "74 of 74 messages");
  assert.equal(await page.textContent("#name"), "one");

  // A summary that was opened stays open; an answer that fails is asked for again.
  const summary = page.locator("#list details", { hasText: "summary" }).first();
  await summary.locator("summary").click();
  await summary.locator("pre").waitFor();
  await page.route("**/message?*", (route) => route.abort(), { times: 1 });
  await page.locator("#m1 summary").click();
  run("import", more, "--append");
  await counted(page, "75 of 75 messages");
  assert.ok(await summary.locator("pre").isVisible());
  await page.locator("#m1 summary").click();
  await page.locator("#m1 summary").click();
  await page.waitForSelector("#m1[open] pre");

  // What comes is searched too.
  await page.fill("#search", "more");
  await page.waitForFunction(() => !document.getElementById("count").textContent.startsWith("75 "));
  const matches = Number.parseInt(await page.textContent("#count"));
  run("import", more, "--append");
  await counted(page, `${matches + 1} of 76 messages`);
  await page.fill("#search", "");
  await counted(page, "76 of 76 messages");

  // The error of a comparison stays until a later comparison succeeds; a late answer to an earlier one does not remove it.
  await page.unroute("**/difference?*from=0&to=1");
  await page.selectOption("#view", "difference");
  held = [];
  await page.route("**/difference?*from=1&to=1", (route) => held.push(route));
  await page.fill("#from", "1");
  await page.fill("#to", "0");
  await page.press("#to", "Enter");
  await page.waitForFunction(() => document.getElementById("status").textContent.includes("the newest revision is 1"));
  assert.equal(held.length, 1);
  await held[0].continue();
  await page.unroute("**/difference?*from=1&to=1");
  await page.waitForTimeout(1_500);
  assert.ok((await page.textContent("#status")).includes("the newest revision is 1"));
  await page.fill("#to", "1");
  await page.press("#to", "Enter");
  await page.waitForFunction(() => document.getElementById("status").textContent === "");
  await page.evaluate(() => (location.hash = "#50%"));
  await page.waitForFunction(() => document.getElementById("status").textContent.includes('there is no session "50%"'));
  assert.deepEqual(faults.filter((fault) => !/400 \(Bad Request\)|net::ERR_FAILED/.test(fault)), []);
});

for (const [width, colorScheme] of [[1280, "light"], [400, "dark"]]) {
  test(`the inspector of ${width} pixels, ${colorScheme}, is readable by all`, async () => {
    const { store, run } = stored();
    run("compact", "--keep", "15%", "--strategy", "agent");
    run("clear");
    run("uncompact");
    const { page } = await opened(store, { args: ["--session", "one"], bypassCSP: true, colorScheme, viewport: { width, height: 800 } });
    await counted(page, "74 of 74 messages");
    await page.locator("#list").scrollIntoViewIfNeeded();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(wide, 0, "the page scrolls sideways");
    assert.deepEqual(await seriousFaults(page), []);
  });
}
