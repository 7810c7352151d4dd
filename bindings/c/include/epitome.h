/* The commands of Epitome as a C library. Made from the documentation in src/lib.rs: EPITOME_BLESS=1 cargo test -p epitome-c
 * writes it anew. */

#ifndef EPITOME_H
#define EPITOME_H

#include <stddef.h>
#include <stdint.h>

// A null pointer where the documentation does not allow one, a size of more than `SIZE_MAX / 2`, or an argument that is not UTF-8.
// The command was not run.
#define EPITOME_BAD_ARGUMENT -1

// A fault of the library. Every file has its old or its new content as a whole, and other calls are not affected.
#define EPITOME_FAULT -2

// The results of a call. The library owns the texts; `epitome_answer_free` frees them.
typedef struct epitome_answer {
    // The standard output of the command: `output_len` bytes, and a zero byte that is not counted. Never null after a call.
    uint8_t *output;
    // The number of bytes of `output`.
    size_t output_len;
    // The standard error of the command, a text in UTF-8: warnings, and the reason of a failure. It ends with a zero byte, as `output`
    // does.
    uint8_t *diagnostics;
    // The number of bytes of `diagnostics`.
    size_t diagnostics_len;
} epitome_answer;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Runs a command of the program `epitome`, with a text in memory as its standard input.
//
// `arguments` are `argument_count` texts in UTF-8, each ended by a zero byte, without the name of the program, for example
// `compact`, `-`, `--keep`, `30%`, `-o`, `-`. The transcript `-` is `input`, of `input_len` bytes; it may be null if `input_len` is 0.
// `-o -` writes to `answer->output`. `--help` lists the commands. `mcp`, `show --follow` and `session inspect` are refused. The
// build has no `report`, `completions`, `man` and `--summarizer`. Other files, such as those of `--models` and `--key-file`, and the
// environment variables of the program are those of the process.
//
// Returns the exit code of the program: 0 done, 1 violations or nothing found, 2 wrong input or arguments, 3 the protected messages
// do not fit the window, 4 a file or a store failed, 5 the result reads back as something else, 6 `--require-goal` and the goal was
// missed; or one of the negative codes above.
// The call writes every field of `answer` and does not read them before. Free each answer with `epitome_answer_free`.
//
// Any number of threads may call at the same time; each needs 1 MiB of stack. A call cannot be cancelled. It reads no pointer after
// it has returned.
//
// Conditions:
//
// Each pointer points to memory of the size that the call is given, and no thread writes to that memory during the call. `answer`
// points to an `epitome_answer`, whose fields need not be initialized.
int32_t epitome_call(const char *const *arguments,
                     size_t argument_count,
                     const uint8_t *input,
                     size_t input_len,
                     struct epitome_answer *answer);

// Frees the texts of an answer, and sets its fields to null and 0. A null pointer, and an answer that was freed, are no error.
//
// Conditions:
//
// `answer` is null, or points to an answer of `epitome_call` whose fields are unchanged. No other thread reads or frees the answer at
// the same time.
void epitome_answer_free(struct epitome_answer *answer);

// The version of the library, like `0.1.0`: a text that is never freed.
const char *epitome_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* EPITOME_H */
