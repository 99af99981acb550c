// SPDX-License-Identifier: Apache-2.0
// A .NET program for tests/e2e/test_dotnet_walks.py: on demand the runtime cannot be suspended. Each byte of the input takes it a step
// further: from a read like any other to one in which the thread counts as running managed code (SuppressGCTransition), so that a
// suspension waits for it; to another read like any other; to its end. The thread "spins" runs all the time.
using System;
using System.Runtime.InteropServices;
using System.Threading;

namespace Demo
{
    static unsafe class Stuck
    {
        static volatile bool ended;
        static long sink;

        [DllImport("libc.so.6", EntryPoint = "read")]
        static extern nint Read(int file, byte* to, nint size);

        [DllImport("libc.so.6", EntryPoint = "read"), SuppressGCTransition]
        static extern nint ReadAsManaged(int file, byte* to, nint size);

        static void Spins() { while (!ended) sink += sink >> 3 ^ 1; }

        static void Main()
        {
            byte one;
            Thread thread = new Thread(Spins) { Name = "spins" };

            thread.Start();
            Console.WriteLine("ready");
            Read(0, &one, 1);
            ReadAsManaged(0, &one, 1);
            Console.WriteLine("back");
            Read(0, &one, 1);
            ended = true;
            thread.Join();
            Console.WriteLine("done");
        }
    }
}
