# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of .NET share: how programs are built (tests/judges/dotnet.py), and the service of ASP.NET Core."""
from common import *

sys.path.insert(0, os.path.join(TOP, "tests", "judges"))
import dotnet as judges

WEB = """<Project Sdk="Microsoft.NET.Sdk.Web"><PropertyGroup><TargetFramework>net%d.0</TargetFramework>
<RuntimeIdentifier>linux-x64</RuntimeIdentifier><SelfContained>true</SelfContained><InvariantGlobalization>true</InvariantGlobalization>
<EnableDefaultCompileItems>false</EnableDefaultCompileItems></PropertyGroup><ItemGroup><Compile Include="%s"/></ItemGroup></Project>"""


def publish_web(folder, version):
    """The service (tests/programs/dotnet/Web.cs) with a runtime of this version of its own; built once. It prints its port."""
    output = os.path.join(folder, "Web-%d" % version)
    if not os.path.exists(os.path.join(output, "Web")):
        project = os.path.join(folder, "project-Web-%d" % version)
        os.makedirs(project, exist_ok=True)
        with open(os.path.join(project, "Web.csproj"), "w") as file:
            file.write(WEB % (version, os.path.join(TOP, "tests/programs/dotnet/Web.cs")))
        judges.run_sdk("publish", "-c", "Release", "-v", "q", "-o", output, cwd=project)
    return os.path.join(output, "Web")
