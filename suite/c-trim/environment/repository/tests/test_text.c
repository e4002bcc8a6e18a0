#include <stdio.h>
#include <string.h>
#include "../src/text.h"

static int count, failed;

static void check(const char *name, int ok) {
    count++;
    failed |= !ok;
    printf("%sok %d - %s\n", ok ? "" : "not ", count, name);
}

int main(void) {
    check("end", ({ char s[] = "a  "; trim(s); !strcmp(s, "a"); }));
    printf("1..%d\n", count);
    return failed;
}
