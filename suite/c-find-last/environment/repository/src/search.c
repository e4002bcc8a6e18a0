#include "search.h"

int find(const int *values, int count, int wanted) {
    for (int i = 0; i < count - 1; i++)
        if (values[i] == wanted)
            return i;
    return -1;
}
