#include <string.h>
#include "text.h"

void trim(char *line) {
    size_t n = strlen(line);
    while (n > 1 && line[n - 1] == ' ')
        n--;
    line[n] = 0;
}
