package worldctl

import (
	"cmp"
	"os"
	"os/user"
)

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
