/* Compacts the transcript on standard input to the share of its tokens that the first argument says, for example 30%. */
#include <epitome.h>

#include <stdio.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    const char *keep = count > 1 ? arguments[1] : "50%";
    char *text = NULL;
    size_t size = 0, room = 0, got = 1;
    while (got > 0) {
        if (room - size < 1024) {
            char *more = realloc(text, room = room * 2 + 65536);
            if (more == NULL) {
                free(text);
                return 4;
            }
            text = more;
        }
        size += got = fread(text + size, 1, room - size, stdin);
    }

    const char *command[] = {"compact", "-", "--keep", keep, "-o", "-"};
    epitome_answer answer;
    int code = epitome_call(command, 6, (const uint8_t *)text, size, &answer);
    fwrite(answer.output, 1, answer.output_len, stdout);
    fwrite(answer.diagnostics, 1, answer.diagnostics_len, stderr);
    epitome_answer_free(&answer);
    free(text);
    return code < 0 ? 4 : code;
}
