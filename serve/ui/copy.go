package ui

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"
)

// copyPolicy lets a copy run the one script and wear the one style that are in it, show
// pictures that are in it, and nothing else. It asks nobody for anything.
const copyPolicy = "default-src 'none'; script-src '%s'; style-src '%s'; img-src data:; base-uri 'none'; form-action 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// WriteCopy writes the page with what it would have asked for in one file, which a browser
// opens from a disk. each adds the answers, by the paths that are asked for them: they are in
// the file as data, which no browser runs, and page/copy.js reads them there. The same
// answers make the same file.
func WriteCopy(w io.Writer, each func(add func(path string, answer []byte) error) error) error {
	all := load()
	mark := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(all["/mark.svg"].plain)
	script := bytes.ReplaceAll(all["/app.js"].plain, []byte(`src="mark.svg"`), []byte(`src="`+mark+`"`))
	style := all["/style.css"].plain
	index := string(all["/"].plain)
	for _, x := range [][2]string{
		{`<meta charset="utf-8">`, `<meta charset="utf-8">` + "\n" + `<meta http-equiv="Content-Security-Policy" content="` + fmt.Sprintf(copyPolicy, hashOf(script), hashOf(style)) + `">`},
		{`<link rel="icon" href="mark.svg">`, `<link rel="icon" href="` + mark + `">`},
		{`<link rel="stylesheet" href="style.css">`, `<style>` + string(style) + `</style>`},
		{`<script type="module" src="app.js"></script>`, `<script type="module">` + string(script) + `</script>`},
	} {
		if strings.Count(index, x[0]) != 1 {
			return fmt.Errorf("ui: index.html does not have %s once", x[0])
		}
		index = strings.Replace(index, x[0], x[1], 1)
	}
	head, foot, _ := strings.Cut(index, "</body>")
	out := bufio.NewWriter(w)
	_, _ = out.WriteString(head) // Flush tells what is wrong with any of it
	err := each(func(path string, answer []byte) error {
		var safe bytes.Buffer // without <, so that nothing ends the element
		json.HTMLEscape(&safe, answer)
		_, err := fmt.Fprintf(out, "<script type=\"application/json\" data-path=\"%s\">%s</script>\n", html.EscapeString(path), safe.Bytes())
		return err
	})
	if err != nil {
		return err
	}
	_, _ = out.WriteString("</body>" + foot)
	return out.Flush()
}

// hashOf names an inline script or style in a policy.
func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
