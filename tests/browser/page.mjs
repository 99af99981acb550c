// SPDX-License-Identifier: Apache-2.0
// Opens exports in a real browser, and what every test asks of an open page.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const build = path.resolve(process.env.SF_BUILD || path.join(root, "build"));
const folder = mkdtempSync(path.join(tmpdir(), "stillframe-browser-"));
const profileFolder = path.join(folder, "browser");
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

export const BROWSER = process.env.CHROMIUM || "/usr/bin/chromium";
const ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
	"--no-first-run", "--disable-background-networking", "--disable-component-update",
	"--disable-sync"];

function run(program, ...args) {
	execFileSync(path.join(build, program), args, { stdio: ["ignore", "inherit", "inherit"] });
}

// An export of the profile in tests/unit/fake_profile.c.
export function fakeExport(format) {
	const file = path.join(folder, "fake." + format);
	run("tests/browser/write_export", format, file);
	return file;
}

// The same export, in which the thread 102 is another process.
export function ofTwoProcesses(file) {
	const changed = file.replace(/html$/, "two.html");
	const text = readFileSync(file, "utf8");
	const two = text.replace(/\{[^{}]*"tid": ?102[^{}]*\}/,
		(thread) => thread.replace(/"pid": ?\d+/, '"pid":200').replace(/"process": ?"[^"]*"/, '"process":"other"')
			.replace(/"process_number": ?\d+/, '"process_number":2'));
	if (two === text)
		throw new Error("the export has no thread 102");
	writeFileSync(changed, two);
	return changed;
}

// The same export after `change` of its data.
export function changedExport(file, name, change) {
	const changed = file.replace(/html$/, name + ".html");
	const [before, text, after] = readFileSync(file, "utf8").split(/(?<=id="data">)([^<]*)/);
	const data = JSON.parse(text);
	change(data);
	writeFileSync(changed, before + JSON.stringify(data).replace(/</g, "\\u003c") + after);
	return changed;
}

// Of a synthetic recording: of times, or of three events for each sample ("events").
export function madeExport(format, stacks, samples, threads, what = "times") {
	const recording = path.join(folder, `made-${stacks}-${what}.sfr`);
	const file = `${recording}.${format}`;
	run("tests/programs/make_recording", recording, ...[stacks, samples, threads, what].map(String));
	run("tests/browser/write_export", format, file, recording);
	return file;
}

// A browser of its own, with a fresh profile. More arguments for the bench's peer, which needs WebGL.
export async function startBrowser(more = []) {
	return await chromium.launchPersistentContext(profileFolder, {
		executablePath: BROWSER,
		args: [...ARGUMENTS, ...more],
		viewport: { width: 1280, height: 800 },
		colorScheme: "light",
	});
}

export async function stopBrowser(browser) {
	await browser.close();
}

// The page, and the lists of what went wrong and of what it asked the network for.
export async function openPage(browser, file) {
	const page = await browser.newPage();
	const faults = [], requests = [];
	page.on("console", (message) => {
		if (["error", "warning"].includes(message.type()))
			faults.push(message.text());
	});
	page.on("pageerror", (error) => faults.push(error.message));
	page.on("dialog", (dialog) => {
		faults.push("dialog: " + dialog.message());
		dialog.dismiss();
	});
	page.on("request", (request) => requests.push(request.url()));
	await page.goto(pathToFileURL(file).href);
	await page.waitForFunction(() => performance.getEntriesByName("sf-first-frame").length > 0);
	return { page, faults, requests };
}

// What a screen reader hears of the frame in focus.
export async function status(page) {
	return await page.locator("#status").textContent();
}

// Waits until no zoom is under way: two frames alike.
export async function settle(page) {
	await page.evaluate(async () => {
		const canvas = document.getElementById("graph");
		const frame = () => new Promise((done) => requestAnimationFrame(done));
		let before = "", same = 0;
		while (same < 3) {
			await frame();
			const now = canvas.toDataURL();
			same = now === before ? same + 1 : 0;
			before = now;
		}
	});
}

// The colour of a point of the picture, as [r, g, b].
export async function pixel(page, x, y) {
	return await page.evaluate(([px, py]) => {
		const canvas = document.getElementById("graph");
		const ratio = canvas.width / canvas.clientWidth;
		const copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
		copy.drawImage(canvas, px * ratio, py * ratio, 1, 1, 0, 0, 1, 1);
		return [...copy.getImageData(0, 0, 1, 1).data].slice(0, 3);
	}, [x, y]);
}

export async function pressed(page, ...keys) {
	for (const key of keys)
		await page.keyboard.press(key);
}
