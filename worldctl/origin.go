package worldctl

import (
	"os"
	"path/filepath"

	"github.com/worldkernel/worldkernel/world/local"
)

// origin is where and by whom a command line was typed: in this process, or in
// another one for which this one carries it out.
type origin struct {
	Width   int  `json:"width"`   // of the terminal that stdout is, in columns; 0: it is none
	Console bool `json:"console"` // stderr is a terminal
	Plain   bool `json:"plain"`   // no colors are wanted

	// Where it was typed in another process. They are empty for this one.
	Dir        string  `json:"dir"`        // the working directory
	Login      string  `json:"login"`      // for the journal
	Passphrase *string `json:"passphrase"` // in the environment; nil: there is none
}

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
