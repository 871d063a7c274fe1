// Package notify tells people outside of what newly waits for them in a world: it posts that to a URL,
// such as one of a chat or of a pager, signed, until it is taken. It is told once, also where the
// process ends meanwhile: what was told is noted beside the journal. Only where that cannot be noted
// any more after it was taken is it told again, and has the same id then. It is a part of worldctl,
// and not an API.
//
//	n, err := notify.New(notify.Config{URL: url, Key: key})
//	go n.Watch(ctx, world, "https://worlds.example/ui/#/town/inbox")
package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/worldkernel/worldkernel/show/view"
	"github.com/worldkernel/worldkernel/world/local"
)

// Config says who is told, and how.
type Config struct {
	URL string       // http or https. It is told to nobody: such URLs are secrets
	Key []byte       // of the signatures; MinKeyBytes at least
	Log *slog.Logger // of what was not taken; nil: nobody reads it

	Decide bool // each effect that waits for approval comes with a link, by which whoever has it decides about that

	Settle time.Duration // things that come so soon after each other are told together; 0: 2 s
	Retry  time.Duration // before what was not taken is posted again, the first time, half more or less; 0: 1 s
}

// MinKeyBytes is how long a key has to be at least.
const MinKeyBytes = 16

const (
	maxRetry  = 5 * time.Minute
	postLimit = 10 * time.Second // of a request
	maxAnswer = 64 << 10         // bytes of an answer that are read, so that the connection can be used again
)

// SignatureHeader has the time at which a message was signed, in seconds since 1970, and
// the HMAC-SHA256 of that, a dot and the body: "t=1700000000,v1=HEX".
const SignatureHeader = "Worldkernel-Signature"

// Notifier sends notifications of waiting decisions. It is safe for concurrent use.
type Notifier struct {
	cfg  Config
	host string // of the URL, for the log
	http *http.Client
}

// New returns a notifier.
func New(cfg Config) (*Notifier, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("notify: that is not a URL to post to: want https://HOST/PATH")
	}
	if len(cfg.Key) < MinKeyBytes {
		return nil, fmt.Errorf("notify: the key has %d bytes, want %d at least", len(cfg.Key), MinKeyBytes)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Settle <= 0 {
		cfg.Settle = 2 * time.Second
	}
	if cfg.Retry <= 0 {
		cfg.Retry = time.Second
	}
	return &Notifier{cfg: cfg, host: u.Host, http: &http.Client{
		Timeout: postLimit, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Watch tells of what waits in a world, until ctx or the world ends. link leads a person
// to it; decides begins links about one effect.
func (n *Notifier) Watch(ctx context.Context, w *local.World, link, decides string) {
	if !n.cfg.Decide {
		decides = ""
	}
	t := &notices{world: w, url: sha256.Sum256([]byte(n.cfg.URL))}
	if err := t.readTold(); err != nil {
		n.cfg.Log.Warn("what was notified is not known: all that waits is told", "world", t.id(), "error", err)
	}
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = n.cfg.Retry, maxRetry
	for {
		at := w.Head().ID
		if w.Await(ctx, at-1) != nil { // what is told is durable
			return
		}
		if err := n.tell(ctx, t, link, decides); err != nil {
			if ctx.Err() != nil {
				return
			}
			again := wait.NextBackOff()
			if refused := (*refusal)(nil); errors.As(err, &refused) {
				again = max(again, refused.after)
			}
			n.cfg.Log.Warn("a notification was not taken", "world", t.id(), "host", n.host, "error", err, "again", again)
			sleep(ctx, again)
			continue
		}
		wait.Reset()
		if w.Await(ctx, at) != nil {
			return
		}
		sleep(ctx, n.cfg.Settle)
	}
}

// tell posts what waits and was not told yet.
func (n *Notifier) tell(ctx context.Context, t *notices, link, decides string) error {
	waits := waiting(view.Journal{Local: t.world})
	m := t.message(waits, link)
	if m != nil {
		for i := range m.New {
			t.addLink(&m.New[i], decides)
		}
		body, err := view.Marshal(m)
		if err == nil {
			err = n.post(ctx, m.ID, body)
		}
		if err != nil {
			return err
		}
	}
	if err := t.noteTold(waits); err != nil {
		n.cfg.Log.Warn("it is not noted what was notified: it may be again", "world", t.id(), "error", err)
	}
	return nil
}

// refusal says that a message was not taken.
type refusal struct {
	status string
	after  time.Duration // to come again, as the answer says
}

func (r *refusal) Error() string { return "the answer was " + strconv.Quote(r.status) }

// post posts a message, once. The error does not name the URL.
func (n *Notifier) post(ctx context.Context, id string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the request cannot be made")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "worldkernel")
	req.Header.Set("Idempotency-Key", id)
	req.Header.Set(SignatureHeader, sign(n.cfg.Key, time.Now(), body))
	res, err := n.http.Do(req)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err // without the URL
	}
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // only read
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer)
	if res.StatusCode/100 == 2 {
		return nil
	}
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
	return &refusal{res.Status[:min(len(res.Status), 64)], min(time.Duration(max(seconds, 0))*time.Second, maxRetry)}
}

// sign returns the value of a SignatureHeader.
func sign(key []byte, at time.Time, body []byte) string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	return "t=" + stamp + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
