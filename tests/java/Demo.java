// SPDX-License-Identifier: Apache-2.0
// The load of the tests of Java: threads of many kinds, by name on the command line. Every thread starts in
// run0, and ends there, so that a whole stack is known by its bottom.
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntUnaryOperator;
import java.util.zip.Deflater;

public class Demo {
    static volatile long sink;
    static volatile boolean stop;

    interface Body {
        void run() throws Exception;
    }

    // Eight deep, tiny, never inlined (the tests ask for it): a hole in a walk shows.
    static int c0(int n) { return c1(n + 1) + 1; }
    static int c1(int n) { long a = n, b = a * 3, c = b ^ a; return c2((int) (a + b + c)) + (int) (b & 1); }
    static int c2(int n) { return c3(n ^ 2) + 1; }
    static int c3(int n) { long a = n, b = a * 5, c = b ^ a; return c4((int) (a + b + c)) + (int) (c & 1); }
    static int c4(int n) { return c5(n ^ 4) + 1; }
    static int c5(int n) { long a = n, b = a * 7, c = b ^ a; return c6((int) (a + b + c)) + (int) (a & 1); }
    static int c6(int n) { return c7(n ^ 6) + 1; }
    static int c7(int n) { int s = n; for (int i = 0; i < (n & 15); i++) s += i * s; return s; }

    static void chain() { long s = 0; for (int i = 0; !stop; i++) { s += c0(i); if ((i & 0xfff) == 0) sink = s; } }

    // The same in the interpreter (the tests exclude it from compilation).
    static int interp0(int n) { return interp1(n + 1) + 1; }
    static int interp1(int n) { return interp2(n + 1) + 1; }
    static int interp2(int n) { int s = 0; for (int i = 0; i < 10; i++) s += i ^ n; return s; }
    static void interp() { long s = 0; while (!stop) { s += interp0((int) s); sink = s; } }

    // Compiled and interpreted ones by turns: out of the one into the other, at each call and each return.
    static int turnC0(int n) { return turnI1(n + 1) + 1; }
    static int turnI1(int n) { return turnC2(n ^ 1) + 1; }
    static int turnC2(int n) { return turnI3(n + 3) + 1; }
    static int turnI3(int n) { return turnC4(n ^ 3) + 1; }
    static int turnC4(int n) { return turnI5(n + 5) + 1; }
    static int turnI5(int n) { return n * 3; }
    static void turns() { long s = 0; for (int i = 0; !stop; i++) { s += turnC0(i); if ((i & 0xfff) == 0) sink = s; } }

    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    static void fib() { while (!stop) sink = fib(22); }

    interface Shape { int area(int n); }
    static class A implements Shape { public int area(int n) { return n * 3; } }
    static class B implements Shape { public int area(int n) { return n * 5; } }
    static class C implements Shape { public int area(int n) { return n * 7; } }
    static class D implements Shape { public int area(int n) { return n * 9; } }
    static void mega() {
        Shape[] shapes = { new A(), new B(), new C(), new D() };
        long s = 0;
        for (int i = 0; !stop; i++) { s += shapes[i & 3].area(i); if ((i & 0xfff) == 0) sink = s; }
    }

    static int hot(int n) { return (n * 31 ^ 17) / ((n & 7) + 1); }
    static void jit() { long s = 0; for (int i = 0; !stop; i++) { s += hot(i); if ((i & 0xfff) == 0) sink = s; } }

    static void lambda() {
        IntUnaryOperator f = n -> n * 3 + 1, g = n -> n ^ 0x55;
        long s = 0;
        for (int i = 0; !stop; i++) { s += f.andThen(g).applyAsInt(i); if ((i & 0xfff) == 0) sink = s; }
    }

    static void stubs() {
        byte[] from = new byte[4000], to = new byte[4000];
        java.util.zip.CRC32 crc = new java.util.zip.CRC32();
        double d = 0;
        for (int i = 0; !stop; i++) {
            System.arraycopy(from, i & 63, to, i & 31, 3900);
            crc.update(to, 0, 1000);
            d += Math.sin(i) + Math.pow(i, 0.3);
            if ((i & 0xff) == 0) sink = crc.getValue() + (long) d;
        }
    }

    static void alloc() {
        List<Object> kept = new ArrayList<>();
        for (int i = 0; !stop; i++) { kept.add(new int[i & 255]); if (kept.size() > 5000) kept.clear(); }
    }

