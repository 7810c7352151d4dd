/*
 * An agent on a device, without a heap: what a program does with the history in one turn.
 *
 * The model and its tools are played by constant texts. A real agent sends the request (epitome_kernel_send_openai_chat)
 * where this one appends the model's next message.
 */
#include "agent.h"
#include "platform.h"

const char AGENT_SYSTEM[] = "You run a greenhouse. Keep it between 18 and 24 degrees. Answer briefly.";
const char AGENT_NOTE[] = "[cleared]";

static const char SUMMARY[] = "Earlier: the sensors were read many times; the greenhouse stayed within its bounds.";
static const char LOG[] = "12:00 vents open\n12:05 fan on\n12:10 temperature 22.4\n12:15 fan off\n12:20 vents closed\n"
                          "12:25 temperature 21.9\n12:30 pump on\n12:35 pump off\n12:40 \"door\" opened\n12:45 door closed\n";
/* One line of a report that is longer than the arena. */
static const char ROW[] = "00:00 temperature 21.0, humidity 48 %\n";

enum {
    /* How much of a report is worth its room, in bytes. */
    REPORT_BYTES_MAX = 512,
    /* From this turn on the next compaction is a summary: asked for at once, and there at the end of the turn. */
    SUMMARY_TURN = 500,
    /* From this turn on, what goes leaves its identifiers behind, in a ledger of so many bytes. */
    LEDGER_TURN = 750,
    LEDGER_BYTES = 256
};

/* --------------------------------------------------------- short texts with numbers */

typedef struct line {
    char bytes[LINE_BYTES];
    size_t length;
} line;

static void add_text(line *line, const char *text) {
    while (*text && line->length < LINE_BYTES)
        line->bytes[line->length++] = *text++;
}

static void add_number(line *line, uint32_t number) {
    char digits[11];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    add_text(line, digits + at);
}

static epitome_kernel_text line_text(const line *line) {
    return (epitome_kernel_text){line->bytes, line->length};
}

epitome_kernel_text agent_request(char *bytes, uint32_t turn) {
    line line = {.length = 0};
    add_text(&line, "Turn ");
    add_number(&line, turn);
    add_text(&line, ": how is the greenhouse, and are the vents all right?");
    memcpy(bytes, line.bytes, line.length);
    return (epitome_kernel_text){bytes, line.length};
}

static void call_id(line *line, uint32_t turn, uint32_t step, const char *which) {
    line->length = 0;
    add_text(line, "call_");
    add_number(line, turn);
    add_text(line, "_");
    add_number(line, step);
    add_text(line, which);
}

/* --------------------------------------------------------------- measurements */

static void add_cost(cost *cost, uint32_t begun) {
    uint32_t instructions = platform_instructions() - begun;
    cost->count++;
    cost->sum += instructions;
    if (instructions > cost->worst)
        cost->worst = instructions;
}

/* ------------------------------------------------------------------ compaction */

static failure plan(agent *agent, const epitome_kernel_budget *budget, const epitome_kernel_stage *stages, size_t count,
                    epitome_kernel_plan_result *plan) {
    uint32_t begun = platform_instructions();
    epitome_kernel_error error =
        epitome_kernel_plan(agent->history, budget, EPITOME_KERNEL_PASS_MANUAL, stages, count, plan);
    add_cost(&agent->plan, begun);
    return error ? epitome_kernel_error_text(error) : NULL;
}

/* Plans and does it. */
static failure compact_by(agent *agent, const epitome_kernel_budget *budget, const epitome_kernel_stage *stages,
                          size_t count) {
    epitome_kernel_plan_result planned;
    TRY(plan(agent, budget, stages, count, &planned));
    if (planned.outcome != EPITOME_KERNEL_PLAN_PLANNED)
        return "nothing to drop";
    epitome_kernel_compacted done;
    uint32_t begun = platform_instructions();
    epitome_kernel_error error =
        epitome_kernel_compact(agent->history, epitome_kernel_text_of(AGENT_NOTE), &done);
    add_cost(&agent->compact, begun);
    if (error)
        return epitome_kernel_error_text(error);
    epitome_kernel_status status;
    epitome_kernel_read_status(agent->history, &status);
    /* A note may be smaller than what the plan grants it. */
    bool is_exact = done.results > 0 || status.tokens == planned.tokens_after;
    if (done.tokens == 0 || done.bytes == 0 || status.tokens > planned.tokens_after || !is_exact)
        return "a compaction did not free what was planned";
    agent->cleared += done.results;
    return NULL;
}

