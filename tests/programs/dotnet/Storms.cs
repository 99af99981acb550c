// SPDX-License-Identifier: Apache-2.0
// Storms for tests/soak/dotnet: Storms KIND SECONDS. Each checks what it computes, and looks for gaps in its own time. In the end it prints
// "done ROUNDS", the number of rounds that it did. With SIGTERM it ends in order, too: "terminated ROUNDS".
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Linq.Expressions;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Runtime.Loader;
using System.Threading;
using System.Threading.Tasks;

namespace Demo
{
    public static class Storms
    {
        static long rounds;
        static volatile bool over;
        static volatile int sink;

        static void Check(bool right, string what)
        {
            if (right)
                return;
            Console.WriteLine("wrong: " + what);
            Environment.Exit(3);
        }

        // --- allocation, by several threads, with data that survives ---

        static void Allocate()
        {
            var kept = new Queue<int[]>();
            while (!over)
            {
                for (int i = 1; i < 200; i++)
                {
                    var made = new int[i * 7 % 5000 + 1];
                    made[^1] = made.Length;
                    kept.Enqueue(made);
                    if (kept.Count > 500)
                    {
                        int[] old = kept.Dequeue();
                        Check(old[^1] == old.Length, "an array");
                    }
                }
                Interlocked.Increment(ref rounds);
            }
        }

        // --- exceptions: thrown, filtered, with finally, by the hardware, through the runtime's own frames ---

        class Broken<T> { static Broken() { throw new InvalidOperationException("in a static constructor"); } public static int Value; }

        class Fails { public Fails() { throw new ArgumentException("in a constructor"); } }

        [DllImport("libc")]
        static extern unsafe void qsort(int[] items, nint n, nint size, delegate* unmanaged[Cdecl]<int*, int*, int> compare);

