#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests of the HTML export in a real browser. run.sh [BUILD-FOLDER]; 77 when it cannot be done here.
# run.sh --packages only installs what they need of npm's, among it a program that an end-to-end test looks at.
set -eu

only_packages=false
if [ "${1-}" = --packages ]; then
	only_packages=true
else
	SF_BUILD=$(realpath "${1:-build}")
	export SF_BUILD
fi
cd "$(dirname "$0")"

skip() {
	echo "tests/browser: skipped: $1" >&2
	exit 77
}

command -v node >/dev/null || skip "no node (Debian: apt install nodejs npm)"
if ! [ node_modules/.package-lock.json -nt package-lock.json ]; then
	command -v npm >/dev/null || skip "no npm (Debian: apt install npm)"
	npm ci --no-audit --no-fund
fi
if $only_packages; then
	exit 0
fi
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] || skip "no chromium (Debian: apt install chromium)"
[ -x "$SF_BUILD/tests/browser/write_export" ] || {
	echo "tests/browser: $SF_BUILD/tests/browser/write_export is not built" >&2
	exit 1
}
exec node --test --test-concurrency=1 .
