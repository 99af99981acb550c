// SPDX-License-Identifier: Apache-2.0
// The page of the HTML export, as a person uses it. The small profile is the one of
// tests/unit/fake_profile.c: 73 ms, of these [futex] 50, inner 15, the script 7, no stack 1.
import assert from "node:assert/strict";
import { after, before, beforeEach, afterEach, describe, test } from "node:test";
import { changedExport, fakeExport, madeExport, ofTwoProcesses, openPage, pixel, pressed, settle, startBrowser, status, stopBrowser }
	from "./page.mjs";

const ROW = 20;
const rowMiddle = (depth) => depth * ROW + ROW / 2;
const SCRIPT = "</script><img src=x onerror=alert(1)>";

let browser;
before(async () => {
	browser = await startBrowser();
});
after(async () => {
	await stopBrowser(browser);
});

describe("a small profile", () => {
	let opened, page, file;

	before(() => {
		file = fakeExport("html");
	});
	beforeEach(async () => {
		opened = await openPage(browser, file);
		page = opened.page;
		await settle(page);
	});
	// Whatever a test does: nothing is logged, nothing is fetched.
	afterEach(async () => {
		await page.close();
		assert.deepEqual(opened.faults, []);
		assert.deepEqual(opened.requests.filter((url) => !/^(file|data):/.test(url)), []);
	});

	test("draws frames, and nothing below them", async () => {
		const background = await pixel(page, 600, 500);
		assert.deepEqual(background, [255, 255, 255]);
		for (const depth of [0, 1, 2])
			assert.notDeepEqual(await pixel(page, 300, rowMiddle(depth) + 6), background);
	});

	test("sums the recording up", async () => {
		const header = await page.locator("header").textContent();
		for (const text of ["app --fast", "ptrace", " sampled", "5 (3 late, 2 unseen)", "20.0 ms seen",
			"20.5 ms counted", "100 ms"])
			assert.ok(header.includes(text), `${text} in ${header}`);
	});

	test("says what a frame is, under the pointer and in focus", async () => {
		await page.mouse.move(300, 78 + rowMiddle(1));
		await page.waitForSelector("#tooltip.shown");
		assert.match(await page.locator("#tooltip").textContent(), /^main98\.6 %/);
		assert.match(await page.locator("#details").textContent(), /app.*\/src\/app\.c:11/);
	});

	test("a search tells the share, each stack once", async () => {
		const matched = async (text) => {
			await page.fill("#search", text);
			return await page.locator("#matched").textContent();
		};
		assert.equal(await matched("compute"), "matched 20.5 %");
		assert.equal(await matched("COMPUTE(INT)"), "matched 20.5 %");
		assert.equal(await matched("main"), "matched 98.6 %");
		assert.equal(await matched("[futex]"), "matched 68.5 %");
		assert.equal(await matched("main|inner"), "matched 0.0 %");
		await page.click("#regex");
		assert.equal(await matched("main|inner|compute"), "matched 98.6 %");
		assert.equal(await matched("^inner$"), "matched 20.5 %");
		assert.equal(await matched("("), "no regular expression");
		assert.equal(await matched(""), "");
	});

	test("a search changes the picture", async () => {
		const plain = await pixel(page, 300, rowMiddle(2) + 6);
		await page.fill("#search", "futex");
		await settle(page);
		assert.notDeepEqual(await pixel(page, 300, rowMiddle(2) + 6), plain);
		await page.keyboard.press("Enter");
		assert.match(await status(page), /^\[futex\], 68\.5 %/);
	});

	test("a click zooms, and the button resets", async () => {
		assert.deepEqual(await pixel(page, 300, rowMiddle(3) + 6), [255, 255, 255]);
		await page.locator("#graph").click({ position: { x: 1000, y: rowMiddle(2) } });
		await settle(page);
		assert.match(await status(page), /^compute\(int\), app, 20\.5 %/);
		assert.notDeepEqual(await pixel(page, 300, rowMiddle(3) + 6), [255, 255, 255]);
		assert.match(await page.locator("#details").textContent(), /100\.0 % of what is zoomed to/);
		await page.click("#reset");
		await settle(page);
		assert.deepEqual(await pixel(page, 300, rowMiddle(3) + 6), [255, 255, 255]);
		assert.ok(await page.locator("#reset").isDisabled());
	});

	test("what is doubtful of a frame is said", async () => {
		await page.focus("#graph");
		await pressed(page, "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight");
		assert.match(await status(page), /^evil;name\nx, a guess, /);
		assert.match(await page.locator("#details").textContent(), /\? a guess, since/);
		await pressed(page, "ArrowLeft", "ArrowDown");
		assert.match(await status(page), /^inner, inlined calls uncertain, /);
		await pressed(page, "Escape");
	});

	test("everything by keyboard", async () => {
		await page.focus("#graph");
		assert.match(await status(page), /^all threads, 100\.0 %/);
		await pressed(page, "ArrowDown");
		assert.match(await status(page), /^main, app, 98\.6 %.*level 1, 1 of 2$/);
		await pressed(page, "ArrowDown", "ArrowRight");
		assert.match(await status(page), /^compute\(int\), app, 20\.5 %.*level 2, 2 of 3$/);
		await pressed(page, "Enter");
		await settle(page);
		assert.notDeepEqual(await pixel(page, 300, rowMiddle(3) + 6), [255, 255, 255]);
		await pressed(page, "ArrowLeft");
		await settle(page);
		assert.match(await status(page), /^\[futex\]/);
		await pressed(page, "Escape");
		await settle(page);
		assert.match(await status(page), /^all threads/);
		await pressed(page, "/");
		await page.keyboard.type("inner");
		assert.equal(await page.locator("#matched").textContent(), "matched 20.5 %");
		await pressed(page, "Escape");
		assert.equal(await page.inputValue("#search"), "");
	});

	test("every control can be reached by Tab", async () => {
		const seen = new Set();
		for (let i = 0; i < 14; i++) {
			await pressed(page, "Tab");
			seen.add(await page.evaluate(() => document.activeElement.id ||
				document.activeElement.parentElement.id));
		}
		for (const id of ["theme", "clock", "order", "direction", "colouring", "grouping", "thread", "search",
			"regex", "graph"])
			assert.ok(seen.has(id), `${id} in ${[...seen]}`);
	});

	test("bottom-up merges from the innermost frame", async () => {
		await page.click("#order [data-value=up]");
		await page.focus("#graph");
		await pressed(page, "ArrowDown");
		assert.match(await status(page), /^\[futex\], 68\.5 %/);
		await pressed(page, "ArrowDown");
		assert.match(await status(page), /^main, app, 68\.5 %/);
	});

	test("a flame has its root at the bottom", async () => {
		const height = await page.locator("#graph").evaluate((canvas) => canvas.clientHeight);
		await page.click("#direction [data-value=flame]");
		await settle(page);
		assert.deepEqual(await pixel(page, 300, rowMiddle(0)), [255, 255, 255]);
		assert.notDeepEqual(await pixel(page, 900, height - rowMiddle(0)), [255, 255, 255]);
		await page.focus("#graph");
		await pressed(page, "ArrowUp");
		assert.match(await status(page), /^main/);
	});

	test("threads can be chosen, alone or by name", async () => {
		await page.selectOption("#thread", { label: "io · 102" });
		await page.focus("#graph");
		assert.match(await status(page), /^io · 102, 100\.0 %, 50\.0 ms/);
		await page.selectOption("#thread", { label: "worker × 2" });
		await page.focus("#search");
		await page.focus("#graph");
		assert.match(await status(page), /^worker × 2, 100\.0 %, 23\.0 ms/);
	});

	test("the clock can be switched", async () => {
		await page.click("#clock [data-value=cpu]");
		await page.focus("#graph");
		assert.match(await status(page), /100\.0 %, 20\.0 ms/);
		await page.click("#clock [data-value=offcpu]");
		assert.match(await status(page), /100\.0 %, 53\.0 ms/);
		await pressed(page, "ArrowRight");
		assert.match(await status(page), /100\.0 %, 73\.0 ms/);
	});

	test("states have their own colours", async () => {
		const before = await pixel(page, 300, rowMiddle(2) + 6);
		await page.click("#colouring [data-value=state]");
		await settle(page);
		assert.notDeepEqual(await pixel(page, 300, rowMiddle(2) + 6), before);
		assert.match(await page.locator("#legend").textContent(), /running20\.5 %.*blocked69\.9 %/);
	});

	test("light and dark, by the system and by hand", async () => {
		const brightness = async () => (await pixel(page, 600, 500)).reduce((a, b) => a + b);
		assert.equal(await brightness(), 765);
		await page.emulateMedia({ colorScheme: "dark" });
		await settle(page);
		assert.ok(await brightness() < 150);
		await page.click("#theme");
		await settle(page);
		assert.equal(await brightness(), 765);
		await page.click("#theme");
		await settle(page);
		assert.ok(await brightness() < 150);
	});

	test("names from a hostile binary stay text", async () => {
		await page.fill("#search", "onerror");
		await page.keyboard.press("Enter");
		assert.ok((await status(page)).startsWith(SCRIPT));
		assert.equal(await page.locator("#details .name").textContent(), SCRIPT);
		assert.equal(await page.locator("img").count(), 0);
	});

	test("a small window still shows the picture", async () => {
		await page.setViewportSize({ width: 420, height: 600 });
		await settle(page);
		assert.notDeepEqual(await pixel(page, 200, rowMiddle(1) + 6), [255, 255, 255]);
		assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 420);
		await page.setViewportSize({ width: 1280, height: 800 });
	});
});

