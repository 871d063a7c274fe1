package ui

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func get(t *testing.T, path string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

// TestEveryPartIsHeldToThePolicy: whatever is answered, what is missing too, says what a
// browser may do with it.
func TestEveryPartIsHeldToThePolicy(t *testing.T) {
	paths := []string{"/", "/missing", "/page/app.js", "/../ui.go"}
	for path := range load() { // order cannot show: each is looked at alone
		paths = append(paths, path)
	}
	require.Greater(t, len(paths), 8)
	for _, path := range paths {
		res := get(t, path)
		got := res.Header().Get("Content-Security-Policy")
		for _, rule := range []string{"default-src 'none'", "script-src 'self'", "require-trusted-types-for 'script'", "trusted-types 'none'", "frame-ancestors 'none'", "form-action 'none'"} {
			require.Contains(t, got, rule, path)
		}
		require.NotContains(t, got, "unsafe", path)
		require.Equal(t, "nosniff", res.Header().Get("X-Content-Type-Options"), path)
		require.NotEmpty(t, res.Header().Get("Content-Type"), path)
	}
}

func TestPartsAreServed(t *testing.T) {
	plain := get(t, "/app.js")
	require.Equal(t, http.StatusOK, plain.Code)
	require.Equal(t, "text/javascript; charset=utf-8", plain.Header().Get("Content-Type"))
	text := plain.Body.Bytes()
	zipped := get(t, "/app.js", "Accept-Encoding", "br, gzip")
	require.Equal(t, "gzip", zipped.Header().Get("Content-Encoding"))
	r, err := gzip.NewReader(zipped.Body)
	require.NoError(t, err)
	again, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, text, again)
	require.Empty(t, get(t, "/app.js", "Accept-Encoding", "gzip;q=0").Header().Get("Content-Encoding"))
	require.Equal(t, http.StatusNotModified, get(t, "/app.js", "If-None-Match", plain.Header().Get("ETag")).Code)
	require.Equal(t, http.StatusNotFound, get(t, "/ui.go").Code)
	require.Equal(t, get(t, "/index.html").Body.Bytes(), get(t, "/").Body.Bytes())
}

// TestVendoredFilesAreAsTheyWere: vendor.sh says where they are from.
func TestVendoredFilesAreAsTheyWere(t *testing.T) {
	sums, err := os.ReadFile("vendor.sum")
	require.NoError(t, err)
	want := make(map[string]string)
	lines := bufio.NewScanner(bytes.NewReader(sums))
	for lines.Scan() {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		require.True(t, ok)
		want[name] = sum
	}
	entries, err := os.ReadDir("page/vendor")
	require.NoError(t, err)
	for _, e := range entries {
		data, err := os.ReadFile("page/vendor/" + e.Name())
		require.NoError(t, err)
		sum := sha256.Sum256(data)
		require.Equal(t, want[e.Name()], hex.EncodeToString(sum[:]), "%s is not what vendor.sh wrote", e.Name())
		delete(want, e.Name())
	}
	require.Empty(t, want)
}

// forbidden makes markup or code of strings. The policy refuses it in a browser; here is
// where it is seen first.
var forbidden = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|createContextualFragment|setHTMLUnsafe|srcdoc|javascript:`)

// imported is where a module has something from.
var imported = regexp.MustCompile(`\b(?:from|import)\s*\(?["']([^"'\s]+)["']`)

// TestPageMakesNoMarkup: our own modules make text nodes only, and have only what the page
// has.
func TestPageMakesNoMarkup(t *testing.T) {
	modules, err := fs.Glob(os.DirFS("page"), "*.js")
	require.NoError(t, err)
	require.Greater(t, len(modules), 30)
	for _, path := range modules {
		text, err := os.ReadFile("page/" + path)
		require.NoError(t, err)
		for _, from := range imported.FindAllStringSubmatch(string(text), -1) {
			require.Regexp(t, `^\.\.?/[\w/-]+\.js$`, from[1], path)
		}
		require.NotRegexp(t, forbidden, string(text), path)
	}
	require.NotRegexp(t, `</script|<!--`, string(load()["/app.js"].plain), "it is part of a copy's page, and would end there")
	index := string(load()["/"].plain)
	require.NotRegexp(t, `<script(?:>|[^>]*>[^<])`, index, "a script in the page itself")
	require.NotContains(t, index, "style=")
	require.NotContains(t, index, "://")
}

// maxPage is what the whole page may be on its way, in bytes.
const maxPage = 120 << 10

func TestPageIsSmall(t *testing.T) {
	sum := 0
	for path, p := range load() { // order cannot show in a sum
		if path != "/" && !strings.HasSuffix(path, ".txt") {
			sum += len(p.zipped)
		}
	}
	require.LessOrEqual(t, sum, maxPage)
}
