class Names {
    static boolean same(String a, String b) {
        return a == b;
    }
}
