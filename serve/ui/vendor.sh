#!/bin/sh
# Makes page/vendor anew from the npm registry: what the page uses that is not ours, as it
# was published but for the names that it imports, which become paths. vendor.sum has the
# hash of every file that comes of it, and a test holds the files to it; npm checks the
# packages. To take another version, change it here, run this, and read the difference.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# take NAME VERSION FILE... takes files of a package, with its licence.
take() {
	name=$1 version=$2
	shift 2
	short=$(basename "$name")
	mkdir "$work/$short"
	(cd "$work/$short" && npm pack --silent "$name@$version" >/dev/null && tar xzf ./*.tgz)
	cp "$work/$short/package/LICENSE" "page/vendor/$short.LICENSE.txt"
	for file; do
		{
			printf '/* %s %s, see %s.LICENSE.txt */\n' "$name" "$version" "$short"
			sed -e '/^\/\/# sourceMappingURL=/d' -e 's|//# sourceMappingURL=.*$||' \
				-e 's|from"preact"|from"./preact.js"|g' -e 's|from"preact/hooks"|from"./hooks.js"|g' \
				-e 's|from"@preact/signals-core"|from"./signals-core.js"|g' "$work/$short/package/$file"
		} >"page/vendor/$(basename "$file" .mjs).js"
	done
}

rm -rf page/vendor
mkdir -p page/vendor
take preact 11.2.0 dist/preact.mjs hooks/dist/hooks.mjs
take htm 3.1.1 dist/htm.mjs
take @preact/signals-core 1.14.5 dist/signals-core.mjs
take @preact/signals 2.11.4 dist/signals.mjs
cd page/vendor
sha256sum ./* | sed 's|\./||' >../../vendor.sum
