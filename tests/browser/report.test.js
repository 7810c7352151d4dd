/** Pages of `epitome report` in a real browser. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { counted, epitome, example, folder, newPage, seriousFaults } from "./support.js";

/** The page of a transcript; `faults` are errors, dialogs and requests for anything but the page. */
async function opened(file, { args = [], ...options } = {}) {
  const path = join(folder, "page.html");
  epitome("report", file, "-o", path, "--force", ...args);
  const { page, faults } = await newPage(`file://${path}`, options);
  await page.goto(`file://${path}`);
  return { page, faults };
}

test("a page says what the program says, and shows its messages on demand", async () => {
  const { page, faults } = await opened(example, { args: ["--window", "8000"] });
  const [figures] = JSON.parse(epitome("report", example, "--window", "8000", "--json")).conversations;
  const said = (await page.textContent("dl.figures")).replaceAll(",", "");
  for (const figure of [figures.messages, figures.turns, figures.tokens]) assert.ok(said.includes(String(figure)), said);
  assert.equal(await page.locator("svg.strip").count(), figures.strips.length);
  const after = await page.locator("td.strip + td").allTextContents();
  assert.deepEqual(after.map((text) => Number(text.split(" ")[0].replaceAll(",", ""))), figures.strips.map((strip) => strip.tokens_after));
  const compactions = page.locator("table", { hasText: "Compactions, in tokens" }).locator("tbody tr");
  assert.equal(await compactions.count(), figures.context.compactions.length);

  await counted(page, "74 of 74 messages");
  // All that is shown of a message is in its row, and only when the row is opened.
  await page.locator("#list").scrollIntoViewIfNeeded();
  const row = page.locator("#m1");
  assert.equal(await row.locator("pre").count(), 0);
  await row.locator("summary").click();
  assert.ok((await row.locator("pre").textContent()).includes(JSON.parse(epitome("convert", example, "--to", "openai-chat"))
    .messages[1].content.slice(0, 40)));

  // Search, roles, verdicts.
  await page.keyboard.press("Escape");
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "search");
  await page.keyboard.type("no such words anywhere");
  await counted(page, "0 of 74 messages");
  await page.fill("#search", "");
  await page.selectOption("#role", "user");
  const users = await page.evaluate(() => JSON.parse(document.getElementById("messages-data").textContent).messages.filter((one) => one.role === "user").length);
  await counted(page, `${users} of 74 messages`);
  await page.selectOption("#role", "");
  const truncate = figures.strips.findIndex((strip) => strip.strategy === "truncate" && strip.keep === "25%");
  await page.selectOption("#strip", String(truncate));
  await page.selectOption("#verdict", "D");
  const dropped = figures.groups.filter((_, at) => figures.strips[truncate].verdicts[at] === "D");
  await page.waitForFunction((most) => Number.parseInt(document.getElementById("count").textContent) >= most, dropped.length);
  assert.ok((await page.locator("#list .verdict").allTextContents()).every((word) => word === "dropped"));

  // A link and a click on a strip lead to a message, also where a filter hides it.
  await page.fill("#search", "no such words anywhere");
  await counted(page, "0 of 74 messages");
  const lost = page.locator("details", { hasText: "Lost by" }).first();
  await lost.locator("summary").click();
  const link = lost.locator("a").first();
  const target = await link.getAttribute("href");
  await link.click();
  await page.waitForSelector(`${target}[open] pre`);
  await page.locator("svg.strip").last().click({ position: { x: 2, y: 5 } });
  await page.waitForSelector("#m0[open]");
  assert.equal(await page.inputValue("#strip"), String(figures.strips.length - 1));
  assert.equal(await page.evaluate(() => location.hash), "#m0");
  // A link opens its message again when it has been closed.
  await link.click();
  await page.waitForSelector(`${target}[open] pre`);
  await page.locator(`${target}[open] summary`).click();
  assert.equal(await page.locator(`${target}[open]`).count(), 0);
  await link.click();
  await page.waitForSelector(`${target}[open] pre`);
  // The search looks at what was said, across breaks of lines, and not at the page's own words.
  await page.selectOption("#verdict", "");
  await page.fill("#search", "turn 1 user");
  await counted(page, "0 of 74 messages");
  assert.deepEqual(faults, []);
});

