/* Hostile calls: each returns its error, and leaves the history as it was. */
#include "epitome_kernel.h"

#include <stdio.h>
#include <stdlib.h>

#define TEXT(literal) ((epitome_kernel_text){(literal), sizeof(literal) - 1})
#define ERROR(name) EPITOME_KERNEL_ERROR_##name

static uint64_t memory[EPITOME_KERNEL_MEMORY_BYTES / 8];
static epitome_kernel_history *history;
static int checks;

static void check(int line, int64_t found, int64_t wanted) {
    checks++;
    if (found == wanted)
        return;
    printf("border: line %d: %lld in place of %lld (%s)\n", line, (long long)found, (long long)wanted,
           epitome_kernel_error_text((int32_t)found));
    exit(1);
}

#define GIVES(call, error) check(__LINE__, (call), (error))

/* The request of a history, to compare it before and after. */
static size_t request(char *to, size_t capacity) {
    size_t length = 0;
    GIVES(epitome_kernel_write_openai_chat(history, to, capacity, &length), ERROR(OK));
    return length;
}

static char before[32768], after[32768];
static size_t before_length;

/* Also where a text was open: it is not part of a request. */
#define UNCHANGED(call, error)                                                                                         \
    do {                                                                                                               \
        before_length = request(before, sizeof before);                                                                \
        GIVES(call, error);                                                                                            \
        check(__LINE__, (int64_t)request(after, sizeof after), (int64_t)before_length);                                \
        check(__LINE__, memcmp(before, after, before_length), 0);                                                      \
    } while (0)

static epitome_kernel_error append(int32_t role, epitome_kernel_text text) {
    epitome_kernel_entry entry = {.role = role, .text = text};
    return epitome_kernel_append(history, &entry, NULL);
}

static void memory_is_checked(void) {
    epitome_kernel_layout layout = {EPITOME_KERNEL_VERSION, EPITOME_KERNEL_MESSAGES, EPITOME_KERNEL_ARENA_BYTES,
                                    EPITOME_KERNEL_RESULTS};
    epitome_kernel_history *none = NULL;
    GIVES(epitome_kernel_memory_bytes() <= sizeof memory, 1);
    GIVES(sizeof memory - epitome_kernel_memory_bytes() < 512, 1);
    GIVES(epitome_kernel_memory_align() <= 8, 1);
    GIVES(epitome_kernel_snapshot_bytes_max(), EPITOME_KERNEL_SNAPSHOT_BYTES_MAX);
    GIVES(epitome_kernel_init(NULL, sizeof memory, &none), ERROR(NULL));
    GIVES(epitome_kernel_init(memory, sizeof memory, NULL), ERROR(NULL));
    GIVES(epitome_kernel_init((char *)memory + 1, sizeof memory - 1, &none), ERROR(MISALIGNED));
    GIVES(epitome_kernel_init(memory, epitome_kernel_memory_bytes() - 1, &none), ERROR(MEMORY));
    GIVES(epitome_kernel_init(memory, 0, &none), ERROR(MEMORY));
    GIVES(epitome_kernel_init(memory, sizeof memory, (epitome_kernel_history **)&memory[4]), ERROR(OVERLAP));
    GIVES(epitome_kernel_init_layout(memory, sizeof memory, NULL, &none), ERROR(NULL));
    layout.messages++;
    GIVES(epitome_kernel_init_layout(memory, sizeof memory, &layout, &none), ERROR(LAYOUT));
    GIVES(none == NULL, 1);
    /* Memory that was never initialized. */
    GIVES(epitome_kernel_clear((epitome_kernel_history *)memory), ERROR(NO_HISTORY));
    GIVES(epitome_kernel_clear(NULL), ERROR(NULL));
    GIVES(epitome_kernel_clear((epitome_kernel_history *)((char *)memory + 1)), ERROR(MISALIGNED));
}

