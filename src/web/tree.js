// Trees of weighted frames: top-down as seen, or bottom-up merged from the innermost frame.
//
// A tree is columns: parent, fn, line, doubt; total and self (microseconds); byState, four shares of
// total; and a layout: first child and next sibling, heaviest first, and x, where a node starts.
// Heaviest first is what makes drawing cheap: behind the first sibling that is too narrow to see
// there is nothing to see.

function makeTree(n, parent, fn, line) {
	return {
		n, parent, fn, line,
		total: new Float64Array(n),
		self: new Float64Array(n),
		byState: STATES.map(() => new Float32Array(n)),
		doubt: new Uint8Array(n),
		first: new Int32Array(n),
		next: new Int32Array(n),
		x: new Float64Array(n),
	};
}

// `seen`: the stacks as stacksBy() gives them.
function topDown(seen, clock, chosen) {
	const tree = makeTree(seen.n, seen.parent, seen.fn, seen.line);
	const weight = rows[clock];

	tree.doubt = seen.doubt;
	for (let i = 0; i < rows.n; i++) {
		if (!chosen[rows.thread[i]])
			continue;
		tree.self[seen.node[i]] += weight[i];
		tree.byState[rows.state[i]][seen.node[i]] += weight[i];
	}
	tree.total.set(tree.self);
	addUp(tree.total, tree.parent);
	for (const column of tree.byState)
		addUp(column, tree.parent);
	return layOut(tree);
}

function addUp(column, parent) {
	for (let i = column.length - 1; i > 0; i--)
		column[parent[i]] += column[i];
}

// Distinct (parent, function) pairs, at most `most` of them. Most nodes have one child, which is
// kept beside them; further children go into a hash table by open addressing.
class Pairs {
	constructor(most) {
		this.n = 1;
		this.parent = new Int32Array(most + 1);
		this.fn = new Int32Array(most + 1);
		this.line = new Int32Array(most + 1);
		this.eldest = new Int32Array(most + 1);
		this.hashed = 0;
		this.slots = new Int32Array(1 << 12);
	}

	add(parent, fn, line) {
		const eldest = this.eldest[parent];
		if (eldest && this.fn[eldest] === fn)
			return eldest;
		if (!eldest)
			return this.eldest[parent] = this.make(parent, fn, line);
		const slot = this.slot(parent, fn);
		if (this.slots[slot])
			return this.slots[slot];
		const node = this.slots[slot] = this.make(parent, fn, line);
		if (++this.hashed * 2 > this.slots.length)
			this.grow();
		return node;
	}

	make(parent, fn, line) {
		this.parent[this.n] = parent;
		this.fn[this.n] = fn;
		this.line[this.n] = line;
		return this.n++;
	}

	slot(parent, fn) {
		const mask = this.slots.length - 1;
		const mixed = Math.imul(parent, 0x9e3779b1) ^ Math.imul(fn + 1, 0x85ebca6b);
		let i = Math.imul(mixed ^ mixed >>> 15, 0x2c1b3c6d) >>> 5 & mask;
		for (let node = this.slots[i]; node; node = this.slots[i]) {
			if (this.parent[node] === parent && this.fn[node] === fn)
				break;
			i = (i + 1) & mask;
		}
		return i;
	}

	grow() {
		const before = this.slots;
		this.slots = new Int32Array(before.length * 2);
		for (const node of before)
			if (node)
				this.slots[this.slot(this.parent[node], this.fn[node])] = node;
	}
}

// The lengths of all stacks together.
function countFrames(down) {
	const depth = new Uint32Array(down.n); // inlined calls make a stack longer than --max-depth
	let frames = 0;
	for (let i = 1; i < down.n; i++) {
		depth[i] = depth[down.parent[i]] + 1;
		if (down.self[i])
			frames += depth[i];
	}
	return frames;
}

