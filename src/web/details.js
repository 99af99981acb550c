// What is said about a frame: the line at the foot, the tooltip, and the words for screen readers.

const tooltip = byId("tooltip");
const details = byId("details");
const status = byId("status");

// By the bits of a tree's doubt: INLINED_MISSING, of a runtime's compiled code only, and GUESSED.
const DOUBTS = ["~ calls inlined here may be missing; " + about.exact_hint,
	"? a guess, since the code that this called says nothing of its frame: it may be wrong, and so may its callers"];
const DOUBTS_IN_SHORT = [", inlined calls uncertain", ", a guess"];

function doubtsOf(node, words) {
	return words.filter((_, bit) => graph.tree.doubt[node] >> bit & 1);
}

function describeFrame(node) {
	const tree = graph.tree;
	const fn = tree.fn[node];
	const whole = tree.total[0];
	const frame = {
		name: nodeText(tree, node),
		module: node ? moduleName(fn) : "",
		place: "",
		total: tree.total[node], self: tree.self[node],
		share: shareText(tree.total[node], whole),
		doubt: doubtsOf(node, DOUBTS).join("; "),
		ofView: shareText(tree.total[node], tree.total[graph.zoomed]),
	};
	if (node && functions.file[fn])
		frame.place = strings[functions.file[fn]] + (tree.line[node] ? ":" + tree.line[node] : "");
	return frame;
}

function statesText(node) {
	const tree = graph.tree;
	const parts = [];
	STATES.forEach((state, s) => {
		const share = tree.byState[s][node];
		if (share > 0.0005 * tree.total[node])
			parts.push(`${state} ${shareText(share, tree.total[node])}`);
	});
	return parts.join(", ");
}

function selfWord() {
	return app.order === "up" ? "as the outermost" : "self";
}

// The line at the foot: of the frame under the pointer, else of the one in focus.
function showDetails() {
	const node = graph.hover >= 0 ? graph.hover : graph.focus;
	details.replaceChildren();
	if (!graph.tree.total[0])
		return;
	const frame = describeFrame(node);
	const title = element("p", "name", frame.name);
	title.title = frame.name;
	details.append(title, numbersLine(frame, node), placeLine(frame, node));
}

function numbersLine(frame, node) {
	const line = element("p", "numbers");
	const add = (label, value) => {
		const item = element("span");
		item.append(element("b", "", value), " " + label);
		line.append(item);
	};
	add("total", `${weightText(frame.total)} · ${frame.share}`);
	add(selfWord(), `${weightText(frame.self)} · ${shareText(frame.self, graph.tree.total[0])}`);
	if (graph.zoomed)
		add("of what is zoomed to", frame.ofView);
	if (node && node === graph.focus) {
		const all = functionWeight(app.down, graph.tree.fn[node]);
		add("in all stacks", `${weightText(all.total)} · self ${weightText(all.self)}`);
	}
	return line;
}

function placeLine(frame, node) {
	const line = element("p", "place");
	for (const text of [frame.module, frame.place, statesText(node), frame.doubt])
		if (text)
			line.append(element("span", "", text));
	return line;
}

function say(text) {
	status.textContent = text;
}

function sayFocus() {
	const tree = graph.tree;
	const node = graph.focus;
	const frame = describeFrame(node);
	let siblings = 0, place = 0;
	if (node) {
		for (let i = tree.first[tree.parent[node]]; i; i = tree.next[i]) {
			siblings++;
			if (i === node)
				place = siblings;
		}
	}
	say(`${frame.name}${doubtsOf(node, DOUBTS_IN_SHORT).join("")}` +
		`${frame.module ? ", " + frame.module : ""}, ${frame.share}, ` +
		`${weightText(frame.total)}, ${selfWord()} ${weightText(frame.self)}, ` +
		`level ${depthOf(tree, node)}${node ? `, ${place} of ${siblings}` : ""}`);
}

