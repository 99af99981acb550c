// SPDX-License-Identifier: Apache-2.0
// A .NET program for tests/e2e/test_dotnet_async.py: asynchronous methods compute after they have waited, so that those that await them
// are on no stack. Each chain ends in a method of its own, which computes.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace Demo
{
    static class Async
    {
        static volatile int kept;

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Spin(int n) { for (int i = 0; i < n * 1000; i++) kept += i; }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void OfChain() => Spin(30000);

        static async ValueTask<int> Third(string s)
        {
            await Task.Yield();
            OfChain();
            return s.Length;
        }

        static async Task<int> Second(int n)
        {
            await Task.CompletedTask;
            int got = await Third("x");
            return got + n;
        }

        static async Task<T> First<T>(T value)
        {
            await Second(1);
            return value;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void OfRecursion() => Spin(30000);

        static async Task Recurse(int n)
        {
            await Task.Yield();
            if (n == 0)
                OfRecursion();
            else
                await Recurse(n - 1);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void OfAll() => Spin(30000);

        static async Task One() { await Task.Yield(); OfAll(); }

        static async Task All() { await Task.WhenAll(One(), One()); }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void OfRun() => Spin(30000);

        static async Task Run() { await Task.Run(async () => { await Task.Yield(); OfRun(); }); }

        // Its second half runs where Inner completes: one asynchronous method above another on one stack.
        [MethodImpl(MethodImplOptions.NoInlining)]
        static void OfSecondHalf() => Spin(30000);

        static readonly SemaphoreSlim awaited = new SemaphoreSlim(0);

        static async Task Inner() { await Task.Yield(); awaited.Wait(); }

        static async Task Halves() { await Inner(); OfSecondHalf(); }

        static async Task Around()
        {
            Task halves = Halves();
            awaited.Release();
            await halves;
        }

        // Nobody awaits it.
        [MethodImpl(MethodImplOptions.NoInlining)]
        static void OfNobody() => Spin(30000);

        static async void Alone(SemaphoreSlim done) { await Task.Yield(); OfNobody(); done.Release(); }

        static void Collect()
        {
            var objects = new List<object>();
            for (int i = 0; ; i++)
            {
                objects.Add(new byte[100 + i % 1000]);
                if (objects.Count > 2000)
                    objects.RemoveRange(0, 1999);
                if (i % 2000 != 0)
                    continue;
                GC.Collect(2, GCCollectionMode.Forced, true, true);
                Thread.Sleep(3);
            }
        }

        static async Task Main(string[] arguments)
        {
            var done = new SemaphoreSlim(0);

            if (arguments.Length > 0)
                new Thread(Collect) { IsBackground = true }.Start();
            for (int i = 0; ; i++)
            {
                await First("value");
                await Recurse(5);
                await All();
                await Run();
                await Around();
                Alone(done);
                await done.WaitAsync();
                if (i == 1)
                    Console.WriteLine("ready");
            }
        }
    }
}
