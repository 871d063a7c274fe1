package worldctl

import (
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/worldkernel/worldkernel/internal/file"
)

// goTemplate is a program of one's own: that makes its world, because it has the
// reducers.
const goTemplate = "go"

const modulePath = "github.com/worldkernel/worldkernel"

// writeGoMod writes the go.mod of a new program.
func writeGoMod(dir string) error {
	info, _ := debug.ReadBuildInfo()
	return file.WriteNew(filepath.Join(dir, "go.mod"), []byte(goMod(info)), 0o666)
}

// goMod requires the version of this program, or what a program of one's own was built
// with. One that was built from a checkout has none.
func goMod(info *debug.BuildInfo) string {
	self := &debug.Module{}
	if info != nil {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == modulePath {
				self = m
			}
		}
	}
	const head = "module desk\n\ngo 1.26.0\n\n"
	switch at := self.Replace; {
	case at != nil:
		return head + "require " + modulePath + " v0.0.0\n\nreplace " + modulePath + " => " + strings.TrimSpace(at.Path+" "+at.Version) + "\n"
	case !strings.HasPrefix(self.Version, "v") || strings.Contains(self.Version, "+dirty"):
		return head + "// worldctl was built from a checkout: go mod edit -replace " + modulePath + "=ITS_DIRECTORY\nrequire " + modulePath + " v0.0.0\n"
	}
	return head + "require " + modulePath + " " + self.Version + "\n"
}
