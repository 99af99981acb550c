# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks of Java share: a JDK, a large source tree and its compilation by javac, the profilers that can
be around or inside it, and what each says that it saw."""
import zipfile

from signal_common import *

USAGE = os.path.join(BENCH, "usage.so")
DEMO = os.path.join(TOP, "tests", "java", "Demo.java")
MODULE = "java.xml"     # of the JDK's own sources: 1,855 files, and it needs no other but java.base


def version_of(folder):
    try:
        found = re.search(r'JAVA_VERSION="(?:1\.)?(\d+)', open(os.path.join(folder, "release")).read())
    except OSError:
        return 0
    return int(found[1]) if found and os.path.exists(os.path.join(folder, "bin", "javac")) else 0


def find_jdk():
    """The newest JDK under /usr/lib/jvm, or the one that JDK names."""
    here = [os.environ["JDK"]] if "JDK" in os.environ else sorted(glob.glob("/usr/lib/jvm/*"))
    best = max(here, key=version_of, default=None)
    if not best or not version_of(best):
        print("\n(no JDK is here: nothing of Java is measured)")
        sys.exit(0)
    return best


JDK = find_jdk()
VERSION = version_of(JDK)


# --- a source tree ------------------------------------------------------------------------------------------------


def make_class(package, number):
    """Generics, lambdas, switches, strings: what keeps a compiler busy. The same each time."""
    methods = "".join("""
    public static <T extends Comparable<T>> Map<String, List<T>> group%d(List<T> all, Function<T, String> by) {
        return all.stream().filter(x -> x.compareTo(all.get(0)) > %d).sorted(Comparator.reverseOrder())
            .collect(Collectors.groupingBy(x -> switch (by.apply(x).length() %% 3) {
                case 0 -> "a" + x; case 1 -> "b" + by.apply(x); default -> String.format("%%s %%d", x, %d); }));
    }""" % (n, n % 2, number) for n in range(20))
    return ("package %s;\nimport java.util.*;\nimport java.util.function.*;\nimport java.util.stream.*;\n"
            "public class C%d {%s\n}\n" % (package, number, methods))


def generate(folder, n=250):
    os.makedirs(os.path.join(folder, "made"))
    for i in range(n):
        with open(os.path.join(folder, "made", "C%d.java" % i), "w") as out:
            out.write(make_class("made", i))
    return [os.path.join(folder, "made", "C%d.java" % i) for i in range(n)]


def source_tree():
    """(what it is, javac's words for it, -d aside): a module of the JDK's own src.zip, else one that is made."""
    folder = os.path.join(SCRATCH, "src")
    archive = os.path.join(JDK, "lib", "src.zip")
    if VERSION >= 9 and os.path.exists(archive):
        with zipfile.ZipFile(archive) as sources:
            names = [name for name in sources.namelist() if name.startswith(MODULE + "/") and name.endswith(".java")]
            sources.extractall(folder, names)
        return "%d files of %s" % (len(names), MODULE), ["--module-source-path", folder, "-m", MODULE]
    files = generate(folder)
    return "%d files, generated" % len(files), files


def javac(words, *machine):
    return [os.path.join(JDK, "bin", "javac"), *("-J" + word for word in machine), "-nowarn", "-proc:none",
            "-d", new_file("classes"), *words]   # a new folder: what is there already would not be compiled


AGAIN = """
import java.io.File;
import javax.tools.ToolProvider;
public class Again {
    static void remove(File file) {
        File[] inside = file.listFiles();
        for (int i = 0; inside != null && i < inside.length; i++)
            remove(inside[i]);
        file.delete();
    }

    public static void main(String[] words) {
        com.sun.management.OperatingSystemMXBean system =
            (com.sun.management.OperatingSystemMXBean) java.lang.management.ManagementFactory.getOperatingSystemMXBean();
        for (int i = 0;; i++) {
            File classes = new File(words[1] + "/" + i % 2);
            remove(classes);    // what is there already is not compiled
            String[] next = words.clone();
            next[1] = classes.getPath();
            long cpu = system.getProcessCpuTime(), wall = System.nanoTime();
            if (ToolProvider.getSystemJavaCompiler().run(null, null, null, next) != 0)
                System.exit(1);
            System.out.println(wall + " " + (system.getProcessCpuTime() - cpu) + " " + (System.nanoTime() - wall));
        }
    }
}
"""


ONCE = """
import javax.tools.ToolProvider;
public class Once {
    public static void main(String[] words) {
        long began = System.nanoTime();
        int failed = ToolProvider.getSystemJavaCompiler().run(null, null, null, words);
        System.out.println("main " + began + " " + System.nanoTime());
        if (failed != 0)
            System.exit(1);
    }
}
"""


def compile_class(name, text):
    """The folder of its class."""
    folder = new_file(name)
    os.makedirs(folder)
    with open(os.path.join(folder, name + ".java"), "w") as out:
        out.write(text)
    run(os.path.join(JDK, "bin", "javac"), "-d", folder, os.path.join(folder, name + ".java"))
    return folder


def once(words):
    """What runs javac as javac() does, and says when its main() began and ended (time.monotonic_ns), given words for the machine."""
    folder = compile_class("Once", ONCE)
    return lambda *machine: [os.path.join(JDK, "bin", "java"), *machine, "-cp", folder, "Once", "-nowarn", "-proc:none",
                             "-d", new_file("classes"), *words]


def again_and_again(words):
    """javac, as javac() runs it, again and again in one JVM, which says after each when it began (as time.monotonic_ns) and what it
    took: ns of user + system, of elapsed time."""
    folder, classes = compile_class("Again", AGAIN), new_file("classes")
    os.makedirs(classes)
    dynamic = ["-XX:+EnableDynamicAgentLoading"] if VERSION >= 9 else []
    return [os.path.join(JDK, "bin", "java"), *dynamic, "-cp", folder, "Again", "-d", classes, "-nowarn", "-proc:none", *words]


# --- running ------------------------------------------------------------------------------------------------------


around = []     # words in front of each command


class JavaRun(Run):
    """A Run of which the times are those of the JVM, not of a profiler around it."""

    def __init__(self, command, environment, file):
        self.said_usage = new_file("usage")
        super().__init__([*around, *command], {"LD_PRELOAD": USAGE, "SF_BENCH_USAGE": self.said_usage, **environment}, file)
        lines = [line.split() for line in open(self.said_usage)]
        user, system, self.wall = max(([float(word) for word in line[1:]] for line in lines if line[0] in ("javac", "java")))
        self.seconds = user + system

    @property
    def cpu(self):
        return self.seconds


def record(engine, *more):
    def start(make, rate):
        file = new_file("sfr")
        return JavaRun([STILLFRAME, "record", "--engine", engine, *more, "--clock", "cpu", "-q", "-F", "%g" % rate, "-o", file,
                        "--", *make()], {}, file)
    return start


def flight_recorder(event=None, setting=None):
    """With one kind of event, or with none: what the recorder does to a JVM without sampling it."""
    def start(make, rate):
        file = new_file("jfr")
        words = "settings=none,filename=%s" % file
        if event:
            words += ",+%s#enabled=true,+%s#%s=%gms" % (event, event, setting, 1000 / rate)
        if event == "jdk.ExecutionSample":
            words += ",+jdk.NativeMethodSample#enabled=true,+jdk.NativeMethodSample#period=%gms" % (1000 / rate)
        return JavaRun(make("-XX:StartFlightRecording=" + words), {}, file)
    return start


def async_profiler_java(event):
    def start(make, rate):
        file = new_file("collapsed")
        words = "start,event=%s,interval=%d,collapsed,file=%s" % (event, 1e9 / rate, file)
        return JavaRun(make("-agentpath:%s=%s" % (ASYNC_PROFILER, words)), {}, file)
    return start


# --- what they saw: (samples, broken stacks or None) ----------------------------------------------------------------


def seen_by_us(ran):
    """Samples that speak for CPU time; a stack is whole when it reaches the thread's first frame."""
    whole = sum(end["ticks"] for end in ran.report["ends"] if end["end"] == "root")
    return ran.running["samples"], 1 - whole / max(ran.report["sample_ticks"], 1)


def seen_by_flight_recorder(*events):
    def count(ran):
        text = run(os.path.join(JDK, "bin", "jfr"), "summary", ran.file)[1]
        found = dict(re.findall(r"^ *(jdk\.\w+) +(\d+)", text, re.M))
        broken = None
        if events[0] == "jdk.CPUTimeSample":
            text = run(os.path.join(JDK, "bin", "jfr"), "print", "--events", events[0], "--stack-depth", "1", ran.file)[1]
            broken = len(re.findall(r"failed = true", text)) / max(len(re.findall(r"failed = ", text)), 1)
        return sum(int(found.get(event, 0)) for event in events), broken
    return count


def seen_by_async_profiler(ran):
    lines = [line.rpartition(" ") for line in open(ran.file) if line.strip()]
    broken = sum(int(n) for stack, _, n in lines if re.match(r"\[(unknown|not_walkable|break|no_Java_frame|deoptimized)", stack))
    total = sum(int(n) for _, _, n in lines)
    return total, broken / max(total, 1)


# JFR's samplers look at threads that run Java code; of a javac's those of the compilers use more CPU time. A row of the same threads.
JAVA_ONLY = ("--threads", "^(main|javac?)$")   # before the JVM has said its name, and after


def java_profilers():
    """[(name, how to run under it, what it saw)], those that are here."""
    found = [("stillframe, ptrace", record("ptrace"), seen_by_us),
             ("stillframe, signal, walk=sampler", record("signal", "--walk", "sampler"), seen_by_us),
             ("stillframe, signal, walk=handler", record("signal", "--walk", "handler"), seen_by_us),
             ("stillframe, signal, walk=sampler, Java's threads", record("signal", "--walk", "sampler", *JAVA_ONLY), seen_by_us),
             ("stillframe, signal, walk=handler, Java's threads", record("signal", "--walk", "handler", *JAVA_ONLY), seen_by_us)]
    if VERSION >= 17:
        found += [("JFR, ExecutionSample", flight_recorder("jdk.ExecutionSample", "period"),
                   seen_by_flight_recorder("jdk.ExecutionSample", "jdk.NativeMethodSample"))]
        found += [("JFR, nothing sampled", flight_recorder(), lambda ran: (0, None))]
    if VERSION >= 25:
        found += [("JFR, CPUTimeSample", flight_recorder("jdk.CPUTimeSample", "throttle"),
                   seen_by_flight_recorder("jdk.CPUTimeSample"))]
    if ASYNC_PROFILER:
        found += [("async-profiler, " + event, async_profiler_java(event), seen_by_async_profiler)
                  for event in ("cpu", "ctimer", "wall")]
    return found


def demo_classes():
    folder = os.path.join(SCRATCH, "classes")
    run(os.path.join(JDK, "bin", "javac"), "-d", folder, DEMO)
    return folder
