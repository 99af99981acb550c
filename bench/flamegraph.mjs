#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// How long a large profile takes to be on the screen, and how long a frame of a zoom takes: the HTML
// export beside speedscope, which opens the speedscope export of the same recording, in one run.
//
//     SF_BUILD=build node bench/flamegraph.mjs [STACKS [SAMPLES [RUNS]]]
//
// Opening: from the start of the navigation to the first animation frame with a title that names the
// profile and a canvas of some size: the same question to both pages. For ours the page's
// own mark, set when the first picture is drawn, stands beside it. Medians of RUNS (5).
//
// Zooming: our page measures each frame of its animation. speedscope does not, so it has no figure.
//
// The two files hold the same recording, not the same bytes: speedscope's keeps the order of time,
// which its first view shows, and here it draws with software WebGL.
//
// Needs what tests/browser needs (npm ci there). Prints one JSON object.
import { readFileSync, writeFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { madeExport, settle, startBrowser, stopBrowser } from "../tests/browser/page.mjs";

const [stacks = 100000, samples = 200000, runs = 5] = process.argv.slice(2).map(Number);
const require = createRequire(new URL("../tests/browser/page.mjs", import.meta.url));

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const rounded = (value) => Math.round(value * 10) / 10;

// Runs in the page before its own scripts.
function watchOpening(name) {
	const look = () => {
		const canvas = document.querySelector("canvas");
		if (document.title.includes(name) && canvas && canvas.width > 100)
			window.openedAt = performance.now();
		else
			requestAnimationFrame(look);
	};
	requestAnimationFrame(look);
}

async function open(browser, url, name) {
	const page = await browser.newPage();
	await page.addInitScript(watchOpening, name);
	await page.goto(url);
	await page.waitForFunction(() => window.openedAt, null, { timeout: 120000 });
	return { page, opened: await page.evaluate(() => window.openedAt) };
}

async function measureOurs(browser, file) {
	const { page, opened } = await open(browser, pathToFileURL(file).href, "shopd");
	const marks = await page.evaluate(() =>
		performance.getEntriesByName("sf-first-frame")[0].startTime);
	await settle(page);
	for (const depth of [4, 0, 6, 0]) {
		await page.locator("#graph").click({ position: { x: 300, y: depth * 20 + 10 } });
		await page.waitForTimeout(300);
	}
	const frames = await page.evaluate(() =>
		performance.getEntriesByName("sf-zoom-frame").map((entry) => entry.duration));
	const memory = await page.evaluate(() => performance.memory.usedJSHeapSize);
	await page.close();
	return { opened, drawn: marks, frames, memory };
}

// speedscope's own command line opens a file this way: a script that hands over the data in base64.
function speedscopeUrl(file) {
	const folder = path.join(path.dirname(require.resolve("speedscope/package.json")), "dist/release");
	const script = file + ".js";
	writeFileSync(script, `speedscope.loadFileFromBase64(${JSON.stringify(path.basename(file))}, ` +
		`"${readFileSync(file).toString("base64")}")`);
	return pathToFileURL(path.join(folder, "index.html")).href + "#localProfilePath=" + script;
}

async function measureSpeedscope(browser, url) {
	const { page, opened } = await open(browser, url, "shopd");
	const memory = await page.evaluate(() => performance.memory.usedJSHeapSize);
	await page.close();
	return { opened, memory };
}

async function main() {
	const ours = madeExport("html", stacks, samples, 8);
	const theirs = madeExport("speedscope", stacks, samples, 8);
	const url = speedscopeUrl(theirs);
	// Software WebGL for speedscope; it changes nothing for a 2D canvas.
	const browser = await startBrowser(["--enable-unsafe-swiftshader"]);
	const a = [], b = [];
	for (let run = 0; run < runs; run++) {
		a.push(await measureOurs(browser, ours));
		b.push(await measureSpeedscope(browser, url));
	}
	const opened = [median(a.map((r) => r.opened)), median(b.map((r) => r.opened))];
	const frames = a.flatMap((r) => r.frames).sort((x, y) => x - y);
	console.log(JSON.stringify({
		stacks, samples, runs,
		html_bytes: statSync(ours).size,
		speedscope_bytes: statSync(theirs).size,
		html_opened_ms: rounded(opened[0]),
		html_drawn_ms: rounded(median(a.map((r) => r.drawn))),
		speedscope_opened_ms: rounded(opened[1]),
		opened_ratio: rounded(100 * opened[0] / opened[1]) / 100,
		zoom_frame_median_ms: rounded(median(frames)),
		zoom_frame_p95_ms: rounded(frames[Math.floor(frames.length * 0.95)]),
		html_heap_mb: rounded(median(a.map((r) => r.memory)) / 1e6),
		speedscope_heap_mb: rounded(median(b.map((r) => r.memory)) / 1e6),
	}, null, "\t"));
	await stopBrowser(browser);
}

await main();
