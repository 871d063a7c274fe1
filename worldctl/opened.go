package worldctl

import (
	"context"
	"errors"
	"time"

	"github.com/worldkernel/worldkernel/journal/store"
	"github.com/worldkernel/worldkernel/serve/owner"
	"github.com/worldkernel/worldkernel/world/local"
)

// A world that another process has, which carries out no commands of others, is waited for: most verbs
// have one for a moment, and who runs one listens soon after it has opened it.
const lockPatience, lockPause = time.Second, 20 * time.Millisecond

// opened opens a world in a directory. A signal ends what is lived again until it is open, and all that
// is lived again of a world that the verb only reads; it ends the process where anything else takes long.
func (c *cli) opened(dir string, opts local.Options, open func(string, local.Options) (*local.World, error)) (lw *local.World, err error) {
	opened, end := context.WithCancel(context.Background())
	stop := context.AfterFunc(c.life, end)
	if opts.Life = opened; !c.reads {
		defer stop()
	}
	err = c.unlocked(func() error {
		lw, err = open(dir, opts)
		return err
	}, func() bool { return owner.Listens(dir) })
	return lw, err
}

// unlocked tries to open something until it is not locked any more, for a moment, unless somebody listens
// there.
func (c *cli) unlocked(try func() error, listens func() bool) error {
	defer c.opts.interrupts.opening()()
	for waited := time.Duration(0); ; waited += lockPause {
		err := try()
		if !errors.As(err, new(*store.LockedError)) || waited >= lockPatience || listens() {
			return err
		}
		<-time.After(lockPause)
	}
}
