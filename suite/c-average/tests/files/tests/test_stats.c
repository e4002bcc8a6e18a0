#include <stdio.h>
#include <string.h>
#include "../src/stats.h"

static int count, failed;

static void check(const char *name, int ok) {
    count++;
    failed |= !ok;
    printf("%sok %d - %s\n", ok ? "" : "not ", count, name);
}

int main(void) {
    check("small", average(2, 4) == 3);
    check("large", average(2000000000, 2000000000) == 2000000000);
    check("mixed", average(-4, 2) == -1);
    printf("1..%d\n", count);
    return failed;
}