test("a profile without samples says so", async () => {
	const { page, faults } = await openPage(browser, fakeExport("html"));
	await page.selectOption("#thread", { label: "io · 102" });
	await page.click("#clock [data-value=cpu]");
	assert.ok(await page.locator("#empty").isVisible());
	await page.close();
	assert.deepEqual(faults, []);
});

test("threads and processes can be groups", async () => {
	const opened = await openPage(browser, fakeExport("html"));
	const { page } = opened;
	assert.equal(await page.locator("#grouping option[value=process]").count(), 0);
	await page.focus("#graph");
	await pressed(page, "ArrowDown");
	assert.match(await status(page), /^main, app/);
	await page.selectOption("#grouping", "thread");
	await page.focus("#graph");
	await pressed(page, "ArrowDown");
	assert.match(await status(page), /^io \(tid 102\), 68\.5 %, 50\.0 ms, self 0 µs, level 1, 1 of 2$/);
	await pressed(page, "ArrowRight");
	assert.match(await status(page), /^worker × 2, 31\.5 %, 23\.0 ms, self 0 µs, level 1, 2 of 2$/);
	await pressed(page, "ArrowDown");
	assert.match(await status(page), /^main, app, 30\.1 %/);
	await page.fill("#search", "worker");
	assert.equal(await page.locator("#matched").textContent(), "matched 31.5 %");
	await page.fill("#search", "");
	await page.click("#order [data-value=up]");
	await page.focus("#graph");
	await pressed(page, "ArrowDown", "ArrowDown", "ArrowDown");
	assert.match(await status(page), /^io \(tid 102\), 68\.5 %, .*level 3/);
	await page.close();
	assert.deepEqual(opened.faults, []);
});

