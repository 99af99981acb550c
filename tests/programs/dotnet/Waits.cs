// SPDX-License-Identifier: Apache-2.0
// A .NET program for tests/e2e/test_dotnet_waits.py: each thread waits for one thing, two of them for each other. The names of the
// threads say what. Asynchronous methods wait for each other, and the innermost one has its thread.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Linq;
using System.Net;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace Demo
{
    static class Waits
    {
        static readonly object first = new object(), second = new object(), held = new object(), signalled = new object();
        static readonly object box = new object();

        static readonly ConcurrentBag<Thread> waiters = new ConcurrentBag<Thread>();
        static int took;             // of two threads, those that have the one and go on to want the other
        static volatile bool holds;  // the thread that holds a monitor and sleeps has it

        static void Start(string name, Action work)
        {
            new Thread(() => work()) { Name = name, IsBackground = true }.Start();
        }

        static void StartWaiter(string name, Action work)
        {
            Start(name, () =>
            {
                waiters.Add(Thread.CurrentThread);
                work();
            });
        }

        // Each waiter waits for what its name says, no longer for something on the way there.
        static bool AllWait(int count)
        {
            return Volatile.Read(ref took) == 2 && holds && waiters.Count == count &&
                   waiters.All(thread => (thread.ThreadState & ThreadState.WaitSleepJoin) != 0);
        }

        // Each holds one of two, and wants the other.
        static void Take(object mine, object other, Barrier both)
        {
            lock (mine)
            {
                both.SignalAndWait();
                Interlocked.Increment(ref took);
                lock (other)
                    Console.WriteLine("never");
            }
        }

        static void Hold()
        {
            lock (held)
            {
                holds = true;
                Thread.Sleep(Timeout.Infinite);
            }
        }

        static void Want()
        {
            while (!holds)
                Thread.Yield();
            lock (held)
                Console.WriteLine("never");
        }

        static void Signal() { lock (signalled) Monitor.Wait(signalled); }

        static void Accept()
        {
            using var socket = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
            socket.Bind(new IPEndPoint(IPAddress.Loopback, 0));
            socket.Listen();
            socket.Accept();
        }

        static async Task<int> Outer(int n)
        {
            int got = await Middle(n) + 1; // in Outer
            return got;
        }

        static async Task<int> Middle(int n)
        {
            await Task.CompletedTask;
            try
            {
                return await Inner("x", n); // in Middle
            }
            finally
            {
                GC.KeepAlive(n);
            }
        }

        static async ValueTask<int> Inner(string s, int n)
        {
            await Task.Yield();
            Rest();
            return s.Length + n;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Rest()
        {
            waiters.Add(Thread.CurrentThread);
            Thread.Sleep(Timeout.Infinite);
        }

        // Objects move all the time: a thread's name, and its boxes of asynchronous methods.
        static void Collect()
        {
            var kept = new List<object>();
            for (int i = 0; ; i++)
            {
                kept.Add(new byte[100 + i % 1000]);
                if (kept.Count > 2000)
                    kept.RemoveRange(0, 1999);
                if (i % 2000 != 0)
                    continue;
                GC.Collect(2, GCCollectionMode.Forced, true, true);
                Thread.Sleep(3);
            }
        }

        static void Main(string[] arguments)
        {
            var both = new Barrier(2);
            StartWaiter("holds first, wants second", () => Take(first, second, both));
            StartWaiter("holds second, wants first", () => Take(second, first, both));
            StartWaiter("holds a monitor and sleeps", Hold);
            StartWaiter("wants a monitor that is held", Want);
            StartWaiter("waits for a monitor's pulse", Signal);
            StartWaiter("waits for a task", () => new TaskCompletionSource<int>().Task.Wait());
            StartWaiter("waits for a semaphore", () => new SemaphoreSlim(0).Wait());
            Start("waits for a connection", Accept);
            StartWaiter("waits for an event", () => new ManualResetEvent(false).WaitOne());
            StartWaiter("sleeps, n\u00e4mlich \ud83d\ude34", () => Thread.Sleep(Timeout.Infinite));
            ThreadPool.QueueUserWorkItem(_ =>
            {
                Thread.CurrentThread.Name = "a worker with a name";
                Rest();
            });
            Task<int> task = Outer(3);
            var joined = new Thread(() => Thread.Sleep(Timeout.Infinite)) { Name = "is joined", IsBackground = true };
            joined.Start();
            StartWaiter("joins a thread", () => joined.Join());
            if (arguments.Length > 0)
                Start("collects", Collect);
            while (!AllWait(12)) // ten of their own, a worker of the pool, and the innermost asynchronous method
                Thread.Sleep(10);
            Console.WriteLine("ready");
            GC.KeepAlive(box);
            task.Wait();
        }
    }
}
