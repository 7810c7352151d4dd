/* The example on a computer: output and end by the C library, and no measurements. */
#include "platform.h"

#include <stdio.h>
#include <stdlib.h>

void platform_print(const char *text) {
    fputs(text, stdout);
}

void platform_exit(int status) {
    exit(status);
}

void platform_measure(void) {
}

uint32_t platform_instructions(void) {
    return 0;
}

uint32_t platform_stack_peak(void) {
    return 0;
}
