// SPDX-License-Identifier: Apache-2.0
// A .NET program for tests/e2e/test_dotnet_published.py, which is published in several ways: one thread waits, in a chain of methods.
using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Demo
{
    static class Hello
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Leaf() { Thread.Sleep(Timeout.Infinite); } // in Leaf

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Middle<T>(T value)
        {
            Leaf(); // in Middle
            GC.KeepAlive(value);
        }

        static void Main()
        {
            new Thread(() => Middle("x")) { Name = "worker", IsBackground = true }.Start();
            Thread.Sleep(500);
            Console.WriteLine("ready");
            Thread.Sleep(Timeout.Infinite);
        }
    }
}
