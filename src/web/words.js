// Numbers in words, and elements with text: data is only ever set as textContent.

function timeText(us) {
	if (us >= 1e6)
		return digits(us / 1e6) + " s";
	if (us >= 1e3)
		return digits(us / 1e3) + " ms";
	return Math.round(us) + " µs";
}

function bytesText(bytes) {
	for (const [size, unit] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]])
		if (bytes >= size)
			return digits(bytes / size) + " " + unit;
	return countText(bytes) + " B";
}

// An amount of the event, without its name where it has a unit.
function amountText(amount) {
	return about.measure.unit === "bytes" ? bytesText(amount) : countText(amount);
}

// A weight by the clock that is shown: microseconds, or events.
function weightText(weight) {
	if (app.clock !== "event")
		return timeText(weight);
	return amountText(weight) + (about.measure.unit === "bytes" ? "" : " " + about.measure.name);
}

function digits(value) {
	return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function shareText(part, whole) {
	const percent = whole ? 100 * part / whole : 0;
	if (percent > 0 && percent < 0.01)
		return "< 0.01 %";
	return (percent >= 10 || percent === 0 ? percent.toFixed(1) : percent.toFixed(2)) + " %";
}

function countText(count) {
	return count.toLocaleString("en-US");
}

function byId(id) {
	return document.getElementById(id);
}

function element(tag, className, text) {
	const made = document.createElement(tag);
	if (className)
		made.className = className;
	if (text !== undefined)
		made.textContent = text;
	return made;
}
