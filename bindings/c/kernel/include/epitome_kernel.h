/*
 * Conversation history of an LLM agent in a fixed number of bytes: no heap, no operating system, no panic.
 *
 *     static uint64_t memory[EPITOME_KERNEL_MEMORY_BYTES / 8];
 *     epitome_kernel_history *history = NULL;
 *     epitome_kernel_error error = epitome_kernel_init(memory, sizeof memory, &history);
 *
 * It stores messages, counts their tokens, decides what to drop when a request outgrows its budget, and writes the
 * request. It calls no model, opens no connection and starts no task.
 *
 * RULES FOR ALL FUNCTIONS
 *
 * Result     An epitome_kernel_error, EPITOME_KERNEL_ERROR_OK (0) on success. After an error the history is as it was,
 *            unless the function says otherwise. Output arguments are written on success only, unless it says otherwise.
 * Ownership  The caller owns all memory. The library keeps the history's memory only; every other pointer is used until
 *            the function returns, and never freed.
 * Lifetime   Texts that the library gives lie in the history's memory. They are not terminated by zero, and they are
 *            good until the next function that takes a history without `const`.
 * Aliasing   No argument may lead into the history's memory (ERROR_OVERLAP): copy a text before it is appended again.
 *            Output arguments of one call must not overlap each other or its input.
 * Checks     Null, misaligned and overlapping pointers, impossible lengths, texts that are not UTF-8 and numbers outside
 *            their enumeration are errors. A wrong address that is none of these cannot be recognized.
 * Threads    One call at a time for each history; a function that takes `const` may run beside others of that kind, but
 *            for epitome_kernel_send_openai_chat. Use a lock. No function may interrupt another of the same history.
 * Moving     A history has no pointers into itself: its memory may be copied to an address of the same alignment.
 * Exceptions Nothing is thrown. A sink must return: no longjmp and no exception may leave it.
 * Units      Tokens are estimates of the built-in counter. Lengths and capacities are bytes.
 */
#ifndef EPITOME_KERNEL_H
#define EPITOME_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes of the tables. Set the same values in the environment when the library is built, and with -D here.
   epitome_kernel_init returns EPITOME_KERNEL_ERROR_LAYOUT where they differ. */

/* How many messages a history holds. */
#ifndef EPITOME_KERNEL_MESSAGES
#define EPITOME_KERNEL_MESSAGES 96
#endif

/* Bytes for the content of messages. */
#ifndef EPITOME_KERNEL_ARENA_BYTES
#define EPITOME_KERNEL_ARENA_BYTES 10504
#endif

/* How many results of tools a history holds before they are cleared; with 0, any number, and none can be cleared. */
#ifndef EPITOME_KERNEL_RESULTS
#define EPITOME_KERNEL_RESULTS 36
#endif

/* Version of the declarations in this file. */
#define EPITOME_KERNEL_VERSION 1

/* Bytes of memory for a history. The library's own figure, epitome_kernel_memory_bytes(), is at most this. */
#define EPITOME_KERNEL_MEMORY_BYTES                                                                                    \
    ((1280 + EPITOME_KERNEL_MESSAGES * 45 + EPITOME_KERNEL_RESULTS * 13 + EPITOME_KERNEL_ARENA_BYTES + 7) / 8 * 8)

/* Bytes of the longest snapshot of a history. */
#define EPITOME_KERNEL_SNAPSHOT_BYTES_MAX                                                                              \
    (41 + EPITOME_KERNEL_MESSAGES * 20 + EPITOME_KERNEL_ARENA_BYTES + EPITOME_KERNEL_CALLS_MAX * (18 + 64))

/* How many calls of tools may wait for their results at once. The id of a call has at most 64 bytes. */
#define EPITOME_KERNEL_CALLS_MAX 8

/* How many stages a plan may have. */
#define EPITOME_KERNEL_STAGES_MAX 4

/* In a budget: no reserve, no goal, nothing to reclaim at least. */
#define EPITOME_KERNEL_NONE UINT64_MAX

/* In a stage: it keeps none of what it counts. */
#define EPITOME_KERNEL_KEEP_NONE UINT32_MAX

/* A history. Its content is the library's. */
typedef struct epitome_kernel_history epitome_kernel_history;

/* ---------------------------------------------------------------- errors */

