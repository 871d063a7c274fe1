package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/worldkernel/worldkernel/serve/api"
)

// Bounds of requests.
const (
	maxAnswer   = 1 << 20                // bytes, but for the following
	maxOffers   = 256 << 20              // likewise, of an answer with offers, which may have large params
	maxManifest = 64 << 20               // likewise
	maxContents = 64 << 20               // likewise, of all that effects under one manifest need
	firstWait   = 100 * time.Millisecond // before a request is made again
	maxWait     = 5 * time.Second        // likewise, after many failures
	callLimit   = 30 * time.Second       // of a request, but for the wait that it asks for
	pollWait    = 2 * time.Second        // of a request for attempts: whoever stops the worker waits for it
)

// errElsewhere says that a request would go where the token must not.
var errElsewhere = errors.New("the server sends requests elsewhere")

// client speaks to a server. It is safe for concurrent use.
type client struct {
	base  string // without a slash at its end
	token string
	http  *http.Client
}

func newClient(cfg *Config) (*client, error) {
	u, err := url.Parse(cfg.Server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("worker: %q is not the URL of a server: want http://HOST:PORT or https://HOST:PORT", cfg.Server)
	}
	if cfg.Token == "" {
		return nil, errors.New("worker: a token is needed")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one, by its documentation
	transport.MaxIdleConnsPerHost = cfg.Workers
	return &client{
		base: strings.TrimSuffix(cfg.Server, "/"), token: cfg.Token,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return errElsewhere }},
	}, nil
}

// refusedError is a server's answer to a request that failed.
type refusedError struct {
	status int
	name   string // of the problem
	detail string
}

func (e *refusedError) Error() string { return fmt.Sprintf("%d: %s", e.status, e.detail) }

// Is reports whether target is ErrRefused.
func (e *refusedError) Is(target error) bool { return target == ErrRefused }

// transient reports whether the same request may be answered otherwise later.
func (e *refusedError) transient() bool {
	switch e.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests:
		return true
	}
	return e.status >= http.StatusInternalServerError
}

// refusal returns what the server has said, nil where the error is another.
func refusal(err error) *refusedError {
	e, _ := errors.AsType[*refusedError](err)
	return e
}

// errTooLarge says that an answer has more bytes than it may.
var errTooLarge = errors.New("the answer is too large")

// get reads an answer in JSON, or its bytes where out is a *[]byte, of so many bytes at
// most.
func (c *client) get(ctx context.Context, path string, most int, out any) error {
	return c.call(ctx, http.MethodGet, path, nil, func(body io.Reader) error { return readAnswer(body, most, out) })
}

func (c *client) post(ctx context.Context, path string, in, out any) error {
	return c.postAndRead(ctx, path, in, func(body io.Reader) error { return readAnswer(body, maxAnswer, out) })
}

// postAndRead is post for an answer that take reads.
func (c *client) postAndRead(ctx context.Context, path string, in any, take func(io.Reader) error) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, path, body, take)
}

// readAnswer reads an answer of so many bytes at most; see get.
func readAnswer(body io.Reader, most int, out any) error {
	data, err := io.ReadAll(io.LimitReader(body, int64(most)+1))
	switch {
	case err != nil:
		return err
	case len(data) > most:
		return fmt.Errorf("%w: more than %d bytes", errTooLarge, most)
	}
	if raw, ok := out.(*[]byte); ok {
		*raw = data
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("the answer is not what it has to be: %w", err)
	}
	return nil
}

func (c *client) call(ctx context.Context, method, path string, body []byte, take func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	if res.StatusCode < http.StatusMultipleChoices {
		return take(res.Body)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return err
	}
	return refused(res, data)
}

func refused(res *http.Response, data []byte) error {
	e := &refusedError{status: res.StatusCode, detail: res.Status}
	var p api.Problem
	media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err == nil && media == "application/problem+json" && json.Unmarshal(data, &p) == nil {
		e.name, e.detail = p.Type[strings.LastIndexByte(p.Type, ':')+1:], p.Detail
	} else if e.status < http.StatusInternalServerError {
		e.status = http.StatusBadGateway // it is something before the server that speaks
	}
	return e
}

// persist asks until there is an answer, the server refuses for good, or ctx ends.
// note is told of each failure that is not the last.
func persist(ctx context.Context, note func(err error, wait time.Duration), ask func(context.Context) error) error {
	waits := backoff.NewExponentialBackOff()
	waits.InitialInterval, waits.MaxInterval = firstWait, maxWait
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		limited, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		err := ask(limited)
		said := refusal(err)
		if said != nil && !said.transient() || errors.Is(err, errTooLarge) || errors.Is(err, errTooMany) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(waits), backoff.WithMaxElapsedTime(0), backoff.WithNotify(note))
	return err
}

// noteIn returns what logs that a server does not answer.
func noteIn(log *slog.Logger, what string) func(error, time.Duration) {
	return func(err error, wait time.Duration) {
		log.Warn("the server does not answer", "about", what, "error", err, "again_in", wait)
	}
}

// worlds returns the worlds to work for.
func (c *client) worlds(ctx context.Context, named []string, log *slog.Logger) ([]string, error) {
	if len(named) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(named))), nil
	}
	var ids []string
	for path := "/api/worlds"; path != ""; {
		var list api.Worlds
		err := persist(ctx, noteIn(log, "worlds"), func(ctx context.Context) error { return c.get(ctx, path, maxAnswer, &list) })
		if err != nil {
			return nil, fmt.Errorf("worker: list of worlds: %w", err)
		}
		for i := range list.Worlds {
			ids = append(ids, list.Worlds[i].ID)
		}
		if path = ""; list.Next != nil {
			path = *list.Next
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: it lists no world for the token", ErrRefused)
	}
	return ids, nil
}

// ofWorld returns a path of a world.
func ofWorld(id, rest string) string { return "/api/worlds/" + url.PathEscape(id) + rest }
