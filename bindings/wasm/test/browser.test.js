/** The page in a real browser: Chromium of the system, or the one that CHROMIUM names. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";
import { after, test } from "node:test";

const root = new URL("../", import.meta.url);
const chromium = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/google-chrome"].find((path) => existsSync(path));
const playwright = await import("playwright-core").catch(() => null);
const why = [[playwright, "playwright-core is not installed (npm install)"], [chromium, "there is no Chromium"]];
const skip = why.find(([there]) => !there)?.[1] ?? false;

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };
const asked = [];
const server = createServer(async (request, response) => {
  asked.push(request.url);
  try {
    const bytes = await readFile(new URL(`.${new URL(request.url, "http://localhost").pathname}`, root));
    response.writeHead(200, { "content-type": TYPES[extname(request.url)] ?? "application/octet-stream" }).end(bytes);
  } catch {
    response.writeHead(404).end();
  }
});
let browser = null;
after(async () => {
  await browser?.close();
  server.close();
});

function transcript(words) {
  const messages = [{ role: "system", content: "You are brief." }];
  for (let turn = 0; turn < 40; turn += 1) {
    messages.push({ role: "user", content: `Question ${turn}: ${words}` }, { role: "assistant", content: "word ".repeat(30) });
  }
  return JSON.stringify({ messages });
}

test("a chosen file is compacted in the browser, and nothing leaves it", { skip }, async () => {
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  browser = await playwright.chromium.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  const page = await browser.newPage();
  const faults = [];
  const requests = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("request", (request) => requests.push(request));
  page.on("dialog", (dialog) => {
    faults.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  await page.goto(`http://127.0.0.1:${server.address().port}/page/index.html`);
  const choose = async (name, text) => {
    await page.setInputFiles("#file", { name, mimeType: "application/json", buffer: Buffer.from(text) });
    await page.click("#run");
    await page.waitForFunction(() => !document.getElementById("run").disabled, null, { timeout: 60_000 });
  };

  // A transcript is data: neither its texts nor the name of its file are ever markup.
  const hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>";
  await choose(`${hostile}.json`, transcript(hostile));
  assert.equal(await page.textContent("#status"), "done");
  assert.equal(await page.textContent("#messages-before"), "81");
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("#download")]);
  const text = await readFile(await download.path(), "utf8");
  const { messages } = JSON.parse(text);
  assert.equal(String(messages.length), await page.textContent("#messages-after"));
  assert.deepEqual(messages.at(-1), JSON.parse(transcript(hostile)).messages.at(-1));
  assert.ok(text.length < transcript(hostile).length / 2);

  await choose("wrong.json", "{");
  assert.match(await page.textContent("#status"), /the JSON ends before it is complete/);
  assert.ok(await page.isHidden("#figures"));

  const place = `http://127.0.0.1:${server.address().port}/`;
  const elsewhere = requests.map((request) => request.url()).filter((url) => !url.startsWith(place) && !url.startsWith("blob:"));
  assert.deepEqual(elsewhere, []);
  assert.ok(requests.every((request) => request.method() === "GET"), "something was sent");
  assert.ok(asked.every((url) => url.startsWith("/page/") || ["/index.js", "/epitome.wasm"].includes(url)), String(asked));
  assert.deepEqual(faults, []);
});
