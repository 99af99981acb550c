// The picture: draws the part of a tree that is in view, and only what is at least half a pixel wide.
//
// `view` is the stretch of the tree's x axis that fills the canvas. Rows are depths: downwards for
// an icicle, upwards for a flame. The canvas stays in place while its container scrolls, so it is
// never larger than the window.

const ROW = 20;
const NARROWEST = 0.5;
const ZOOM_MS = 180;

const canvas = byId("graph");
const scroller = byId("scroller");
const spacer = byId("spacer");
const context = canvas.getContext("2d", { alpha: false });
const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");

const graph = {
	tree: null,
	flame: false,
	byState: false,
	matched: null,      // flags by function, or null
	from: 0, to: 1,     // the view
	zoomed: 0,          // the node that fills it
	focus: 0, hover: -1,
	width: 0, height: 0, content: 0,
	rootText: "",
	background: "#fff",
};

let textWidths = new Float32Array(functions.n);
let pending = 0;
let animation = null;

function redraw() {
	if (!pending)
		pending = requestAnimationFrame(frame);
}

function frame(now) {
	pending = 0;
	const start = performance.now();
	if (animation)
		stepZoom(now);
	draw();
	if (animation) {
		performance.measure("sf-zoom-frame", { start, end: performance.now() });
		redraw();
	}
}

function nodeText(tree, node) {
	return node ? functionName(tree.fn[node]) : graph.rootText;
}

// Cut by its measured width over its length: measuring every cut would cost more than drawing.
function drawText(tree, node, x, y, width) {
	const text = nodeText(tree, node);
	const fn = tree.fn[node];
	if (textWidths.length < functions.n)
		textWidths = new Float32Array(functions.n);
	let full = node ? textWidths[fn] : context.measureText(text).width;
	if (!full)
		full = textWidths[fn] = context.measureText(text).width;
	const room = width - 8;
	if (full <= room) {
		context.fillText(text, x + 4, y);
		return;
	}
	const characters = Math.floor(text.length * room / full) - 1;
	if (characters >= 2)
		context.fillText(text.slice(0, characters) + "…", x + 4, y, room);
}

function rowTop(depth) {
	const top = graph.flame ? graph.content - (depth + 1) * ROW : depth * ROW;
	return top - scroller.scrollTop;
}

function isBeyond(top) {
	return graph.flame ? top < -ROW : top > graph.height;
}

function fillOf(tree, node) {
	if (node === 0)
		return palette.root;
	if (graph.matched)
		return graph.matched[tree.fn[node]] ? palette.match : palette.dimmed;
	return graph.byState ? colourOfStates(tree, node) : colourOfFunction(tree.fn[node]);
}

function drawFrame(tree, node, left, right, top) {
	const width = right - left;
	context.fillStyle = fillOf(tree, node);
	context.fillRect(left, top, width > 3 ? width - 1 : width, ROW - 1);
	if (width < 24)
		return;
	const dim = graph.matched && node && !graph.matched[tree.fn[node]];
	context.fillStyle = dim ? palette.dimmedText : palette.text;
	drawText(tree, node, left, top + ROW / 2, width);
}

// Calls visit(node, left, right, depth, rest) for what is in view, parents first. It returns false to
// leave a node's children out. With `rest`, the stretch stands for a node and its lighter siblings.
function eachVisible(tree, visit) {
	const scale = graph.width / (graph.to - graph.from);
	let node = 0, depth = 0;

	for (;;) {
		const left = (tree.x[node] - graph.from) * scale;
		const width = tree.total[node] * scale;
		let further = node !== 0;
		let deeper = false;

		if (left >= graph.width) {
			further = false;
		} else if (width < NARROWEST) {
			const parent = tree.parent[node];
			const end = (tree.x[parent] + tree.total[parent] - tree.self[parent] - graph.from) * scale;
			if (node && end > 0 && end - left >= NARROWEST)
				visit(node, Math.max(0, left), Math.min(graph.width, end), depth, true);
			further = false;
		} else if (left + width > 0) {
			deeper = visit(node, Math.max(0, left), Math.min(graph.width, left + width), depth, false);
		}

		if (deeper && tree.first[node]) {
			node = tree.first[node];
			depth++;
			continue;
		}
		while (node && !(further && tree.next[node])) {
			node = tree.parent[node];
			depth--;
			further = true;
		}
		if (!node)
			return;
		node = tree.next[node];
	}
}

