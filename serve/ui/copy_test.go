package ui

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
