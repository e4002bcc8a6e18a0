import java.util.*;

class Lists {
    static List<Integer> reverse(List<Integer> list) {
        List<Integer> result = list;
        Collections.reverse(result);
        return result;
    }
}