test("a click on a strip opens a message of the group that is drawn there", async () => {
  const messages = [];
  for (let turn = 0; turn < 30; turn += 1) {
    const calls = ["a", "b"].map((id) => ({ id: `${id}${turn}`, type: "function", function: { name: "read", arguments: "{}" } }));
    messages.push({ role: "user", content: `question ${turn}` }, { role: "assistant", content: null, tool_calls: calls });
    messages.push({ role: "tool", tool_call_id: `a${turn}`, content: "first ".repeat(40) }, { role: "user", content: "go on ".repeat(30) });
    messages.push({ role: "assistant", content: "so far ".repeat(20) }, { role: "tool", tool_call_id: `b${turn}`, content: "late ".repeat(90) });
  }
  const file = join(folder, "late.json");
  writeFileSync(file, JSON.stringify({ messages }));
  const { page, faults } = await opened(file, { args: ["--strategy", "truncate", "--keep", "50"] });
  const [{ groups }] = JSON.parse(epitome("report", file, "--strategy", "truncate", "--keep", "50", "--json")).conversations;
  const all = groups.reduce((sum, { tokens }) => sum + tokens, 0);
  const { width } = await page.locator("svg.strip").boundingBox();
  let [end, clicks] = [0, 0];
  for (const [number, { tokens }] of groups.entries()) {
    const middle = ((end + tokens / 2) / all) * width;
    end += tokens;
    // A click is good to a pixel.
    if ((tokens / all) * width < 4) continue;
    clicks += 1;
    await page.locator("svg.strip").click({ position: { x: middle, y: 5 } });
    const opened = await page.evaluate(() => Number(location.hash.slice(2)));
    const group = await page.evaluate((at) => JSON.parse(document.getElementById("messages-data").textContent).messages[at].group, opened);
    assert.equal(group, number);
  }
  assert.ok(clicks > 20, "groups are wide enough to be clicked");
  assert.deepEqual(faults, []);
});

test("no text of a transcript is executed", async () => {
  const bad = "</script><script>alert(1)</script><svg onload=alert(2)><img src=x onerror=alert(3)>&lt;";
  const messages = [];
  for (let turn = 0; turn < 20; turn += 1) {
    const call = { id: `${bad}${turn}`, type: "function", function: { name: bad, arguments: JSON.stringify({ path: `src/${bad.replaceAll(" ", "")}.rs` }) } };
    messages.push({ role: "user", content: `${bad} ${turn}`, name: bad }, { role: "assistant", content: bad, tool_calls: [call] });
    messages.push({ role: "tool", tool_call_id: call.id, content: bad.repeat(20) }, { role: "assistant", content: `src/alpha_${turn}.rs ${bad}` });
  }
  const file = join(folder, "<img src=x onerror=alert(4)>.json".replaceAll("/", ""));
  writeFileSync(file, JSON.stringify({ messages }));
  const { page, faults } = await opened(file);
  await counted(page, "80 of 80 messages");
  await page.locator("#list").scrollIntoViewIfNeeded();
  await page.waitForSelector("#m0");
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
  assert.ok((await page.locator("#m0 pre").textContent()).includes(bad));
  assert.equal(await page.locator("img, iframe, object, embed, link, base").count(), 0);
  assert.equal(await page.locator("script").count(), 3);
  // What would be inserted as markup is not executed either.
  await page.evaluate((bad) => (document.getElementById("list").innerHTML = bad), bad);
  await page.waitForTimeout(300);
  const refused = faults.filter((fault) => !/Content Security Policy/.test(fault) && !/a request: file:.*\/x$/.test(fault));
  assert.deepEqual(refused, []);
});

test("fifty thousand messages can be scrolled and searched", async () => {
  const messages = [];
  for (let turn = 0; turn < 25_000; turn += 1) {
    messages.push({ role: "user", content: `question ${turn}` }, { role: "assistant", content: `answer ${turn}` });
  }
  const file = join(folder, "long.json");
  writeFileSync(file, JSON.stringify({ messages }));
  const { page, faults } = await opened(file, { args: ["--tokenizer", "estimate", "--strategy", "truncate", "--keep", "25"] });
  await counted(page, "50,000 of 50,000 messages");
  const millis = await page.evaluate(() => Math.round(performance.getEntriesByType("navigation")[0].loadEventEnd));
  console.log(`50,000 messages: loaded in ${millis} ms`);
  assert.ok((await page.locator("#list details").count()) < 5_000, "rows are made on demand");
  await page.evaluate(() => (location.hash = "#m49999"));
  await page.waitForSelector("#m49999[open] pre");
  await page.fill("#search", "answer 24999");
  await counted(page, "1 of 50,000 messages");
  assert.deepEqual(faults, []);
});

test("figures and drawings are there without scripts", async () => {
  const { page, faults } = await opened(example, { javaScriptEnabled: false });
  assert.equal(await page.locator("svg").count(), 11);
  assert.ok(await page.locator("noscript").isVisible());
  assert.ok(await page.locator("#messages").isHidden());
  await page.locator("summary", { hasText: "By turn" }).click();
  assert.ok(await page.locator("th", { hasText: "from message" }).isVisible());
  assert.deepEqual(faults, []);
});

for (const [width, colorScheme] of [[1280, "light"], [400, "dark"]]) {
  test(`a page of ${width} pixels, ${colorScheme}, is readable by all`, async () => {
    const { page } = await opened(example, { bypassCSP: true, colorScheme, viewport: { width, height: 800 }, args: ["--window", "8000"] });
    await counted(page, "74 of 74 messages");
    await page.locator("#list").scrollIntoViewIfNeeded();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(wide, 0, "the page scrolls sideways");
    assert.deepEqual(await seriousFaults(page), []);
  });
}
