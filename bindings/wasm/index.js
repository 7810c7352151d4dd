/** The commands of Epitome over texts in memory. See index.d.ts for the documentation of each function. */

const FAULT = -2;

/** An error of a command. `code` is the exit code of the program `epitome`. */
export class EpitomeError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "EpitomeError";
    this.code = code;
  }
}

/** Loads the library: from `source`, or the file `epitome.wasm` beside this module. */
export async function load(source) {
  return new Epitome(await compile(source));
}

async function compile(source) {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
  const place = source ?? new URL("./epitome.wasm", import.meta.url);
  if (String(place).startsWith("file:")) {
    const { readFile } = await import("node:fs/promises");
    return WebAssembly.compile(await readFile(new URL(place)));
  }
  const response = await (place instanceof Promise || place instanceof Response ? place : fetch(place));
  if (!response.ok) throw new EpitomeError(4, `epitome.wasm: ${response.status} ${response.statusText}`);
  return WebAssembly.compile(await response.arrayBuffer());
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

class Epitome {
  #module;
  #library = null;

  constructor(module) {
    this.#module = module;
  }

  get #exports() {
    if (this.#library === null) {
      const random = (to, len) => {
        // The interface gives at most 65,536 bytes at a time.
        for (let at = 0; at < len; at += 65536) {
          crypto.getRandomValues(new Uint8Array(memory.buffer, to + at, Math.min(65536, len - at)));
        }
      };
      const { exports } = new WebAssembly.Instance(this.#module, { epitome: { random } });
      const memory = exports.memory;
      this.#library = exports;
    }
    return this.#library;
  }

  version() {
    const { memory, epitome_version } = this.#exports;
    const bytes = new Uint8Array(memory.buffer, epitome_version());
    return decoder.decode(bytes.subarray(0, bytes.indexOf(0)));
  }

  call(args, input = "") {
    try {
      return this.#call(args, typeof input === "string" ? encoder.encode(input) : input);
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError) && !(error instanceof RangeError)) throw error;
      // What is left in its memory is not used again.
      this.#library = null;
      throw new EpitomeError(FAULT, `epitome: the library has failed: ${error.message}`);
    }
  }

  #call(args, input) {
    const library = this.#exports;
    const taken = [];
    const take = (len) => {
      const at = library.epitome_memory(len);
      if (at === 0) throw new RangeError(`no memory for ${len} bytes`);
      taken.push([at, len]);
      return at;
    };
    const put = (bytes) => {
      const at = take(bytes.length);
      new Uint8Array(library.memory.buffer, at, bytes.length).set(bytes);
      return at;
    };
    try {
      const texts = args.map((text) => {
        if (typeof text !== "string") throw new EpitomeError(2, `an argument is a ${typeof text}: give texts`);
        if (text.includes("\0")) throw new EpitomeError(2, "an argument has a zero character");
        return put(encoder.encode(`${text}\0`));
      });
      const pointers = take(4 * texts.length);
      const data = put(input);
      const answer = take(16);
      new Uint32Array(library.memory.buffer, pointers, texts.length).set(texts);
      const code = library.epitome_call(pointers, texts.length, data, input.length, answer);
      const [output, outputLength, diagnostics, diagnosticsLength] = new Uint32Array(library.memory.buffer, answer, 4);
      const text = (at, len) => decoder.decode(new Uint8Array(library.memory.buffer, at, len));
      const result = { code, output: text(output, outputLength), diagnostics: text(diagnostics, diagnosticsLength) };
      library.epitome_answer_free(answer);
      return result;
    } finally {
      for (const [at, len] of taken) library.epitome_memory_free(at, len);
    }
  }

  compact(input, options) {
    const { text, back } = transcript(input);
    const args = ["compact", "-", "-o", "-", "--json", ...flags({ tokenizer: "estimate" }, options, COMPACT)];
    // 1: a repair has left violations, which the report counts.
    const { output, diagnostics } = this.#done(args, text, [0, 1]);
    const { documents, warnings } = reports(diagnostics);
    const losses = documents.length > 1 ? documents[0].losses : [];
    return { transcript: output === text ? input : back(output), report: documents.at(-1), losses, warnings };
  }

  validate(input, options) {
    const { text } = transcript(input);
    return JSON.parse(this.#done(["validate", "-", "--json", ...flags({}, options, VALIDATE)], text, [0, 1]).output);
  }

  convert(input, to, options) {
    const { text } = transcript(input);
    const args = ["convert", "-", "--json", ...flags({ to }, options, CONVERT)];
    const { output, diagnostics } = this.#done(args, text);
    return { text: output, losses: reports(diagnostics).documents.at(-1).losses };
  }

  stats(input, options) {
    const { text } = transcript(input);
    const args = ["stats", "-", "--json", ...flags({ tokenizer: "estimate" }, options, STATS)];
    return JSON.parse(this.#done(args, text).output);
  }

  #done(args, text, fine = [0]) {
    const { code, output, diagnostics } = this.call(args, text);
    if (!fine.includes(code)) throw new EpitomeError(code, diagnostics.trim());
    return { output, diagnostics };
  }
}

