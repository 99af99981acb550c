// SPDX-License-Identifier: Apache-2.0
// Virtual threads (JDK 21 and later) that compute, park and are resumed: some of their frames are in the heap then.
import java.util.concurrent.locks.LockSupport;

public class Virtual {
    static volatile long sink;

    static long spin(int n) { long s = 0; for (int i = 0; i < n; i++) s += i ^ s; return s; }
    static void v0(int depth) { if (depth > 0) { v0(depth - 1); sink += depth; } else work(); }
    static void work() {
        for (;;) {
            sink += spin(20000);
            LockSupport.parkNanos(100000);
            sink += spin(20000);
            Thread.yield();
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 6; i++)
            Thread.ofVirtual().name("virtual-" + i).start(() -> v0(20));
        System.out.println("ready");
        System.out.flush();
        for (;;) LockSupport.park();
    }
}
