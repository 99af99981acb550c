// SPDX-License-Identifier: Apache-2.0
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Threads that wait for what others have, some of them in circles. Each is named after what it does; says "ready" when all of them wait.
 */
public class LockWait {
	static final class Left { }
	static final class Right { }

	static final Object left = new Left(), right = new Right(), outer = new Object();
	static final ReentrantLock a = new ReentrantLock(), b = new ReentrantLock(), c = new ReentrantLock();
	static final ReentrantReadWriteLock read = new ReentrantReadWriteLock(), written = new ReentrantReadWriteLock();
	static final CountDownLatch all = new CountDownLatch(9), never = new CountDownLatch(1);

	interface Task {
		void run() throws Exception;
	}

	static void start(String name, Task task) {
		Thread thread = new Thread(() -> {
			try {
				task.run();
			} catch (Exception e) {
				throw new RuntimeException(e);
			}
		}, name);
		thread.setDaemon(true);
		thread.start();
	}

	static void together() throws Exception {
		all.countDown();
		all.await();
	}

	static void enter(Object one, Object other) throws Exception {
		synchronized (one) {
			together();
			synchronized (other) {
				System.out.println("never");
			}
		}
	}

	static void lock(ReentrantLock one, ReentrantLock other) throws Exception {
		one.lock();
		together();
		other.lock();
	}

	static void have() throws Exception {
		synchronized (outer) {
			outer.wait(1);   // from now on it has its lock in another way
			synchronized (LockWait.class) {
				read.readLock().lock();
				written.writeLock().lock();
				c.lock();
				together();
				never.await();
			}
		}
	}

	public static void main(String[] arguments) throws Exception {
		start("left then right", () -> enter(left, right));
		start("right then left", () -> enter(right, left));
		start("a then b", () -> lock(a, b));
		start("b then a", () -> lock(b, a));
		start("has much", LockWait::have);
		start("of a class", () -> {
			together();
			synchronized (LockWait.class) {
				System.out.println("never");
			}
		});
		start("of an object", () -> {
			together();
			synchronized (outer) {
				System.out.println("never");
			}
		});
		start("behind a reader", () -> {
			together();
			read.writeLock().lock();
		});
		start("behind a writer", () -> {
			together();
			written.readLock().lock();
		});
		all.await();
		start("for a while", () -> c.tryLock(100, TimeUnit.SECONDS));
		start("for a latch", never::await);
		start("notified by nobody", () -> {
			synchronized (never) {
				never.wait();
			}
		});
		Thread.sleep(300);
		System.out.println("ready");
		Thread.sleep(100000);
	}
}
