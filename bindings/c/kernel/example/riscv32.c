/* The example on a 32-bit RISC-V in QEMU (virt): start, semihosting, and measurements. No C library. */
#include "platform.h"

#include <stddef.h>

extern uint32_t stack_top[], data_begin[], data_end[], data_image[], bss_begin[], bss_end[];

int main(void);

/* --------------------------------------------------------------- semihosting */

enum { SYS_WRITE0 = 0x04, SYS_EXIT = 0x18 };
enum { STOPPED_EXIT = 0x20026, STOPPED_ERROR = 0x20023 };

/* Two shifts that do nothing around the breakpoint tell it from one of a debugger. None may be compressed. */
static void ask_host(uint32_t operation, uintptr_t argument) {
    register uint32_t a0 __asm__("a0") = operation;
    register uintptr_t a1 __asm__("a1") = argument;
    __asm__ volatile(".balign 16\n.option push\n.option norvc\nslli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
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

uint32_t platform_instructions(void) {
    uint32_t retired;
    __asm__ volatile("csrr %0, minstret" : "=r"(retired));
    return retired;
}

/* --------------------------------------------------------------------- stack */

static const uint32_t PAINT = 0xC0DECAFE;

/* What the stack never reaches keeps the paint. */
void platform_measure(void) {
    uint32_t *end = (uint32_t *)__builtin_frame_address(0) - 32;
    for (uint32_t *at = bss_end; at < end; at++)
        *(volatile uint32_t *)at = PAINT;
}

uint32_t platform_stack_peak(void) {
    uint32_t *at = bss_end;
    while (at < stack_top && *(volatile uint32_t *)at == PAINT)
        at++;
    return (uint32_t)((uintptr_t)stack_top - (uintptr_t)at);
}

/* --------------------------------------------------------------------- start */

__attribute__((aligned(4))) static void fault(void) {
    platform_print("kernel: a fault of the processor\n");
    platform_exit(1);
}

__attribute__((used)) static void begin(void) {
    __asm__ volatile("csrw mtvec, %0" : : "r"(fault));
    uint32_t *from = data_image;
    for (uint32_t *to = data_begin; to < data_end; to++)
        *to = *from++;
    for (uint32_t *to = bss_begin; to < bss_end; to++)
        *to = 0;
    main();
    for (;;) {
    }
}

/* The first instructions; there is no stack before them. */
__attribute__((naked, section(".start"), used)) void _start(void) {
    __asm__ volatile("la sp, stack_top\nj begin");
}
