// SPDX-License-Identifier: Apache-2.0
// A .NET program for tests/e2e/test_dotnet.py: one thread works in a chain of methods, the others are parked in one way each, or do
// one kind of work over and over. Each kind of work stands on a line that the test finds by its comment.
using System;
using System.Collections.Generic;
using System.Linq.Expressions;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace Demo
{
    class Box<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public int Put(T value, Func<T, int> measure)
        {
            int sum = 0;
            for (int i = 0; i < 1000; i++)
                sum += measure(value);
            return sum;
        }

        public class Inner
        {
            [MethodImpl(MethodImplOptions.NoInlining)]
            public static void Wait<U>(U value) { Work.Park(); } // in Inner
        }
    }

    static class Work
    {
        // CPU time of the process, in microseconds.
        [DllImport("libc.so.6")]
        static extern long clock();

        static readonly object gate = new object(), never = new object();
        static volatile int sink;
        static readonly List<Thread> parked = new List<Thread>();
        static int came;  // of these, those that have come to the wait that they are parked in

        [MethodImpl(MethodImplOptions.NoInlining)]
        static int Leaf(int n)
        {
            int sum = 0;
            for (int i = 0; i < n; i++)
                sum = Mix(i, sum); // in Leaf
            return sum;
        }

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        static int Mix(int i, int sum)
        {
            sink = i; sink = sum / 3; sink = i / (sum | 1); // in Mix
            return sum + (i * 3 ^ sum);
        }

        [MethodImpl(MethodImplOptions.NoInlining)] static int C(int n) { return Leaf(n) + 1; } // in C
        [MethodImpl(MethodImplOptions.NoInlining)] static int B(int n) { return C(n) + 1; } // in B
        [MethodImpl(MethodImplOptions.NoInlining)] static int A(int n) { return B(n) + 1; } // in A

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Park() { Interlocked.Increment(ref came); Thread.Sleep(Timeout.Infinite); } // in Park

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Lock() { Interlocked.Increment(ref came); lock (gate) sink++; } // in Lock

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Join() { Interlocked.Increment(ref came); new TaskCompletionSource<int>().Task.Wait(); } // in Join

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Catch()
        {
            try { throw new InvalidOperationException(); }
            catch (InvalidOperationException) { Park(); } // in Catch
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Finally()
        {
            try { try { throw new InvalidOperationException(); } finally { Park(); } } // in Finally
            catch (InvalidOperationException) { }
        }

        static void Lambda() { Action<int> action = x => { sink = x; Park(); }; action(3); } // in Lambda

        static IEnumerable<int> Numbers() { yield return 1; Park(); yield return 2; } // in Numbers

        static void Iterate() { foreach (int n in Numbers()) sink += n; }

        static async Task<int> Later() { await Task.CompletedTask; Park(); return 1; } // in Later

        [MethodImpl(MethodImplOptions.NoInlining)]
        static int ParkFor(int n) { Park(); return n; } // in ParkFor

        static void Emitted()
        {
            Expression<Func<int>> call = () => ParkFor(3) + 1;
            sink = call.Compile()();
        }

        [MethodImpl(MethodImplOptions.NoInlining)] static int Length(string s) { return s.Length; }

        static void Faults()
        {
            for (;;)
            {
                try { sink += Length(null); }
                catch (NullReferenceException) { sink++; }
            }
        }

        static void Allocates()
        {
            for (;;)
            {
                var list = new List<string>();
                for (int i = 0; i < 300; i++)
                    list.Add("n" + i);
                list.Sort();
                sink += list.Count;
            }
        }

        static void Calls()
        {
            var box = new Box<string>();
            for (;;)
                sink += box.Put("abc", s => s.Length);
        }

        static Thread Start(string name, Action work)
        {
            var thread = new Thread(() => work()) { Name = name, IsBackground = true };
            thread.Start();
            return thread;
        }

        static void StartParked(string name, Action work) { parked.Add(Start(name, work)); }

        // A busy machine has no turn for a thread for a while, and its methods are compiled first.
        static bool AllWait()
        {
            foreach (Thread thread in parked)
                if ((thread.ThreadState & ThreadState.WaitSleepJoin) == 0)
                    return false;
            return Volatile.Read(ref came) == parked.Count;
        }

        static void Main(string[] arguments)
        {
            Monitor.Enter(gate);
            StartParked("parked", Park);
            StartParked("locked", Lock);
            StartParked("joined", Join);
            StartParked("caught", Catch);
            StartParked("finally", Finally);
            StartParked("lambda", Lambda);
            StartParked("iterator", Iterate);
            StartParked("later", () => Later().Wait());
            StartParked("emitted", Emitted);
            StartParked("nested", () => Box<int>.Inner.Wait<string>(""));
            if (arguments.Length > 0)
            {
                Start("faults", Faults);
                Start("allocates", Allocates);
                Start("calls", Calls);
            }
            while (!AllWait())
                Thread.Sleep(10);
            Console.WriteLine("ready");
            // With a number of seconds the program ends by itself when it has used as much CPU time more, the same on a busy machine as on an idle one.
            long end = arguments.Length > 1 ? clock() + 1000000 * long.Parse(arguments[1]) : 0;
            while (end == 0 || clock() < end)
                sink = A(10000); // in Main
        }
    }
}
