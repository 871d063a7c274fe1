// Command page makes serve/ui/built/app.js of the modules in serve/ui/page, by esbuild: the page is one
// file. Run it after a change of a module (make page); its test holds the file to the modules.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	script, err := build("../serve/ui/page/app.js")
	if err == nil {
		err = os.WriteFile("../serve/ui/built/app.js", script, 0o644) //nolint:gosec // it is a source
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// build bundles the module at entry with its imports.
func build(entry string) ([]byte, error) {
	dir, err := filepath.Abs(filepath.Dir(entry)) // what is built names its modules by their paths from here
	if err != nil {
		return nil, err
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: dir, EntryPoints: []string{filepath.Base(entry)}, Bundle: true, Format: api.FormatESModule, Platform: api.PlatformBrowser,
		Target: api.ESNext, Charset: api.CharsetUTF8,
		Banner: map[string]string{"js": "// Made by make page from serve/ui/page. DO NOT EDIT. What others published in it: vendor/*.LICENSE.txt."},
	})
	var errs []error
	for _, m := range append(result.Errors, result.Warnings...) {
		errs = append(errs, errors.New(api.FormatMessages([]api.Message{m}, api.FormatMessagesOptions{})[0]))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return result.OutputFiles[0].Contents, nil
}