// Weighs each stack once, at its innermost frame, and hands it down towards the outermost.
function bottomUp(down) {
	const pairs = new Pairs(countFrames(down));
	const ends = new Int32Array(down.n);
	const marks = new Uint8Array(pairs.parent.length);

	for (let leaf = 1; leaf < down.n; leaf++) {
		if (!down.self[leaf])
			continue;
		let node = 0;
		for (let i = leaf; i; i = down.parent[i])
			marks[node = pairs.add(node, down.fn[i], down.line[i])] |= down.doubt[i];
		ends[leaf] = node;
	}

	const n = pairs.n;
	const tree = makeTree(n, pairs.parent.slice(0, n), pairs.fn.slice(0, n), pairs.line.slice(0, n));
	tree.fn[0] = -1;
	tree.doubt = marks.slice(0, n);
	const states = selfByState(down);
	for (let leaf = 1; leaf < down.n; leaf++) {
		tree.self[ends[leaf]] += down.self[leaf];
		for (let s = 0; s < STATES.length; s++)
			tree.byState[s][ends[leaf]] += states[s][leaf];
	}
	tree.self[0] = 0;
	for (const column of tree.byState)
		column[0] = 0;
	tree.total.set(tree.self);
	addUp(tree.total, tree.parent);
	for (const column of tree.byState)
		addUp(column, tree.parent);
	return layOut(tree);
}

function selfByState(down) {
	return down.byState.map((totals) => {
		const self = new Float32Array(totals);
		for (let i = down.n - 1; i > 0; i--)
			self[down.parent[i]] -= totals[i];
		return self;
	});
}

// Node numbers by rising total: positive floats sort like their bits, 11 bits at a time.
function byTotal(tree) {
	const keys = new Uint32Array(new Float32Array(tree.total).buffer);
	let from = new Int32Array(tree.n);
	let to = new Int32Array(tree.n);

	for (let i = 0; i < tree.n; i++)
		from[i] = i;
	for (const shift of [0, 11, 22]) {
		const starts = new Int32Array(2049);
		for (let i = 0; i < tree.n; i++)
			starts[(keys[i] >>> shift & 2047) + 1]++;
		for (let i = 0; i < 2048; i++)
			starts[i + 1] += starts[i];
		for (let i = 0; i < tree.n; i++)
			to[starts[keys[from[i]] >>> shift & 2047]++] = from[i];
		[from, to] = [to, from];
	}
	return from;
}

function layOut(tree) {
	const order = byTotal(tree);

	for (let i = 0; i < tree.n; i++) {
		const node = order[i];
		if (node === 0 || tree.total[node] <= 0)
			continue;
		tree.next[node] = tree.first[tree.parent[node]];
		tree.first[tree.parent[node]] = node;
	}
	for (let node = 0; node < tree.n; node++) {
		let x = tree.x[node];
		for (let child = tree.first[node]; child; child = tree.next[child]) {
			tree.x[child] = x;
			x += tree.total[child];
		}
	}
	return tree;
}

function depthOf(tree, node) {
	let depth = 0;
	for (; node; node = tree.parent[node])
		depth++;
	return depth;
}

// The frame that covers x at a depth, or -1.
function nodeAt(tree, depth, x) {
	let node = 0;
	for (let d = 0; d < depth; d++) {
		let child = tree.first[node];
		while (child && tree.x[child] + tree.total[child] <= x)
			child = tree.next[child];
		if (!child || tree.x[child] > x)
			return -1;
		node = child;
	}
	return node;
}

// Which functions a search means: their numbers' flags, or null for all.
function matchFunctions(query, isRegex) {
	if (!query)
		return null;
	let test;
	if (isRegex) {
		const regex = new RegExp(query, "i");
		test = (name) => regex.test(name);
	} else {
		const wanted = query.toLowerCase();
		test = (name) => name.toLowerCase().includes(wanted);
	}
	const matched = new Uint8Array(functions.n);
	for (let fn = 0; fn < functions.n; fn++)
		matched[fn] = test(functionName(fn)) ? 1 : 0;
	return matched;
}

// The weight of the stacks with a matching frame: each stack counts once, however often it matches.
function matchedWeight(down, matched) {
	const inside = new Uint8Array(down.n);
	let weight = 0;
	for (let i = 1; i < down.n; i++) {
		inside[i] = inside[down.parent[i]] | matched[down.fn[i]];
		if (inside[i])
			weight += down.self[i];
	}
	return weight;
}

// What one function weighs wherever it stands; a recursive one counts once per stack.
function functionWeight(down, fn) {
	const inside = new Uint8Array(down.n);
	let total = 0, self = 0;
	for (let i = 1; i < down.n; i++) {
		const here = down.fn[i] === fn;
		if (here)
			self += down.self[i];
		if (here && !inside[down.parent[i]])
			total += down.total[i];
		inside[i] = inside[down.parent[i]] | (here ? 1 : 0);
	}
	return { total, self };
}