/* Old results go first, then the oldest messages. */
static failure compact(agent *agent) {
    static const epitome_kernel_stage STAGES[] = {{EPITOME_KERNEL_STRATEGY_CLEAR_TOOL_RESULTS, 0},
                                                  {EPITOME_KERNEL_STRATEGY_TRUNCATE, 0}};
    return compact_by(agent, &agent->budget, STAGES, 2);
}

static const epitome_kernel_stage TRUNCATE = {EPITOME_KERNEL_STRATEGY_TRUNCATE, 0};

/* Makes room in the tables, however few tokens there are: half of them go. */
static failure shrink(agent *agent) {
    epitome_kernel_status status;
    epitome_kernel_read_status(agent->history, &status);
    epitome_kernel_budget budget = agent->budget;
    budget.goal = status.tokens / 2;
    return compact_by(agent, &budget, &TRUNCATE, 1);
}

static failure make_room(agent *agent, uint32_t bytes) {
    epitome_kernel_status status;
    epitome_kernel_read_status(agent->history, &status);
    bool is_full = status.free_messages == 0 || status.free_results == 0 || status.free_bytes < bytes;
    return is_full ? shrink(agent) : NULL;
}

static failure ask_for_summary(agent *agent) {
    epitome_kernel_plan_result planned;
    TRY(plan(agent, &agent->budget, &TRUNCATE, 1, &planned));
    if (epitome_kernel_span_to_summarize(agent->history, &agent->asked))
        return "no span to summarize";
    /* A real agent sends these messages to a model, and goes on while it writes. */
    epitome_kernel_message second;
    if (epitome_kernel_read_message_in(agent->history, &agent->asked, 1, &second))
        return "too short a span";
    agent->is_asked = true;
    return NULL;
}

static failure take_summary(agent *agent) {
    epitome_kernel_compacted done;
    agent->is_asked = false;
    switch (epitome_kernel_summarize(agent->history, &agent->asked, epitome_kernel_text_of(SUMMARY), &done)) {
    case EPITOME_KERNEL_ERROR_OK:
        agent->is_summarized = true;
        return done.tokens > 0 && done.bytes > 0 ? NULL : "a summary freed nothing";
    /* Room was needed before the summary was there: it will be asked for again. */
    case EPITOME_KERNEL_ERROR_NO_MESSAGES:
    case EPITOME_KERNEL_ERROR_NOT_WHOLE:
        return NULL;
    default:
        return "the summary was refused";
    }
}

/* The oldest messages go, and their identifiers stay. */
static failure leave_ledger(agent *agent) {
    epitome_kernel_plan_result planned;
    epitome_kernel_span span;
    char text[LEDGER_BYTES];
    size_t length;
    uint32_t is_due;
    TRY(plan(agent, &agent->budget, &TRUNCATE, 1, &planned));
    if (epitome_kernel_span_to_summarize(agent->history, &span))
        return "no span for a ledger";
    if (epitome_kernel_ledger(agent->history, &span, text, sizeof text, &length))
        return "there was nothing to name";
    if (epitome_kernel_summarize(agent->history, &span, (epitome_kernel_text){text, length}, NULL))
        return "a ledger was refused";
    agent->ledgers++;
    if (epitome_kernel_is_due(agent->history, &agent->budget, &is_due))
        return "the budget is wrong";
    return is_due ? compact(agent) : NULL;
}

