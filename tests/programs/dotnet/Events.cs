// SPDX-License-Identifier: Apache-2.0
// A .NET program for tests/e2e/test_dotnet_events.py: so many exceptions, bytes, collections and waits for a monitor, each from a
// method of its own. "once" does them once and prints what the runtime counts itself; "on" does them over and over.
// For bench/dotnet_events.py "allocate" and "throw" do one thing N times, and print the process's CPU time meanwhile in milliseconds.
using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Demo
{
    class Odd : Exception { }

    class Thing { public long a, b, c, d; public Thing next; } // 56 bytes

    class Late<T> { public static readonly string name = typeof(T).Name; }

    static class Events
    {
        static object kept;
        static readonly object gate = new object();

        [MethodImpl(MethodImplOptions.NoInlining)] static void ThrowOdd() { throw new Odd(); }
        [MethodImpl(MethodImplOptions.NoInlining)] static void ThrowPlain() { throw new InvalidOperationException("plain"); }
        [MethodImpl(MethodImplOptions.NoInlining)] static void Collect() { GC.Collect(); }
        [MethodImpl(MethodImplOptions.NoInlining)] static void Enter() { lock (gate) kept = null; }
        [MethodImpl(MethodImplOptions.NoInlining)] static string Load() { return Late<Thing>.name; }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void MakeThings(int n) { for (int i = 0; i < n; i++) kept = new Thing(); }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void MakeArrays(int n) { for (int i = 0; i < n; i++) kept = new byte[1000]; } // 1024 bytes each

        static void Catch(Action action)
        {
            try { action(); } catch (Odd) { } catch (InvalidOperationException) { }
        }

        /* Another thread waits for the monitor each time. */
        static void Contend()
        {
            Thread other = new Thread(Enter);

            lock (gate)
            {
                other.Start();
                while ((other.ThreadState & ThreadState.WaitSleepJoin) == 0)
                    Thread.Sleep(1);
                Thread.Sleep(5);
            }
            other.Join();
        }

        static void Round()
        {
            for (int i = 0; i < 30; i++)
                Catch(ThrowOdd);
            for (int i = 0; i < 10; i++)
                Catch(ThrowPlain);
            MakeThings(200000);
            MakeArrays(20000);
            for (int i = 0; i < 5; i++)
                Collect();
            for (int i = 0; i < 7; i++)
                Contend();
            Load();
        }

        static double CpuTime() { return System.Diagnostics.Process.GetCurrentProcess().TotalProcessorTime.TotalMilliseconds; }

        static void Loop(string what, int n)
        {
            for (int i = 0; i < n; i++)
            {
                if (what == "allocate")
                    kept = new byte[100];
                else
                    try { ThrowOdd(); } catch (Odd) { }
            }
        }

        static void Measure(string what, int n)
        {
            double before;

            Loop(what, n / 20);
            Loop(what, n / 20);
            before = CpuTime();
            Loop(what, n);
            Console.WriteLine("{0:F0}", CpuTime() - before);
        }

        static void Main(string[] arguments)
        {
            if (arguments.Length > 1)
            {
                Measure(arguments[0], int.Parse(arguments[1]));
                return;
            }
            if (arguments[0] == "on")
            {
                Console.WriteLine("ready");
                for (;;)
                {
                    Round();
                    Thread.Sleep(1);
                }
            }
            Thread.Sleep(1000); // stillframe has the maps of the runtime by then, also where other programs have the CPUs
            Round();
            Console.WriteLine("{0} {1} {2}", GC.GetTotalAllocatedBytes(true), GC.CollectionCount(0), Monitor.LockContentionCount);
        }
    }
}
