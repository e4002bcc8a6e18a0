int find(const int *values, int count, int wanted);