/* Enumerations are numbers of 32 bits, whatever the compiler's own choice for an enum. */
typedef int32_t epitome_kernel_error;
enum {
    EPITOME_KERNEL_ERROR_OK = 0,
    /* A pointer is null that must not be. */
    EPITOME_KERNEL_ERROR_NULL = 1,
    /* A pointer is not aligned for its type. */
    EPITOME_KERNEL_ERROR_MISALIGNED = 2,
    /* A length is larger than memory can be. */
    EPITOME_KERNEL_ERROR_LENGTH = 3,
    /* A pointer leads into the memory of the history. */
    EPITOME_KERNEL_ERROR_OVERLAP = 4,
    /* A text is not UTF-8. */
    EPITOME_KERNEL_ERROR_UTF8 = 5,
    /* A number is none of its enumeration. */
    EPITOME_KERNEL_ERROR_VALUE = 6,
    /* An entry contradicts itself. */
    EPITOME_KERNEL_ERROR_ENTRY = 7,
    /* Header and library differ in version or table sizes. */
    EPITOME_KERNEL_ERROR_LAYOUT = 8,
    /* The memory is too small. */
    EPITOME_KERNEL_ERROR_MEMORY = 9,
    /* There is no history at this address. */
    EPITOME_KERNEL_ERROR_NO_HISTORY = 10,
    /* A sink that is being called wants to change its history. */
    EPITOME_KERNEL_ERROR_BUSY = 11,
    /* A streamed text is open: finish or abandon it first. */
    EPITOME_KERNEL_ERROR_STREAMING = 12,
    /* No streamed text is open. */
    EPITOME_KERNEL_ERROR_NOT_STREAMING = 13,
    /* There is no room in a table or in the arena: compact. */
    EPITOME_KERNEL_ERROR_FULL = 14,
    /* The buffer is too small. */
    EPITOME_KERNEL_ERROR_BUFFER = 15,
    /* The trigger of a budget is above window - reserve. */
    EPITOME_KERNEL_ERROR_BUDGET_TRIGGER = 16,
    /* The goal of a budget is not under its trigger. */
    EPITOME_KERNEL_ERROR_BUDGET_GOAL = 17,
    /* The least amount to reclaim is above trigger - goal. */
    EPITOME_KERNEL_ERROR_BUDGET_RECLAIM = 18,
    /* A plan has no stage, or too many. */
    EPITOME_KERNEL_ERROR_STAGES = 19,
    /* The strategy was left out when the library was built. */
    EPITOME_KERNEL_ERROR_NOT_BUILT = 20,
    /* What is protected does not fit window - reserve. */
    EPITOME_KERNEL_ERROR_INFEASIBLE = 21,
    /* There is no plan of what the history holds now. */
    EPITOME_KERNEL_ERROR_NO_PLAN = 22,
    /* The plan clears results, and there is no note. */
    EPITOME_KERNEL_ERROR_NO_NOTE = 23,
    /* The note or the summary is blank. */
    EPITOME_KERNEL_ERROR_BLANK = 24,
    /* The note or the summary is not smaller than what it replaces. */
    EPITOME_KERNEL_ERROR_TOO_LARGE = 25,
    /* There are no such messages, or there is no plan that drops some. */
    EPITOME_KERNEL_ERROR_NO_MESSAGES = 26,
    /* The messages are not whole groups. */
    EPITOME_KERNEL_ERROR_NOT_WHOLE = 27,
    /* A message to summarize must stay as it is. */
    EPITOME_KERNEL_ERROR_PROTECTED = 28,
    /* There is nothing to summarize but a summary. */
    EPITOME_KERNEL_ERROR_NOTHING_NEW = 29,
    /* There is no message or part with such a number. */
    EPITOME_KERNEL_ERROR_END = 30,
    /* The snapshot is torn or damaged. */
    EPITOME_KERNEL_ERROR_CORRUPT = 31,
    /* A newer version wrote the snapshot. */
    EPITOME_KERNEL_ERROR_VERSION = 32,
    /* The sink has failed. */
    EPITOME_KERNEL_ERROR_SINK = 33
};

/* A sentence about an error: what is wrong, and what to do. Terminated by zero, never null, good for ever. */
const char *epitome_kernel_error_text(int32_t error);

/* ----------------------------------------------------------------- texts */

/* UTF-8 of `length` bytes. Null with length 0 is an absent text. */
typedef struct epitome_kernel_text {
    const char *bytes;
    size_t length;
} epitome_kernel_text;

