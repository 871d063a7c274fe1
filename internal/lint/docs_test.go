package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	mdLink     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	mdHeading  = regexp.MustCompile(`(?m)^#+ +(.+?) *$`)
	mdFence    = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	mdCode     = regexp.MustCompile("`[^`\n]*`")
	mdPath     = regexp.MustCompile("`((?:cmd|worldctl|serve|lab|show|world|journal|host|governance|reducer|receipt|manifest|snapshot|checkpoint|internal|tools|docs)/[A-Za-z0-9_./-]+\\.(?:go|js|py|md|sql|star|yaml))`")
	mdTest     = regexp.MustCompile("`(?:[a-z/]+[.:])?((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)(?:/([a-z_0-9]+))?`")
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
	notInSlugs = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestDocumentsNameWhatThereIs follows every link of the documents, and looks for the files and tests that they name.
func TestDocumentsNameWhatThereIs(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	pages, tests := pagesAndTests(t, root)
	require.Greater(t, len(pages), 20)
	for page, text := range pages {
		prose := mdFence.ReplaceAllString(text, "")
		for _, m := range mdLink.FindAllStringSubmatch(mdCode.ReplaceAllString(prose, ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			to, anchor, _ := strings.Cut(m[1], "#")
			file := page
			if to != "" {
				file = filepath.Join(filepath.Dir(page), to)
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			} else if anchor != "" && strings.HasSuffix(file, ".md") && !slugs(pages[file])[anchor] {
				t.Errorf("%s links to %s, which has no such heading", page, m[1])
			}
		}
		for _, m := range mdPath.FindAllStringSubmatch(prose, -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names the file %s, which is not there", page, m[1])
			}
		}
		for _, m := range mdTest.FindAllStringSubmatch(prose, -1) {
			if !tests[m[1]] {
				t.Errorf("%s names %s, and there is no such test", page, m[1])
			}
			if m[1] == "TestScripts" && m[2] != "" {
				scripts, err := filepath.Glob(filepath.Join(root, "worldctl/testdata/script", m[2]+".txt*"))
				require.NoError(t, err)
				if len(scripts) == 0 {
					t.Errorf("%s names the script %s, which is not there", page, m[2])
				}
			}
		}
	}
}

// pagesAndTests returns the documents, by path, and the names of all tests.
func pagesAndTests(t *testing.T, root string) (pages map[string]string, tests map[string]bool) {
	pages, tests = make(map[string]string), make(map[string]bool)
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if err == nil && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "build" || d.Name() == "bin") {
				return fs.SkipDir
			}
			return err
		}
		page, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		isPage := strings.HasSuffix(page, ".md") && (!strings.Contains(page, "/") || strings.HasPrefix(page, "docs/"))
		if !isPage && !strings.HasSuffix(page, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if isPage {
			pages[page] = string(text)
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		return nil
	}))
	return pages, tests
}

// slugs are the anchors of a page, as GitHub makes them of its headings.
func slugs(text string) map[string]bool {
	all := make(map[string]bool)
	for _, m := range mdHeading.FindAllStringSubmatch(mdFence.ReplaceAllString(text, ""), -1) {
		all[strings.ReplaceAll(notInSlugs.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return all
}
