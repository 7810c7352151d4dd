"use strict";
/** Longer texts are shown in part first: a browser takes seconds to lay out a megabyte. */
const TEXT_MAX = 200_000;

/** Puts a text into an opened row: as text, never as markup. */
function textIn(details, text) {
  const pre = document.createElement("pre");
  pre.textContent = text.slice(0, TEXT_MAX);
  details.append(pre);
  if (text.length <= TEXT_MAX) return;
  const more = document.createElement("button");
  more.textContent = `Show all ${text.length.toLocaleString("en")} characters`;
  more.addEventListener("click", () => {
    pre.textContent = text;
    more.remove();
  });
  details.append(more);
}

/** A row with one line, and with its text when it is opened. A badge is a word and the class that colours it. */
function messageRow({ id, badges, line, text }) {
  const details = document.createElement("details");
  details.id = id;
  const summary = document.createElement("summary");
  for (const [word, style] of badges) {
    const badge = document.createElement("span");
    badge.className = `verdict ${style}`;
    badge.textContent = word;
    summary.append(badge);
  }
  summary.append(line.slice(0, 400));
  details.append(summary);
  let isFilled = false;
  details.addEventListener("toggle", async () => {
    if (!details.open || isFilled) return;
    isFilled = true;
    const found = await text();
    // A text that could not be had is asked for again when the row is opened again.
    isFilled = found !== null;
    if (isFilled) textIn(details, found);
  });
  return details;
}

/** A long list: rows are made when they come near the screen. */
function rowList(list, rowOf) {
  const BLOCK = 100;
  const ROW_PIXELS = 33;
  /** How far from the screen rows are made. */
  const NEAR_PIXELS = 1_000;
  const observer = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) fill(target);
  }, { rootMargin: `${NEAR_PIXELS}px` });
  function isNear(block) {
    const { top, bottom } = block.getBoundingClientRect();
    return bottom > -NEAR_PIXELS && top < innerHeight + NEAR_PIXELS;
  }
  function fill(block) {
    observer.unobserve(block);
    if (block.childElementCount > 0) return;
    block.append(...block.items.map(rowOf));
    block.style.minHeight = "";
  }
  return {
    /** Shows these items, and nothing else. Rows that stay are not touched: they keep the place on the screen, the focus and what is selected. */
    show(items) {
      for (const block of [...list.children].slice(Math.ceil(items.length / BLOCK))) {
        observer.unobserve(block);
        block.remove();
      }
      const old = list.childElementCount;
      for (let at = 0; at < items.length; at += BLOCK) {
        const block = list.children[at / BLOCK] ?? document.createElement("div");
        block.items = items.slice(at, at + BLOCK);
        if (block.childElementCount > 0) {
          block.items.map(rowOf).forEach((row, place) => row === block.children[place] || block.insertBefore(row, block.children[place] ?? null));
          while (block.childElementCount > block.items.length) block.lastElementChild.remove();
        } else {
          block.style.minHeight = `${block.items.length * ROW_PIXELS}px`;
        }
        if (!block.isConnected) {
          block.className = "block";
          list.append(block);
        }
      }
      [...list.children].filter(isNear).forEach(fill);
      for (const block of [...list.children].slice(old)) observer.observe(block);
    },
    /** Makes the row of the item that is shown at this place. */
    make(place) {
      const block = list.children[Math.floor(place / BLOCK)];
      if (block) fill(block);
    },
  };
}
