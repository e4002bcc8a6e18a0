public class VersionsTest {
    static int count, failed;

    static void check(String name, boolean ok) {
        count++;
        failed |= ok ? 0 : 1;
        System.out.println((ok ? "ok " : "not ok ") + count + " - " + name);
    }

    public static void main(String[] args) {
        check("smaller", Versions.compare("1.2", "1.3") < 0);
        check("longer", Versions.compare("1.2.1", "1.2") > 0);
        System.out.println("1.." + count);
        System.exit(failed);
    }
}