/* A string that ends with zero, as a text. Null gives an absent text. */
static inline epitome_kernel_text epitome_kernel_text_of(const char *string) {
    epitome_kernel_text text = {string, string ? strlen(string) : 0};
    return text;
}

/* ---------------------------------------------------------------- memory */

/* Sizes of the tables, as this header describes them. */
typedef struct epitome_kernel_layout {
    uint32_t version;
    uint32_t messages;
    uint32_t arena_bytes;
    uint32_t results;
} epitome_kernel_layout;

/* How many bytes of memory a history takes. */
size_t epitome_kernel_memory_bytes(void);

/* The alignment of that memory, in bytes: at most 8. */
size_t epitome_kernel_memory_align(void);

/*
 * Makes an empty history in `memory` of `memory_bytes` bytes. What was there before is lost. From a C program call
 * epitome_kernel_init.
 *
 * Errors: NULL, MISALIGNED, OVERLAP, LAYOUT, MEMORY. Nothing is written then.
 */
epitome_kernel_error epitome_kernel_init_layout(void *memory, size_t memory_bytes, const epitome_kernel_layout *layout,
                                                epitome_kernel_history **history);

/* The same, with the sizes of this header. */
static inline epitome_kernel_error epitome_kernel_init(void *memory, size_t memory_bytes,
                                                       epitome_kernel_history **history) {
    const epitome_kernel_layout layout = {EPITOME_KERNEL_VERSION, EPITOME_KERNEL_MESSAGES, EPITOME_KERNEL_ARENA_BYTES,
                                          EPITOME_KERNEL_RESULTS};
    return epitome_kernel_init_layout(memory, memory_bytes, &layout, history);
}

/* Forgets all messages, and a streamed text. The next message gets number 0. Errors: NULL, NO_HISTORY, BUSY. */
epitome_kernel_error epitome_kernel_clear(epitome_kernel_history *history);

/* Sizes and free room of a history. */
typedef struct epitome_kernel_status {
    /* Size of the messages in a request, in tokens. */
    uint64_t tokens;
    /* The sequence number that the next message gets. */
    uint64_t next_seq;
    /* How many messages there are. */
    uint32_t messages;
    /* How many more messages there is room for. */
    uint32_t free_messages;
    /* Free bytes of the arena. */
    uint32_t free_bytes;
    /* How many more results of tools there is room for; 0 too where the library was built for 0. */
    uint32_t free_results;
    /* 1 while a streamed text is open, else 0. */
    uint32_t is_streaming;
} epitome_kernel_status;

/* Gives sizes and free room. Errors: NULL, MISALIGNED, OVERLAP, NO_HISTORY. */
epitome_kernel_error epitome_kernel_read_status(const epitome_kernel_history *history, epitome_kernel_status *status);

/* -------------------------------------------------------------- messages */

/* Roles. 0 is none of them, so that an entry without a role is an error. */
enum {
    EPITOME_KERNEL_ROLE_SYSTEM = 1,
    EPITOME_KERNEL_ROLE_DEVELOPER = 2,
    EPITOME_KERNEL_ROLE_USER = 3,
    EPITOME_KERNEL_ROLE_ASSISTANT = 4,
    EPITOME_KERNEL_ROLE_TOOL = 5
};

/* The retention of a message. */
enum {
    /* As long as there is room. */
    EPITOME_KERNEL_RETENTION_NORMAL = 0,
    /* For ever, with the calls and results that belong to it. */
    EPITOME_KERNEL_RETENTION_PINNED = 1,
    /* The strategy EPHEMERAL_FIRST drops it before others. */
    EPITOME_KERNEL_RETENTION_EPHEMERAL = 2
};

/* A call of a tool by the model. */
typedef struct epitome_kernel_tool_call {
    /* Pairs the call with its result. At most 64 bytes. */
    epitome_kernel_text id;
    epitome_kernel_text name;
    /* As the model wrote them: JSON, usually. */
    epitome_kernel_text arguments;
} epitome_kernel_tool_call;

