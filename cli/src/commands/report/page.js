"use strict";
(() => {
  const data = document.getElementById("messages-data");
  const list = document.getElementById("list");
  if (!data || !list) return;
  const { messages, strips } = JSON.parse(data.textContent);
  const search = document.getElementById("search");
  const role = document.getElementById("role");
  const strip = document.getElementById("strip");
  const verdict = document.getElementById("verdict");
  const count = document.getElementById("count");
  const WORDS = { K: ["kept", "v-kept"], E: ["shortened", "v-shortened"], R: ["replaced", "v-replaced"], D: ["dropped", "v-dropped"] };
  const PREVIEW_LINES = 4;
  const verdictOf = (message) => strips[strip.value]?.[message.group] ?? "";
  const bodyOf = (message) => message.text.slice(message.text.indexOf("\n") + 1);
  const inOneLine = (text) => text.replace(/\s+/g, " ").trim().toLowerCase();

  const rows = rowList(list, (number) => {
    const message = messages[number];
    const [head] = message.text.split("\n", 1);
    const body = bodyOf(message);
    const lines = body.slice(0, 2_000).split("\n").map((line) => line.trim()).filter((line) => line !== "" && line !== "[thinks]");
    const badge = WORDS[verdictOf(message)];
    return messageRow({
      id: `m${number}`,
      badges: badge ? [badge] : [],
      line: `${head.split("  ").slice(0, 4).join(" ")}  ${lines.slice(0, PREVIEW_LINES).join("  ")}`,
      text: () => `${head}\n${body}`,
    });
  });

  let shown = [];
  let texts = null;
  function show() {
    const words = inOneLine(search.value);
    if (words) texts ??= messages.map((message) => inOneLine(bodyOf(message)));
    shown = [];
    messages.forEach((message, number) => {
      if (role.value && message.role !== role.value) return;
      if (verdict.value && verdictOf(message) !== verdict.value) return;
      if (words && !texts[number].includes(words)) return;
      shown.push(number);
    });
    rows.show(shown);
    count.textContent = `${shown.length.toLocaleString("en")} of ${messages.length.toLocaleString("en")} messages`;
  }

  /** Opens a message and scrolls to it. */
  function open(number) {
    if (!shown.includes(number)) {
      for (const filter of [search, role, verdict]) filter.value = "";
      show();
    }
    rows.make(shown.indexOf(number));
    const details = document.getElementById(`m${number}`);
    details.open = true;
    details.scrollIntoView({ block: "center" });
    details.querySelector("summary").focus({ preventScroll: true });
  }
  const named = (hash) => {
    const number = Number(/^#m([0-9]+)$/.exec(hash)?.[1] ?? Number.NaN);
    return number < messages.length ? number : null;
  };
  function openNamed() {
    const number = named(location.hash);
    if (number !== null) open(number);
  }
  /** Makes a message the place of the page, and opens it also where it was that before. */
  function go(number) {
    if (location.hash === `#m${number}`) open(number);
    else location.hash = `#m${number}`;
  }
  document.addEventListener("click", (event) => {
    const number = named(event.target.closest?.("a[href^='#m']")?.getAttribute("href") ?? "");
    if (number === null) return;
    event.preventDefault();
    go(number);
  });

  /** A click on a strip opens the message that stands there. Strips are drawn group by group. */
  const inGroups = messages.map((_, number) => number).sort((one, other) => messages[one].group - messages[other].group || one - other);
  const ends = [];
  inGroups.reduce((sum, number) => {
    ends.push(sum + messages[number].tokens);
    return sum + messages[number].tokens;
  }, 0);
  document.querySelectorAll("svg.strip").forEach((drawing, number) => {
    drawing.style.cursor = "pointer";
    drawing.addEventListener("click", (event) => {
      const { left, width } = drawing.getBoundingClientRect();
      const token = ((event.clientX - left) / width) * (ends.at(-1) ?? 0);
      strip.value = String(number);
      show();
      go(inGroups[ends.findIndex((end) => end > token)] ?? 0);
    });
  });

  let timer = 0;
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, 150);
  });
  for (const filter of [role, strip, verdict]) filter.addEventListener("change", show);
  document.getElementById("filters").addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      search.focus();
    }
  });
  addEventListener("hashchange", openNamed);
  document.getElementById("messages").hidden = false;
  show();
  // The browser goes to the place itself when the page is loaded.
  addEventListener("load", () => setTimeout(openNamed));
})();
