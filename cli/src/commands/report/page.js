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
  const BLOCK = 100;
  const ROW_PIXELS = 33;
  const verdictOf = (message) => strips[strip.value]?.[message.group] ?? "";

  /** The row of a message. The text is inserted as text, never as markup, and only when the row is opened. */
  function row(number) {
    const message = messages[number];
    const [head, ...lines] = message.text.split("\n");
    const details = document.createElement("details");
    details.id = `m${number}`;
    const summary = document.createElement("summary");
    const [word, style] = WORDS[verdictOf(message)] ?? [];
    if (word) {
      const badge = document.createElement("span");
      badge.className = `verdict ${style}`;
      badge.textContent = word;
      summary.append(badge);
    }
    const first = lines.find((line) => line.trim() !== "")?.trim() ?? "";
    summary.append(`${head}  ${first}`.slice(0, 400));
    details.append(summary);
    details.addEventListener("toggle", () => {
      if (details.open && details.childElementCount === 1) {
        const pre = document.createElement("pre");
        pre.textContent = lines.join("\n");
        details.append(pre);
      }
    });
    return details;
  }

  /** Rows are made when they come near the screen. */
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) fill(target);
  }, { rootMargin: "1000px" });
  function fill(block) {
    observer.unobserve(block);
    if (block.childElementCount > 0) return;
    block.append(...block.numbers.map(row));
    block.style.minHeight = "";
  }

  let shown = [];
  function show() {
    const words = search.value.toLowerCase();
    shown = [];
    messages.forEach((message, number) => {
      if (role.value && message.role !== role.value) return;
      if (verdict.value && verdictOf(message) !== verdict.value) return;
      if (words && !message.text.toLowerCase().includes(words)) return;
      shown.push(number);
    });
    observer.disconnect();
    const blocks = [];
    for (let at = 0; at < shown.length; at += BLOCK) {
      const block = document.createElement("div");
      block.className = "block";
      block.numbers = shown.slice(at, at + BLOCK);
      block.style.minHeight = `${block.numbers.length * ROW_PIXELS}px`;
      blocks.push(block);
    }
    list.replaceChildren(...blocks);
    blocks.forEach((block) => observer.observe(block));
    count.textContent = `${shown.length.toLocaleString("en")} of ${messages.length.toLocaleString("en")} messages`;
  }

  /** Opens a message and scrolls to it. */
  function open(number) {
    if (!shown.includes(number)) {
      for (const filter of [search, role, verdict]) filter.value = "";
      show();
    }
    const block = list.children[Math.floor(shown.indexOf(number) / BLOCK)];
    if (!block) return;
    fill(block);
    const details = document.getElementById(`m${number}`);
    details.open = true;
    details.scrollIntoView({ block: "center" });
    details.querySelector("summary").focus({ preventScroll: true });
  }
  function openNamed() {
    const number = /^#m([0-9]+)$/.exec(location.hash)?.[1];
    if (number !== undefined && Number(number) < messages.length) open(Number(number));
  }

  /** A click on a strip opens the message that stands there. */
  const ends = [];
  messages.reduce((sum, message) => {
    ends.push(sum + message.tokens);
    return sum + message.tokens;
  }, 0);
  document.querySelectorAll("svg.strip").forEach((drawing, number) => {
    drawing.style.cursor = "pointer";
    drawing.addEventListener("click", (event) => {
      const { left, width } = drawing.getBoundingClientRect();
      const token = ((event.clientX - left) / width) * (ends.at(-1) ?? 0);
      strip.value = String(number);
      show();
      open(Math.max(0, ends.findIndex((end) => end > token)));
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
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "")) {
      event.preventDefault();
      search.focus();
    }
  });
  addEventListener("hashchange", openNamed);
  document.getElementById("messages").hidden = false;
  show();
  openNamed();
})();