static void texts_are_checked(void) {
    static const char *const WRONG[] = {"\xFF", "\xC3", "a\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC0\xAF"};
    for (size_t at = 0; at < sizeof WRONG / sizeof *WRONG; at++)
        UNCHANGED(append(EPITOME_KERNEL_ROLE_USER, epitome_kernel_text_of(WRONG[at])), ERROR(UTF8));
    UNCHANGED(append(EPITOME_KERNEL_ROLE_USER, (epitome_kernel_text){NULL, 1}), ERROR(NULL));
    UNCHANGED(append(EPITOME_KERNEL_ROLE_USER, (epitome_kernel_text){"a", SIZE_MAX}), ERROR(LENGTH));
    UNCHANGED(append(EPITOME_KERNEL_ROLE_USER, (epitome_kernel_text){"a", SIZE_MAX / 2 + 1}), ERROR(LENGTH));
    UNCHANGED(append(EPITOME_KERNEL_ROLE_USER, (epitome_kernel_text){(char *)memory + 64, 4}), ERROR(OVERLAP));
    /* A text that was read, given again without a copy. */
    epitome_kernel_part part;
    epitome_kernel_message message;
    GIVES(epitome_kernel_read_message(history, 0, &message), ERROR(OK));
    GIVES(epitome_kernel_read_part(history, message.seq, 0, &part), ERROR(OK));
    UNCHANGED(append(EPITOME_KERNEL_ROLE_USER, part.text), ERROR(OVERLAP));
}

static void entries_are_checked(void) {
    epitome_kernel_tool_call call = {TEXT("c1"), TEXT("read"), TEXT("{}")};
    epitome_kernel_entry entry = {.role = EPITOME_KERNEL_ROLE_USER, .text = TEXT("hello")};
    epitome_kernel_placed placed;
    UNCHANGED(epitome_kernel_append(history, NULL, &placed), ERROR(NULL));
    UNCHANGED(epitome_kernel_append(NULL, &entry, &placed), ERROR(NULL));
    UNCHANGED(epitome_kernel_append(history, (void *)((char *)&entry + 1), &placed), ERROR(MISALIGNED));
    UNCHANGED(epitome_kernel_append(history, &entry, (void *)((char *)&placed + 1)), ERROR(MISALIGNED));
    UNCHANGED(epitome_kernel_append(history, &entry, (void *)(memory + 8)), ERROR(OVERLAP));
    static const int32_t ROLES[] = {0, 6, -1, INT32_MAX, INT32_MIN};
    for (size_t at = 0; at < sizeof ROLES / sizeof *ROLES; at++)
        UNCHANGED(append(ROLES[at], TEXT("hello")), ERROR(VALUE));
    entry.retention = 3;
    UNCHANGED(epitome_kernel_append(history, &entry, NULL), ERROR(VALUE));
    entry.retention = 0;
    entry.calls = &call;
    entry.call_count = 1;
    UNCHANGED(epitome_kernel_append(history, &entry, NULL), ERROR(ENTRY));
    entry.role = EPITOME_KERNEL_ROLE_ASSISTANT;
    entry.calls = NULL;
    UNCHANGED(epitome_kernel_append(history, &entry, NULL), ERROR(NULL));
    entry.calls = &call;
    entry.call_count = EPITOME_KERNEL_CALLS_MAX + 1;
    UNCHANGED(epitome_kernel_append(history, &entry, NULL), ERROR(FULL));
    entry.call_count = SIZE_MAX;
    UNCHANGED(epitome_kernel_append(history, &entry, NULL), ERROR(FULL));
    entry.call_count = 1;
    call.name = (epitome_kernel_text){"\xFF", 1};
    UNCHANGED(epitome_kernel_append(history, &entry, NULL), ERROR(UTF8));
    entry = (epitome_kernel_entry){.role = EPITOME_KERNEL_ROLE_TOOL, .text = TEXT("21")};
    UNCHANGED(epitome_kernel_append(history, &entry, NULL), ERROR(ENTRY));
    entry.call_id = TEXT("nobody's");
    UNCHANGED(epitome_kernel_append(history, &entry, &placed), ERROR(OK));
    GIVES(placed.outcome, EPITOME_KERNEL_OUTCOME_ORPHAN);
    static char large[EPITOME_KERNEL_ARENA_BYTES + 1];
    memset(large, 'x', sizeof large);
    UNCHANGED(append(EPITOME_KERNEL_ROLE_USER, (epitome_kernel_text){large, sizeof large}), ERROR(FULL));
    entry = (epitome_kernel_entry){.role = EPITOME_KERNEL_ROLE_USER, .text = {large, sizeof large}};
    UNCHANGED(epitome_kernel_append_clamped(history, &entry, 16, NULL), ERROR(FULL));
}

