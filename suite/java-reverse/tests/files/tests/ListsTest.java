public class ListsTest {
    static int count, failed;

    static void check(String name, boolean ok) {
        count++;
        failed |= ok ? 0 : 1;
        System.out.println((ok ? "ok " : "not ok ") + count + " - " + name);
    }

    static boolean kept() {
        java.util.List<Integer> list = new java.util.ArrayList<>(java.util.List.of(1, 2));
        Lists.reverse(list);
        return list.equals(java.util.List.of(1, 2));
    }

    public static void main(String[] args) {
        check("reversed", Lists.reverse(new java.util.ArrayList<>(java.util.List.of(1, 2))).equals(java.util.List.of(2, 1)));
        check("unchanged", kept());
        System.out.println("1.." + count);
        System.exit(failed);
    }
}