/* A message to append. Set the fields that it has and leave the others zero. */
typedef struct epitome_kernel_entry {
    /* EPITOME_KERNEL_ROLE_... */
    int32_t role;
    /* EPITOME_KERNEL_RETENTION_... */
    int32_t retention;
    /* What is said; of a result, its content. */
    epitome_kernel_text text;
    /* The speaker's name, if the request is to have it. */
    epitome_kernel_text name;
    /* Calls of tools, with the role assistant only: an array of `call_count`, at most EPITOME_KERNEL_CALLS_MAX. */
    const epitome_kernel_tool_call *calls;
    size_t call_count;
    /* With the role tool, and only with it: the id of the call that this answers. Not null, but it may be empty. */
    epitome_kernel_text call_id;
    /* With the role tool: not 0 if the tool has failed. */
    uint32_t is_error;
} epitome_kernel_entry;

/* The outcome of an append. */
enum {
    EPITOME_KERNEL_OUTCOME_STORED = 1,
    /* Stored; it answers a call of an earlier turn, and is sent directly after that. */
    EPITOME_KERNEL_OUTCOME_LATE = 2,
    /* Not stored: it answers no call, or one that was answered before. No request could contain it. */
    EPITOME_KERNEL_OUTCOME_ORPHAN = 3,
    /* Not stored: it answers a call that a compaction has removed. */
    EPITOME_KERNEL_OUTCOME_HIDDEN = 4
};

/* Where a message was placed. */
typedef struct epitome_kernel_placed {
    /* Sequence number of the first message of its group: a call and all its results are one group. */
    uint64_t anchor;
    /* The turn of its group. A request of the user begins a turn. */
    uint32_t turn;
    /* EPITOME_KERNEL_OUTCOME_... */
    int32_t outcome;
} epitome_kernel_placed;

/*
 * Appends a message. `placed` may be null. Entry and texts are copied.
 *
 * Errors: NULL, MISALIGNED, LENGTH, OVERLAP, UTF8, VALUE, ENTRY, NO_HISTORY, BUSY, STREAMING; FULL if there is no room
 * for the message, its bytes, its result (see EPITOME_KERNEL_RESULTS), or its calls (see EPITOME_KERNEL_CALLS_MAX).
 */
epitome_kernel_error epitome_kernel_append(epitome_kernel_history *history, const epitome_kernel_entry *entry,
                                           epitome_kernel_placed *placed);

/*
 * Appends a message in at most `bytes_max` bytes and no more than are free: of a text that is too long the beginning
 * and the end stay, with "[... cut ...]" between. Calls are never shortened.
 *
 * Errors: as of epitome_kernel_append; FULL if there is no room for even a shortened text.
 */
epitome_kernel_error epitome_kernel_append_clamped(epitome_kernel_history *history, const epitome_kernel_entry *entry,
                                                   size_t bytes_max, epitome_kernel_placed *placed);

/* --------------------------------------------------------- streamed text */

/*
 * Begins a message whose text comes piece by piece: the model's answer, usually. Until epitome_kernel_finish the
 * messages are as they were. A plan, and whatever changes the history, is refused with STREAMING until then; but
 * epitome_kernel_clear is not, and ends the stream.
 *
 * Errors: NULL, VALUE, NO_HISTORY, BUSY, STREAMING; ENTRY for the role tool; FULL if there is no room for a message.
 */
epitome_kernel_error epitome_kernel_begin(epitome_kernel_history *history, int32_t role);

/*
 * Adds a piece of text: whole characters, so a piece from a network must be split between characters.
 *
 * Errors: NULL, LENGTH, OVERLAP, UTF8, NO_HISTORY, BUSY, NOT_STREAMING; FULL if there is no room for it. What came
 * before stays then, and may be finished.
 */
epitome_kernel_error epitome_kernel_extend(epitome_kernel_history *history, epitome_kernel_text piece);

/*
 * Adds the message to the history. `placed` may be null.
 *
 * Errors: MISALIGNED, OVERLAP, NULL, NO_HISTORY, BUSY, NOT_STREAMING; FULL, and the text is given up then.
 */
epitome_kernel_error epitome_kernel_finish(epitome_kernel_history *history, epitome_kernel_placed *placed);

/* Gives up the text: nothing of it is left. Errors: NULL, NO_HISTORY, BUSY, NOT_STREAMING. */
epitome_kernel_error epitome_kernel_abandon(epitome_kernel_history *history);

/* ---------------------------------------------------------------- budget */

