// SPDX-License-Identifier: Apache-2.0
// A loop of sines that looks at the clock: the frame pointer that the clock leaves behind leads nowhere. Its argument: how often, in millions.
public class Sine {
    static double work(int n) {
        double s = 0;
        for (int i = 0; i < n && System.currentTimeMillis() > 0; i++)
            s += Math.sin(i) * i;
        return s;
    }

    public static void main(String[] arguments) {
        System.out.println("ready");
        System.out.println(work(Integer.parseInt(arguments[0]) * 1000000));
    }
}
