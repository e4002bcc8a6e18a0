public class NamesTest {
    static int count, failed;

    static void check(String name, boolean ok) {
        count++;
        failed |= ok ? 0 : 1;
        System.out.println((ok ? "ok " : "not ok ") + count + " - " + name);
    }

    public static void main(String[] args) {
        check("identical", Names.same("a", "a"));
        check("other", !Names.same("a", "b"));
        System.out.println("1.." + count);
        System.exit(failed);
    }
}
