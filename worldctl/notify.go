package worldctl

import (
	"bytes"
	"log/slog"
	"net/url"
	"strings"

	"github.com/spf13/pflag"

	"github.com/worldkernel/worldkernel/internal/file"
	"github.com/worldkernel/worldkernel/serve/api"
	"github.com/worldkernel/worldkernel/serve/notify"
)

// notifying says who is told of what waits for a person, as typed.
type notifying struct {
	url  string // empty: nobody, but for that in the file
	file string // of the URL
	key  string // a file

	decide bool // see notify.Config
}

func (n *notifying) add(f *pflag.FlagSet) {
	f.StringVar(&n.url, "notify", "", "post to this `URL`, which others on this machine can read, what newly waits for a person")
	f.StringVar(&n.file, "notify-file", "", "likewise, to the URL in this `FILE`, which is yours alone")
	f.BoolVar(&n.decide, "notify-decide", false, "post a link with each effect that waits for approval, by which whoever reads it decides about that effect")
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

// maxNotifyKey is how long the file of a key, or of a URL, may be.
const maxNotifyKey = 4096

// notifier returns who tells of what waits; nil: nobody does.
func (c *cli) notifier(n *notifying, log *slog.Logger) (*notify.Notifier, error) {
	const hint = "head -c 32 /dev/urandom | base64 > FILE makes a key, with umask 077; then --notify-file FILE --notify-key FILE"
	switch {
	case *n == notifying{}:
		return nil, nil
	case n.url == "" && n.file == "", n.key == "":
		return nil, usagef(hint, "--notify, or --notify-file, and --notify-key go together: what is posted is signed")
	}
	to, err := c.notifyURL(n)
	if err != nil {
		return nil, err
	}
	key, err := file.ReadSecret(c.path(n.key), maxNotifyKey)
	if err != nil {
		return nil, &fault{err: err, code: exitUsage, hint: hint}
	}
	made, err := notify.New(notify.Config{URL: to, Key: bytes.TrimSpace(key), Log: log, Decide: n.decide})
	if err != nil {
		return nil, &fault{err: err, code: exitUsage, hint: hint}
	}
	return made, nil
}

// notifyURL returns where what waits is posted, as typed or from the file. No error has it:
// such URLs are secrets.
func (c *cli) notifyURL(n *notifying) (string, error) {
	const hint = "write the URL to a FILE that is yours alone, with umask 077, and type --notify-file FILE"
	if n.file == "" {
		if u, err := url.Parse(n.url); err == nil && u.User != nil {
			return "", usagef(hint, "--notify has a password, which others on this machine could read")
		}
		return n.url, nil
	}
	if n.url != "" {
		return "", usagef(hint, "--notify and --notify-file do not go together")
	}
	text, err := file.ReadSecret(c.path(n.file), maxNotifyKey)
	if err != nil {
		return "", &fault{err: err, code: exitUsage, hint: hint}
	}
	to := strings.TrimSpace(string(text))
	if to == "" {
		return "", usagef(hint, "--notify-file %s is empty", n.file)
	}
	return to, nil
}
