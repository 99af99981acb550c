// The data of src/export/html.c, as typed arrays. Nothing here knows of pixels.

performance.mark("sf-parse");
const data = JSON.parse(document.getElementById("data").textContent);
const about = data.about;
const strings = data.strings;
const threads = data.threads;

const STATES = ["running", "runnable", "blocked", "stopped"];
const KIND_WAIT = 1;
const KIND_CUT = 2;
const KIND_INTERPRETED = 3; // up to KIND_LAST: src/frozen/unwind/walk.h, SF_KINDS
const KIND_KERNEL = 10;
const KIND_LAST = 20;
const KIND_GROUP = 255; // no code: a process or a thread (groups.js)

const functions = {
	n: data.functions.name.length,
	name: Int32Array.from(data.functions.name),
	module: Int32Array.from(data.functions.module),
	file: Int32Array.from(data.functions.file),
	kind: Uint8Array.from(data.functions.kind),
};

const INLINED_MISSING = 1; // calls inlined there may be missing
const GUESSED = 2;         // that this is the caller is a guess

// Stacks as they were seen, outermost first. Node 0 is the root; parents come before children.
const stacks = {
	n: data.nodes.parent.length,
	parent: Int32Array.from(data.nodes.parent, (distance, i) => i - distance),
	fn: Int32Array.from(data.nodes.function),
	line: Int32Array.from(data.nodes.line),
	doubt: new Uint8Array(data.nodes.parent.length), // of the two above
};
for (const node of data.nodes.approximate)
	stacks.doubt[node] = INLINED_MISSING;
for (const node of data.nodes.guessed)
	stacks.doubt[node] |= GUESSED;
stacks.fn[0] = -1;

const rows = {
	n: data.rows.node.length,
	thread: Int32Array.from(data.rows.thread),
	node: Int32Array.from(data.rows.node),
	state: Uint8Array.from(data.rows.state, (state) => Math.min(state, STATES.length - 1)),
	ticks: Float64Array.from(data.rows.ticks),
	cpu: Float64Array.from(data.rows.cpu),
	wall: Float64Array.from(data.rows.wall),
	offcpu: Float64Array.from(data.rows.offcpu),
	event: Float64Array.from(data.rows.event),
};
data.nodes = data.rows = data.functions = null;

function sum(column) {
	let total = 0;
	for (let i = 0; i < column.length; i++)
		total += column[i];
	return total;
}

// A page that was exported by one clock has only that one: the rest was left out.
const CLOCKS = [
	{ value: "wall", text: "Wall", title: "All time, on a CPU or not" },
	{ value: "cpu", text: "CPU", title: "Time on a CPU" },
	{ value: "offcpu", text: "Off-CPU", title: "Time blocked or waiting for a CPU" },
	{ value: "event", text: about.measure ? about.measure.name : "", title: "Events, not time" },
];
const clocks = CLOCKS.filter((clock) =>
	clock.value === about.clock || (about.clock === "wall" && sum(rows[clock.value]) > 0));

// Frames that are no code. Returns the number of the first one.
function addFunctions(names, kind) {
	const first = functions.n;
	const longer = (column, more) => {
		const made = new column.constructor(column.length + more.length);
		made.set(column);
		made.set(more, column.length);
		return made;
	};

	functions.name = longer(functions.name, names.map((name) => strings.push(name) - 1));
	functions.module = longer(functions.module, names.map(() => 0));
	functions.file = longer(functions.file, names.map(() => 0));
	functions.kind = longer(functions.kind, names.map(() => kind));
	functions.n += names.length;
	return first;
}

// Where blocked threads have no samples, the time of running ones in which they waited for a CPU is not what was recorded for.
const firstClock = about.clock === "wall" && !about.blocked_rate_mhz && sum(rows.cpu) > 0 ? "cpu" : about.clock;

function functionName(fn) {
	return strings[functions.name[fn]] || "[no name]";
}

function baseName(path) {
	return path.slice(path.lastIndexOf("/") + 1);
}

function moduleName(fn) {
	return baseName(strings[functions.module[fn]]);
}
