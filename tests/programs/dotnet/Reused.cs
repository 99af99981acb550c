// SPDX-License-Identifier: Apache-2.0
// A .NET program whose code goes, and other code takes its place: Reused KIND SECONDS [N]. In turns, in no order, it makes a method
// First or a method Second, lets it work for a while, called by ByFirst or BySecond, and drops it. KIND "dynamic": dynamic methods.
// KIND "assembly": methods of assemblies that are unloaded. Before that it makes and drops N methods.
using System;
using System.IO;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;

static class Reused
{
    const int Loops = 200000;
    const long Turn = 200; // milliseconds: a stack that is walked late, by some of them, may meet the next method

    /* for (i = Loops; i != 0; i--) x = x * 5 ^ i; return x; */
    static void Emit(ILGenerator code)
    {
        LocalBuilder i = code.DeclareLocal(typeof(int));
        Label again = code.DefineLabel();
        code.Emit(OpCodes.Ldc_I4, Loops);
        code.Emit(OpCodes.Stloc, i);
        code.MarkLabel(again);
        code.Emit(OpCodes.Ldarg_0);
        code.Emit(OpCodes.Ldc_I4_5);
        code.Emit(OpCodes.Mul);
        code.Emit(OpCodes.Ldloc, i);
        code.Emit(OpCodes.Xor);
        code.Emit(OpCodes.Starg_S, (byte)0);
        code.Emit(OpCodes.Ldloc, i);
        code.Emit(OpCodes.Ldc_I4_1);
        code.Emit(OpCodes.Sub);
        code.Emit(OpCodes.Dup);
        code.Emit(OpCodes.Stloc, i);
        code.Emit(OpCodes.Brtrue, again);
        code.Emit(OpCodes.Ldarg_0);
        code.Emit(OpCodes.Ret);
    }

    static Func<int, int> MakeDynamic(string name)
    {
        var method = new DynamicMethod(name, typeof(int), new[] { typeof(int) }, typeof(Reused).Module);
        Emit(method.GetILGenerator());
        return method.CreateDelegate<Func<int, int>>();
    }

    static byte[] Compile(string name)
    {
        var assembly = new PersistedAssemblyBuilder(new AssemblyName("Of" + name), typeof(object).Assembly);
        TypeBuilder type = assembly.DefineDynamicModule("Of" + name).DefineType("Type" + name, TypeAttributes.Public);
        MethodBuilder method = type.DefineMethod(name, MethodAttributes.Public | MethodAttributes.Static, typeof(int), new[] { typeof(int) });
        method.SetImplementationFlags(MethodImplAttributes.AggressiveOptimization);
        Emit(method.GetILGenerator());
        type.CreateType();
        var file = new MemoryStream();
        assembly.Save(file);
        return file.ToArray();
    }

    static Func<int, int> Load(AssemblyLoadContext context, byte[] file, string name)
    {
        Assembly assembly = context.LoadFromStream(new MemoryStream(file));
        return assembly.GetType("Type" + name).GetMethod(name).CreateDelegate<Func<int, int>>();
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static int ByFirst(Func<int, int> method, long turn)
    {
        int x = 1;
        for (long end = Environment.TickCount64 + turn; Environment.TickCount64 < end;)
            x = method(x);
        return x + 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    static int BySecond(Func<int, int> method, long turn)
    {
        int x = 1;
        for (long end = Environment.TickCount64 + turn; Environment.TickCount64 < end;)
            x = method(x);
        return x + 2;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void WorkFor(string name, byte[] file, long turn)
    {
        var context = file == null ? null : new AssemblyLoadContext(name, true);
        Func<int, int> method = file == null ? MakeDynamic(name) : Load(context, file, name);
        if (name == "First")
            ByFirst(method, turn);
        else
            BySecond(method, turn);
        if (context != null)
            context.Unload();
    }

    static void Collect()
    {
        for (int i = 0; i < 3; i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
        }
    }

    static void Main(string[] arguments)
    {
        byte[] first = arguments[0] == "assembly" ? Compile("First") : null, second = arguments[0] == "assembly" ? Compile("Second") : null;
        Func<int, int> kept = arguments[0] == "dynamic" ? MakeDynamic("Kept") : null; // its heap stays
        kept?.Invoke(1);
        var random = new Random(1);
        for (int i = arguments.Length > 2 ? int.Parse(arguments[2]) : 0; i > 0; i--)
        {
            WorkFor("First", first, 0);
            Collect();
        }
        Console.WriteLine("ready");
        for (long end = Environment.TickCount64 + 1000 * long.Parse(arguments[1]); Environment.TickCount64 < end;)
        {
            string name = random.Next(2) == 0 ? "First" : "Second";
            WorkFor(name, name == "First" ? first : second, Turn);
            Collect();
        }
        kept?.Invoke(1);
    }
}
