package worldctl

import (
	"cmp"
	"os"
	"os/user"

	"github.com/worldkernel/worldkernel/world"
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

// actor returns the name in which a person decides.
func (c *cli) actor(as string) (string, error) {
	as = c.actorOf(as)
	if err := world.CheckActor(as); err != nil {
		return "", usagef("say who you are: --as NAME", "who decides? %w", err)
	}
	return as, nil
}