function draw() {
	const tree = graph.tree;
	const ratio = window.devicePixelRatio || 1;

	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.fillStyle = graph.background;
	context.fillRect(0, 0, graph.width, graph.height);
	context.font = FONT;
	context.textBaseline = "middle";
	if (!tree.total[0])
		return;
	eachVisible(tree, (node, left, right, depth, rest) => {
		const top = rowTop(depth);
		if (isBeyond(top))
			return false;
		if (top < -ROW || top > graph.height)
			return true;
		if (rest) {
			context.fillStyle = palette.rest;
			context.fillRect(left, top, right - left, ROW - 1);
		} else {
			drawFrame(tree, node, left, right, top);
		}
		return true;
	});
	if (graph.hover >= 0)
		outline(graph.hover, palette.hover, 1);
	if (document.activeElement === canvas)
		outline(graph.focus, palette.focus, 2);
}

function outline(node, colour, thickness) {
	const box = boxOf(node);
	const left = Math.max(0, box.left), right = Math.min(graph.width, box.right);
	if (right - left < 1)
		return;
	context.strokeStyle = colour;
	context.lineWidth = thickness;
	context.strokeRect(left + thickness / 2, box.top + thickness / 2,
		Math.max(1, right - left - 1 - thickness), ROW - 1 - thickness);
}

function boxOf(node) {
	const tree = graph.tree;
	const scale = graph.width / (graph.to - graph.from);
	const left = (tree.x[node] - graph.from) * scale;
	return { left, right: left + tree.total[node] * scale, top: rowTop(depthOf(tree, node)) };
}

function nodeAtPoint(px, py) {
	const y = py + scroller.scrollTop;
	const depth = Math.floor((graph.flame ? graph.content - y : y) / ROW);
	if (depth < 0 || !graph.tree.total[0])
		return -1;
	const node = nodeAt(graph.tree, depth,
		graph.from + px / graph.width * (graph.to - graph.from));
	if (node < 0)
		return -1;
	const box = boxOf(node);
	return box.right - box.left < NARROWEST ? -1 : node;
}

// As tall as the deepest frame in view.
function measureContent() {
	let deepest = 0;
	eachVisible(graph.tree, (node, left, right, depth) => {
		if (depth > deepest)
			deepest = depth;
		return true;
	});
	const before = graph.content;
	graph.content = Math.max(graph.height, (deepest + 1) * ROW + 4);
	spacer.style.height = graph.content + "px";
	if (graph.flame)
		scroller.scrollTop += graph.content - before;
}

function resize() {
	const ratio = window.devicePixelRatio || 1;
	graph.width = scroller.clientWidth;
	graph.height = scroller.clientHeight;
	canvas.width = Math.round(graph.width * ratio);
	canvas.height = Math.round(graph.height * ratio);
	canvas.style.width = graph.width + "px";
	canvas.style.height = graph.height + "px";
	if (graph.tree)
		measureContent();
}

function showTree(tree) {
	animation = null;
	graph.tree = tree;
	graph.from = 0;
	graph.to = tree.total[0] || 1;
	graph.zoomed = graph.focus = 0;
	graph.hover = -1;
	graph.content = 0;
	measureContent();
	scroller.scrollTop = graph.flame ? graph.content : 0;
	redraw();
}

function zoomTo(node) {
	const tree = graph.tree;
	graph.zoomed = node;
	animation = {
		from: graph.from, to: graph.to,
		endFrom: tree.x[node], endTo: tree.x[node] + (tree.total[node] || 1),
		start: performance.now(),
	};
	if (reducedMotion.matches)
		animation.start -= ZOOM_MS;
	redraw();
}

function stepZoom(now) {
	const t = Math.min(1, Math.max(0, (now - animation.start) / ZOOM_MS));
	const eased = 1 - Math.pow(1 - t, 3);
	graph.from = animation.from + (animation.endFrom - animation.from) * eased;
	graph.to = animation.to + (animation.endTo - animation.to) * eased;
	if (t < 1)
		return;
	animation = null;
	measureContent();
	showRow(graph.focus);
}

function showRow(node) {
	const top = rowTop(depthOf(graph.tree, node));
	if (top < 0)
		scroller.scrollTop += top - ROW;
	else if (top + ROW > graph.height)
		scroller.scrollTop += top + 2 * ROW - graph.height;
}