/* How large requests may become, in tokens. 0 in a field is its default. */
typedef struct epitome_kernel_budget {
    /* What the model takes: request and answer together. Default 128000. */
    uint64_t window;
    /* Kept free for the answer. Default an eighth of the window, at most 8192; EPITOME_KERNEL_NONE is none. */
    uint64_t reserve;
    /* A size above this calls for a compaction; at most window - reserve. Default 78 % of the window. */
    uint64_t trigger;
    /* The size to aim at, under the trigger. Default half of the trigger; EPITOME_KERNEL_NONE leaves it to the strategy. */
    uint64_t goal;
    /* What a proactive pass must free at least. Default 2 % of the window; EPITOME_KERNEL_NONE is nothing. */
    uint64_t min_reclaim;
} epitome_kernel_budget;

/*
 * Checks a budget and, unless `checked` is null, gives it with its defaults filled in.
 *
 * Errors: NULL, MISALIGNED, BUDGET_TRIGGER, BUDGET_GOAL, BUDGET_RECLAIM. Every function with a budget has these.
 */
epitome_kernel_error epitome_kernel_budget_check(const epitome_kernel_budget *budget, epitome_kernel_budget *checked);

/* Gives 1 if the messages have more tokens than the trigger, else 0. Errors: of the budget; OVERLAP, NO_HISTORY. */
epitome_kernel_error epitome_kernel_is_due(const epitome_kernel_history *history, const epitome_kernel_budget *budget,
                                           uint32_t *is_due);

/* ------------------------------------------------------------ compaction */

/* Why a plan is made. */
enum {
    /* It is time to look. The least amount to reclaim applies, unless the request does not fit. */
    EPITOME_KERNEL_PASS_PROACTIVE = 1,
    /* A person or the program asked for it. */
    EPITOME_KERNEL_PASS_MANUAL = 2,
    /* The provider has refused the request as too large. */
    EPITOME_KERNEL_PASS_OVERFLOW = 3
};

/* Strategies. None drops instructions, pins, open calls, the first and the last request of the user, or the newest step. */
enum {
    /* Drops the oldest. `keep`: newest turns to spare as long as the goal can be met without them; default 2. */
    EPITOME_KERNEL_STRATEGY_TRUNCATE = 1,
    /* Puts the note in the place of old results. `keep`: newest results to leave alone; default 3. */
    EPITOME_KERNEL_STRATEGY_CLEAR_TOOL_RESULTS = 2,
    /* Drops what is EPHEMERAL. `keep` is not used. */
    EPITOME_KERNEL_STRATEGY_EPHEMERAL_FIRST = 3,
    /* Drops calls together with their results. `keep`: newest of them to leave alone. Feature tool-exchanges. */
    EPITOME_KERNEL_STRATEGY_DROP_TOOL_EXCHANGES = 4,
    /* Keeps the newest turns. `keep`: how many; it has no default (ERROR_VALUE). Feature window. */
    EPITOME_KERNEL_STRATEGY_WINDOW_TURNS = 5,
    /* Keeps the newest groups that meet the goal. `keep` is not used. Feature window. */
    EPITOME_KERNEL_STRATEGY_WINDOW_GOAL = 6,
    /* Keeps the newest that fits the goal, results cleared first. `keep` is not used. Feature newest-first. */
    EPITOME_KERNEL_STRATEGY_NEWEST_FIRST = 7
};

/* A strategy with its setting. */
typedef struct epitome_kernel_stage {
    /* EPITOME_KERNEL_STRATEGY_... */
    int32_t strategy;
    /* See the strategy. 0 is its default, EPITOME_KERNEL_KEEP_NONE is none. */
    uint32_t keep;
} epitome_kernel_stage;

/* Whether there is something to compact. */
enum {
    EPITOME_KERNEL_PLAN_PLANNED = 1,
    /* The goal is met as it is. */
    EPITOME_KERNEL_PLAN_AT_GOAL = 2,
    /* What is left is protected, or the strategy spares it. */
    EPITOME_KERNEL_PLAN_NOTHING_TO_DROP = 3,
    /* A proactive pass would free less than the budget's min_reclaim. */
    EPITOME_KERNEL_PLAN_TOO_LITTLE = 4,
    /* With ERROR_INFEASIBLE: what is protected does not fit. */
    EPITOME_KERNEL_PLAN_INFEASIBLE = 5
};

/* What a plan comes to. */
typedef struct epitome_kernel_plan_result {
    /* EPITOME_KERNEL_PLAN_... */
    int32_t outcome;
    /* Size of the messages after it, in tokens: at most this, exactly this if it clears no result. */
    uint64_t tokens_after;
    /* If it is infeasible, the tokens of what is protected; else 0. */
    uint64_t floor;
    /* What a request may have: window - reserve. */
    uint64_t limit;
} epitome_kernel_plan_result;

