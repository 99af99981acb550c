// SPDX-License-Identifier: Apache-2.0
// A .NET program for bench/dotnet_attach.py: one thread reads the clock and notes the gaps, another one works. After the given seconds
// it says the longest gap, the sum of those over 20 us (both in us), and the rounds of work.
using System;
using System.Diagnostics;
using System.Threading;

static class Clock
{
    static volatile bool ended;
    static long rounds;

    static void Work()
    {
        var text = new string[64];
        while (!ended)
        {
            for (int i = 0; i < text.Length; i++)
                text[i] = (i * 7919 % 64).ToString();
            Array.Sort(text, StringComparer.Ordinal);
            rounds++;
        }
    }

    static void Main(string[] arguments)
    {
        var worker = new Thread(Work);
        worker.Start();
        Thread.Sleep(1000);
        Console.WriteLine("ready");
        long unit = Stopwatch.Frequency / 1000000, longest = 0, sum = 0, before = rounds;
        long last = Stopwatch.GetTimestamp(), end = last + long.Parse(arguments[0]) * Stopwatch.Frequency;
        while (last < end)
        {
            long now = Stopwatch.GetTimestamp(), gap = (now - last) / unit;
            if (gap > longest) longest = gap;
            if (gap > 20) sum += gap;
            last = now;
        }
        Console.WriteLine("gaps {0} {1} {2}", longest, sum, rounds - before);
        ended = true;
        worker.Join();
    }
}
