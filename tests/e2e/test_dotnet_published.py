# SPDX-License-Identifier: Apache-2.0
"""Programs of .NET as they are published (tests/programs/dotnet/Hello.cs): in a single file, with PDBs beside it or in the assembly, and the
comparison with the runtime's own debugging library. Publishing needs packages from NuGet: without them these tests are skipped."""
import os
import re
import subprocess
import sys

import pytest

import hanging
from conftest import HERE, need
from processes import Target, until
from test_dotnet import line_of

JUDGE = os.path.join(HERE, "../judges/dotnet.py")
PROJECT = """<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><OutputType>Exe</OutputType><TargetFramework>net10.0</TargetFramework>
<RuntimeIdentifier>linux-x64</RuntimeIdentifier><InvariantGlobalization>true</InvariantGlobalization>
<EnableDefaultCompileItems>false</EnableDefaultCompileItems>%s</PropertyGroup>
<ItemGroup><Compile Include="%s"/></ItemGroup></Project>"""
SINGLE = "<SelfContained>true</SelfContained><PublishSingleFile>true</PublishSingleFile>"
EMBEDDED = "<DebugType>embedded</DebugType>"


def publish(folder, properties):
    need("dotnet")
    project = folder / "project"
    project.mkdir()
    (project / "Hello.csproj").write_text(PROJECT % (properties, os.path.abspath(os.path.join(HERE, "../programs/dotnet/Hello.cs"))))
    done = subprocess.run(["dotnet", "publish", "-c", "Release", "-v", "q", "-o", folder / "out"], cwd=project, capture_output=True, text=True,
                          timeout=600, env={**os.environ, "DOTNET_CLI_TELEMETRY_OPTOUT": "1", "DOTNET_NOLOGO": "1"})
    if "NU1101" in done.stdout or "NU1301" in done.stdout:
        pytest.skip("packages of .NET cannot be had: " + done.stdout.strip().splitlines()[0])
    assert done.returncode == 0, done.stdout
    # The PDB where the compiler wrote it is not what is looked for here.
    subprocess.run(["rm", "-r", project], check=True)
    return folder / "out" / "Hello"


@pytest.mark.long
@pytest.mark.parametrize("properties", [SINGLE, SINGLE + EMBEDDED,
                                        SINGLE + EMBEDDED + "<EnableCompressionInSingleFile>true</EnableCompressionInSingleFile>"],
                         ids=["PDB beside", "PDB in it", "compressed"])
def test_lines_in_a_single_file(stillframe, tmp_path, properties):
    """The assembly has no file of its own: its image in memory leads to the lines."""
    target = Target([publish(tmp_path, properties)], env={**os.environ, "TMPDIR": str(tmp_path)})

    def worker():
        threads = {thread["name"]: thread for thread in stillframe.dump(target.pid)["threads"]}
        return [(frame["function"], frame["line"]) for frame in threads["worker"]["frames"] if frame["function"].startswith("Demo.")]
    try:
        frames = until(lambda: worker()[:2] if len(worker()) > 2 else None, "the thread waits")
        assert frames == [("Demo.Hello.Leaf()", line_of("Leaf", "Hello")), ("Demo.Hello.Middle<__Canon>(__Canon)", line_of("Middle", "Hello"))]
    finally:
        target.end()


@pytest.mark.long
def test_the_same_frames_as_the_runtimes_own_debugging_library(stillframe, tmp_path):
    """In a few moments of a mixture of work, and of threads that wait."""
    need("dotnet")
    done = hanging.run([sys.executable, JUDGE, "--stillframe", stillframe.path, "--folder", tmp_path, "--versions", "10", "--moments", "8",
                        "--programs", "Mixture 1,Blocked", "--show", "3"], 900)
    if re.search("NU1[13]01", done.stdout + done.stderr):
        pytest.skip("packages of .NET cannot be had")
    assert done.returncode == 0, done.stdout + done.stderr
