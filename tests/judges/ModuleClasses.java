// SPDX-License-Identifier: Apache-2.0
import java.io.*;
import java.net.URI;
import java.nio.file.*;
import java.util.*;
import java.util.zip.*;

/** Writes the class files of the running JDK whose names stand in the standard input, one in a line, to a zip file: java ModuleClasses.java FILE. */
class ModuleClasses {
    static final FileSystem JDK = FileSystems.getFileSystem(URI.create("jrt:/"));

    /** Of which module a class is, a folder of the file system /packages says. */
    static Optional<Path> find(String name) throws IOException {
        int end = name.lastIndexOf('.');
        Path modules = JDK.getPath("/packages", end < 0 ? "none" : name.substring(0, end));
        if (!Files.exists(modules))
            return Optional.empty();
        try (var list = Files.list(modules)) {
            return list.map(link -> JDK.getPath("/modules", link.getFileName().toString(), name.replace('.', '/') + ".class")).filter(Files::exists).findFirst();
        }
    }

    public static void main(String[] args) throws IOException {
        try (var in = new BufferedReader(new InputStreamReader(System.in));
             var out = new ZipOutputStream(new BufferedOutputStream(new FileOutputStream(args[0])))) {
            out.setLevel(0);
            for (String name; (name = in.readLine()) != null; ) {
                Optional<Path> found = find(name);
                if (found.isEmpty())
                    continue;
                out.putNextEntry(new ZipEntry(name.replace('.', '/') + ".class"));
                out.write(Files.readAllBytes(found.get()));
            }
        }
    }
}
