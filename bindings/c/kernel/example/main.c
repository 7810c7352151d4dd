/* A thousand turns of the agent, checked after each; the first breach ends the run. One line says what it took. */
#include "agent.h"
#include "platform.h"

enum { TURNS = 1000 };

static uint64_t memory[EPITOME_KERNEL_MEMORY_BYTES / 8];
static uint8_t page[EPITOME_KERNEL_SNAPSHOT_BYTES_MAX];
static agent the_agent;

static void print_number(uint32_t number) {
    char digits[11];
    char *at = digits + sizeof digits - 1;
    *at = 0;
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    platform_print(at);
}

static void print_cost(const char *name, const cost *cost) {
    platform_print(name);
    print_number(cost->sum / (cost->count ? cost->count : 1));
    platform_print(" instructions (worst ");
    print_number(cost->worst);
    platform_print(")");
}

static int fail(uint32_t turn, failure why) {
    platform_print("kernel: turn ");
    print_number(turn);
    platform_print(": ");
    platform_print(why);
    platform_print("\n");
    return 1;
}

static void report(void) {
    platform_print("kernel: ");
    print_number(TURNS);
    platform_print(" turns, ");
    print_number(the_agent.append.count);
    platform_print(" messages, ");
    print_number(the_agent.compact.count);
    platform_print(" compactions, ");
    print_number(the_agent.cleared);
    platform_print(" results cleared, ");
    print_number((uint32_t)epitome_kernel_memory_bytes());
    platform_print(" B history");
    if (platform_instructions()) {
        print_cost("; per append ", &the_agent.append);
        print_cost(", per plan ", &the_agent.plan);
        print_cost(", per compaction ", &the_agent.compact);
        platform_print("; stack ");
        print_number(platform_stack_peak());
        platform_print(" B, heap 0 B");
    }
    platform_print("\n");
}

static int run(void) {
    epitome_kernel_history *history;
    epitome_kernel_error error = epitome_kernel_init(memory, sizeof memory, &history);
    if (error)
        return fail(0, epitome_kernel_error_text(error));
    agent_init(&the_agent, history, page, sizeof page);
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        failure why = agent_turn(&the_agent, turn);
        if (!why)
            why = check_turn(&the_agent, turn);
        if (why)
            return fail(turn, why);
    }
    failure why = agent_finish(&the_agent);
    if (why)
        return fail(TURNS, why);
    report();
    return 0;
}

int main(void) {
    platform_measure();
    int status = run();
    platform_exit(status);
    return status;
}
