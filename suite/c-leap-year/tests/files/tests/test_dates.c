#include <stdio.h>
#include <string.h>
#include "../src/dates.h"

static int count, failed;

static void check(const char *name, int ok) {
    count++;
    failed |= !ok;
    printf("%sok %d - %s\n", ok ? "" : "not ", count, name);
}

int main(void) {
    check("2024", is_leap_year(2024));
    check("2023", !is_leap_year(2023));
    check("1900", !is_leap_year(1900));
    check("2000", is_leap_year(2000));
    printf("1..%d\n", count);
    return failed;
}