test("several processes are groups from the start", async () => {
	const opened = await openPage(browser, ofTwoProcesses(fakeExport("html")));
	const { page } = opened;
	assert.equal(await page.locator("#reset").evaluate((reset) => reset.offsetTop < 78), true);
	await page.focus("#graph");
	await pressed(page, "ArrowDown");
	assert.match(await status(page), /^other \(pid 200\), 68\.5 %, .*1 of 2$/);
	await pressed(page, "ArrowRight");
	assert.match(await status(page), /^\/bin\/app \(pid 100\), 31\.5 %/);
	await page.selectOption("#grouping", "none");
	await page.focus("#graph");
	await pressed(page, "ArrowDown");
	assert.match(await status(page), /^main, app, 98\.6 %/);
	await page.close();
	assert.deepEqual(opened.faults, []);
});

test("time of no known thread is of no process", async () => {
	const none = ({ threads }) => Object.assign(threads.find((thread) => thread.tid === 102),
		{ name: "[not seen]", process: "", process_number: 0, pid: 0, tid: 0 });
	let opened = await openPage(browser, changedExport(fakeExport("html"), "none", none));
	assert.equal(await opened.page.locator("#grouping option[value=process]").count(), 0);
	await opened.page.close();
	opened = await openPage(browser, changedExport(fakeExport("html"), "none-of-two", (data) => {
		none(data);
		data.threads[0].process_number = 2;
	}));
	await opened.page.focus("#graph");
	await pressed(opened.page, "ArrowDown");
	assert.match(await status(opened.page), /^\[not seen\], 68\.5 %/);
	await opened.page.close();
	assert.deepEqual(opened.faults, []);
});

