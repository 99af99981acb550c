// SPDX-License-Identifier: Apache-2.0
// Classes that are unloaded, and others of the same shape in their places: Reused SECONDS. In turns, in no order, it loads a class
// First or a class Other by a loader of its own, lets it work for a while, called by byFirst or byOther, and drops it.
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.util.Random;

public class Reused {
    static final long TURN = 200000000;   // a stack that is walked late, by some milliseconds, may meet the next class

    public static class First implements Runnable {
        int sink;
        public void run() { sink = first_(sink); }
        static int first_(int x) { for (int i = 0; i < 20000; i++) x = x * 5 ^ i; return x; }
    }

    public static class Other implements Runnable {
        int sink;
        public void run() { sink = other_(sink); }
        static int other_(int x) { for (int i = 0; i < 20000; i++) x = x * 5 ^ i; return x; }
    }

    static class Loader extends ClassLoader {
        Loader() { super(Reused.class.getClassLoader()); }

        Class<?> make(String name) throws Exception {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            try (InputStream in = Reused.class.getResourceAsStream(name + ".class")) {
                for (int c; (c = in.read()) >= 0;)
                    bytes.write(c);
            }
            return defineClass(name, bytes.toByteArray(), 0, bytes.size());
        }
    }

    static void byFirst(Runnable made) { for (long end = System.nanoTime() + TURN; System.nanoTime() - end < 0;) made.run(); }
    static void byOther(Runnable made) { for (long end = System.nanoTime() + TURN; System.nanoTime() - end < 0;) made.run(); }

    static void turn(boolean first) throws Exception {
        Class<?> made = new Loader().make(first ? "Reused$First" : "Reused$Other");
        if (first)
            byFirst((Runnable)made.getDeclaredConstructor().newInstance());
        else
            byOther((Runnable)made.getDeclaredConstructor().newInstance());
    }

    public static void main(String[] arguments) throws Exception {
        Random random = new Random(1);
        System.out.println("ready");
        for (long end = System.nanoTime() + 1000000000L * Long.parseLong(arguments[0]); System.nanoTime() - end < 0;) {
            turn(random.nextBoolean());
            System.gc();
            System.gc();
        }
    }
}
