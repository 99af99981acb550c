// SPDX-License-Identifier: Apache-2.0
// Calls of many kinds, for a walk through V8's code: interpreted, compiled, builtins, runtime, regular expressions.
class Box { constructor(value) { this.value = value; } next() { return this.value + 1; } }
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function strings(n) { let s = ""; for (let i = 0; i < n; i++) { s += String.fromCharCode(65 + i % 26); if (s.length > 100) s = s.slice(50); } return s.length; }
function maps(n) { const m = new Map(); for (let i = 0; i < n; i++) m.set("k" + i % 97, i); let t = 0; for (const [, v] of m) t += v; return t; }
function sorts(n) { const a = []; for (let i = 0; i < n; i++) a.push(i * 7919 % 1009); a.sort((x, y) => x - y); return a[3]; }
function objects(n) { let t = 0; for (let i = 0; i < n; i++) { t += new Box(i).next(); t += [1, 2, 3].map(x => x * i).reduce((p, q) => p + q, 0); } return t; }
function expressions(n) { let c = 0; for (let i = 0; i < n; i++) if (/a+b/.test("xxaab" + i)) c++; return c; }
function json(n) { let t = 0; for (let i = 0; i < n; i++) t += JSON.parse(JSON.stringify({ a: i, b: [1, 2, "x"] })).a; return t; }
function work() { fib(12); strings(200); maps(200); sorts(100); objects(100); expressions(50); json(20); }

// Ready when the functions have run often enough to be compiled.
const start = Date.now();
for (let rounds = 0; Date.now() < start + 600000; rounds++) {
	work();
	if (rounds === 1000)
		console.log("ready");
}
