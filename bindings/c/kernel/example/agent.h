/* A scripted agent that runs a greenhouse: the same conversation, at the same length, in each run. */
#ifndef AGENT_H
#define AGENT_H

#include <stdbool.h>

#include "epitome_kernel.h"

/* Sum and maximum of what an operation takes, in instructions. */
typedef struct cost {
    uint32_t count;
    uint32_t sum;
    uint32_t worst;
} cost;

typedef struct agent {
    epitome_kernel_history *history;
    /* Stands for a sector of flash. */
    uint8_t *page;
    size_t page_bytes;
    epitome_kernel_budget budget;
    /* While a summary is being written: the messages that it is about. */
    bool is_asked;
    epitome_kernel_span asked;
    bool is_summarized;
    uint32_t ledgers;
    uint32_t turn;
    /* How many results were cleared. */
    uint32_t cleared;
    cost append;
    cost plan;
    cost compact;
} agent;

/* Why something went wrong, or null. */
typedef const char *failure;

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        failure why = (call);                                                                                          \
        if (why)                                                                                                       \
            return why;                                                                                                \
    } while (0)

void agent_init(agent *agent, epitome_kernel_history *history, uint8_t *page, size_t page_bytes);

/* One turn: a request, two steps with calls and results, a streamed answer. */
failure agent_turn(agent *agent, uint32_t turn);

/* What must have happened in a whole run. */
failure agent_finish(const agent *agent);

/* What must hold after each turn. */
failure check_turn(const agent *agent, uint32_t turn);

/* What the user asks for in a turn, in `line` of LINE_BYTES. */
epitome_kernel_text agent_request(char *line, uint32_t turn);

#define LINE_BYTES 96

extern const char AGENT_SYSTEM[];
extern const char AGENT_NOTE[];

/* A string literal as a text. */
#define TEXT(literal) ((epitome_kernel_text){(literal), sizeof(literal) - 1})

#endif