    static void thrower(int n) { if (n == 0) throw new IllegalStateException("x"); thrower(n - 1); }
    static void except() { while (!stop) { try { thrower(12); } catch (IllegalStateException e) { sink++; } } }

    static void deflate() {
        byte[] in = new byte[100000], out = new byte[100000];
        for (int i = 0; i < in.length; i++) in[i] = (byte) (i * i >> 3);
        while (!stop) { Deflater d = new Deflater(6); d.setInput(in); d.finish(); sink += d.deflate(out); d.end(); }
    }

    static void read() throws Exception {
        try (InputStream in = new java.io.FileInputStream("/dev/zero")) {
            byte[] b = new byte[100];
            while (!stop) sink += in.read(b);
        }
    }

    // All compiled code is thrown away, again and again. By name: the class is only there for this load.
    static void storm() throws Exception {
        Class<?> box = Class.forName("jdk.test.whitebox.WhiteBox", true, null);
        Object own = box.getConstructor().newInstance();
        java.lang.reflect.Method all = box.getMethod("deoptimizeAll");
        while (!stop) { all.invoke(own); Thread.sleep(3); }
    }

    // Runs a little now and then.
    static void nap() throws Exception { while (!stop) { sink = fib(22); Thread.sleep(10); } }

    // Longer than the 15 bytes that the system keeps.
    static void sleep() throws Exception { while (!stop) Thread.sleep(600000); }
    static void park() { while (!stop) LockSupport.park(); }
    static final Object lock = new Object();
    static void await() throws Exception { synchronized (lock) { while (!stop) lock.wait(); } }

    static void pipe() throws Exception {
        java.nio.channels.Pipe pipe = java.nio.channels.Pipe.open();
        pipe.source().read(java.nio.ByteBuffer.allocate(10));
    }

    // Eight calls above a sleep, for comparing names and lines with jstack.
    static int d0(int n) throws Exception { return d1(n) + 1; }
    static int d1(int n) throws Exception {
        int x = n;

        return d2(x) + 1;
    }
    static int d2(int n) throws Exception { return new Demo().d3(n, "x") + 1; }
    int d3(int n, String s) throws Exception { Body b = () -> sink += d4(n, s.length()); b.run(); return 1; }
    static long d4(long n, int m) throws Exception { Thread.sleep(600000); return n + m; }
    static void deep() throws Exception { for (;;) d0(1); }

    static Body body(String kind) {
        switch (kind) {
        case "chain": return Demo::chain;
        case "nap": return Demo::nap;
        case "interp": return Demo::interp;
        case "turns": return Demo::turns;
        case "fib": return Demo::fib;
        case "mega": return Demo::mega;
        case "jit": return Demo::jit;
        case "lambda": return Demo::lambda;
        case "stubs": return Demo::stubs;
        case "alloc": return Demo::alloc;
        case "except": return Demo::except;
        case "deflate": return Demo::deflate;
        case "read": return Demo::read;
        case "storm": return Demo::storm;
        case "sleep": return Demo::sleep;
        case "park": return Demo::park;
        case "pipe": return Demo::pipe;
        case "await": return Demo::await;
        case "deep": return Demo::deep;
        default: throw new IllegalArgumentException(kind);
        }
    }

    static void run0(Body body) {
        try { body.run(); } catch (Exception e) { e.printStackTrace(); }
    }

    // Hundredths of a second of CPU time, of all threads so far. -Dend=MILLISECONDS of it: as much on a busy machine as on an idle one.
    static long cpuTicks() throws Exception {
        String stat = new String(Files.readAllBytes(Paths.get("/proc/self/stat")));
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
        return Long.parseLong(fields[11]) + Long.parseLong(fields[12]);
    }

    public static void main(String[] args) throws Exception {
        CountDownLatch started = new CountDownLatch(args.length);
        for (String kind : args) {
            Body body = body(kind);
            Thread thread = new Thread(() -> { started.countDown(); run0(body); }, "worker-with-a-long-name-" + kind);
            thread.setDaemon(true);
            thread.start();
        }
        started.await();
        System.out.println("ready");
        System.out.flush();
        if (System.getProperty("end") != null) {
            while (cpuTicks() < Long.parseLong(System.getProperty("end")) / 10)
                Thread.sleep(20);
            System.exit(0);
        }
        for (;;) LockSupport.park();
    }
}
