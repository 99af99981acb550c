// SPDX-License-Identifier: Apache-2.0
// A .NET program for bench/dotnet_hooks.py. "fib": calls of short methods only. "words": counts words of a text, with dictionaries, strings and
// delegates, as programs do. Says the milliseconds of CPU time that the process took for the given rounds, after one that is not counted.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;

namespace Demo
{
    static class Calls
    {
        static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }

        static long Words(int seed)
        {
            var words = Enumerable.Range(0, 20000).Select(i => "word" + (i * 7919 + seed) % 5000).ToArray();
            var counts = new Dictionary<string, int>();

            foreach (var word in string.Join(' ', words).Split(' '))
                counts[word] = counts.TryGetValue(word, out var n) ? n + 1 : 1;
            return counts.OrderByDescending(pair => pair.Value).ThenBy(pair => pair.Key, StringComparer.Ordinal).Take(100).Sum(pair => (long)pair.Key.Length * pair.Value);
        }

        static long Round(string what, int i) { return what == "fib" ? Fib(27) : Words(i); }

        static double CpuMs() { return Process.GetCurrentProcess().TotalProcessorTime.TotalMilliseconds; }

        static void Main(string[] arguments)
        {
            int rounds = int.Parse(arguments[1]);
            long sum = 0;

            for (int i = 0; i < rounds; i++)
                sum += Round(arguments[0], i);
            double start = CpuMs();
            for (int i = 0; i < rounds; i++)
                sum += Round(arguments[0], i);
            Console.WriteLine((CpuMs() - start).ToString("F1", System.Globalization.CultureInfo.InvariantCulture));
            Environment.ExitCode = sum == 0 ? 1 : 0;
        }
    }
}
