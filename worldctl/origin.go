package worldctl

import (
	"cmp"
	"os"
	"os/user"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/world"
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

// actorOf names who decides, for the journal: as asked for, else by login.
func (c *cli) actorOf(as string) string {
	if as != "" {
		return as
	}
	if c.origin.Login != "" {
		return c.origin.Login
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return cmp.Or(os.Getenv("USER"), "unknown")
}

// addActor adds the flag that says who does what the verb does, for the journal; see setActor.
func addActor(cmd *cobra.Command, does string) {
	cmd.Flags().String("as", "", "who "+does+": `NAME`; your login if not given")
}

// setActor takes note of who acts, where the verb can be told.
func (c *cli) setActor(cmd *cobra.Command) (err error) {
	if as := cmd.Flags().Lookup("as"); as != nil {
		c.by, err = c.actor(as.Value.String())
	}
	return err
}

// actor returns the name in which a person decides.
func (c *cli) actor(as string) (string, error) {
	as = c.actorOf(as)
	if err := world.CheckActor(as); err != nil {
		return "", usagef("say who you are: --as NAME", "who decides? %w", err)
	}
	return as, nil
}
