// The pointer and the keyboard on the picture. Both do the same things to the same frame.

function setFocus(node) {
	graph.focus = node;
	graph.hover = -1;
	hideTooltip();
	keepInView(node);
	showRow(node);
	showDetails();
	sayFocus();
	redraw();
}

// Zooms out, or in, until a frame that was reached by keyboard can be seen.
function keepInView(node) {
	const tree = graph.tree;
	const view = animation ? [animation.endFrom, animation.endTo] : [graph.from, graph.to];
	const inside = tree.x[node] < view[1] && tree.x[node] + tree.total[node] > view[0];
	const wide = tree.total[node] / (view[1] - view[0]) * graph.width >= 3;

	if (!inside || !wide)
		zoom(tree.parent[node]);
}

function zoom(node) {
	zoomTo(node);
	byId("reset").disabled = node === 0;
}

function sibling(node, forward) {
	const tree = graph.tree;
	if (forward)
		return tree.next[node];
	let before = 0;
	for (let i = tree.first[tree.parent[node]]; i && i !== node; i = tree.next[i])
		before = i;
	return before;
}

// The next frame at the same depth, or the nearest depth above it that has one.
function neighbour(node, forward) {
	const tree = graph.tree;
	let up = 0;
	let at = node;
	while (at && !sibling(at, forward)) {
		at = tree.parent[at];
		up++;
	}
	if (!at)
		return node;
	at = sibling(at, forward);
	for (; up && tree.first[at]; up--) {
		at = tree.first[at];
		while (!forward && tree.next[at])
			at = tree.next[at];
	}
	return at;
}

function inwards() {
	const child = graph.tree.first[graph.focus];
	setFocus(child || graph.focus);
}

function outwards() {
	setFocus(graph.tree.parent[graph.focus]);
}

const KEYS = {
	ArrowDown: () => graph.flame ? outwards() : inwards(),
	ArrowUp: () => graph.flame ? inwards() : outwards(),
	ArrowRight: () => setFocus(neighbour(graph.focus, true)),
	ArrowLeft: () => setFocus(neighbour(graph.focus, false)),
	Home: () => setFocus(0),
	Enter: () => zoom(graph.focus),
	" ": () => zoom(graph.focus),
	Backspace: () => zoom(graph.tree.parent[graph.zoomed]),
};

function resetZoom() {
	zoom(0);
	setFocus(0);
}

canvas.addEventListener("keydown", (event) => {
	const action = KEYS[event.key];
	if (!action || event.ctrlKey || event.metaKey || event.altKey)
		return;
	event.preventDefault();
	action();
});

document.addEventListener("keydown", (event) => {
	const typing = event.target === searchBox;
	if (event.key === "/" && !typing) {
		event.preventDefault();
		searchBox.focus();
		searchBox.select();
	} else if (event.key === "Escape" && typing && searchBox.value) {
		event.preventDefault();
		searchBox.value = "";
		search();
	} else if (event.key === "Escape") {
		resetZoom();
		canvas.focus();
	}
});

canvas.addEventListener("pointermove", (event) => {
	const node = nodeAtPoint(event.offsetX, event.offsetY);
	if (node !== graph.hover) {
		graph.hover = node;
		canvas.classList.toggle("over", node >= 0);
		showDetails();
		redraw();
	}
	showTooltip(event);
});

canvas.addEventListener("pointerleave", () => {
	graph.hover = -1;
	hideTooltip();
	showDetails();
	redraw();
});

canvas.addEventListener("click", (event) => {
	const node = nodeAtPoint(event.offsetX, event.offsetY);
	if (node < 0)
		return;
	graph.focus = node;
	zoom(node);
	hideTooltip();
	showDetails();
	sayFocus();
});

canvas.addEventListener("focus", () => {
	sayFocus();
	redraw();
});
canvas.addEventListener("blur", redraw);
scroller.addEventListener("scroll", () => {
	hideTooltip();
	redraw();
});
