// SPDX-License-Identifier: Apache-2.0
// The name under which HotSpot offers its own tests a way in (-XX:+WhiteBoxAPI): here only what throws all compiled code away.
package jdk.test.whitebox;

public class WhiteBox {
    private static native void registerNatives();
    static { registerNatives(); }

    public native void deoptimizeAll();
}
