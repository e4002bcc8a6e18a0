public class ListsTest {
    static int count, failed;

    static void check(String name, boolean ok) {
        count++;
        failed |= ok ? 0 : 1;
        System.out.println((ok ? "ok " : "not ok ") + count + " - " + name);
    }

    public static void main(String[] args) {
        check("reversed", Lists.reverse(new java.util.ArrayList<>(java.util.List.of(1, 2))).equals(java.util.List.of(2, 1)));
        System.out.println("1.." + count);
        System.exit(failed);
    }
}
