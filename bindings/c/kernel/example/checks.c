/* What must hold after each turn: the checks of an application's tests, not a part of an agent. */
#include "agent.h"

static bool is_text(epitome_kernel_text text, epitome_kernel_text other) {
    return text.length == other.length && memcmp(text.bytes, other.bytes, text.length) == 0;
}

/* ----------------------------------------------------------- the request is JSON */

enum { VALUE, FIRST_VALUE, KEY, FIRST_KEY, COLON, NEXT, DONE, STRING, ESCAPE, HEX, WORD };

/* A reader of JSON with strings, arrays, objects and null: what requests consist of. */
typedef struct json {
    uint8_t state;
    /* The state behind a string. */
    uint8_t behind;
    uint8_t count;
    uint8_t depth;
    /* One bit a level: whether it is an object. */
    uint32_t objects;
} json;

static uint8_t behind_value(const json *json) {
    return json->depth ? NEXT : DONE;
}

static bool open_level(json *json, bool is_object) {
    if (json->depth == 32)
        return false;
    json->objects = json->objects << 1 | is_object;
    json->depth++;
    json->state = is_object ? FIRST_KEY : FIRST_VALUE;
    return true;
}

static bool close_level(json *json, bool is_object) {
    if (json->depth == 0 || (json->objects & 1) != is_object)
        return false;
    json->objects >>= 1;
    json->depth--;
    json->state = behind_value(json);
    return true;
}

static bool begin_string(json *json, uint8_t behind) {
    json->state = STRING;
    json->behind = behind;
    return true;
}

static bool read_value(json *json, char byte) {
    switch (byte) {
    case '[':
        return open_level(json, false);
    case '{':
        return open_level(json, true);
    case ']':
        return json->state == FIRST_VALUE && close_level(json, false);
    case '"':
        return begin_string(json, behind_value(json));
    case 'n':
        json->state = WORD;
        json->count = 1;
        return true;
    default:
        return false;
    }
}

static bool is_one_of(char byte, const char *bytes) {
    while (*bytes && *bytes != byte)
        bytes++;
    return *bytes != 0;
}

static bool read_byte(json *json, char byte) {
    switch (json->state) {
    case VALUE:
    case FIRST_VALUE:
        return read_value(json, byte);
    case FIRST_KEY:
        if (byte == '}')
            return close_level(json, true);
        /* fall through */
    case KEY:
        return byte == '"' && begin_string(json, COLON);
    case COLON:
        json->state = VALUE;
        return byte == ':';
    case NEXT:
        if (byte == ',') {
            json->state = json->objects & 1 ? KEY : VALUE;
            return true;
        }
        return (byte == ']' || byte == '}') && close_level(json, byte == '}');
    case STRING:
        if (byte == '"')
            json->state = json->behind;
        else if (byte == '\\')
            json->state = ESCAPE;
        return (uint8_t)byte >= 0x20;
    case ESCAPE:
        json->state = byte == 'u' ? HEX : STRING;
        json->count = 0;
        return is_one_of(byte, "\"\\/bfnrtu");
    case HEX:
        if (++json->count == 4)
            json->state = STRING;
        return is_one_of(byte, "0123456789abcdefABCDEF");
    case WORD:
        if (byte != "null"[json->count++])
            return false;
        if (json->count == 4)
            json->state = behind_value(json);
        return true;
    default:
        return false;
    }
}

static int32_t read_json(void *context, const char *bytes, size_t length) {
    for (size_t at = 0; at < length; at++)
        if (!read_byte(context, bytes[at]))
            return 1;
    return 0;
}

static failure is_json(const agent *agent) {
    json json = {.state = VALUE};
    if (epitome_kernel_send_openai_chat(agent->history, read_json, &json) || json.state != DONE)
        return "the request is not JSON";
    return NULL;
}

/* ------------------------------------------------------ calls have their results */

enum { CALLS_MAX = 4 };

/* The calls of the last step that have no result yet. */
typedef struct open_calls {
    epitome_kernel_text ids[CALLS_MAX];
    size_t count;
} open_calls;

static failure close_call(open_calls *open, epitome_kernel_text id) {
    for (size_t at = 0; at < open->count; at++)
        if (is_text(open->ids[at], id)) {
            open->ids[at] = open->ids[--open->count];
            return NULL;
        }
    return "a result without a call";
}