test("a process with the pid of an earlier one of the same name is another one", async () => {
	const opened = await openPage(browser, changedExport(fakeExport("html"), "again", ({ threads }) => {
		threads.find((thread) => thread.tid === 102).process_number = 2;
	}));
	const { page } = opened;
	await page.focus("#graph");
	await pressed(page, "ArrowDown");
	assert.match(await status(page), /^\/bin\/app × 2, 100\.0 %/);
	await page.close();
	assert.deepEqual(opened.faults, []);
});

test("the legend has all colours: of managed code, and of what is not known", async () => {
	const opened = await openPage(browser, changedExport(fakeExport("html"), "managed", (data) => {
		const inner = data.functions.name.findIndex((name) => data.strings[name] === "inner");
		data.functions.kind[inner] = data.about.kinds.indexOf("java");
	}));
	const legend = await opened.page.locator("#legend").textContent();
	assert.match(legend, /waiting68\.5 %.*java code20\.5 %.*libevil\.so9\.59 %.*not known1\.37 %/);
	await opened.page.close();
	assert.deepEqual(opened.faults, []);
});

test("a recording that was cut short has no count", async () => {
	const opened = await openPage(browser, changedExport(fakeExport("html"), "cut", ({ about }) => {
		about.complete = false;
		about.cpu_counted_ns = 0;
	}));
	assert.ok((await opened.page.locator("#facts").textContent()).includes("20.0 ms seen, not counted"));
	await opened.page.close();
	assert.deepEqual(opened.faults, []);
});

test("what was chosen, and why an end is missing, is said", async () => {
	const opened = await openPage(browser, changedExport(fakeExport("html"), "chosen", ({ about }) => {
		about.label = "trace=4bf9";
		about.cut = "cut short: the end of the file is missing";
		about.notes = [{ pid: 100, text: "there is a blind spot" }, { pid: 0, text: "and another" }];
	}));
	const facts = opened.page.locator("#facts");
	assert.match(await facts.textContent(), /20\.0 ms seen, not counted.*Labeltrace=4bf9NoteincompleteNotes2$/);
	assert.equal(await facts.locator("div").nth(-2).getAttribute("title"), "cut short: the end of the file is missing");
	assert.equal(await facts.locator("div").last().getAttribute("title"), "pid 100: there is a blind spot\n\nand another");
	await opened.page.close();
	assert.deepEqual(opened.faults, []);
});