/*
 * Decides what to keep, by stages in order until the goal is met; nothing is dropped yet. The plan is good until the
 * history changes.
 *
 * Errors: of the budget; OVERLAP, VALUE, STAGES, NOT_BUILT, NO_HISTORY, BUSY, STREAMING; INFEASIBLE, and `result` is
 * written then too.
 */
epitome_kernel_error epitome_kernel_plan(epitome_kernel_history *history, const epitome_kernel_budget *budget,
                                         int32_t pass, const epitome_kernel_stage *stages, size_t stage_count,
                                         epitome_kernel_plan_result *result);

/* What a compaction has freed; of a summary, less what the summary takes. */
typedef struct epitome_kernel_compacted {
    uint64_t tokens;
    /* Of the arena. */
    uint32_t bytes;
    uint32_t messages;
    /* How many results have the note in their place now. */
    uint32_t results;
} epitome_kernel_compacted;

/*
 * Does what the last plan says. What it drops is deleted. `note` stands in the place of each result that it clears, for
 * example "[cleared]"; where the plan clears none it may be absent. `compacted` may be null.
 *
 * Errors: NULL, MISALIGNED, LENGTH, OVERLAP, UTF8, NO_HISTORY, BUSY, STREAMING, NO_PLAN, NO_NOTE, BLANK, TOO_LARGE.
 */
epitome_kernel_error epitome_kernel_compact(epitome_kernel_history *history, epitome_kernel_text note,
                                            epitome_kernel_compacted *compacted);

/* --------------------------------------------------------------- summary */

/* Messages by their sequence numbers, both ends included. */
typedef struct epitome_kernel_span {
    uint64_t first;
    uint64_t last;
} epitome_kernel_span;

/*
 * Gives what a summary could replace instead of what the last plan drops. The span stays good while messages are
 * appended: read it with epitome_kernel_read_message_in, let a model write, and call epitome_kernel_summarize.
 *
 * Errors: NULL, MISALIGNED, OVERLAP, NO_HISTORY; NO_MESSAGES without a plan, or without such messages.
 */
epitome_kernel_error epitome_kernel_span_to_summarize(const epitome_kernel_history *history,
                                                      epitome_kernel_span *span);

/*
 * Writes the ledger of the messages in `span`: their identifiers (paths, URLs, ids, names in code, numbers) that no other
 * message has, as many as `capacity` bytes have room for. It is a text for epitome_kernel_summarize, without a model. It takes
 * some hundred bytes: plan for a goal that leaves room for it. `length` is that of the text; it ends without a NUL.
 *
 * Errors: NULL, MISALIGNED, LENGTH, OVERLAP, NO_HISTORY; NO_MESSAGES without such an identifier, or without room for one.
 */
epitome_kernel_error epitome_kernel_ledger(const epitome_kernel_history *history, const epitome_kernel_span *span,
                                           char *to, size_t capacity, size_t *length);

/*
 * Puts `text` in the place of the messages in `span`, which are deleted. `compacted` may be null.
 *
 * Errors: NULL, MISALIGNED, LENGTH, OVERLAP, UTF8, NO_HISTORY, BUSY, STREAMING, NO_MESSAGES, NOT_WHOLE, PROTECTED,
 * NOTHING_NEW, BLANK, TOO_LARGE.
 */
epitome_kernel_error epitome_kernel_summarize(epitome_kernel_history *history, const epitome_kernel_span *span,
                                              epitome_kernel_text text, epitome_kernel_compacted *compacted);

/* --------------------------------------------------------------- reading */

/* A message without its parts. */
typedef struct epitome_kernel_message {
    /* Its sequence number; of a summary, that of the first message that it stands for. */
    uint64_t seq;
    /* Its size. */
    uint32_t tokens;
    /* EPITOME_KERNEL_ROLE_... */
    int32_t role;
    /* 1 if it stands for others, else 0. */
    uint32_t is_summary;
    /* 1 if it is a result that a compaction has cleared, else 0. */
    uint32_t is_cleared;
    /* The speaker's name, or absent. */
    epitome_kernel_text name;
} epitome_kernel_message;

