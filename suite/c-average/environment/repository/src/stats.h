int average(int a, int b);