static void streams_are_checked(void) {
    size_t length;
    uint8_t page[EPITOME_KERNEL_SNAPSHOT_BYTES_MAX];
    epitome_kernel_budget budget = {.window = 400, .trigger = 100, .goal = 50};
    epitome_kernel_stage stage = {EPITOME_KERNEL_STRATEGY_TRUNCATE, 0};
    epitome_kernel_plan_result result;
    epitome_kernel_span span = {2, 5};
    UNCHANGED(epitome_kernel_extend(history, TEXT("a")), ERROR(NOT_STREAMING));
    UNCHANGED(epitome_kernel_finish(history, NULL), ERROR(NOT_STREAMING));
    UNCHANGED(epitome_kernel_abandon(history), ERROR(NOT_STREAMING));
    UNCHANGED(epitome_kernel_begin(history, 0), ERROR(VALUE));
    UNCHANGED(epitome_kernel_begin(history, EPITOME_KERNEL_ROLE_TOOL), ERROR(ENTRY));
    UNCHANGED(epitome_kernel_begin(history, EPITOME_KERNEL_ROLE_ASSISTANT), ERROR(OK));
    UNCHANGED(epitome_kernel_extend(history, TEXT("It is ")), ERROR(OK));
    UNCHANGED(epitome_kernel_extend(history, TEXT("\xC3")), ERROR(UTF8));
    UNCHANGED(epitome_kernel_extend(history, (epitome_kernel_text){(char *)memory + 64, 4}), ERROR(OVERLAP));
    UNCHANGED(epitome_kernel_begin(history, EPITOME_KERNEL_ROLE_USER), ERROR(STREAMING));
    UNCHANGED(append(EPITOME_KERNEL_ROLE_USER, TEXT("hello")), ERROR(STREAMING));
    UNCHANGED(epitome_kernel_plan(history, &budget, 2, &stage, 1, &result), ERROR(STREAMING));
    UNCHANGED(epitome_kernel_compact(history, TEXT("-"), NULL), ERROR(STREAMING));
    UNCHANGED(epitome_kernel_summarize(history, &span, TEXT("So."), NULL), ERROR(STREAMING));
    UNCHANGED(epitome_kernel_snapshot(history, page, sizeof page, &length), ERROR(OK));
    UNCHANGED(epitome_kernel_restore(history, page, sizeof page), ERROR(STREAMING));
    static char large[EPITOME_KERNEL_ARENA_BYTES];
    memset(large, 'x', sizeof large);
    UNCHANGED(epitome_kernel_extend(history, (epitome_kernel_text){large, sizeof large}), ERROR(FULL));
    GIVES(epitome_kernel_extend(history, TEXT("warm.")), ERROR(OK));
    GIVES(epitome_kernel_finish(history, NULL), ERROR(OK));
    request(after, sizeof after);
    GIVES(strstr(after, "\"It is warm.\"") != NULL, 1);
}

