// The controls above the picture. A choice is a group of radio buttons: one tab stop, arrows inside.

const searchBox = byId("search");

function makeChoice(id, options, value, changed) {
	const group = byId(id);
	const buttons = options.map((option) => {
		const button = element("button", "", option.text);
		button.type = "button";
		button.title = option.title || "";
		button.setAttribute("role", "radio");
		button.dataset.value = option.value;
		return button;
	});
	const choose = (chosen) => {
		buttons.forEach((button, i) => {
			button.setAttribute("aria-checked", i === chosen ? "true" : "false");
			button.tabIndex = i === chosen ? 0 : -1;
		});
	};
	const pick = (i) => {
		choose(i);
		changed(options[i].value);
	};
	buttons.forEach((button, i) => button.addEventListener("click", () => pick(i)));
	group.addEventListener("keydown", (event) => {
		const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
		const at = buttons.indexOf(document.activeElement);
		if (!step || at < 0)
			return;
		event.preventDefault();
		const to = (at + step + buttons.length) % buttons.length;
		buttons[to].focus();
		pick(to);
	});
	choose(Math.max(0, options.findIndex((option) => option.value === value)));
	group.append(...buttons);
	group.hidden = options.length < 2;
}

function makeGroupingChoice(changed) {
	const select = byId("grouping");
	for (const grouping of groupings) {
		const option = element("option", "", grouping.text);
		option.value = grouping.value;
		select.append(option);
	}
	select.value = app.grouping;
	select.hidden = groupings.length < 2;
	select.addEventListener("change", () => changed(select.value));
}

// Threads by weight; those that share a name can be chosen together.
function makeThreadChoice(changed) {
	const select = byId("thread");
	const weights = new Float64Array(threads.length);
	const names = new Map();
	for (let i = 0; i < rows.n; i++)
		weights[rows.thread[i]] += rows[about.clock][i];
	const seen = threads.map((_, i) => i).filter((i) => weights[i] > 0)
		.sort((a, b) => weights[b] - weights[a]);
	for (const i of seen)
		names.set(threads[i].name, (names.get(threads[i].name) || []).concat(i));

	const add = (text, chosen) => {
		const option = element("option", "", text);
		option.value = String(choices.push(chosen) - 1);
		select.append(option);
	};
	const choices = [];
	add(`All threads (${countText(seen.length)})`, seen);
	for (const [name, group] of names)
		if (group.length > 1 && names.size > 1)
			add(`${name} × ${group.length}`, group);
	for (const i of seen)
		add(`${threads[i].name} · ${threads[i].tid}`, [i]);
	select.addEventListener("change", () => changed(choices[select.value],
		select.selectedOptions[0].textContent));
	return seen;
}

function search() {
	let matched = null;
	searchBox.setCustomValidity("");
	searchBox.removeAttribute("aria-invalid");
	try {
		matched = matchFunctions(searchBox.value, app.regex);
	} catch (error) {
		searchBox.setAttribute("aria-invalid", "true");
		byId("matched").textContent = "no regular expression";
		return;
	}
	graph.matched = matched;
	byId("matched").textContent = matched ?
		"matched " + shareText(matchedWeight(app.down, matched), app.down.total[0]) : "";
	redraw();
}

searchBox.addEventListener("input", search);
searchBox.addEventListener("keydown", (event) => {
	if (event.key === "Enter") {
		event.preventDefault();
		focusNextMatch();
	}
});

// Enter goes to the heaviest match, then to the next lighter one.
function focusNextMatch() {
	const tree = graph.tree;
	if (!graph.matched)
		return;
	const weight = (node) => graph.matched[tree.fn[node]] ? tree.total[node] : 0;
	const isAfter = (node, than) => weight(node) < weight(than) ||
		(weight(node) === weight(than) && node > than);
	const start = graph.focus && weight(graph.focus) ? graph.focus : 0;
	let best = 0;
	for (let node = 1; node < tree.n; node++)
		if (weight(node) && (!start || isAfter(node, start)) && (!best || isAfter(best, node)))
			best = node;
	if (best)
		setFocus(best);
}

byId("regex").addEventListener("click", () => {
	app.regex = !app.regex;
	byId("regex").setAttribute("aria-pressed", String(app.regex));
	search();
});

byId("reset").addEventListener("click", () => {
	resetZoom();
	canvas.focus();
});

const THEMES = [
	{ value: "auto", text: "Auto" },
	{ value: "light", text: "Light" },
	{ value: "dark", text: "Dark" },
];
const systemDark = matchMedia("(prefers-color-scheme: dark)");

function applyTheme() {
	const theme = app.theme === "auto" ? (systemDark.matches ? "dark" : "light") : app.theme;
	document.documentElement.dataset.theme = theme;
	byId("theme").textContent = THEMES.find((t) => t.value === app.theme).text;
	byId("theme").setAttribute("aria-label", "Colours: " + app.theme);
	graph.background = getComputedStyle(document.documentElement).getPropertyValue("--page").trim();
	usePalette(theme);
}

byId("theme").addEventListener("click", () => {
	const at = THEMES.findIndex((t) => t.value === app.theme);
	app.theme = THEMES[(at + 1) % THEMES.length].value;
	applyTheme();
	showLegend();
	redraw();
});
systemDark.addEventListener("change", () => {
	applyTheme();
	showLegend();
	redraw();
});
