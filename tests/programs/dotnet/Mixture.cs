// SPDX-License-Identifier: Apache-2.0
// A .NET program for tests/judges/dotnet.py: threads that do one kind of work each, over and over, by the class library and around it.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Linq.Expressions;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text.Json;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;

namespace Demo
{
    class Item
    {
        public int Number { get; set; }
        public string Name { get; set; }
        public List<Item> Children { get; set; }
    }

    static class Mixture
    {
        static volatile int sink;

        [DllImport("libc")]
        static extern unsafe void qsort(int[] items, nint n, nint size, delegate* unmanaged[Cdecl]<int*, int*, int> compare);

        [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
        static unsafe int Compare(int* left, int* right) { return *left - *right; }

        static Item MakeItem(int depth) => new Item
        {
            Number = depth, Name = "item " + depth,
            Children = depth == 0 ? null : Enumerable.Range(0, 3).Select(_ => MakeItem(depth - 1)).ToList(),
        };

        static void Json()
        {
            Item item = MakeItem(4);
            sink = JsonSerializer.Deserialize<Item>(JsonSerializer.Serialize(item)).Children.Count;
        }

        static readonly Regex words = new Regex(@"(\w+)\s+(\d+)", RegexOptions.Compiled);

        static void Match() { sink = words.Matches("one 1 two 22 three 333 four five 5555").Count; }

        static void Query()
        {
            sink = Enumerable.Range(0, 1000).Where(n => n % 3 == 0).GroupBy(n => n % 7).Select(g => g.Sum(n => n * 2))
                .OrderByDescending(n => n).First();
        }

        static void Sort()
        {
            var numbers = new List<string>();
            for (int i = 0; i < 300; i++)
                numbers.Add((i * 7919 % 1000).ToString());
            numbers.Sort((left, right) => string.CompareOrdinal(left, right));
            sink = numbers.Count;
        }

        static unsafe void SortNative()
        {
            var numbers = new int[300];
            for (int i = 0; i < numbers.Length; i++)
                numbers[i] = i * 7919 % 1000;
            qsort(numbers, numbers.Length, sizeof(int), &Compare);
            sink = numbers[0];
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        static void Throw(int depth)
        {
            if (depth == 0)
                throw new InvalidOperationException("thrown");
            try { Throw(depth - 1); }
            finally { sink++; }
        }

        static void Catch()
        {
            try { Throw(5); }
            catch (InvalidOperationException thrown) when (thrown.Message.Length > 3) { sink++; }
        }

        static async Task<int> Await(int depth)
        {
            if (depth == 0)
            {
                await Task.Yield();
                return 1;
            }
            return await Await(depth - 1) + 1;
        }

        static void Later() { sink = Await(10).Result; }

        static void Spread() { Parallel.For(0, 100, n => { for (int i = 0; i < 1000; i++) sink = i ^ n; }); }

        static readonly Func<int, int> made = Expression.Lambda<Func<int, int>>(
            Expression.Add(Expression.Constant(3), parameter), parameter).Compile();
        static ParameterExpression parameter => shared ??= Expression.Parameter(typeof(int));
        static ParameterExpression shared;

        static void Call()
        {
            int sum = 0;
            for (int i = 0; i < 1000; i++)
                sum = made(sum ^ i);
            sink = sum;
        }

        static int Depth(int n) { return n == 0 ? sink : Depth(n - 1) + n; }

        static void Deep() { sink = Depth(200); }

        static void Text()
        {
            var counts = new Dictionary<string, int>();
            for (int i = 0; i < 500; i++)
                counts[$"key {i % 50:x4}"] = i;
            sink = string.Join(",", counts.Keys).Length;
        }

        static void Collect() { GC.Collect(0); Thread.Sleep(5); }

        static void Main(string[] arguments)
        {
            var kinds = new Action[] { Json, Match, Query, Sort, SortNative, Catch, Later, Spread, Call, Deep, Text };
            int n = arguments.Length > 0 ? int.Parse(arguments[0]) : 1;
            for (int i = 0; i < n; i++)
                foreach (Action kind in kinds)
                    new Thread(() => { for (;;) kind(); }) { Name = kind.Method.Name, IsBackground = true }.Start();
            new Thread(() => { for (;;) Collect(); }) { Name = "Collect", IsBackground = true }.Start();
            Thread.Sleep(500);
            Console.WriteLine("ready");
            Thread.Sleep(Timeout.Infinite);
        }
    }
}