function showTooltip(event) {
	if (graph.hover < 0) {
		hideTooltip();
		return;
	}
	const frame = describeFrame(graph.hover);
	tooltip.replaceChildren(element("p", "name", frame.name),
		element("p", "numbers", `${frame.share} · ${weightText(frame.total)} · ` +
			`${selfWord()} ${weightText(frame.self)}`));
	for (const text of [frame.module, frame.doubt])
		if (text)
			tooltip.append(element("p", "place", text));
	tooltip.classList.add("shown");
	const box = tooltip.getBoundingClientRect();
	const right = event.clientX + 14 + box.width > innerWidth - 8;
	const below = event.clientY + 18 + box.height < innerHeight - 8;
	tooltip.style.left = Math.max(8, right ? event.clientX - box.width - 10 : event.clientX + 14) + "px";
	tooltip.style.top = (below ? event.clientY + 18 : event.clientY - box.height - 10) + "px";
}

function hideTooltip() {
	tooltip.classList.remove("shown");
}

// The recording in a line: what, how, how much, and what is missing.
function showAbout() {
	byId("command").textContent = about.command || "unknown command";
	byId("command").title = about.command;
	document.title = (about.command || "profile") + " · stillframe";
	const lost = about.losses.reduce((n, loss) => n + loss.ticks, 0);
	const facts = [
		["Engine", about.engine || "unknown"],
		["Time", timeText(about.duration_ns / 1000)],
		["Ticks", `${countText(about.ticks)} sampled`],
		["Lost", lossesText(lost), about.losses.map((loss) =>
			`${countText(loss.ticks)} ${loss.cause}: ${loss.text}`).join("\n")],
	];
	if (about.measure)
		facts.push([about.measure.name, `${amountText(about.measure.seen)} seen` +
			(about.measure.counted === undefined ? "" : `, ${amountText(about.measure.counted)} counted`),
			"Seen: by samples. Counted: all of them, by the kernel or by the program's runtime."]);
	if (about.clock !== "event")
		facts.push(["CPU", `${timeText(about.cpu_seen_ns / 1000)} seen, ${countedText()}`,
			"Seen: by samples. Counted: by the kernel."]);
	if (about.cpu_lost_ns) {
		/* The kernel's count is not there yet for threads that live. */
		const lost = shareText(about.cpu_lost_ns, Math.max(about.cpu_counted_ns, about.cpu_seen_ns + about.cpu_lost_ns));

		facts.push(["Warning", `${lost} of the CPU time not seen`, `${lost} ${about.unseen_hint}`, "warning"]);
	}
	if (about.filter)
		facts.push(["Threads", `matching ${about.filter}`]);
	if (about.label)
		facts.push(["Label", about.label]);
	if (about.cut)
		facts.push(["Note", "incomplete", about.cut]);
	if (about.notes.length)
		facts.push(["Notes", countText(about.notes.length), about.notes.map((note) =>
			(note.pid ? `pid ${note.pid}: ` : "") + note.text).join("\n\n")]);
	for (const [label, text, title, look] of facts) {
		const group = element("div", look || "");
		group.append(element("dt", "", label), element("dd", "", text));
		if (title)
			group.title = title;
		byId("facts").append(group);
	}
}

// Where stillframe was killed, the count of the threads that lived is missing. The kernel counts no time by label.
function countedText() {
	const whole = !about.label && (about.complete ? about.cpu_counted_ns || !about.cpu_seen_ns
		: about.cpu_counted_ns && about.cpu_counted_ns >= about.cpu_seen_ns);
	return whole ? `${timeText(about.cpu_counted_ns / 1000)} counted` : "not counted";
}

function lossesText(lost) {
	if (!lost)
		return "none";
	return `${countText(lost)} (` + about.losses.map((loss) =>
		`${countText(loss.ticks)} ${loss.cause}`).join(", ") + ")";
}

function showLegend() {
	const items = [];
	const whole = app.down.total[0];
	if (graph.byState) {
		STATES.forEach((state, s) => {
			if (app.down.byState[s][0] > 0)
				items.push([`rgb(${palette.states[s].join(" ")})`, state,
					shareText(app.down.byState[s][0], whole)]);
		});
	} else {
		const { ranked, waiting } = app.families;
		if (waiting)
			items.push([hsl(...palette.wait), "waiting", shareText(waiting, whole)]);
		for (const [family, weight] of ranked.slice(0, 6 - items.length))
			items.push([familyColour(family), familyName(family), weight ? shareText(weight, whole) : ""]);
	}
	byId("legend").replaceChildren(...items.map(([colour, name, share]) => {
		const item = element("span", "item");
		const swatch = element("i");
		swatch.style.background = colour;
		item.append(swatch, element("span", "label", name), element("span", "share", share));
		item.title = name;
		return item;
	}));
}
