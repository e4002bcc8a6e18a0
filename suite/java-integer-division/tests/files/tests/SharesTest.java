public class SharesTest {
    static int count, failed;

    static void check(String name, boolean ok) {
        count++;
        failed |= ok ? 0 : 1;
        System.out.println((ok ? "ok " : "not ok ") + count + " - " + name);
    }

    public static void main(String[] args) {
        check("quarter", Shares.percent(1, 4) == 25.0);
        check("eighth", Shares.percent(1, 8) == 12.5);
        System.out.println("1.." + count);
        System.exit(failed);
    }
}