static failure compact_if_due(agent *agent) {
    uint32_t is_due;
    if (epitome_kernel_is_due(agent->history, &agent->budget, &is_due))
        return "the budget is wrong";
    if (!is_due || agent->is_asked)
        return NULL;
    if (agent->turn >= SUMMARY_TURN && !agent->is_summarized)
        return ask_for_summary(agent);
    return agent->turn >= LEDGER_TURN ? leave_ledger(agent) : compact(agent);
}

/* -------------------------------------------------------------------- messages */

static failure append(agent *agent, const epitome_kernel_entry *entry, epitome_kernel_placed *placed) {
    TRY(compact_if_due(agent));
    uint32_t begun = platform_instructions();
    epitome_kernel_error error = epitome_kernel_append(agent->history, entry, placed);
    add_cost(&agent->append, begun);
    if (error == EPITOME_KERNEL_ERROR_FULL) {
        TRY(shrink(agent));
        error = epitome_kernel_append(agent->history, entry, placed);
    }
    return error ? epitome_kernel_error_text(error) : NULL;
}

static failure append_result(agent *agent, const line *id, epitome_kernel_text text, epitome_kernel_placed *placed) {
    epitome_kernel_entry entry = {.role = EPITOME_KERNEL_ROLE_TOOL, .call_id = line_text(id), .text = text};
    return append(agent, &entry, placed);
}

/* Two calls, answered in the other order; of some turns the second tool does not answer in time. */
static failure step(agent *agent, uint32_t turn, uint32_t step) {
    line first, second, reading = {.length = 0};
    call_id(&first, turn, step, "_a");
    call_id(&second, turn, step, "_b");
    epitome_kernel_tool_call calls[] = {
        {line_text(&first), TEXT("read_sensor"), TEXT("{\"sensor\":\"temperature\",\"unit\":\"celsius\"}")},
        {line_text(&second), TEXT("read_log"), TEXT("{\"lines\":12}")},
    };
    epitome_kernel_entry entry = {.role = EPITOME_KERNEL_ROLE_ASSISTANT, .calls = calls, .call_count = 2};
    TRY(append(agent, &entry, NULL));

    bool is_late = turn % 7 == 3;
    epitome_kernel_text log = TEXT(LOG);
    TRY(append_result(agent, &second, is_late ? TEXT("[aborted: no answer in time]") : log, NULL));
    add_text(&reading, "{\"celsius\":");
    add_number(&reading, 18 + turn % 7);
    add_text(&reading, ",\"humidity\":");
    add_number(&reading, 40 + turn % 31);
    add_text(&reading, "}");
    TRY(append_result(agent, &first, line_text(&reading), NULL));
    if (is_late) {
        epitome_kernel_placed placed;
        TRY(append_result(agent, &second, log, &placed));
        if (placed.outcome != EPITOME_KERNEL_OUTCOME_ORPHAN)
            return "a second answer was taken";
    }
    return NULL;
}

/* A report that may be longer than the room there is. */
static failure append_report(agent *agent, uint32_t turn) {
    line id;
    call_id(&id, turn, 9, "_log");
    epitome_kernel_tool_call call = {line_text(&id), TEXT("read_log"), TEXT("{\"lines\":999}")};
    epitome_kernel_entry asks = {.role = EPITOME_KERNEL_ROLE_ASSISTANT, .calls = &call, .call_count = 1};
    TRY(append(agent, &asks, NULL));
    TRY(make_room(agent, REPORT_BYTES_MAX));
    for (size_t at = 0; at < agent->page_bytes; at++)
        agent->page[at] = (uint8_t)ROW[at % (sizeof ROW - 1)];
    epitome_kernel_entry report = {.role = EPITOME_KERNEL_ROLE_TOOL,
                                   .call_id = line_text(&id),
                                   .text = {(const char *)agent->page, agent->page_bytes}};
    if (epitome_kernel_append_clamped(agent->history, &report, REPORT_BYTES_MAX, NULL))
        return "no room for a clamped report";
    return compact_if_due(agent);
}

