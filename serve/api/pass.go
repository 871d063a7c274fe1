package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// passedHeader is in a request that another process has passed on: that is done once.
	passedHeader = "Worldkernel-Passed"
	// movingHeader is in the answer to one of which nothing has come, and that is passed on anew.
	movingHeader = "Worldkernel-Moving"
	// ownerLook is how often it is looked, while its answer is awaited, whether a process is the owner still.
	ownerLook = 2 * time.Second
	// relayBytes is how much of an answer is in memory.
	relayBytes = 32 << 10
)

// newBetween returns what carries requests from one process to another.
func newBetween(l *Limits) *http.Transport {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: l.Wait}).DialContext,
		MaxIdleConnsPerHost: l.Requests.All, IdleConnTimeout: l.Idle / 2, // before the other side ends it
		ExpectContinueTimeout: time.Second, DisableCompression: true,
	}
}

// pass has the process at a URL answer the call. Where nothing has come of it and it can be asked
// again, again says so, and err is what is told if it is not.
//
// How much a caller may have at once is up to the owner of the world, with whom all of it arrives:
// here a call that is passed on takes a connection, and neither a slot nor a turn.
func (c *call) pass(id, owner string) (again bool, err error) {
	to, err := url.Parse(owner)
	if err != nil || to.Host == "" {
		return true, busy("moving", "the process that serves the world has no address that this one can use")
	}
	c.passed = to.Host
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.Context()))
	defer cancel()
	left := context.AfterFunc(c.Context(), cancel)
	defer left()
	late := time.AfterFunc(c.bound()+c.server.cfg.Limits.Flush, cancel)
	defer late.Stop()
	go c.missOwner(ctx, cancel, id, owner)
	body := &sentBody{call: c, ReadCloser: c.Body, left: left}
	res, err := c.server.between.RoundTrip(c.passedOn(ctx, to, body))
	body.endReading()
	if err != nil {
		return c.unanswered(body, err)
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	if res.Header.Get(movingHeader) != "" && !body.begun.Load() {
		return true, errMoving()
	}
	if res.Header.Get("Content-Type") == streamType {
		late.Stop()
		c.listen(time.Time{})
		defer context.AfterFunc(c.server.life, cancel)()
	}
	return false, c.relay(res, body)
}

// missOwner ends a call whose owner is the owner no more before it has answered: it may be stopped,
// or cut off.
func (c *call) missOwner(ctx context.Context, cancel func(), id, owner string) {
	tick := time.NewTicker(ownerLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if now, err := c.server.cfg.Stores.Owner(ctx, id); err == nil && now != owner {
				cancel()
				return
			}
		}
	}
}

// passedHeaders are those of a request that are sent on: what the API reads, but for Origin, which was judged here.
func passedHeaders() []string {
	return []string{"Accept", "Accept-Encoding", "Authorization", "Content-Type", submitKeyHeader, "Last-Event-Id"}
}

// relayedHeaders are those of an answer that are sent on: what the API says of one. All else is this process' own.
func relayedHeaders() []string {
	return []string{
		"Allow", "Cache-Control", "Content-Encoding", "Content-Length", "Content-Type", "Etag", "Location", "Retry-After", "Vary", "Www-Authenticate",
	}
}

// copyHeaders copies what is named.
func copyHeaders(to, from http.Header, names []string) {
	for _, name := range names {
		if values := from.Values(name); len(values) > 0 {
			to[http.CanonicalHeaderKey(name)] = values
		}
	}
}

// passedOn is the request for the process at a URL: the same, with the same token, which it judges.
func (c *call) passedOn(ctx context.Context, to *url.URL, body *sentBody) *http.Request {
	r := c.Clone(ctx)
	r.URL.Scheme, r.URL.Host, r.Host, r.RequestURI, r.Close = to.Scheme, to.Host, "", "", false
	r.Header, r.Trailer = http.Header{}, nil
	copyHeaders(r.Header, c.Header, passedHeaders())
	r.Header.Set(passedHeader, "1")
	r.Body = http.NoBody
	if c.ContentLength != 0 {
		r.Body = body
		r.Header.Set("Expect", "100-continue") // who does not serve the world any more says so before the body is read
	}
	return r
}

// unanswered tells what may have come of a call without an answer.
func (c *call) unanswered(body *sentBody, err error) (again bool, _ error) {
	var net *net.OpError
	unsent := errors.As(err, &net) && net.Op == "dial" || c.ContentLength != 0 && !body.begun.Load()
	switch {
	case body.failed != nil:
		return false, unread(body.failed)
	case body.callerLeft():
		return false, errGone
	case unsent, c.Method == http.MethodGet:
		return true, busy("moving", "the process that serves the world does not answer")
	}
	return false, busy("unanswered", "the process that serves the world was lost before it answered, and may have done what was asked: events with an Idempotency-Key can be submitted again")
}

// relay sends on what the owner answers, as it comes.
func (c *call) relay(res *http.Response, body *sentBody) error {
	copyHeaders(c.out.Header(), res.Header, relayedHeaders())
	c.deadline(c.server.cfg.Limits.Flush)
	c.out.WriteHeader(res.StatusCode)
	control := http.NewResponseController(c.out)
	stream := res.Header.Get("Content-Type") == streamType
	for buf := make([]byte, relayBytes); ; {
		n, err := res.Body.Read(buf)
		c.deadline(c.server.cfg.Limits.Flush)
		if _, failed := c.out.Write(buf[:n]); failed != nil {
			return errGone
		}
		if stream && control.Flush() != nil {
			return errGone
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil && body.callerLeft():
			return errGone
		case err != nil && !stream:
			c.deadline(0) // what is cut off must not look whole
			return err
		case err != nil:
			return errMoving() // who follows has what was sent, and asks for what comes after it
		}
	}
}

// sentBody is a body that is sent on.
type sentBody struct {
	io.ReadCloser

	call  *call
	left  func() bool // has the call go on whether or not the caller listens
	begun atomic.Bool

	mu     sync.Mutex // held while it is read
	ended  bool
	early  bool  // the answer came before all of it: the caller's context says nothing any more
	failed error // but for its end
}

// Read implements io.Reader.
func (b *sentBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return 0, http.ErrBodyReadAfterClose
	}
	b.begun.Store(true)
	n, err := b.ReadCloser.Read(p)
	if err != io.EOF {
		b.failed = err
	}
	return n, err
}

// Close implements io.Closer: the body is still there for the next process that is asked.
func (b *sentBody) Close() error { return nil }

// callerLeft reports, after end, whether the caller is there no more.
func (b *sentBody) callerLeft() bool { return !b.early && b.call.Context().Err() != nil }

// endReading has nothing read from the body any more. Where the answer came before all of it, the caller
// is listened to no more: net/http takes it for gone then, and with it all that would come on its
// connection.
func (b *sentBody) endReading() {
	if !b.mu.TryLock() {
		b.early = b.left()
		b.call.out.Header().Set("Connection", "close")
		b.call.listen(now())
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	b.ended = true
}
