// SPDX-License-Identifier: Apache-2.0
// A service of ASP.NET Core for bench/dotnet_frames.py: it says its port, and answers with JSON, after a wait, or with text.
using System;
using System.Linq;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

namespace Demo
{
    record Row(int Number, string Name, double[] Values);

    static class Web
    {
        static Row[] Rows(int n) => Enumerable.Range(0, n).Select(i => new Row(i, "row " + i, new[] { i * 0.5, i * 0.25 })).ToArray();

        static async Task<Row[]> Later(int n)
        {
            await Task.Delay(1);
            return Rows(n).OrderByDescending(row => row.Name).ToArray();
        }

        static async Task Main()
        {
            WebApplicationBuilder builder = WebApplication.CreateBuilder();
            builder.Logging.ClearProviders();
            WebApplication application = builder.Build();
            application.Urls.Add("http://127.0.0.1:0");
            application.MapGet("/rows/{n}", (int n) => Rows(n));
            application.MapGet("/later/{n}", (int n) => Later(n));
            application.MapPost("/sum", (Row[] rows) => rows.Sum(row => row.Values.Sum()));
            application.MapGet("/text", (HttpContext context) => "hello " + context.Request.Headers.UserAgent);
            await application.StartAsync();
            Console.WriteLine(new Uri(application.Urls.First()).Port);
            await application.WaitForShutdownAsync();
        }
    }
}
