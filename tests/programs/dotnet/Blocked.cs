// SPDX-License-Identifier: Apache-2.0
// A .NET program for tests/e2e/test_dotnet_waits.py: each thread waits in one way of the library, for ever, and has a name that says how.
// The first thread waits for input.
using System;
using System.Collections.Concurrent;
using System.Diagnostics;
using System.IO.Pipes;
using System.Net;
using System.Net.Sockets;
using System.Threading;
using System.Threading.Tasks;

namespace Demo
{
    static class Blocked
    {
        static readonly ReaderWriterLockSlim shared = new ReaderWriterLockSlim();
        static readonly ManualResetEventSlim held = new ManualResetEventSlim(), written = new ManualResetEventSlim();
        static readonly object pulsed = new object();

        static Thread Start(string name, Action work)
        {
            var thread = new Thread(() => work()) { Name = name, IsBackground = true };
            thread.Start();
            return thread;
        }

        static Socket Listen(out IPEndPoint end)
        {
            var socket = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
            socket.Bind(new IPEndPoint(IPAddress.Loopback, 0));
            socket.Listen();
            end = (IPEndPoint)socket.LocalEndPoint;
            return socket;
        }

        static void Receive()
        {
            using var server = Listen(out IPEndPoint end);
            using var socket = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
            socket.Connect(end);
            socket.Receive(new byte[10]);
        }

        static void Pulse() { lock (pulsed) Monitor.Wait(pulsed); }

        static void Never<T>(T value) => Console.WriteLine("never" + value);

#if !NET8_0
        static readonly Lock one = new Lock();

        static void Hold()
        {
            lock (one)
            {
                held.Set();
                Thread.Sleep(Timeout.Infinite);
            }
        }

        static void Want()
        {
            held.Wait();
            lock (one)
                Never(1);
        }
#endif

        static void Write()
        {
            shared.EnterWriteLock();
            written.Set();
            Thread.Sleep(Timeout.Infinite);
        }

        static void Read()
        {
            written.Wait();
            shared.EnterReadLock();
        }

        static void Rewrite()
        {
            written.Wait();
            shared.EnterWriteLock();
        }

        static void Exit()
        {
            using var process = Process.Start(new ProcessStartInfo("cat") { RedirectStandardInput = true });
            process.WaitForExit();
        }

        static void Pipe()
        {
            using var server = new AnonymousPipeServerStream(PipeDirection.In);
            server.ReadByte();
        }

        static void Main()
        {
            Start("Task.Wait", () => new TaskCompletionSource<int>().Task.Wait());
            Start("Task.Wait with a time-out", () => new TaskCompletionSource<int>().Task.Wait(1000000));
            Start("Task.Result", () => Never(new TaskCompletionSource<int>().Task.Result));
            Start("Task.GetResult", () => new TaskCompletionSource<string>().Task.GetAwaiter().GetResult());
            Start("Task.WaitAll", () => Task.WaitAll(new TaskCompletionSource<int>().Task, new TaskCompletionSource<int>().Task));
            Start("Task.WaitAny", () => Task.WaitAny(new TaskCompletionSource<int>().Task, new TaskCompletionSource<int>().Task));
            Start("SemaphoreSlim", () => new SemaphoreSlim(0).Wait());
            Start("Semaphore", () => new Semaphore(0, 1).WaitOne());
            Start("ManualResetEvent", () => new ManualResetEvent(false).WaitOne());
            Start("AutoResetEvent", () => new AutoResetEvent(false).WaitOne(1000000));
            Start("WaitAny", () => WaitHandle.WaitAny(new WaitHandle[] { new AutoResetEvent(false), new ManualResetEvent(false) }));
            Start("ManualResetEventSlim", () => new ManualResetEventSlim(false).Wait());
            Start("CountdownEvent", () => new CountdownEvent(1).Wait());
            Start("Barrier", () => new Barrier(2).SignalAndWait());
            Start("BlockingCollection", () => new BlockingCollection<int>().Take());
            Start("Monitor.Wait", Pulse);
            Thread asleep = Start("Sleep", () => Thread.Sleep(Timeout.Infinite));
            Start("Join", () => asleep.Join());
            Start("Join with a time-out", () => asleep.Join(1000000));
            Start("Accept", () => Listen(out _).Accept());
            Start("Receive", Receive);
            Start("Exit", Exit);
            Start("Pipe", Pipe);
            Start("writer", Write);
            Start("another writer", Rewrite);
            Start("reader", Read);
#if !NET8_0
            Start("has the Lock", Hold);
            Start("Lock", Want);
#endif
            Console.WriteLine("ready");
            Console.ReadLine();
        }
    }
}
