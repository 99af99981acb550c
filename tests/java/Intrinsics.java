// SPDX-License-Identifier: Apache-2.0
// One thread that goes through HotSpot's hand-written routines: mathematics, copies, checksums, ciphers, digests, big integers, base64,
// strings. Its arguments name the kinds. It says "ready" when they have been compiled.
import java.math.BigInteger;
import java.util.Arrays;
import java.util.Base64;
import java.util.zip.Adler32;
import java.util.zip.CRC32;
import java.util.zip.CRC32C;
import java.security.MessageDigest;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

public class Intrinsics {
    static volatile double sink;
    static volatile int size = 77;

    static void mathematics(int i) {
        double x = i * 0.37 + 0.11, s = 0;
        s += Math.sin(x) * i; s += Math.cos(x); s += Math.tan(x); s += Math.exp(x / 9); s += Math.log(x); s += Math.log10(x);
        s += Math.pow(x, 1.7); s += Math.sin(x * 1e7); s += Math.cos(x * 1e9); s += Math.tan(x * 1e5); s += Math.tanh(x); s += Math.cbrt(x);
        s += System.currentTimeMillis() & 1;
        sink = s;
    }

    static final byte[] bytes = new byte[1024], moreBytes = new byte[1024];
    static final short[] shorts = new short[256];
    static final int[] ints = new int[256], moreInts = new int[256];
    static final long[] longs = new long[256];
    static final Object[] objects = new Object[64], strings = new String[64];

    static void copies(int i) {
        int n = size + (i & 63);
        System.arraycopy(bytes, i & 7, moreBytes, i & 15, n); System.arraycopy(bytes, 1, bytes, 3, n); System.arraycopy(bytes, 3, bytes, 1, n);
        System.arraycopy(shorts, 1, shorts, 2, n); System.arraycopy(shorts, 2, shorts, 1, n);
        System.arraycopy(ints, i & 3, moreInts, i & 7, n); System.arraycopy(ints, 1, ints, 2, n);
        System.arraycopy(longs, 1, longs, 2, n); System.arraycopy(longs, 2, longs, 1, n);
        System.arraycopy(objects, 1, objects, 2, n & 31); System.arraycopy(objects, 2, objects, 1, n & 31);
        System.arraycopy(strings, 0, objects, 5, n & 31); System.arraycopy(objects, 0, strings, 3, n & 31);
        Object from = (i & 1) == 0 ? (Object) ints : bytes, to = (i & 1) == 0 ? (Object) moreInts : moreBytes;
        System.arraycopy(from, 0, to, 1, n);
    }

    static void fills(int i) {
        Arrays.fill(bytes, 3, size + (i & 31), (byte) i); Arrays.fill(shorts, 1, size, (short) i); Arrays.fill(ints, 1, size, i);
        sink = Arrays.mismatch(ints, moreInts) + Arrays.hashCode(bytes) + (Arrays.equals(bytes, moreBytes) ? 1 : 0);
    }

    static final CRC32 crc32 = new CRC32();
    static final CRC32C crc32c = new CRC32C();
    static final Adler32 adler32 = new Adler32();

    static void checksums(int i) {
        crc32.update(bytes, i & 7, 700); crc32c.update(bytes, i & 7, 700); adler32.update(bytes, i & 7, 700);
        crc32.update(bytes, 0, 20); crc32c.update(bytes, 0, 20);
    }

    static Cipher cipher(String how, int mode, Object parameter, String key) throws Exception {
        Cipher cipher = Cipher.getInstance(how);
        SecretKeySpec secret = new SecretKeySpec(Arrays.copyOf(bytes, key.equals("AES") ? 16 : 32), key);
        if (parameter == null) cipher.init(mode, secret);
        else cipher.init(mode, secret, (java.security.spec.AlgorithmParameterSpec) parameter);
        return cipher;
    }

    static Cipher ecb, unEcb, cbc, unCbc, ctr, gcm;
    static int nonce;

