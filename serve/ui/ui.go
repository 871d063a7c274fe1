// Package ui is the page on which people look at worlds: files that a browser asks for and that ask
// the API of the server they came from, and nobody else. It is a part of worldctl, and not an API.
//
// The script is one file, built/app.js, which make page makes of the modules in page and, in page/vendor, of
// libraries as they were published (make vendor); it is checked in, and tools/page tests that it is what they say.
// tools/browser drives a real Chromium through the page; PICTURES=/tmp go test -C tools/browser . keeps pictures, and
// make pictures makes those of docs/ui.md. The timeline is drawn from the journal's columns (show/columns).
package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed built/app.js page/index.html page/style.css page/mark.svg page/vendor/*.txt
var files embed.FS

// policy lets the page have its own files and the API beside it, and nothing else. What
// agents wrote is text on it: no script is made of strings, and no element either.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// part is a file of the page, as it is sent.
type part struct {
	plain, zipped []byte
	mediaType     string
	tag           string // of its content
}

// page is all files of the page, by their paths; that of index.html is "/", too.
type page map[string]*part

func load() page {
	all := make(page)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err == nil {
			_, name, _ = strings.Cut(name, "/")
			all["/"+name] = newPart(name, data)
		}
		return err
	})
	if err != nil {
		panic(err) // the files are in the program
	}
	all["/"] = all["/index.html"]
	return all
}

func newPart(name string, data []byte) *part {
	sum := sha256.Sum256(data)
	p := &part{plain: data, mediaType: mediaType(name), tag: strconv.Quote(hex.EncodeToString(sum[:16]))}
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil && w.Close() == nil {
		p.zipped = zipped.Bytes()
	}
	return p
}

// mediaType returns what a file is, whatever this machine's tables say.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "text/plain; charset=utf-8"
}

// Handler answers with the parts of the page. It is safe for concurrent use.
func Handler() http.Handler { return load() }

// ServeHTTP implements http.Handler.
func (all page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	p := all[r.URL.Path]
	switch {
	case p == nil:
		http.Error(w, "the page has no such part", http.StatusNotFound)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "the page can be read only", http.StatusMethodNotAllowed)
		return
	}
	h.Set("Content-Type", p.mediaType)
	h.Set("Cache-Control", "no-cache") // but ask whether it is the same: programs are exchanged
	h.Set("ETag", p.tag)
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == p.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := p.plain
	if acceptsGzip(r) && len(p.zipped) > 0 {
		h.Set("Content-Encoding", "gzip")
		body = p.zipped
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // whoever has gone does not miss it
	}
}

// acceptsGzip reports whether a client takes gzip. What it says is parsed as a list of
// parameters: "gzip;q=0" refuses it.
func acceptsGzip(r *http.Request) bool {
	for _, list := range r.Header.Values("Accept-Encoding") {
		for item := range strings.SplitSeq(list, ",") {
			name, with, err := mime.ParseMediaType(item)
			if err == nil && name == "gzip" && strings.Trim(with["q"], "0.") == "" && with["q"] != "" {
				return false
			}
			if err == nil && name == "gzip" {
				return true
			}
		}
	}
	return false
}
