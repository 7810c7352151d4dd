/** An error of a command. */
export class EpitomeError extends Error {
  /**
   * The exit code of the program `epitome`: 2 wrong input or options, 3 the protected messages do not fit the window,
   * 4 a file failed, 5 the result differs from the plan when it is read again. After a fault of the library (-2), the next call works.
   */
  readonly code: number;
}

/** How the transcript is read. */
export interface InputOptions {
  /** The format, for example "anthropic" or "claude-code". Default: the format that the text looks like. */
  format?: string;
  /** The place of the conversation in the text, as a JSON pointer. */
  at?: string;
  /** In a session with branches, the id of the last message. */
  leaf?: string;
}

export interface CompactOptions extends InputOptions {
  /** The share of the transcript's own tokens to keep: 0.3 or "30%". */
  keep?: number | string;
  /** The window of the model, in tokens. Default: 128,000. */
  window?: number;
  /** The tokens that stay free for the answer. Default: an eighth of the window, at most 8,192. */
  reserve?: number;
  /** Compact only above this size, in tokens or as a share of window - reserve ("80%"). */
  trigger?: number | string;
  /** The size to reach, in tokens or as a share of window - reserve. */
  goal?: number | string;
  /** The strategies to try in this order, for example "agent" or "tool-results|truncate". Default: "truncate". */
  strategy?: string;
  /** The model that receives the request: it decides the window, the reserve and the rules for images. */
  model?: string;
  /** The counter. Default: "estimate"; exact ones are not part of this build. */
  tokenizer?: string;
  /** The format to write. Default: the format of the input. */
  to?: string;
  /** The provider whose rules `repair` follows. */
  profile?: string;
  /** Make the result legal for the provider. */
  repair?: boolean;
  /** Messages that stay: their numbers ("12", "3-5"), "id:ID" or "source:NAME". */
  pins?: string[];
}

export interface Compacted<T> {
  /**
   * The compacted transcript: a text for a text or bytes, a value for a value. It is the input itself if nothing has changed;
   * untouched messages are as they were.
   */
  transcript: T;
  /** The report that `epitome compact --json` prints. */
  report: {
    messages_before: number;
    messages_after: number;
    tokens_before: number;
    tokens_after: number;
    goal_missed: boolean;
    unchanged_reason: string | null;
    verdicts: string;
    [field: string]: unknown;
  };
  /** With `to`: the things that have no counterpart in the other format. */
  losses: { message: number; kind: string; reason: string }[];
  /** Warnings of the program, one for each line. */
  warnings: string[];
}

export interface Answer {
  /** The exit code; negative for wrong arguments of the call itself. */
  code: number;
  /** The standard output. */
  output: string;
  /** The standard error. */
  diagnostics: string;
}

/** The library. Its calls are synchronous: compact a long transcript in a worker. */
export interface Epitome {
  version(): string;
  /** Shrinks a transcript: a text of any format that Epitome reads, or a value that `JSON.stringify` turns into one. */
  compact(input: string | Uint8Array | ArrayBuffer, options?: CompactOptions): Compacted<string>;
  compact<T extends object>(input: T, options?: CompactOptions): Compacted<T>;
  /** Checks a transcript against the rules of a provider. An empty list of violations means that the provider accepts it. */
  validate(
    input: string | Uint8Array | object,
    options?: InputOptions & { profile?: string },
  ): { profile: string; messages: number; violations: Record<string, unknown>[] };
  /** Writes a transcript in the format of another provider, and lists what has no counterpart there. */
  convert(
    input: string | Uint8Array | object,
    to: string,
    options?: InputOptions,
  ): { text: string; losses: { message: number; kind: string; reason: string }[] };
  /** Says how large a transcript is, and what it consists of. */
  stats(
    input: string | Uint8Array | object,
    options?: InputOptions & { model?: string; tokenizer?: string },
  ): Record<string, unknown>;
  /** Runs any command of the program with `input` as its file `-`. */
  call(args: string[], input?: string | Uint8Array): Answer;
}

/**
 * Loads the library: from the bytes or the address given, or from `epitome.wasm` beside this module.
 *
 * @example
 * const epitome = await load();
 * const { transcript, report } = epitome.compact(messages, { keep: "30%" });
 */
export function load(
  source?: string | URL | Response | Promise<Response> | BufferSource | WebAssembly.Module,
): Promise<Epitome>;
