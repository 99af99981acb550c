// SPDX-License-Identifier: Apache-2.0
// Three small methods that loops call, at 50, 30 and 20 % of a thread's CPU time. It obeys its arguments, then the lines of
// its standard input: a number: calls them for so many milliseconds of CPU time, and prints that of each, by the clock of
// the thread; "uneven": from now on the lengths of the turns are random, so that they are in step with no clock; "flag": prints
// DebugNonSafepoints, which -XX:+UnlockDiagnosticVMOptions shows; "set": waits until it is set, ten seconds at most.
import com.sun.management.HotSpotDiagnosticMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

public class Split {
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static final int[] table = new int[1024];
    static volatile int sink;
    static boolean isUneven;

    static int half(int n) { int s = n; for (int i = 0; i < 40; i++) s = s * 31 + (s >>> 7); return s; }
    static int third(int n) { int s = n; for (int i = n & 7; i < 30; i++) s += table[(s + i) & 1023] ^ i; return s; }
    static int fifth(int n) { int s = n; for (int i = 0; i < 20; i++) s = s / 7 ^ n + i; return s; }

    static void callHalf(int n) { for (int i = 0; i < 20000; i++) n += half(n + i); sink = n; }
    static void callThird(int n) { for (int i = 0; i < 20000; i++) n += third(n + i); sink = n; }
    static void callFifth(int n) { for (int i = 0; i < 20000; i++) n += fifth(n + i); sink = n; }

    static void call(int which) {
        switch (which) {
            case 0: callHalf(1); break;
            case 1: callThird(1); break;
            default: callFifth(1);
        }
    }

    static void split(long milliseconds) {
        long[] shares = { 5000000, 3000000, 2000000 }, used = new long[3];
        while (used[0] + used[1] + used[2] < 1000000 * milliseconds) {
            for (int i = 0; i < 3; i++) {
                long turn = isUneven ? (long)(2 * Math.random() * shares[i]) : shares[i];
                long start = THREADS.getCurrentThreadCpuTime(), now;
                do {
                    call(i);
                } while ((now = THREADS.getCurrentThreadCpuTime()) - start < turn);
                used[i] += now - start;
            }
        }
        System.out.println(used[0] + " " + used[1] + " " + used[2]);
    }

    static String flag() {
        return ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class).getVMOption("DebugNonSafepoints").getValue();
    }

    static void awaitFlag() throws InterruptedException {
        for (int i = 0; i < 1000 && !flag().equals("true"); i++)
            Thread.sleep(10);
    }

    static void obey(String word) throws InterruptedException {
        if (word.equals("flag"))
            System.out.println(flag());
        else if (word.equals("set"))
            awaitFlag();
        else if (word.equals("uneven"))
            isUneven = true;
        else
            split(Long.parseLong(word));
    }

    public static void main(String[] words) throws Exception {
        System.out.println("ready");
        for (String word : words)
            obey(word);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null;)
            obey(line);
    }
}
