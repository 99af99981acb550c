// SPDX-License-Identifier: Apache-2.0
// A .NET program with many methods, for bench/dotnet_many.py: Many N SECONDS makes N methods, has each of them compiled by a call, says so, and
// calls them on.
using System;
using System.Reflection;
using System.Reflection.Emit;

static class Many
{
    const int PerType = 500;

    static Func<int, int>[] Make(int n)
    {
        ModuleBuilder module = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Made"), AssemblyBuilderAccess.Run).DefineDynamicModule("Made");
        var made = new Func<int, int>[n];
        for (int first = 0; first < n; first += PerType)
        {
            TypeBuilder type = module.DefineType("Type" + first / PerType, TypeAttributes.Public);
            for (int i = first; i < n && i < first + PerType; i++)
            {
                ILGenerator code = type.DefineMethod("Method" + i, MethodAttributes.Public | MethodAttributes.Static, typeof(int), new[] { typeof(int) }).GetILGenerator();
                code.Emit(OpCodes.Ldarg_0);
                code.Emit(OpCodes.Ldc_I4, i);
                code.Emit(OpCodes.Xor);
                code.Emit(OpCodes.Ret);
            }
            Type whole = type.CreateType();
            for (int i = first; i < n && i < first + PerType; i++)
                made[i] = whole.GetMethod("Method" + i).CreateDelegate<Func<int, int>>();
        }
        return made;
    }

    static void Main(string[] arguments)
    {
        Func<int, int>[] made = Make(int.Parse(arguments[0]));
        int sum = 0;
        foreach (Func<int, int> method in made)
            sum ^= method(1);
        Console.WriteLine("ready");
        for (long end = Environment.TickCount64 + 1000 * long.Parse(arguments[1]); Environment.TickCount64 < end;)
            foreach (Func<int, int> method in made)
                sum ^= method(sum);
        Console.WriteLine(sum);
    }
}
