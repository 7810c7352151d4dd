/** The program and a browser, for all tests of pages. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import playwright from "playwright-core";

const require = createRequire(import.meta.url);
export const example = fileURLToPath(new URL("../../examples/coding-agent.json", import.meta.url));
export const folder = mkdtempSync(join(tmpdir(), "epitome-pages-"));
let browser = null;
before(async () => {
  browser = await playwright.chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true });
});

export function epitome(...args) {
  return execFileSync(process.env.EPITOME, args, { encoding: "utf8", maxBuffer: 1 << 30, stdio: ["ignore", "pipe", "ignore"] });
}

/** A page for the addresses that begin with `origin`; `faults` are errors, dialogs and requests for anything else. */
export async function newPage(origin, options = {}) {
  const page = await (await browser.newContext(options)).newPage();
  // A machine may be busy.
  page.setDefaultTimeout(120_000);
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
  page.on("dialog", (dialog) => {
    faults.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => request.url().startsWith(origin) || faults.push(`a request: ${request.url()}`));
  return { page, faults };
}

/** Waits until the page says how many messages it shows. */
export const counted = (page, text) => page.waitForFunction((text) => document.getElementById("count").textContent === text, text);

/** What makes a page hard to use, serious or critical; the page is to allow foreign scripts. */
export async function seriousFaults(page) {
  await page.addScriptTag({ path: require.resolve("axe-core/axe.min.js") });
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  return serious.map(({ id, nodes }) => [id, nodes.length, nodes[0].html, nodes[0].failureSummary]);
}