static void budgets_and_plans_are_checked(void) {
    epitome_kernel_budget budget = {.window = 400, .trigger = 100, .goal = 50}, wrong, checked;
    epitome_kernel_stage stages[5] = {{EPITOME_KERNEL_STRATEGY_TRUNCATE, 0}, {99, 0}};
    epitome_kernel_plan_result result;
    epitome_kernel_span span;
    uint32_t is_due;
    wrong = budget, wrong.trigger = 401;
    UNCHANGED(epitome_kernel_is_due(history, &wrong, &is_due), ERROR(BUDGET_TRIGGER));
    wrong = budget, wrong.goal = 100;
    UNCHANGED(epitome_kernel_plan(history, &wrong, 2, stages, 1, &result), ERROR(BUDGET_GOAL));
    wrong = budget, wrong.min_reclaim = 51;
    UNCHANGED(epitome_kernel_budget_check(&wrong, NULL), ERROR(BUDGET_RECLAIM));
    GIVES(epitome_kernel_budget_check(&(epitome_kernel_budget){.window = 0}, &checked), ERROR(OK));
    GIVES((int64_t)checked.trigger, 100000);
    UNCHANGED(epitome_kernel_budget_check(NULL, &checked), ERROR(NULL));
    UNCHANGED(epitome_kernel_is_due(history, &budget, NULL), ERROR(NULL));
    UNCHANGED(epitome_kernel_plan(history, &budget, 0, stages, 1, &result), ERROR(VALUE));
    UNCHANGED(epitome_kernel_plan(history, &budget, 2, stages, 0, &result), ERROR(STAGES));
    UNCHANGED(epitome_kernel_plan(history, &budget, 2, stages, 5, &result), ERROR(STAGES));
    UNCHANGED(epitome_kernel_plan(history, &budget, 2, stages, 2, &result), ERROR(VALUE));
    UNCHANGED(epitome_kernel_plan(history, &budget, 2, NULL, 1, &result), ERROR(NULL));
    UNCHANGED(epitome_kernel_plan(history, &budget, 2, stages, 1, NULL), ERROR(NULL));
    UNCHANGED(epitome_kernel_compact(history, TEXT("-"), NULL), ERROR(NO_PLAN));
    UNCHANGED(epitome_kernel_span_to_summarize(history, &span), ERROR(NO_MESSAGES));
    wrong = (epitome_kernel_budget){.window = 20, .trigger = 10, .goal = 5};
    UNCHANGED(epitome_kernel_plan(history, &wrong, 2, stages, 1, &result), ERROR(INFEASIBLE));
    GIVES(result.outcome == EPITOME_KERNEL_PLAN_INFEASIBLE && result.floor > result.limit, 1);
    UNCHANGED(epitome_kernel_plan(history, &budget, 2, stages, 1, &result), ERROR(OK));
    GIVES(result.outcome, EPITOME_KERNEL_PLAN_PLANNED);
    UNCHANGED(epitome_kernel_span_to_summarize(history, &span), ERROR(OK));
    UNCHANGED(epitome_kernel_span_to_summarize(history, NULL), ERROR(NULL));
    char ledger[256];
    size_t ledger_length = 7;
    UNCHANGED(epitome_kernel_ledger(history, NULL, ledger, sizeof ledger, &ledger_length), ERROR(NULL));
    UNCHANGED(epitome_kernel_ledger(history, &span, NULL, sizeof ledger, &ledger_length), ERROR(NULL));
    UNCHANGED(epitome_kernel_ledger(history, &span, ledger, sizeof ledger, NULL), ERROR(NULL));
    UNCHANGED(epitome_kernel_ledger(history, &span, (char *)history, sizeof ledger, &ledger_length), ERROR(OVERLAP));
    UNCHANGED(epitome_kernel_ledger(history, &span, NULL, 0, &ledger_length), ERROR(NO_MESSAGES));
    UNCHANGED(epitome_kernel_ledger(history, &(epitome_kernel_span){900, 901}, ledger, sizeof ledger, &ledger_length),
              ERROR(NO_MESSAGES));
    GIVES(ledger_length, 7);
    UNCHANGED(epitome_kernel_summarize(history, &span, TEXT(" \n"), NULL), ERROR(BLANK));
    UNCHANGED(epitome_kernel_summarize(history, &span, (epitome_kernel_text){NULL, 0}, NULL), ERROR(BLANK));
    UNCHANGED(epitome_kernel_summarize(history, NULL, TEXT("So."), NULL), ERROR(NULL));
    UNCHANGED(epitome_kernel_summarize(history, &(epitome_kernel_span){900, 901}, TEXT("So."), NULL),
              ERROR(NO_MESSAGES));
    UNCHANGED(epitome_kernel_summarize(history, &(epitome_kernel_span){7, 3}, TEXT("So."), NULL), ERROR(NO_MESSAGES));
    UNCHANGED(epitome_kernel_summarize(history, &(epitome_kernel_span){0, 3}, TEXT("So."), NULL), ERROR(PROTECTED));
    /* An append makes the plan old. */
    GIVES(append(EPITOME_KERNEL_ROLE_USER, TEXT("And outside?")), ERROR(OK));
    UNCHANGED(epitome_kernel_compact(history, TEXT("-"), NULL), ERROR(NO_PLAN));
}

/* Every strategy that is built in makes a plan that leads to its size. */
static void strategies_plan(void) {
    epitome_kernel_budget budget = {.window = 4000, .trigger = 200, .goal = 150};
    for (int32_t strategy = 1; strategy <= 7; strategy++) {
        epitome_kernel_stage stage = {strategy, 1};
        epitome_kernel_plan_result result;
        epitome_kernel_status status;
        epitome_kernel_error error = epitome_kernel_plan(history, &budget, 2, &stage, 1, &result);
        if (error == ERROR(NOT_BUILT))
            continue;
        GIVES(error, ERROR(OK));
        if (result.outcome != EPITOME_KERNEL_PLAN_PLANNED)
            continue;
        static uint64_t copy[EPITOME_KERNEL_MEMORY_BYTES / 8];
        memcpy(copy, memory, sizeof memory);
        epitome_kernel_history *copied = (epitome_kernel_history *)copy;
        GIVES(epitome_kernel_compact(copied, TEXT("-"), NULL), ERROR(OK));
        GIVES(epitome_kernel_read_status(copied, &status), ERROR(OK));
        GIVES(status.tokens <= result.tokens_after, 1);
    }
    epitome_kernel_stage window = {EPITOME_KERNEL_STRATEGY_WINDOW_TURNS, 0};
    epitome_kernel_plan_result result;
    epitome_kernel_error error = epitome_kernel_plan(history, &budget, 2, &window, 1, &result);
    GIVES(error == ERROR(VALUE) || error == ERROR(NOT_BUILT), 1);
}