/* What a part is. */
enum {
    /* `text`. */
    EPITOME_KERNEL_PART_KIND_TEXT = 1,
    /* A call: `id`, `name`, and its arguments as `text`. */
    EPITOME_KERNEL_PART_KIND_CALL = 2,
    /* A result: `id` of its call, `is_error`, and its content as `text`. */
    EPITOME_KERNEL_PART_KIND_RESULT = 3,
    /* Something that a snapshot of another program has brought, without a text. */
    EPITOME_KERNEL_PART_KIND_OTHER = 4
};

/* A piece of a message. Fields that its kind does not have are absent. */
typedef struct epitome_kernel_part {
    /* EPITOME_KERNEL_PART_KIND_... */
    int32_t kind;
    uint32_t is_error;
    epitome_kernel_text text;
    epitome_kernel_text id;
    epitome_kernel_text name;
} epitome_kernel_part;

/*
 * Gives the message at `place`, from 0, in the order of the request: late results stand directly after their call.
 *
 * Errors: NULL, MISALIGNED, OVERLAP, NO_HISTORY; END behind the last message.
 */
epitome_kernel_error epitome_kernel_read_message(const epitome_kernel_history *history, size_t place,
                                                 epitome_kernel_message *message);

/*
 * Gives the message at `place`, from 0, within a span.
 *
 * Errors: NULL, MISALIGNED, OVERLAP, NO_HISTORY; END behind the last message of the span.
 */
epitome_kernel_error epitome_kernel_read_message_in(const epitome_kernel_history *history,
                                                    const epitome_kernel_span *span, size_t place,
                                                    epitome_kernel_message *message);

/*
 * Gives the part at `place`, from 0, of the message with the number `seq`. The texts lie in the history's memory.
 *
 * Errors: NULL, MISALIGNED, OVERLAP, NO_HISTORY; END if there is no such message or part.
 */
epitome_kernel_error epitome_kernel_read_part(const epitome_kernel_history *history, uint64_t seq, size_t place,
                                              epitome_kernel_part *part);

/* -------------------------------------------------------------- requests */

/*
 * Writes the messages as the JSON array `messages` of a Chat Completions request, and its length in bytes. There is no
 * zero behind it. With capacity 0 (`to` may be null) it only measures.
 *
 * Errors: NULL, MISALIGNED, LENGTH, OVERLAP, NO_HISTORY; BUFFER if `capacity` is too small: `length` is what is needed,
 * and the buffer holds the beginning.
 */
epitome_kernel_error epitome_kernel_write_openai_chat(const epitome_kernel_history *history, char *to, size_t capacity,
                                                      size_t *length);

/* Takes the next bytes of a request. They are good until it returns. 0 goes on; anything else ends the writing. */
typedef int32_t (*epitome_kernel_sink)(void *context, const char *bytes, size_t length);

/*
 * Gives the same array to a sink, in many short pieces: for a socket, without a buffer for the whole. The sink may read
 * the history; a change is refused with BUSY.
 *
 * Errors: NULL, NO_HISTORY; SINK if the sink has ended it.
 */
epitome_kernel_error epitome_kernel_send_openai_chat(const epitome_kernel_history *history, epitome_kernel_sink sink,
                                                     void *context);

/* ------------------------------------------------------------- snapshots */

/* How long a snapshot can be, in bytes: EPITOME_KERNEL_SNAPSHOT_BYTES_MAX. */
size_t epitome_kernel_snapshot_bytes_max(void);

/*
 * Writes the history to `to`, with a checksum, and its length. A plan and a streamed text are not part of it.
 *
 * Errors: NULL, MISALIGNED, LENGTH, OVERLAP, NO_HISTORY; BUFFER if `capacity` is too small.
 */
epitome_kernel_error epitome_kernel_snapshot(const epitome_kernel_history *history, uint8_t *to, size_t capacity,
                                             size_t *length);

/*
 * Puts a snapshot in the place of what the history holds. Bytes behind it are not looked at: give a whole page of flash.
 *
 * Errors: NULL, LENGTH, OVERLAP, NO_HISTORY, BUSY, STREAMING, VERSION; FULL if it holds more than there is room for;
 * CORRUPT if it is torn or damaged. The history is as it was then, with one exception: a forged snapshot, whose
 * checksum is right and whose content contradicts itself, leaves it empty.
 */
epitome_kernel_error epitome_kernel_restore(epitome_kernel_history *history, const uint8_t *from, size_t length);

#ifdef __cplusplus
}
#endif

#endif
