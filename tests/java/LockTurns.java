// SPDX-License-Identifier: Apache-2.0
// A thread that waits for two locks in turns, each of which another thread gives away some times a second.
import java.util.concurrent.locks.ReentrantLock;

class LockTurns {
	static final ReentrantLock first = new ReentrantLock(true), second = new ReentrantLock(true);

	static void give(ReentrantLock lock) {
		try {
			for (;;) {
				lock.lock();
				Thread.sleep(30);
				lock.unlock();
				Thread.sleep(1);
			}
		} catch (InterruptedException e) {
		}
	}

	static void inFirst() {
		first.lock();
		first.unlock();
	}

	static void take() {
		second.lock();
		second.unlock();
	}

	static void inSecond() {
		take();
	}

	static void waitInTurns() {
		for (;;) {
			inFirst();
			inSecond();
		}
	}

	static void start(String name, Runnable work) {
		Thread thread = new Thread(work, name);

		thread.setDaemon(true);
		thread.start();
	}

	public static void main(String[] args) throws Exception {
		start("has first", () -> give(first));
		start("has second", () -> give(second));
		start("in turns", LockTurns::waitInTurns);
		Thread.sleep(100);
		System.out.println("ready");
		Thread.sleep(120000);
	}
}
