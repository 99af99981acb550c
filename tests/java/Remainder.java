// SPDX-License-Identifier: Apache-2.0
// The interpreter calls leaf routines: for a remainder by itself, for a sine instead of a method. Its argument: for how many
// milliseconds. Lines with "// line" are told by their words.
public class Remainder {
    static volatile double sink;

    static double three() {
        return 3;
    }

    static double work(double big) {
        double divisor = three();                // line: call
        double rest = big % divisor;             // line: remainder
        double sine = Math.sin(big + rest);      // line: sine
        return sine + rest;
    }

    public static void main(String[] arguments) {
        long end = System.nanoTime() + 1000000 * Long.parseLong(arguments[0]);
        while (System.nanoTime() < end)
            for (int i = 0; i < 1000; i++)
                sink = work(1e300);
    }
}
