// Colours of frames, by module or by state, for light and dark.
//
// Modules get hues in the order of their weight, so that the heavy ones never look alike; functions
// of one module differ a little in lightness, so that neighbours can be told apart.

const HUES = [205, 152, 35, 268, 350, 180, 85, 315, 15, 230, 120, 55];

// By kind, from KIND_INTERPRETED on. Managed code: interpreted, C1, C2, native methods, the machine's own stubs, frames in the heap, any of the first four.
const MANAGED_HUES = [50, 95, 135, 20, 280, 280, 125, 0, 110, 50, 65, 110, 125, 140, 155, 80, 125, 300];

// The kernel's code, which is one module.
const KERNEL_HUE = 0;

// Code in no file, and what stands for missing frames.
const UNKNOWN = 0;

const PALETTES = {
	light: {
		saturation: 52, lightness: 80, spread: 5,
		wait: [220, 14, 88], cut: [30, 8, 84],
		states: [[126, 196, 160], [242, 196, 110], [172, 184, 220], [226, 160, 170]],
		match: "hsl(322 78% 74%)", dimmed: "hsl(220 12% 91%)", rest: "hsl(220 10% 93%)",
		root: "hsl(220 14% 86%)", text: "#1d2430", dimmedText: "#7b8494",
		focus: "#1257c9", hover: "rgb(20 30 50 / 0.55)",
	},
	dark: {
		saturation: 27, lightness: 36, spread: 4,
		wait: [220, 10, 27], cut: [30, 6, 30],
		states: [[52, 116, 84], [140, 104, 36], [70, 82, 122], [130, 66, 78]],
		match: "hsl(322 46% 48%)", dimmed: "hsl(220 10% 20%)", rest: "hsl(220 10% 17%)",
		root: "hsl(220 10% 30%)", text: "#eef1f6", dimmedText: "#858d9b",
		focus: "#7fb2ff", hover: "rgb(255 255 255 / 0.6)",
	},
};

let palette = PALETTES.light;
let functionColours = [];
let moduleRank = new Map();
const mixed = new Map();

function hsl(hue, saturation, lightness) {
	return `hsl(${hue} ${saturation}% ${lightness.toFixed(1)}%)`;
}

function isManaged(kind) {
	return kind >= KIND_INTERPRETED && kind <= KIND_LAST && kind !== KIND_KERNEL;
}

// A function has the colour of its family: a module's number, a kind of managed code as -kind, or UNKNOWN.
function familyOf(fn) {
	const kind = functions.kind[fn];
	if (isManaged(kind))
		return -kind;
	return kind === KIND_CUT ? UNKNOWN : functions.module[fn];
}

// [family, weight] by the weight of what stands innermost; families that only call come last.
// Waiting is left out, as a weight of its own.
function rankFamilies(down) {
	const weights = new Map();
	let waiting = 0;
	for (let i = 1; i < down.n; i++) {
		const fn = down.fn[i];
		const family = familyOf(fn);
		if (functions.kind[fn] === KIND_WAIT)
			waiting += down.self[i];
		else if (functions.kind[fn] !== KIND_GROUP && down.total[i])
			weights.set(family, (weights.get(family) || 0) + down.self[i]);
	}
	const ranked = [...weights].sort((a, b) => b[1] - a[1]);
	for (const [family] of ranked)
		if (family > 0)
			moduleHue(family);
	return { ranked, waiting };
}

function familyName(family) {
	if (family < 0)
		return about.kinds[-family] + " code"; // not the program of that name
	return family === UNKNOWN ? "not known" : baseName(strings[family]);
}

function familyColour(family, lightness = palette.lightness) {
	if (family === UNKNOWN)
		return hsl(...palette.cut);
	return hsl(family < 0 ? MANAGED_HUES[-family - KIND_INTERPRETED] : moduleHue(family), palette.saturation, lightness);
}

function moduleHue(module) {
	if (strings[module] === "[kernel]")
		return KERNEL_HUE;
	if (!moduleRank.has(module))
		moduleRank.set(module, moduleRank.size);
	return HUES[moduleRank.get(module) % HUES.length];
}

function colourOfFunction(fn) {
	if (functionColours[fn])
		return functionColours[fn];
	const kind = functions.kind[fn];
	let colour;
	if (kind === KIND_GROUP)
		colour = palette.root;
	else if (kind === KIND_WAIT)
		colour = hsl(...palette.wait);
	else
		colour = familyColour(familyOf(fn), palette.lightness + palette.spread * ((Math.imul(fn + 7, 0x9e3779b1) >>> 16) / 32768 - 1));
	return functionColours[fn] = colour;
}

// The colours of its states, mixed by their shares: a frame that half waits looks half like waiting.
function colourOfStates(tree, node) {
	let r = 0, g = 0, b = 0, total = 0;
	for (let s = 0; s < STATES.length; s++) {
		const share = Math.max(0, tree.byState[s][node]);
		r += share * palette.states[s][0];
		g += share * palette.states[s][1];
		b += share * palette.states[s][2];
		total += share;
	}
	const key = total ? Math.round(r / total / 4) << 12 | Math.round(g / total / 4) << 6 |
		Math.round(b / total / 4) : 0;
	if (!mixed.has(key))
		mixed.set(key, `rgb(${(key >> 12) * 4} ${(key >> 6 & 63) * 4} ${(key & 63) * 4})`);
	return mixed.get(key);
}

function usePalette(theme) {
	palette = PALETTES[theme];
	functionColours = [];
	mixed.clear();
}
