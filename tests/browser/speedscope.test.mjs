// SPDX-License-Identifier: Apache-2.0
// The speedscope export against the schema that speedscope itself ships.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { test } from "node:test";
import Ajv from "ajv";
import { fakeExport, madeExport } from "./page.mjs";

const speedscope = path.dirname(createRequire(import.meta.url).resolve("speedscope/package.json"));
const schema = JSON.parse(readFileSync(path.join(speedscope, "dist/release/file-format-schema.json")));

function checkFile(file) {
	const validate = new Ajv({ strict: false }).compile(schema);
	const profile = JSON.parse(readFileSync(file));
	assert.ok(validate(profile), JSON.stringify(validate.errors));
	for (const { samples, weights, endValue } of profile.profiles) {
		assert.equal(samples.length, weights.length);
		assert.equal(weights.reduce((a, b) => a + b, 0), endValue);
		for (const frame of samples.flat())
			assert.ok(frame < profile.shared.frames.length);
	}
}

test("the schema holds for a small profile", () => checkFile(fakeExport("speedscope")));
test("the schema holds for a recording", () => checkFile(madeExport("speedscope", 1000, 10000, 4)));
