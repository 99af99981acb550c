// Stacks of several programs share their outermost frames, which says little. So the stacks of each process, or of each thread,
// can stand below a frame of their own. Processes of one name are one group, as in `stillframe report --by process`; so are threads.

const GROUPINGS = [
	{ value: "none", text: "Functions only" },
	{ value: "process", text: "By process",
		name: (thread) => thread.process_number ? thread.process || "[no name]" : thread.name,
		member: (thread) => thread.process_number, id: (thread) => thread.pid, word: "pid" },
	{ value: "thread", text: "By thread",
		name: (thread) => thread.name, member: (thread) => thread, id: (thread) => thread.tid, word: "tid" },
];

// Of one grouping: for each thread the number of its group, and for each group its name. Its members are counted not by their ids: a
// process or a thread may have the id of an earlier one.
function groupThreads(grouping) {
	const groups = new Map();
	const of = Int32Array.from(threads, (thread) => {
		const name = grouping.name(thread);
		if (!groups.has(name))
			groups.set(name, { number: groups.size, id: grouping.id(thread), members: new Set() });
		groups.get(name).members.add(grouping.member(thread));
		return groups.get(name).number;
	});
	const names = [...groups].map(([name, group]) =>
		group.members.size > 1 ? `${name} × ${countText(group.members.size)}` :
		group.id ? `${name} (${grouping.word} ${group.id})` : name);
	return { of, names };
}

// Which groupings this recording has: more than one process, more than one thread. Time of no known thread is of no process.
const nProcesses = new Set(threads.map((thread) => thread.process_number).filter((number) => number)).size;
const groupings = GROUPINGS.filter((grouping) =>
	grouping.value === "none" || (grouping.value === "process" ? nProcesses : threads.length) > 1);

// Rows in the order of their groups.
function byGroup(groupOf) {
	const order = Array.from(rows.node.keys());
	return order.sort((a, b) => groupOf[rows.thread[a]] - groupOf[rows.thread[b]]);
}

// The nodes on the paths from these nodes to the root, the root left out. `seen` marks nodes with the group's number + 1.
function pathsOf(nodes, seen, mark) {
	const found = [];
	for (let node of nodes)
		for (; node && seen[node] !== mark; node = stacks.parent[node]) {
			seen[node] = mark;
			found.push(node);
		}
	return Int32Array.from(found).sort();
}

// The stacks of each group below a frame of its own, in the form of `stacks`, and the node of each row.
function groupStacks(grouping) {
	const { of, names } = groupThreads(grouping);
	const firstFn = addFunctions(names, KIND_GROUP);
	const made = { parent: [0], fn: [-1], line: [0], doubt: [0], node: new Int32Array(rows.n) };
	const seen = new Int32Array(stacks.n), place = new Int32Array(stacks.n);
	const add = (parent, fn, line, doubt) => {
		made.fn.push(fn);
		made.line.push(line);
		made.doubt.push(doubt);
		return made.parent.push(parent) - 1;
	};
	const order = byGroup(of);

	for (let from = 0, to; from < order.length; from = to) {
		const group = of[rows.thread[order[from]]];
		for (to = from; to < order.length && of[rows.thread[order[to]]] === group; to++)
			;
		const members = order.slice(from, to);
		place[0] = add(0, firstFn + group, 0, 0);
		for (const node of pathsOf(members.map((row) => rows.node[row]), seen, group + 1))
			place[node] = add(place[stacks.parent[node]], stacks.fn[node], stacks.line[node], stacks.doubt[node]);
		for (const row of members)
			made.node[row] = place[rows.node[row]];
	}
	return {
		n: made.parent.length, parent: Int32Array.from(made.parent), fn: Int32Array.from(made.fn),
		line: Int32Array.from(made.line), doubt: Uint8Array.from(made.doubt), node: made.node,
	};
}

const grouped = new Map([["none", { ...stacks, node: rows.node }]]);

function stacksBy(value) {
	if (!grouped.has(value))
		grouped.set(value, groupStacks(GROUPINGS.find((grouping) => grouping.value === value)));
	return grouped.get(value);
}
