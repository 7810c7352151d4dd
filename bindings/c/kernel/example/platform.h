/* What the example needs of the machine: a line of output, an end, and two measurements. */
#ifndef PLATFORM_H
#define PLATFORM_H

#include <stdint.h>

/* Prints a string that ends with zero. */
void platform_print(const char *text);

/* Ends the program: 0 is success. */
void platform_exit(int status);

/* Begins to measure the stack and the instructions. */
void platform_measure(void);

/* Instructions since an unknown point of time, modulo 2^32; 0 where they are not counted. */
uint32_t platform_instructions(void);

/* The most bytes of stack that were in use; 0 where that is not known. */
uint32_t platform_stack_peak(void);

#endif
