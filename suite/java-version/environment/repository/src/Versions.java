class Versions {
    static int compare(String a, String b) {
        String[] x = a.split("\\."), y = b.split("\\.");
        for (int i = 0; i < Math.min(x.length, y.length); i++) {
            int found = x[i].compareTo(y[i]);
            if (found != 0) return found;
        }
        return x.length - y.length;
    }
}
