// SPDX-License-Identifier: Apache-2.0
// A .NET program for tests/e2e/test_dotnet_walks.py. The thread "splits" spends its time in three methods, 50, 30 and 20 %, below a
// chain of callers. The thread "sorts" has libc sort numbers, which calls a managed method for each comparison. The thread
// "reads" reads the clock. Runs until it has used the given seconds of CPU time, as much on a busy machine as on an idle one, or
// until it is ended. With "rounds N" until "splits" has made N rounds.
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Demo
{
    static unsafe class Split
    {
        static volatile bool ended;
        static long rounds = long.MaxValue;
        static long sink;

        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Half(int n) { long sum = 0; for (int i = 0; i < n * 5; i++) sum += i ^ (sum >> 3); return sum; }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Third(int n) { long sum = 1; for (int i = 0; i < n * 3; i++) sum += i ^ (sum >> 3); return sum; }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static long Fifth(int n) { long sum = 2; for (int i = 0; i < n * 2; i++) sum += i ^ (sum >> 3); return sum; }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Round(int n) { sink += Half(n) + Third(n) + Fifth(n); }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Deep(int depth, int n) { if (depth > 0) Deep(depth - 1, n); else Round(n); sink++; }

        static void Splits() { for (long i = 0; !ended && i < rounds; i++) Deep(5, 20000); }

        [DllImport("libc.so.6")]
        static extern void qsort(int* numbers, nint n, nint size, delegate* unmanaged<int*, int*, int> compare);

        // CPU time of the process, in microseconds.
        [DllImport("libc.so.6")]
        static extern long clock();

        [UnmanagedCallersOnly]
        static int Compare(int* a, int* b) { long sum = 0; for (int i = 0; i < 200; i++) sum += i ^ (sum >> 3); sink += sum; return a[0] < b[0] ? -1 : 1; }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Sort(int* numbers, int n)
        {
            for (int i = 0; i < n; i++)
                numbers[i] = (int)(i * 2654435761u >> 7);
            qsort(numbers, n, sizeof(int), &Compare);
        }

        static void Sorts()
        {
            int* numbers = (int*)NativeMemory.Alloc(2000 * sizeof(int));

            while (!ended)
            {
                for (int i = 0; i < 2; i++)
                    Sort(numbers, 2000);
                Thread.Sleep(2);
            }
        }

        // The runtime's function behind this is called without a transition, and polls for a suspension afterwards.
        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Read() { for (int i = 0; i < 1000; i++) sink += Environment.TickCount64 + Stopwatch.GetTimestamp(); }

        static void Reads() { while (!ended) Read(); }

        static void Main(string[] arguments)
        {
            var reads = new Thread(Reads) { Name = "reads", IsBackground = true };
            var splits = new Thread(Splits) { Name = "splits", IsBackground = true };
            var sorts = new Thread(Sorts) { Name = "sorts", IsBackground = true };

            if (arguments.Length > 1)
                rounds = long.Parse(arguments[1]);
            splits.Start();
            sorts.Start();
            reads.Start();
            Console.WriteLine("ready");
            if (arguments.Length > 1)
                splits.Join();
            else
                while (arguments.Length == 0 || clock() < 1000000 * long.Parse(arguments[0]))
                    Thread.Sleep(10);
            ended = true;
            splits.Join();
            sorts.Join();
            reads.Join();
        }
    }
}