test("the head fits, with a warning and a long command, at any width", async () => {
	const opened = await openPage(browser, changedExport(fakeExport("html"), "warned", ({ about }) => {
		about.command = "java ".repeat(60);
		about.cpu_lost_ns = 5e8;
		about.unseen_hint = "of the CPU time is in no sample";
	}));
	for (let width = 360; width <= 1480; width += 80) {
		await opened.page.setViewportSize({ width, height: 500 });
		const right = await opened.page.locator("#theme").evaluate((theme) => theme.getBoundingClientRect().right);
		assert.ok(right <= width, `${right} of ${width}`);
	}
	await opened.page.setViewportSize({ width: 1400, height: 500 });
	const tops = await opened.page.evaluate(() => [...document.querySelectorAll("#facts div")].map((fact) => fact.offsetTop));
	assert.equal(new Set(tops).size, 1, `${tops}`);
	await opened.page.close();
	assert.deepEqual(opened.faults, []);
});

test("nothing moves when a search finds something", async () => {
	const opened = await openPage(browser, ofTwoProcesses(fakeExport("html")));
	const places = () => opened.page.evaluate(() => ["search", "reset", "graph"].map((id) => {
		const box = document.getElementById(id).getBoundingClientRect();
		return [box.x, box.y];
	}));
	await opened.page.selectOption("#grouping", "none");
	const before = await places();
	await opened.page.fill("#search", "compute");
	assert.deepEqual(await places(), before);
	await opened.page.close();
	assert.deepEqual(opened.faults, []);
});

test("bytes are shown as bytes", async () => {
	const opened = await openPage(browser, changedExport(madeExport("html", 10, 999, 2, "events"), "bytes", ({ about }) => {
		about.measure = { name: "allocation", unit: "bytes", seen: 2997, counted: 121203712 };
	}));
	assert.ok((await opened.page.locator("#facts").textContent()).includes("allocation3.00 kB seen, 121 MB counted"));
	assert.match(await opened.page.locator("#details").textContent(), /3\.00 kB · 100\.0 % total.*0 B · 0\.0 % self/);
	await opened.page.close();
	assert.deepEqual(opened.faults, []);
});

// With inlined calls, of which --max-depth counts none.
test("a stack of 70,000 frames turns over", async () => {
	const { page, faults } = await openPage(browser, changedExport(fakeExport("html"), "deep", ({ nodes, rows }) => {
		const all = Array.from({ length: 70001 }, (_, i) => i);
		nodes.parent = all.map((i) => i ? 1 : 0);
		nodes.function = all.map((i) => i % 2);
		nodes.line = all.map(() => 0);
		rows.node.fill(70000);
	}));
	await settle(page);
	await page.click("#order [data-value=up]");
	await settle(page);
	assert.match(await page.locator("#details").textContent(), /73\.0 ms · 100\.0 % total/);
	await page.close();
	assert.deepEqual(faults, []);
});

// How long it takes is for bench/flamegraph.mjs to say; here it has to work.
test("a page of events counts them, and has no times", async () => {
	const opened = await openPage(browser, madeExport("html", 10, 999, 2, "events"));
	const { page } = opened;
	await settle(page);
	const header = await page.locator("header").textContent();
	assert.ok(header.includes("page-faults2,997 seen, 3,000 counted"), header);
	assert.ok(!header.includes("CPU"), header);
	assert.equal(await page.locator("#clock").isVisible(), false);
	assert.match(await page.locator("#details").textContent(), /3,000 page-faults · 100\.0 % total/);
	assert.doesNotMatch(await page.locator("#details").textContent(), /µs| ms\b/);
	await page.close();
	assert.deepEqual(opened.faults, []);
});

test("100,000 distinct stacks open, zoom and turn over", async () => {
	const { page, faults } = await openPage(browser, madeExport("html", 100000, 200000, 8));
	await settle(page);
	assert.notDeepEqual(await pixel(page, 300, rowMiddle(5) + 6), [255, 255, 255]);
	await page.locator("#graph").click({ position: { x: 300, y: rowMiddle(6) } });
	await settle(page);
	await page.click("#order [data-value=up]");
	await settle(page);
	await page.focus("#graph");
	await pressed(page, "ArrowDown", "ArrowDown", "Enter");
	await settle(page);
	assert.match(await status(page), /level 2/);
	await page.close();
	assert.deepEqual(faults, []);
});
