// SPDX-License-Identifier: Apache-2.0
// What the runtime's own debugging library says about the threads of a stopped .NET process: for each process id on the input, one line
// of JSON: [{"tid": 1, "frames": [{"pc": 2, "sp": 3, "type": "T", "method": "M", "kind": "ManagedMethod"}]}], innermost frame first.
using System;
using System.IO;
using System.Linq;
using System.Text.Json;
using Microsoft.Diagnostics.Runtime;

static class ClrStacks
{
    static object Describe(ClrStackFrame frame) => new
    {
        pc = frame.InstructionPointer,
        sp = frame.StackPointer,
        type = frame.Method?.Type?.Name ?? "",
        method = frame.Method?.Name ?? "",
        kind = frame.Kind.ToString(),
    };

    static object Describe(ClrThread thread) => new
    {
        tid = thread.OSThreadId,
        frames = thread.EnumerateStackTrace(false, 16384).Select(Describe).ToArray(),
    };

    // The process is let go before the answer is given.
    static string Look(int pid)
    {
        using DataTarget target = DataTarget.AttachToProcess(pid, true);
        ClrInfo clr = target.ClrVersions.Single();
        string folder = Path.GetDirectoryName(clr.ModuleInfo.FileName);
        using ClrRuntime runtime = clr.CreateRuntime(Path.Combine(folder, "libmscordaccore.so"), true);
        return JsonSerializer.Serialize(runtime.Threads.Where(thread => thread.IsAlive).Select(Describe));
    }

    static void Main()
    {
        for (string line; (line = Console.ReadLine()) != null;)
            Console.WriteLine(Look(int.Parse(line)));
    }
}
