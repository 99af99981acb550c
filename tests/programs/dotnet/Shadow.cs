// SPDX-License-Identifier: Apache-2.0
// A .NET program for tests/e2e/test_dotnet_walks.py: what a shadow stack has to follow. Each thread works in one method, below calls that
// were left in another way than by a return: by exceptions, through several frames, finally blocks and catch blocks, and by tail calls. Each does
// the given part, in per cent, of some 0.4 s of work, and says its sum in the end.
using System;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Demo
{
    static class Shadow
    {
        static long sink;
        static int share;

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Work(int n) { long sum = 0; for (int i = 0; i < n; i++) sum += i ^ (sum >> 3); sink += sum; }

        static int Fib(int n) { return n < 2 ? n : Fib(n - 1) + Fib(n - 2); }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Throw(int depth)
        {
            if (depth > 0)
                Throw(depth - 1);
            else
                throw new InvalidOperationException();
            sink++;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void InFinally()
        {
            try { Throw(2); }
            finally { Cleanup(); }
        }

        // An exception within a finally block that an exception runs.
        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Cleanup()
        {
            try { Throw(1); } catch (InvalidOperationException) { Work(1000); }
            Work(20000);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void InCatch()
        {
            try { InFinally(); }
            catch (InvalidOperationException) { Caught(); }
            After();
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Caught() { Work(20000); sink++; }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void After() { Work(20000); sink++; }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static T Generic<T>(T value, int n) { if (n > 0) return Generic(value, n - 1); Work(100000); return value; }

        class Box<T>
        {
            [MethodImpl(MethodImplOptions.NoInlining)]
            public U Fill<U>(T value, U other) { Generic(value, 2); Generic(other, 1); return other; }
        }

        // Tail(n) calls itself by "tail." and then End, so that only one of them is on the stack at a time.
        static Action<int> MakeTail()
        {
            var type = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Tails"), AssemblyBuilderAccess.Run).DefineDynamicModule("Tails").DefineType("Tails");
            var tail = type.DefineMethod("Tail", MethodAttributes.Public | MethodAttributes.Static, typeof(void), new[] { typeof(int), typeof(Action<int>) });
            var code = tail.GetILGenerator();
            var more = code.DefineLabel();

            code.Emit(OpCodes.Ldarg_0);
            code.Emit(OpCodes.Brtrue, more);
            code.Emit(OpCodes.Ldarg_1);
            code.Emit(OpCodes.Ldc_I4, 100000);
            code.Emit(OpCodes.Tailcall);
            code.Emit(OpCodes.Callvirt, typeof(Action<int>).GetMethod("Invoke"));
            code.Emit(OpCodes.Ret);
            code.MarkLabel(more);
            code.Emit(OpCodes.Ldarg_0);
            code.Emit(OpCodes.Ldc_I4_1);
            code.Emit(OpCodes.Sub);
            code.Emit(OpCodes.Ldarg_1);
            code.Emit(OpCodes.Tailcall);
            code.Emit(OpCodes.Call, tail);
            code.Emit(OpCodes.Ret);
            var made = type.CreateType().GetMethod("Tail").CreateDelegate<Action<int, Action<int>>>();

            return n => made(n, End);
        }

        // Its frame is larger than that of Tail: so a frame of Tail that is not taken off would lie above it.
        [MethodImpl(MethodImplOptions.NoInlining)]
        static void End(int n)
        {
            Span<long> room = stackalloc long[64];

            room[n & 63] = n;
            Work(n);
            sink += room[n & 63];
        }

        static void Recurs() { long sum = 0; for (int i = 0; i < 2000 * share; i++) sum += Fib(12); Console.WriteLine("recurs " + sum / share); }

        static void Throws() { for (int i = 0; i < 40 * share; i++) InCatch(); Console.WriteLine("throws"); }

        static void Generics()
        {
            for (int i = 0; i < 20 * share; i++)
            {
                new Box<string>().Fill("", 1);
                new Box<int>().Fill(1, 2.0);
            }
            Console.WriteLine("generics");
        }

        static void Tails() { var tail = MakeTail(); for (int i = 0; i < 80 * share; i++) tail(50); Console.WriteLine("tails"); }

        static void Main(string[] arguments)
        {
            var threads = Array.ConvertAll(new ThreadStart[] { Recurs, Throws, Generics, Tails }, start =>
                new Thread(start) { Name = start.Method.Name.ToLower(), IsBackground = true });

            share = int.Parse(arguments[0]);
            foreach (var thread in threads)
                thread.Start();
            foreach (var thread in threads)
                thread.Join();
        }
    }
}
