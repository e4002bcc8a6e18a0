class Shares {
    static double percent(int part, int whole) {
        return 100 * part / whole;
    }
}