static void reading_is_checked(void) {
    epitome_kernel_message message;
    epitome_kernel_part part;
    epitome_kernel_status status;
    GIVES(epitome_kernel_read_status(history, NULL), ERROR(NULL));
    GIVES(epitome_kernel_read_status(history, &status), ERROR(OK));
    GIVES(epitome_kernel_read_message(history, status.messages, &message), ERROR(END));
    GIVES(epitome_kernel_read_message(history, SIZE_MAX, &message), ERROR(END));
    GIVES(epitome_kernel_read_message(history, 0, NULL), ERROR(NULL));
    GIVES(epitome_kernel_read_message(NULL, 0, &message), ERROR(NULL));
    GIVES(epitome_kernel_read_message_in(history, &(epitome_kernel_span){0, UINT64_MAX}, SIZE_MAX, &message), ERROR(END));
    GIVES(epitome_kernel_read_part(history, UINT64_MAX, 0, &part), ERROR(END));
    GIVES(epitome_kernel_read_part(history, 0, 1, &part), ERROR(END));
    size_t length = 7;
    char small[8];
    GIVES(epitome_kernel_write_openai_chat(history, small, sizeof small, NULL), ERROR(NULL));
    GIVES(epitome_kernel_write_openai_chat(history, NULL, 8, &length), ERROR(NULL));
    GIVES(epitome_kernel_write_openai_chat(history, small, sizeof small, &length), ERROR(BUFFER));
    GIVES(memcmp(small, "[{\"role\"", 8), 0);
    GIVES((int64_t)length, (int64_t)request(before, sizeof before));
    GIVES(epitome_kernel_write_openai_chat(history, before, length, &length), ERROR(OK));
    GIVES(epitome_kernel_write_openai_chat(history, before, length - 1, &length), ERROR(BUFFER));
    GIVES(epitome_kernel_write_openai_chat(history, (char *)memory, sizeof memory, &length), ERROR(OVERLAP));
}

/* A sink may read and must not change; it is asked no more after it has failed. */
static int32_t greedy_sink(void *context, const char *bytes, size_t length) {
    epitome_kernel_status status;
    (void)bytes, (void)length;
    GIVES(append(EPITOME_KERNEL_ROLE_USER, TEXT("hello")), ERROR(BUSY));
    GIVES(epitome_kernel_clear(history), ERROR(BUSY));
    GIVES(epitome_kernel_begin(history, EPITOME_KERNEL_ROLE_USER), ERROR(BUSY));
    GIVES(epitome_kernel_read_status(history, &status), ERROR(OK));
    return ++*(int *)context == 3;
}

static void sinks_are_checked(void) {
    int calls = 0;
    UNCHANGED(epitome_kernel_send_openai_chat(history, NULL, NULL), ERROR(NULL));
    UNCHANGED(epitome_kernel_send_openai_chat(history, greedy_sink, &calls), ERROR(SINK));
    GIVES(calls, 3);
    GIVES(append(EPITOME_KERNEL_ROLE_USER, TEXT("Still here.")), ERROR(OK));
}