        // The exception stays among the managed frames above the native one: no further one may leave for it.
        [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
        static unsafe int Compare(int* left, int* right)
        {
            try { Throw(3); }
            catch (InvalidOperationException) { sink++; }
            return *left - *right;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Throw(int depth)
        {
            if (depth == 0)
                throw new InvalidOperationException("thrown");
            try { Throw(depth - 1); }
            finally { sink++; }
        }

        [MethodImpl(MethodImplOptions.NoInlining)] static int Length(string s) => s.Length;
        [MethodImpl(MethodImplOptions.NoInlining)] static int Divide(int a, int b) => a / b;
        public static void Invoked() { Throw(2); }

        static bool Caught<T>(Action action) where T : Exception
        {
            try { action(); }
            catch (T thrown) when (thrown.Message.Length > 0) { return true; }
            return false;
        }

        static unsafe void Exceptions()
        {
            MethodInfo invoked = typeof(Storms).GetMethod("Invoked");
            while (!over)
            {
                Check(Caught<InvalidOperationException>(() => Throw(10)), "a throw");
                Check(Caught<NullReferenceException>(() => sink = Length(null)), "a null reference");
                Check(Caught<DivideByZeroException>(() => sink = Divide(1, 0)), "a division");
                Check(Caught<TypeInitializationException>(() => sink = Broken<string>.Value), "a static constructor");
                Check(Caught<TargetInvocationException>(() => Activator.CreateInstance(typeof(Fails))), "a constructor");
                Check(Caught<TargetInvocationException>(() => invoked.Invoke(null, null)), "reflection");
                var numbers = new[] { 3, 1, 2 };
                qsort(numbers, 3, sizeof(int), &Compare);
                Check(numbers[0] == 1 && numbers[2] == 3, "native code between");
                Interlocked.Increment(ref rounds);
            }
        }

        // --- code that is compiled again and again ---

        static void Tiering()
        {
            while (!over)
            {
                ParameterExpression n = Expression.Parameter(typeof(int));
                int added = (int)(rounds % 1000);
                Func<int, int> made = Expression.Lambda<Func<int, int>>(Expression.Add(n, Expression.Constant(added)), n).Compile();
                for (int i = 0; i < 200; i++)
                    Check(made(i) == i + added, "a made method");
                Check(Generic<int>(100) + Generic<long>(100) + Generic<double>(100) == 3 * 4950, "a generic method");
                Interlocked.Increment(ref rounds);
            }
        }

        static int Generic<T>(int n)
        {
            int sum = 0;
            for (int i = 0; i < n; i++)
                sum += typeof(T) == typeof(string) ? -i : i;
            return sum;
        }

        // --- assemblies that come and go ---

        class Context : AssemblyLoadContext
        {
            public Context() : base(true) { }
            protected override Assembly Load(AssemblyName name) => null;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static WeakReference LoadAndUnload()
        {
            var context = new Context();
            Assembly loaded = context.LoadFromAssemblyPath(typeof(Storms).Assembly.Location);
            object sum = loaded.GetType("Demo.Storms").GetMethod("Sum").Invoke(null, new object[] { 1000 });
            Check((int)sum == 499500, "code of a loaded assembly");
            context.Unload();
            return new WeakReference(context);
        }

        public static int Sum(int n) => Enumerable.Range(0, n).Sum(i => i);

        static void Collectible()
        {
            while (!over)
            {
                WeakReference gone = LoadAndUnload();
                for (int i = 0; i < 10 && gone.IsAlive; i++)
                {
                    GC.Collect();
                    GC.WaitForPendingFinalizers();
                }
                Interlocked.Increment(ref rounds);
            }
        }

        // --- threads that live for a moment ---

        static void Threads()
        {
            while (!over)
            {
                int n = 0;
                var born = Enumerable.Range(0, 20).Select(i => new Thread(() => Interlocked.Add(ref n, Sum(100)))).ToList();
                born.ForEach(thread => thread.Start());
                born.ForEach(thread => thread.Join());
                Check(n == 20 * 4950, "threads");
                Check(Task.WhenAll(Enumerable.Range(0, 50).Select(i => Task.Run(() => Sum(i)))).Result.Sum() == 19600, "tasks");
                Interlocked.Increment(ref rounds);
            }
        }

        // --- other programs of .NET ---

        static void Processes()
        {
            while (!over)
            {
                var start = new ProcessStartInfo(Environment.ProcessPath, new[] { typeof(Storms).Assembly.Location, "child" }) { RedirectStandardOutput = true };
                using Process child = Process.Start(start);
                string said = child.StandardOutput.ReadToEnd();
                child.WaitForExit();
                Check(said == "499500\n" && child.ExitCode == 0, "a child: " + said + child.ExitCode);
                Interlocked.Increment(ref rounds);
            }
        }

        static readonly Dictionary<string, (Action work, int threads)> kinds = new()
        {
            ["allocate"] = (Allocate, 3), ["exceptions"] = (Exceptions, 2), ["tiering"] = (Tiering, 2), ["collectible"] = (Collectible, 1),
            ["threads"] = (Threads, 2), ["processes"] = (Processes, 1),
        };

        static int Main(string[] arguments)
        {
            if (arguments[0] == "child")
            {
                Console.WriteLine(Sum(1000));
                return 0;
            }
            using var terminated = PosixSignalRegistration.Create(PosixSignal.SIGTERM, context =>
            {
                context.Cancel = true;
                over = true;
            });
            (Action work, int threads) = kinds[arguments[0]];
            var workers = Enumerable.Range(0, threads).Select(i => new Thread(() => work()) { Name = arguments[0] }).ToList();
            workers.ForEach(worker => worker.Start());
            Console.WriteLine("ready");
            long end = Environment.TickCount64 + 1000 * long.Parse(arguments[1]);
            while (!over && Environment.TickCount64 < end)
                Thread.Sleep(20);
            string how = over ? "terminated " : "done ";
            over = true;
            workers.ForEach(worker => worker.Join());
            Console.WriteLine(how + rounds);
            return 0;
        }
    }
}
