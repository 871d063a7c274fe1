package worldctl

import (
	"os"
	"path/filepath"

	"github.com/worldkernel/worldkernel/world/local"
)

// path returns the path that a person typed as this process can use it. Nothing,
// and what stands for a stream, stay what they are.
func (c *cli) path(typed string) string {
	if typed == "" || typed == "-" || c.origin.Dir == "" || filepath.IsAbs(typed) {
		return typed
	}
	return filepath.Join(c.origin.Dir, typed)
}

// passphraseVariable returns what the environment of whoever typed it has for a passphrase.
func (c *cli) passphraseVariable() (text string, set bool) {
	if c.owned == nil {
		return os.LookupEnv(passphraseEnv)
	}
	if c.origin.Passphrase == nil {
		return "", false
	}
	return *c.origin.Passphrase, true
}

// owns reports whether the world in a directory is the one that is open already.
func (c *cli) owns(dir string) bool {
	return c.owned != nil && sameWorld(dir, c.owned)
}

func sameWorld(dir string, lw *local.World) bool {
	a, errA := os.Stat(filepath.Join(dir, ".world"))
	b, errB := os.Stat(filepath.Join(lw.Dir(), ".world"))
	return errA == nil && errB == nil && os.SameFile(a, b)
}
