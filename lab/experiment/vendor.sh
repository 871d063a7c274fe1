#!/bin/sh
# Makes page/vendor anew from the npm registry: what draws the plots of a report, as it was
# published but for its first line. vendor.sum has the hash of every file, and a test holds
# the files to it; npm checks the packages. To take another version, change it here, run
# this, and read the difference.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# take NAME VERSION FILE takes a file of a package, with its licence.
take() {
	short=$(basename "$1")
	mkdir "$work/$short"
	(cd "$work/$short" && npm pack --silent "$1@$2" >/dev/null && tar xzf ./*.tgz)
	cp "$work/$short/package/LICENSE" "page/vendor/$short.LICENSE.txt"
	{
		printf '/* %s %s, see %s.LICENSE.txt */\n' "$1" "$2" "$short"
		sed -e '/^\/\/# sourceMappingURL=/d' "$work/$short/package/$3"
	} >"page/vendor/$short.js"
}

rm -rf page/vendor
mkdir -p page/vendor
take d3 7.9.0 dist/d3.min.js
take @observablehq/plot 0.6.17 dist/plot.umd.min.js
cd page/vendor
sha256sum ./* | sed 's|\./||' >../../vendor.sum
