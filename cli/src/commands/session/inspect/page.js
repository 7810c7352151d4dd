"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const grouped = (number) => number.toLocaleString("en");
  const counted = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
  const CHANGED_EVERY_MILLIS = 1_000;

  class Refused extends Error {}
  async function ask(what, values = {}) {
    const answer = await fetch(`${what}?${new URLSearchParams(values)}`);
    const text = await answer.text();
    if (answer.ok) return JSON.parse(text);
    let said = text;
    try {
      said = JSON.parse(text).error;
    } catch {
      // A wrong number is answered with a text.
    }
    throw new Refused(said);
  }
  /** What failed: in following a session, in a search, and in what else the user asked for. */
  const failed = { follow: "", search: "", asked: "" };
  const attempts = { follow: 0, search: 0, asked: 0 };
  /** Runs the step and shows its error until a later attempt of the same kind succeeds. */
  async function attempt(step, what = "asked") {
    const number = (attempts[what] += 1);
    let fault = "";
    try {
      await step();
    } catch (error) {
      fault = error instanceof Refused ? error.message : "The server does not answer: it may have ended.";
    }
    // The late end of an earlier attempt says nothing about the newest one.
    if (number !== attempts[what]) return;
    failed[what] = fault;
    byId("status").textContent = failed.follow || failed.search || failed.asked;
  }
  function element(name, { text = "", ...properties } = {}, children = []) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(text, ...children);
    return made;
  }
  const cells = (values) => values.map((text) => element("td", { text: String(text ?? "") }));

  let listed = "";
  async function showAll() {
    const sessions = await ask("sessions");
    // A list that is as it was stays, with what has the focus in it.
    if (JSON.stringify(sessions) === listed) return;
    listed = JSON.stringify(sessions);
    const rows = sessions.map((one) => {
      const link = element("a", { href: `#${encodeURIComponent(one.session)}`, text: one.session });
      const figures = [one.messages, one.live_messages, one.live_tokens, one.revision].map(grouped);
      const rest = one.damage ? [element("td", { colSpan: figures.length, text: `damaged: ${one.damage}` })] : cells(figures);
      return element("tr", {}, [element("td", { className: "name" }, [link]), ...rest]);
    });
    byId("sessions").replaceChildren(...rows);
  }

  /** The session that is shown; `null` for the list of all. */
  let name = null;
  let session = null;
  let messages = [];
  let found = null;
  let difference = null;
  let comparisons = 0;
  let made = new Map();

  /** Reads what is new. A new revision may have changed any message. */
  async function refresh() {
    const of = name;
    const now = await ask("session", { session: of });
    const isAppended = session?.revision === now.revision && messages.length <= now.messages;
    const all = isAppended ? messages.slice() : [];
    for (let next = all.length; next !== null;) {
      const page = await ask("messages", { session: of, number: next });
      if (of !== name) return;
      all.push(...page.messages);
      next = page.next;
      // The first messages of a session that is opened need not wait for the others.
      if (session === null) draw(now, all);
    }
    if (difference !== null) await compare();
    const words = byId("search").value.trim();
    if (found !== null && words !== "") found = new Set(await ask("found", { session: of, words }));
    if (of !== name) return;
    draw(now, all);
  }

  function draw(now, all) {
    [session, messages] = [now, all];
    drawFigures();
    drawLog();
    drawRevisions();
    const isAtEnd = scrollY > 0 && innerHeight + scrollY >= document.documentElement.scrollHeight - 40;
    showMessages();
    // Whoever reads the end of a session goes on reading there.
    if (isAtEnd) scrollTo(0, document.documentElement.scrollHeight);
  }

  function drawFigures() {
    const figures = [["messages", session.messages], ["visible", session.visible], ["visible tokens", session.visible_tokens], ["revision", session.revision]];
    byId("figures").replaceChildren(...figures.map(([what, number]) =>
      element("div", {}, [element("dt", { text: what }), element("dd", { text: grouped(number) })])));
  }

  const stateOf = (one) => {
    if (one.pruned_by !== null) return ["deleted", "v-pruned"];
    if (one.hidden_by !== null) return ["hidden", "v-hidden"];
    if (one.orphan) return ["no call", "v-hidden"];
    return one.edited_by === null ? ["visible", "v-kept"] : ["shortened", "v-shortened"];
  };

  /** The log as a strip: a piece for all messages of one state that stand behind each other. */
  function drawLog() {
    const all = messages.reduce((sum, one) => sum + one.tokens, 0);
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("class", "log");
    svg.setAttribute("viewBox", `0 0 ${Math.max(all, 1)} 1`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    const hidden = messages.filter((one) => one.hidden_by !== null).length;
    svg.setAttribute("aria-label", `${counted(messages.length, "message")}, ${grouped(hidden)} of them hidden`);
    let [at, start, style] = [0, 0, null];
    const piece = () => {
      if (style === null || at === start) return;
      const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      for (const [key, value] of Object.entries({ x: start, width: at - start, height: 1, class: style })) rect.setAttribute(key, value);
      svg.append(rect);
    };
    for (const one of messages) {
      const [, now] = stateOf(one);
      if (now !== style) {
        piece();
        [start, style] = [at, now];
      }
      at += one.tokens;
    }
    piece();
    svg.addEventListener("click", (event) => {
      const { left, width } = svg.getBoundingClientRect();
      let rest = ((event.clientX - left) / width) * all;
      const one = messages.find(({ tokens }) => (rest -= tokens) < 0) ?? messages.at(-1);
      if (one) open(one.seq);
    });
    byId("drawing").replaceChildren(svg);
  }

  function drawRevisions() {
    const hides = new Map();
    for (const { hidden_by: by } of messages) if (by !== null) hides.set(by, (hides.get(by) ?? 0) + 1);
    const rows = session.revisions.map((one) => {
      const is = [one.what];
      if (one.undone_by) is.push(`undone by ${one.undone_by}`);
      if (one.undoes) is.push(`of ${one.undoes}`);
      if (one.deleted) is.push(`the texts of ${counted(one.deleted, "message")} deleted`);
      const button = element("button", { type: "button", text: "What it changed" });
      button.addEventListener("click", () => attempt(() => between(one.revision - 1, one.revision)));
      const number = (value) => (value === undefined || value === 0 ? "" : grouped(value));
      const figures = [number(hides.get(one.revision)), number(one.shortened), number(one.summaries), number(one.tokens_before), number(one.tokens_after)];
      const isChosen = difference?.from === one.revision - 1 && difference?.to === one.revision;
      return element("tr", { className: `${one.undone_by ? "undone" : ""} ${isChosen ? "chosen" : ""}` }, [
        ...cells([grouped(one.revision)]), element("td", { className: "name", text: is.join(", ") }), ...cells(figures),
        element("td", { className: "name" }, [button]),
      ]);
    });
    byId("revisions").replaceChildren(...rows);
    byId("revisions-table").hidden = rows.length === 0;
    byId("no-revisions").hidden = rows.length > 0;
    for (const id of ["from", "to"]) byId(id).max = session.revision;
  }

  /** Whether one of these ranges, which are ascending and apart, has the number. */
  function isIn(ranges, seq) {
    let [low, high] = [0, ranges.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ranges[middle][1] < seq) low = middle + 1;
      else high = middle;
    }
    return low < ranges.length && ranges[low][0] <= seq;
  }

  /** What two revisions make of a message: a word and its class; `null` where it is the same. A group is hidden and shown as a whole. */
  function changeOf(one) {
    const { from, to, hidden, hidden_at_end: hiddenAtEnd, shown, shortened, whole } = difference;
    if (one.revision !== null && one.revision > to) return null;
    const isNew = one.revision !== null && one.revision > from;
    if (isIn(hidden, one.anchor) || (isNew && isIn(hiddenAtEnd, one.anchor))) return ["hidden", "v-hidden"];
    if (isNew) return ["new", "v-new"];
    if (isIn(shown, one.anchor)) return ["shown again", "v-kept"];
    if (shortened.has(one.seq)) return ["shortened", "v-shortened"];
    return whole.has(one.seq) ? ["whole again", "v-kept"] : null;
  }

  /** The items of the list: messages, and before the first of those that it stands for, each summary. */
  function items() {
    const view = byId("view").value;
    const isWanted = {
      log: () => true,
      request: (one) => one.hidden_by === null && !one.orphan,
      hidden: (one) => one.hidden_by !== null,
      difference: (one) => difference !== null && changeOf(one) !== null,
    }[view];
    const isFound = (one) => (found === null || found.has(one.seq)) && (!byId("role").value || byId("role").value === one.role);
    const rows = messages.filter((one) => isWanted(one) && isFound(one)).map((one) => ({ at: one.seq, order: 1, one }));
    if (found === null && !byId("role").value) {
      const summaries = { log: session.summaries, request: session.summaries, hidden: [], difference: difference?.summaries ?? [] }[view];
      rows.push(...summaries.map((summary) => ({ at: summary.key, order: 0, summary })));
    }
    return rows.sort((one, other) => one.at - other.at || one.order - other.order);
  }

  function rowOf({ one, summary }) {
    return summary ? summaryRow(summary) : keptRow(one);
  }

  function summaryRow(summary) {
    const { is_new: isNew, text } = summary;
    const [first, last] = [summary.covers?.[0]?.[0], summary.covers?.at(-1)?.[1]];
    const covers = first === undefined ? `at ${summary.key}` : `of ${first} to ${last}`;
    const line = text.split("\n").slice(1).join(" ").replace(/\s+/g, " ").trim();
    const badges = [["summary", "v-replaced"]];
    if (isNew !== undefined) badges.push(isNew ? ["new", "v-new"] : ["gone", "v-hidden"]);
    const id = `s${summary.key}${isNew ?? ""}`;
    return kept(id, [covers, text].join(), () => messageRow({ id, badges, line: `${covers}  ${line}`, text: () => text }));
  }

  /** The row that is there, if its state is the same: what was opened stays open. */
  function kept(id, state, make) {
    const before = made.get(id);
    if (before?.state === state) return before.row;
    const row = make();
    made.set(id, { state, row });
    return row;
  }

  function keptRow(one) {
    const badge = difference !== null && byId("view").value === "difference" ? changeOf(one) ?? stateOf(one) : stateOf(one);
    const state = [...badge, one.hidden_by, one.edited_by, one.pruned_by].join();
    return kept(one.seq, state, () => rowOfMessage(one, badge));
  }

  function rowOfMessage(one, badge) {
    const by = one.pruned_by ?? one.hidden_by ?? one.edited_by;
    const marks = [`#${one.seq}`, one.role, counted(one.tokens, "token")];
    if (one.pinned) marks.push("pinned");
    if (by !== null) marks.push(`by revision ${by}`);
    const of = name;
    const row = messageRow({
      id: `m${one.seq}`,
      badges: [badge],
      line: `${marks.join("  ")}  ${one.text}`,
      text: async () => {
        try {
          const { text, shown } = await ask("message", { session: of, number: one.seq });
          const about = one.time ? `appended ${one.time}, at revision ${one.revision}\n\n` : "";
          return shown === null ? about + text : `${about}The next request has:\n\n${shown}\nThe log has:\n\n${text}`;
        } catch {
          return null;
        }
      },
    });
    if (one.hidden_by !== null) row.classList.add("is-hidden");
    return row;
  }

  const rows = rowList(byId("list"), rowOf);
  let shown = [];
  function showMessages() {
    shown = items();
    rows.show(shown);
    const count = shown.filter(({ one }) => one).length;
    byId("count").textContent = `${grouped(count)} of ${counted(messages.length, "message")}`;
  }

  /** Opens a message and scrolls to it. */
  function open(seq) {
    const placeOf = () => shown.findIndex(({ one }) => one?.seq === seq);
    if (placeOf() < 0) {
      byId("role").value = byId("search").value = "";
      [byId("view").value, found, difference] = ["log", null, null];
      byId("between").hidden = true;
      showMessages();
    }
    rows.make(placeOf());
    const row = byId(`m${seq}`);
    row.open = true;
    row.scrollIntoView({ block: "center" });
    row.querySelector("summary").focus({ preventScroll: true });
  }

  async function compare() {
    const [from, to] = ["from", "to"].map((id) => byId(id).value);
    const [of, asked] = [name, (comparisons += 1)];
    if (![from, to].every((number) => /^[0-9]+$/.test(number))) {
      difference = null;
      return;
    }
    const { shortened, whole, ...found } = await ask("difference", { session: of, from, to });
    // The user has gone on meanwhile.
    if (of !== name || asked !== comparisons) return;
    difference = { ...found, shortened: new Set(shortened), whole: new Set(whole) };
  }
  /** Shows the difference of two revisions. */
  async function between(from, to) {
    [byId("view").value, byId("from").value, byId("to").value] = ["difference", from, to];
    byId("between").hidden = false;
    await compare();
    drawRevisions();
    showMessages();
    byId("messages-title").scrollIntoView();
  }

  async function search() {
    const [of, words] = [name, byId("search").value.trim()];
    const numbers = words === "" ? null : new Set(await ask("found", { session: of, words }));
    if (of !== name || words !== byId("search").value.trim()) return;
    found = numbers;
    showMessages();
  }

  async function go() {
    let wanted = location.hash.slice(1);
    try {
      wanted = decodeURIComponent(wanted);
    } catch {
      // Typed by hand: taken as it is.
    }
    name = wanted === "" ? null : wanted;
    [session, messages, found, difference, made, shown] = [null, [], null, null, new Map(), []];
    byId("all").hidden = name !== null;
    byId("one").hidden = name === null;
    byId("filters").reset();
    byId("between").hidden = true;
    document.title = name === null ? "epitome: sessions" : `${name} - epitome`;
    byId("name").textContent = name ?? "";
    await (name === null ? showAll() : refresh());
  }

  /** Looks whether something has changed, again and again. */
  async function follow() {
    if (!document.hidden) {
      await attempt(async () => {
        if (name === null) return showAll();
        const [of, now] = [name, await ask("head", { session: name })];
        const isBehind = messages.length < now.messages || now.messages !== session?.messages || now.revision !== session?.revision;
        if (of === name && isBehind) await refresh();
      }, "follow");
    }
    setTimeout(follow, CHANGED_EVERY_MILLIS);
  }

  let timer = 0;
  byId("search").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => attempt(search, "search"), 200);
  });
  byId("role").addEventListener("change", showMessages);
  byId("view").addEventListener("change", () => attempt(async () => {
    const isDifference = byId("view").value === "difference";
    byId("between").hidden = !isDifference;
    if (isDifference && byId("to").value === "") return between(Math.max(session.revision - 1, 0), session.revision);
    await compare();
    showMessages();
  }));
  for (const id of ["from", "to"]) {
    byId(id).addEventListener("change", () => attempt(async () => {
      await compare();
      drawRevisions();
      showMessages();
    }));
  }
  byId("filters").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(search, "search");
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
    if (event.key === "/" && !isTyping && !event.ctrlKey && !event.altKey && !event.metaKey && name !== null) {
      event.preventDefault();
      byId("search").focus();
    }
  });
  addEventListener("hashchange", () => attempt(go));
  attempt(go).then(() => setTimeout(follow, CHANGED_EVERY_MILLIS));
})();