/* The answer comes in pieces. One that breaks off leaves nothing behind. */
static failure answer(agent *agent, uint32_t turn) {
    static const char *const PIECES[] = {"It is ", "warm ", "enough. ", "Vents are "};
    epitome_kernel_history *history = agent->history;
    epitome_kernel_status before, after;
    TRY(make_room(agent, 128));
    epitome_kernel_read_status(history, &before);
    if (epitome_kernel_begin(history, EPITOME_KERNEL_ROLE_ASSISTANT) || epitome_kernel_extend(history, TEXT("It is")) ||
        epitome_kernel_abandon(history))
        return "an answer could not break off";
    epitome_kernel_read_status(history, &after);
    if (after.free_bytes != before.free_bytes)
        return "a broken answer left something behind";
    if (epitome_kernel_begin(history, EPITOME_KERNEL_ROLE_ASSISTANT))
        return "no room to begin";
    for (size_t at = 0; at < sizeof PIECES / sizeof *PIECES; at++)
        if (epitome_kernel_extend(history, epitome_kernel_text_of(PIECES[at])))
            return "no room for a piece";
    if (epitome_kernel_extend(history, epitome_kernel_text_of(turn % 2 ? "closed." : "open.")))
        return "no room for a piece";
    if (epitome_kernel_finish(history, NULL))
        return "no room to finish";
    return compact_if_due(agent);
}

/* ----------------------------------------------------------------------- power */

static int32_t add_to_digest(void *context, const char *bytes, size_t length) {
    uint32_t *digest = context;
    for (size_t at = 0; at < length; at++)
        *digest = (*digest ^ (uint8_t)bytes[at]) * 0x01000193u;
    return 0;
}

static uint32_t digest(const agent *agent) {
    uint32_t digest = 0x811C9DC5u;
    epitome_kernel_send_openai_chat(agent->history, add_to_digest, &digest);
    return digest;
}

/* Power fails: what is in flash is all that is left. */
static failure reset(agent *agent) {
    uint32_t before = digest(agent);
    size_t length;
    if (epitome_kernel_snapshot(agent->history, agent->page, agent->page_bytes, &length))
        return "no room for a snapshot";
    epitome_kernel_clear(agent->history);
    agent->page[length / 2] ^= 1;
    if (epitome_kernel_restore(agent->history, agent->page, agent->page_bytes) != EPITOME_KERNEL_ERROR_CORRUPT)
        return "damage was not found";
    agent->page[length / 2] ^= 1;
    if (epitome_kernel_restore(agent->history, agent->page, agent->page_bytes))
        return "a snapshot was refused";
    return digest(agent) == before ? NULL : "a snapshot changed the request";
}

/* ------------------------------------------------------------------------ turns */

void agent_init(agent *agent, epitome_kernel_history *history, uint8_t *page, size_t page_bytes) {
    memset(agent, 0, sizeof *agent);
    agent->history = history;
    agent->page = page;
    agent->page_bytes = page_bytes;
    /* A token is some four bytes: the goal of tokens is reached before the bytes run out. */
    agent->budget = (epitome_kernel_budget){.window = 2600, .trigger = 1900, .goal = 1100};
}

failure agent_turn(agent *agent, uint32_t turn) {
    agent->turn = turn;
    if (turn == 0) {
        epitome_kernel_entry system = {.role = EPITOME_KERNEL_ROLE_SYSTEM,
                                       .text = epitome_kernel_text_of(AGENT_SYSTEM)};
        TRY(append(agent, &system, NULL));
    }
    char request[LINE_BYTES];
    epitome_kernel_entry user = {.role = EPITOME_KERNEL_ROLE_USER, .text = agent_request(request, turn)};
    TRY(append(agent, &user, NULL));
    for (uint32_t at = 0; at < 2; at++)
        TRY(step(agent, turn, at));
    if (turn % 10 == 9)
        TRY(append_report(agent, turn));
    TRY(answer(agent, turn));
    if (agent->is_asked)
        TRY(take_summary(agent));
    return turn % 100 == 99 ? reset(agent) : NULL;
}

failure agent_finish(const agent *agent) {
    if (!agent->is_summarized)
        return "the summary never came";
    if (agent->ledgers == 0)
        return "no ledger was ever written";
    return agent->cleared ? NULL : "no result was ever cleared";
}
