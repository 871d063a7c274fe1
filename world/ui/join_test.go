package ui

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func pageOf(modules map[string]string) page {
	all := make(page)
	for name, text := range modules { // order cannot show: each is a file
		all[name] = newPart(name, []byte(text))
	}
	return all
}

// Each form in which a module has something from another, or gives it, is joined; what is
// none of them is refused, and so is what no order could satisfy.
func TestModulesAreJoined(t *testing.T) {
	out, err := pageOf(map[string]string{
		"/app.js":       "import { a, b as c } from './sub/b.js';\nimport d from './d.js';\na(c, d);\n",
		"/sub/b.js":     "// a comment\nexport { x as b } from '../d.js';\nexport async function* a() {}\nexport const e = 1;\nexport class F {}\n",
		"/d.js":         `const y=1;export default function(s){return s}export{y as x};`,
		"/unrelated.js": "export let never = 1;",
	}).join("/app.js")
	require.NoError(t, err)
	require.Equal(t, `const modules = {};
await (async () => { // /d.js
modules["/d.js"] = {};
const y=1;modules["/d.js"].default = function(s){return s}
;modules["/d.js"].x = y;
})();
await (async () => { // /sub/b.js
modules["/sub/b.js"] = {};
// a comment

async function* a() {}
const e = 1;
class F {}

;modules["/sub/b.js"].b = modules["/d.js"].x;
modules["/sub/b.js"].a = a;
modules["/sub/b.js"].e = e;
modules["/sub/b.js"].F = F;
})();
await (async () => { // /app.js
modules["/app.js"] = {};
const { a: a, b: c } = modules["/sub/b.js"];
const { default: d } = modules["/d.js"];
a(c, d);

;})();
`, string(out))
	for name, all := range map[string]map[string]string{ // order cannot show: each is refused by itself
		"from each other":   {"/app.js": "import { b } from './b.js';", "/b.js": "import { a } from './app.js';"},
		"not part of":       {"/app.js": "import { b } from './gone.js';"},
		"export let":        {"/app.js": "export let a = 1;"},
		"export *":          {"/app.js": "export * from './app2.js';"},
		"import for effect": {"/app.js": "import './b.js';"},
		"end of an element": {"/app.js": "const a = '</script>';"},
	} {
		_, err := pageOf(all).join("/app.js")
		require.Error(t, err, name)
	}
}

// A copy is one file that asks for nothing, whatever is in it: what is hostile ends no
// element and no attribute.
func TestCopyIsOneFile(t *testing.T) {
	each := func(add func(string, []byte) error) error {
		return add(`/api/"><script>alert(1)</script>`, []byte(`{"a":"</script><script>alert(1)</script><!--","b":1}`))
	}
	var out, again bytes.Buffer
	require.NoError(t, WriteCopy(&out, each))
	require.NoError(t, WriteCopy(&again, each))
	require.Equal(t, out.Bytes(), again.Bytes())
	text := out.String()
	require.Equal(t, 2, strings.Count(text, "<script "), "the page's, and the answer")
	require.Equal(t, 2, strings.Count(text, "</script>"))
	require.NotContains(t, text, "<!--")
	require.Contains(t, text, `data-path="/api/&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"`)
	require.Contains(t, text, `{"a":"\u003c/script\u003e\u003cscript\u003ealert(1)\u003c/script\u003e\u003c!--","b":1}`)
	for _, from := range []string{` src="`, ` href="`} {
		for _, at := range strings.Split(text, from)[1:] {
			require.Regexp(t, `^(data:|\$\{|#|'|")`, at[:min(len(at), 60)], "it asks for nothing: %s", at[:min(len(at), 60)])
		}
	}
	require.Contains(t, text, `content="default-src 'none'; script-src 'sha256-`)
	require.NotContains(t, text, "unsafe")
}