static failure are_paired(const agent *agent) {
    open_calls open = {.count = 0};
    epitome_kernel_message message;
    for (size_t place = 0; !epitome_kernel_read_message(agent->history, place, &message); place++) {
        if (message.role != EPITOME_KERNEL_ROLE_TOOL && open.count)
            return "a call without a result";
        epitome_kernel_part part;
        for (size_t at = 0; !epitome_kernel_read_part(agent->history, message.seq, at, &part); at++) {
            if (part.kind == EPITOME_KERNEL_PART_KIND_RESULT)
                TRY(close_call(&open, part.id));
            if (part.kind == EPITOME_KERNEL_PART_KIND_CALL) {
                if (open.count == CALLS_MAX)
                    return "too many calls at once";
                open.ids[open.count++] = part.id;
            }
        }
    }
    return open.count ? "a call without a result" : NULL;
}

/* --------------------------------------------------------------------- the sizes */

/* The sum is that of the messages, and the request fits. */
static failure is_counted(const agent *agent) {
    epitome_kernel_status status;
    epitome_kernel_budget budget;
    epitome_kernel_message message;
    uint64_t sum = 0;
    size_t place = 0;
    for (; !epitome_kernel_read_message(agent->history, place, &message); place++)
        sum += message.tokens;
    epitome_kernel_read_status(agent->history, &status);
    if (sum != status.tokens || place != status.messages)
        return "the sum is not that of the messages";
    if (epitome_kernel_budget_check(&agent->budget, &budget))
        return "the budget is wrong";
    return sum > budget.window - budget.reserve ? "the request does not fit" : NULL;
}

/* ---------------------------------------------------------------- what must stay */

static bool says(const agent *agent, const epitome_kernel_message *message, int32_t role, epitome_kernel_text text) {
    epitome_kernel_part part;
    return message->role == role && !epitome_kernel_read_part(agent->history, message->seq, 0, &part) &&
           is_text(part.text, text);
}

/* What was cleared has the note, and the newest results are whole. */
static failure clears_old_results_only(const agent *agent) {
    enum { WHOLE = 3 };
    size_t results = 0, at = 0;
    epitome_kernel_message message;
    for (size_t place = 0; !epitome_kernel_read_message(agent->history, place, &message); place++)
        results += message.role == EPITOME_KERNEL_ROLE_TOOL;
    for (size_t place = 0; !epitome_kernel_read_message(agent->history, place, &message); place++) {
        if (message.role != EPITOME_KERNEL_ROLE_TOOL)
            continue;
        epitome_kernel_text note = epitome_kernel_text_of(AGENT_NOTE);
        if (message.is_cleared && (at + WHOLE >= results || !says(agent, &message, EPITOME_KERNEL_ROLE_TOOL, note)))
            return "a result was cleared that should be whole, or has no note";
        at++;
    }
    return NULL;
}

/* Instructions, the first request and the last one, word for word; messages in ascending order. */
static failure keeps_what_must_stay(const agent *agent, uint32_t turn) {
    char request[LINE_BYTES];
    epitome_kernel_message message, last_user = {.role = 0};
    uint64_t next = 0;
    for (size_t place = 0; !epitome_kernel_read_message(agent->history, place, &message); place++) {
        if (place == 0 && !says(agent, &message, EPITOME_KERNEL_ROLE_SYSTEM, epitome_kernel_text_of(AGENT_SYSTEM)))
            return "the instructions are gone";
        if (place == 1 && !says(agent, &message, EPITOME_KERNEL_ROLE_USER, agent_request(request, 0)))
            return "the task is gone";
        if (message.role == EPITOME_KERNEL_ROLE_USER)
            last_user = message;
        if (message.seq < next)
            return "the order has changed";
        next = message.seq + 1;
    }
    if (!says(agent, &last_user, EPITOME_KERNEL_ROLE_USER, agent_request(request, turn)))
        return "the request is gone";
    return NULL;
}

failure check_turn(const agent *agent, uint32_t turn) {
    TRY(is_json(agent));
    TRY(are_paired(agent));
    TRY(is_counted(agent));
    TRY(clears_old_results_only(agent));
    return keeps_what_must_stay(agent, turn);
}
