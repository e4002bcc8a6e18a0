#include <stdio.h>
#include <string.h>
#include "../src/search.h"

static int count, failed;

static void check(const char *name, int ok) {
    count++;
    failed |= !ok;
    printf("%sok %d - %s\n", ok ? "" : "not ", count, name);
}

int main(void) {
    check("first", find((int[]){5, 6, 7}, 3, 5) == 0);
    check("none", find((int[]){5, 6, 7}, 3, 9) == -1);
    printf("1..%d\n", count);
    return failed;
}
