/* The example on a Cortex-M4 in QEMU (mps2-an386): vectors, start, semihosting, and measurements. No C library. */
#include "platform.h"

#include <stddef.h>

extern uint32_t stack_top[], data_begin[], data_end[], data_image[], bss_begin[], bss_end[];

int main(void);

/* --------------------------------------------------------------- semihosting */

enum { SYS_WRITE0 = 0x04, SYS_EXIT = 0x18 };
enum { STOPPED_EXIT = 0x20026, STOPPED_ERROR = 0x20023 };

static void ask_host(uint32_t operation, uintptr_t argument) {
    register uint32_t r0 __asm__("r0") = operation;
    register uintptr_t r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

void platform_print(const char *text) {
    ask_host(SYS_WRITE0, (uintptr_t)text);
}

void platform_exit(int status) {
    ask_host(SYS_EXIT, status ? STOPPED_ERROR : STOPPED_EXIT);
    for (;;) {
    }
}

/* -------------------------------------------------------------- instructions */

/* QEMU lets each instruction take the same time (-icount), and the timer measures that time. It counts down. */
static volatile uint32_t *const TIMER_CONTROL = (volatile uint32_t *)0xE000E010;
static volatile uint32_t *const TIMER_RELOAD = (volatile uint32_t *)0xE000E014;
static volatile uint32_t *const TIMER_CURRENT = (volatile uint32_t *)0xE000E018;

enum { TIMER_TICKS = 1 << 24, CALIBRATION = 1000000 };

static uint32_t instructions_per_tick;

static uint32_t ticks(void) {
    return (TIMER_TICKS - 1) - *TIMER_CURRENT;
}

static void start_timer(void) {
    *TIMER_RELOAD = TIMER_TICKS - 1;
    *TIMER_CURRENT = 0;
    *TIMER_CONTROL = 5; /* on, by the processor's clock */
    /* A loop of known length says how many instructions a tick has: two a round. */
    uint32_t begun = ticks(), rounds = CALIBRATION / 2;
    __asm__ volatile("1: subs %0, #1\n bne 1b" : "+r"(rounds) : : "cc");
    uint32_t passed = (ticks() - begun) & (TIMER_TICKS - 1);
    instructions_per_tick = (CALIBRATION + passed / 2) / passed;
}

uint32_t platform_instructions(void) {
    /* The timer has 24 bits, and differences of what this returns have 32. */
    static uint32_t last, sum;
    uint32_t now = ticks();
    sum += (now - last) & (TIMER_TICKS - 1);
    last = now;
    return sum * instructions_per_tick;
}

/* --------------------------------------------------------------------- stack */

static const uint32_t PAINT = 0xC0DECAFE;

/* What the stack never reaches keeps the paint. */
void platform_measure(void) {
    uint32_t *end = (uint32_t *)__builtin_frame_address(0) - 32;
    for (uint32_t *at = bss_end; at < end; at++)
        *(volatile uint32_t *)at = PAINT;
    start_timer();
}

uint32_t platform_stack_peak(void) {
    uint32_t *at = bss_end;
    while (at < stack_top && *(volatile uint32_t *)at == PAINT)
        at++;
    return (uint32_t)((uintptr_t)stack_top - (uintptr_t)at);
}

/* --------------------------------------------------------------------- start */

static void start(void) {
    uint32_t *from = data_image;
    for (uint32_t *to = data_begin; to < data_end; to++)
        *to = *from++;
    for (uint32_t *to = bss_begin; to < bss_end; to++)
        *to = 0;
    main();
    for (;;) {
    }
}

static void fault(void) {
    platform_print("kernel: a fault of the processor\n");
    platform_exit(1);
}

__attribute__((section(".vectors"), used)) static void (*const VECTORS[16])(void) = {
    (void (*)(void))stack_top, start, fault, fault, fault, fault, fault,
};