static uint32_t crc32(const uint8_t *bytes, size_t length) {
    uint32_t crc = UINT32_MAX;
    for (size_t at = 0; at < length; at++) {
        crc ^= bytes[at];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

static void seal(uint8_t *page, size_t length) {
    uint32_t crc = crc32(page, length - 4);
    for (int at = 0; at < 4; at++)
        page[length - 4 + at] = (uint8_t)(crc >> 8 * at);
}

static void snapshots_are_checked(void) {
    static uint8_t page[EPITOME_KERNEL_SNAPSHOT_BYTES_MAX], forged[EPITOME_KERNEL_SNAPSHOT_BYTES_MAX];
    size_t length = 0;
    UNCHANGED(epitome_kernel_snapshot(history, page, sizeof page, NULL), ERROR(NULL));
    UNCHANGED(epitome_kernel_snapshot(history, NULL, sizeof page, &length), ERROR(NULL));
    UNCHANGED(epitome_kernel_snapshot(history, page, 40, &length), ERROR(BUFFER));
    UNCHANGED(epitome_kernel_snapshot(history, (uint8_t *)memory, 40, &length), ERROR(OVERLAP));
    UNCHANGED(epitome_kernel_snapshot(history, page, sizeof page, &length), ERROR(OK));
    UNCHANGED(epitome_kernel_restore(history, NULL, length), ERROR(NULL));
    UNCHANGED(epitome_kernel_restore(history, page, SIZE_MAX), ERROR(LENGTH));
    for (size_t cut = 0; cut < length; cut++)
        GIVES(epitome_kernel_restore(history, page, cut), ERROR(CORRUPT));
    for (size_t at = 0; at < length; at++) {
        page[at] ^= 0x10;
        GIVES(epitome_kernel_restore(history, page, length), ERROR(CORRUPT));
        page[at] ^= 0x10;
    }
    UNCHANGED(epitome_kernel_restore(history, page, length), ERROR(OK));
    /* Each byte changed under a right checksum: whatever comes of it, the history can be used. */
    for (size_t at = 0; at + 4 < length; at++) {
        memcpy(forged, page, length);
        forged[at] ^= 0xFF;
        seal(forged, length);
        epitome_kernel_error error = epitome_kernel_restore(history, forged, length);
        GIVES(error == ERROR(OK) || error == ERROR(CORRUPT) || error == ERROR(FULL) || error == ERROR(VERSION), 1);
        error = append(EPITOME_KERNEL_ROLE_USER, TEXT("hello"));
        GIVES(error == ERROR(OK) || error == ERROR(FULL), 1);
        request(after, sizeof after);
    }
    forged[0] = 99;
    seal(forged, length);
    GIVES(epitome_kernel_restore(history, page, length), ERROR(OK));
    UNCHANGED(epitome_kernel_restore(history, forged, length), ERROR(VERSION));
}

static void fill(void) {
    static const epitome_kernel_tool_call CALL = {{"c1", 2}, {"read_log", 8}, {"{}", 2}};
    GIVES(append(EPITOME_KERNEL_ROLE_SYSTEM, TEXT("Answer briefly.")), ERROR(OK));
    for (int turn = 0; turn < 8; turn++) {
        epitome_kernel_entry call = {.role = EPITOME_KERNEL_ROLE_ASSISTANT, .calls = &CALL, .call_count = 1};
        epitome_kernel_entry result = {.role = EPITOME_KERNEL_ROLE_TOOL,
                                       .call_id = TEXT("c1"),
                                       .text = TEXT("12:00 fan on\n12:05 fan off\n12:10 vents open\n12:15 pump on\n")};
        GIVES(append(EPITOME_KERNEL_ROLE_USER, TEXT("How warm is it in the greenhouse?")), ERROR(OK));
        GIVES(epitome_kernel_append(history, &call, NULL), ERROR(OK));
        GIVES(epitome_kernel_append(history, &result, NULL), ERROR(OK));
        GIVES(append(EPITOME_KERNEL_ROLE_ASSISTANT, TEXT("It is 21 degrees, as it was before.")), ERROR(OK));
    }
}

static void errors_have_texts(void) {
    for (int32_t error = 0; error <= ERROR(SINK); error++)
        GIVES(strlen(epitome_kernel_error_text(error)) > 1, 1);
    static const int32_t NONE[] = {-1, ERROR(SINK) + 1, INT32_MAX, INT32_MIN};
    for (size_t at = 0; at < sizeof NONE / sizeof *NONE; at++)
        GIVES(strncmp(epitome_kernel_error_text(NONE[at]), "unknown", 7), 0);
}

int main(void) {
    errors_have_texts();
    memory_is_checked();
    GIVES(epitome_kernel_init(memory, sizeof memory, &history), ERROR(OK));
    fill();
    texts_are_checked();
    entries_are_checked();
    streams_are_checked();
    budgets_and_plans_are_checked();
    strategies_plan();
    reading_is_checked();
    sinks_are_checked();
    snapshots_are_checked();
    printf("border: %d checks\n", checks);
    return 0;
}
