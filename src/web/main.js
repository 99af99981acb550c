// What is shown, and how a change of it becomes a picture.

const app = {
	clock: firstClock,
	grouping: nProcesses > 1 ? "process" : "none",
	chosen: new Uint8Array(threads.length).fill(1),
	order: "down",
	regex: false,
	theme: "auto",
	down: null,         // the top-down tree of the chosen threads and clock
	families: null,     // see rankFamilies
};

function rebuild() {
	app.down = topDown(stacksBy(app.grouping), app.clock, app.chosen);
	app.families = rankFamilies(app.down);
	reorder();
	search();
	showLegend();
}

function reorder() {
	showTree(app.order === "up" ? bottomUp(app.down) : app.down);
	byId("reset").disabled = true;
	byId("empty").hidden = app.down.total[0] > 0;
	showDetails();
	sayFocus();
}

makeChoice("clock", clocks, app.clock, (clock) => {
	app.clock = clock;
	rebuild();
});
makeGroupingChoice((grouping) => {
	app.grouping = grouping;
	rebuild();
});
makeChoice("order", [
	{ value: "down", text: "Top-down", title: "Callers first: where time goes from the start" },
	{ value: "up", text: "Bottom-up", title: "Innermost frames first: who calls what is hot" },
], app.order, (order) => {
	app.order = order;
	reorder();
});
makeChoice("direction", [
	{ value: "icicle", text: "Icicle", title: "The root at the top" },
	{ value: "flame", text: "Flame", title: "The root at the bottom" },
], "icicle", (direction) => {
	graph.flame = direction === "flame";
	measureContent();
	scroller.scrollTop = graph.flame ? graph.content : 0;
	redraw();
});
makeChoice("colouring", [
	{ value: "module", text: "Module", title: "A colour for each library or program" },
	{ value: "state", text: "State", title: "Running, waiting for a CPU, blocked, stopped" },
], "module", (colouring) => {
	graph.byState = colouring === "state";
	showLegend();
	redraw();
});
graph.rootText = "all threads";
const allThreads = makeThreadChoice((chosen, text) => {
	app.chosen.fill(0);
	for (const thread of chosen)
		app.chosen[thread] = 1;
	graph.rootText = chosen.length === allThreads.length ? "all threads" : text;
	rebuild();
});

applyTheme();
showAbout();
resize();
rebuild();
new ResizeObserver(() => {
	resize();
	draw();
}).observe(scroller);

// The picture is there with the first frame, and the mark says when.
requestAnimationFrame(() => performance.mark("sf-first-frame"));