    static void ciphers(int i) throws Exception {
        if (ecb == null) {
            ecb = cipher("AES/ECB/NoPadding", 1, null, "AES"); unEcb = cipher("AES/ECB/NoPadding", 2, null, "AES");
            cbc = cipher("AES/CBC/NoPadding", 1, new IvParameterSpec(new byte[16]), "AES");
            unCbc = cipher("AES/CBC/NoPadding", 2, new IvParameterSpec(new byte[16]), "AES");
            ctr = cipher("AES/CTR/NoPadding", 1, new IvParameterSpec(new byte[16]), "AES");
        }
        ecb.update(bytes, 0, 512, moreBytes); unEcb.update(bytes, 0, 512, moreBytes); cbc.update(bytes, 0, 256, moreBytes);
        unCbc.update(bytes, 0, 256, moreBytes); ctr.update(bytes, 0, 300, moreBytes);
        byte[] iv = new byte[12];
        iv[0] = (byte) ++nonce; iv[1] = (byte) (nonce >> 8); iv[2] = (byte) (nonce >> 16);
        gcm = cipher("AES/GCM/NoPadding", 1, new GCMParameterSpec(128, iv), "AES");
        gcm.update(bytes, 0, 768, moreBytes);
        Cipher chacha = cipher("ChaCha20-Poly1305", 1, new IvParameterSpec(iv), "ChaCha20");
        chacha.doFinal(bytes, 0, 600, moreBytes, 0);
    }

    static MessageDigest[] digests;

    static void digests(int i) throws Exception {
        if (digests == null) {
            String[] names = { "MD5", "SHA-1", "SHA-256", "SHA-512", "SHA3-256" };
            digests = new MessageDigest[names.length];
            for (int k = 0; k < names.length; k++) digests[k] = MessageDigest.getInstance(names[k]);
        }
        for (MessageDigest digest : digests) { digest.update(bytes, 0, 512); }
    }

    static final BigInteger a = BigInteger.ONE.shiftLeft(1023).add(BigInteger.valueOf(977)), b = a.shiftRight(3).add(BigInteger.valueOf(55)),
        odd = a.setBit(0), e = BigInteger.valueOf(65537);

    static void bigIntegers(int i) {
        sink = a.multiply(b).bitLength() + a.multiply(a).bitLength() + b.modPow(e, odd).bitLength() + a.shiftLeft(i & 127).bitLength()
            + a.shiftRight(i & 127).bitLength() + a.pow(3).bitLength();
    }

    static void base64(int i) {
        byte[] text = Base64.getEncoder().encode(bytes);
        sink = Base64.getDecoder().decode(text).length;
    }

    static String text = "the quick brown fox jumps over the lazy dog, and again", wide = text + "\u4e2d";

    static void strings(int i) {
        String s = text + i, w = wide + i;
        sink = s.indexOf("lazy") + w.indexOf("again") + s.compareTo(text) + (s.equals(w) ? 1 : 0) + new String(s.getBytes()).length()
            + w.toCharArray().length + s.toCharArray().length + w.compareTo(s) + s.indexOf("dog" + (i & 1)) + w.getBytes().length
            + (int) (i * 1e30f) + (long) (0.0 / (i & 1)) + (int) (i % 7.5) + (int) (i % 3.25f);
    }

    static void call(String kind, int i) throws Exception {
        switch (kind) {
            case "mathematics": mathematics(i); break;
            case "copies": copies(i); break;
            case "fills": fills(i); break;
            case "checksums": checksums(i); break;
            case "ciphers": ciphers(i); break;
            case "digests": digests(i); break;
            case "big-integers": bigIntegers(i); break;
            case "base64": base64(i); break;
            case "strings": strings(i); break;
            default: throw new IllegalArgumentException(kind);
        }
    }

    public static void main(String[] kinds) throws Exception {
        for (int i = 0;; i++) {
            for (String kind : kinds)
                call(kind, i);
            if (i == 3000)
                System.out.println("ready");
        }
    }
}