const INPUT = { format: "--from", at: "--at", leaf: "--leaf" };
const BUDGET = { keep: "--keep", window: "--window", reserve: "--reserve", trigger: "--trigger", goal: "--goal" };
const COMPACT = {
  ...INPUT, ...BUDGET, strategy: "--strategy", model: "--model", tokenizer: "--tokenizer", to: "--to",
  profile: "--profile", repair: "--repair", pins: "--pin",
};
const VALIDATE = { ...INPUT, profile: "--profile" };
const CONVERT = { ...INPUT, to: "--to" };
const STATS = { ...INPUT, model: "--model", tokenizer: "--tokenizer" };

/** The options of the program for an object of options, over those that are set without it. */
function flags(defaults, options, known) {
  const all = [];
  const given = Object.entries(options ?? {}).filter(([, value]) => value !== undefined && value !== null);
  for (const [name, value] of Object.entries({ ...defaults, ...Object.fromEntries(given) })) {
    if (!Object.hasOwn(known, name)) {
      throw new EpitomeError(2, `there is no option ${name}: expected ${Object.keys(known).join(", ")}`);
    }
    if (value === false) continue;
    if (name === "keep" && typeof value === "number") {
      all.push(`--keep=${(value * 100).toFixed(3)}%`);
      continue;
    }
    for (const one of Array.isArray(value) ? value : [value]) {
      all.push(one === true ? known[name] : `${known[name]}=${one}`);
    }
  }
  return all;
}

/** The text of a transcript, and how its compacted form is given back: a text for a text or bytes, a value for a value. */
function transcript(input) {
  const same = (text) => text;
  if (input instanceof Uint8Array) return { text: input, back: same };
  if (input instanceof ArrayBuffer) return { text: new Uint8Array(input), back: same };
  const plain = Array.isArray(input) || (typeof input === "object" && input !== null && !ArrayBuffer.isView(input));
  if (typeof input !== "string" && !plain) {
    const kind = input === null ? "null" : (input?.constructor?.name ?? typeof input);
    throw new EpitomeError(2, `the transcript is ${kind}: give a text, bytes, a list of messages or an object`);
  }
  let text = input;
  try {
    if (plain) text = JSON.stringify(input);
  } catch (error) {
    throw new EpitomeError(2, `the transcript is no JSON: ${error.message}`);
  }
  // JSON.stringify writes a lone surrogate as an escape, which is read as it is documented.
  const lone = text.isWellFormed?.() === false;
  if (lone) throw new EpitomeError(2, "the text has a lone surrogate, which UTF-8 cannot have: replace it");
  return { text, back: plain ? JSON.parse : same };
}

/** The JSON documents and the lines of plain text on standard error. */
function reports(diagnostics) {
  const documents = [];
  const warnings = [];
  let document = null;
  for (const line of diagnostics.split("\n")) {
    // The program writes a document over several lines, the last of which is its closing bracket alone.
    if (document !== null || line === "{" || line === "[") {
      document = document === null ? line : `${document}\n${line}`;
      if (line === "}" || line === "]") {
        documents.push(JSON.parse(document));
        document = null;
      }
    } else if (line.startsWith("{") && line.endsWith("}")) {
      documents.push(JSON.parse(line));
    } else if (line.trim() !== "") {
      warnings.push(line);
    }
  }
  return { documents, warnings };
}
