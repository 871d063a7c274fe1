package worldctl

import (
	"bytes"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/world/api"
	"github.com/worldkernel/worldkernel/world/notify"
)

// notifying says who is told of what waits for a person, as typed.
type notifying struct {
	url string // empty: nobody
	key string // a file
}

func (n *notifying) add(f *pflag.FlagSet) {
	f.StringVar(&n.url, "notify", "", "post to this `URL` what newly waits for a person")
	f.StringVar(&n.key, "notify-key", "", "`FILE` of the key that signs it, which is yours alone")
}

// notifies has a service tell of what waits, if somebody is to be told.
func (c *cli) notifies(v *api.Service, s *serving) (err error) {
	if len(s.hosts) > 0 {
		v.Link = "https://" + s.hosts[0] // the proxy that has TLS
	}
	v.Notify, err = c.notifier(&s.notify, v.Events)
	return err
}

// maxNotifyKey is how long the file of a key may be.
const maxNotifyKey = 4096

// notifier returns who tells of what waits; nil: nobody does.
func (c *cli) notifier(n *notifying, log *slog.Logger) (*notify.Notifier, error) {
	const hint = "head -c 32 /dev/urandom | base64 > FILE makes a key, with umask 077; then --notify URL --notify-key FILE"
	switch {
	case n.url == "" && n.key == "":
		return nil, nil
	case n.url == "" || n.key == "":
		return nil, usagef(hint, "--notify and --notify-key go together: what is posted is signed")
	}
	key, err := file.ReadSecret(c.path(n.key), maxNotifyKey)
	if err != nil {
		return nil, &fault{err: err, code: exitUsage, hint: hint}
	}
	made, err := notify.New(notify.Config{URL: n.url, Key: bytes.TrimSpace(key), Log: log})
	if err != nil {
		return nil, &fault{err: err, code: exitUsage, hint: hint}
	}
	return made, nil
}
