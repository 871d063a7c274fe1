package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/world/local"
)

// MaxCopyRecords is how many records a world has at most that a Copy is made of.
const MaxCopyRecords = 50_000

// ErrLargeCopy says that a world has more records than MaxCopyRecords.
var ErrLargeCopy = fmt.Errorf("api: a copy of a world has at most %d records", MaxCopyRecords)

// Copy holds a world for a page that works without a server: the answers of this API to a token that can only
// read, by the path of the request, and the verdict of verification. If the journal has redacted payloads, it has no cells
// from the first record on that cannot be computed again, as a bundle has none.
//
// It is not for concurrent use.
type Copy struct {
	server *Server
	world  *hosted
	secret string

	Verified Verification // of the world, with the receipts' keys where it has them
}

// NewCopy verifies a world, which has to stand still, and returns what can be copied of
// it. Close ends it. The error is ErrLargeCopy, or why the world cannot be read.
func NewCopy(ctx context.Context, lw *local.World) (*Copy, error) {
	if lw.Head().ID > MaxCopyRecords {
		return nil, ErrLargeCopy
	}
	secret, hash := NewToken()
	tokens, err := ParseTokens(fmt.Appendf(nil, "copy %s %s *", ScopeRead, hash))
	if err != nil {
		return nil, err
	}
	s, err := New(Config{Worlds: []*local.World{lw}, Tokens: tokens, Limits: Limits{Page: MaxCopyRecords, PageBytes: math.MaxInt}})
	if err != nil {
		return nil, err
	}
	c := &Copy{server: s, world: s.worlds.get(lw.Status().ID), secret: secret}
	text, err := c.askAPI(ctx, c.path("/verify"))
	if err == nil {
		err = json.Unmarshal(text, &c.Verified)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return c, nil
}

// Close closes the copy. The world is its owner's.
func (c *Copy) Close() error { return c.server.Close() }

// World returns the id of the world.
func (c *Copy) World() string { return c.world.id }

// Whole returns the last record whose cells can be computed from the journal alone: after
// it there is a payload that was redacted.
func (c *Copy) Whole() journal.Seq {
	last := c.world.End()
	for _, gap := range c.Verified.Replay.Gaps {
		last = min(last, gap.From-1)
	}
	return last
}

// Each hands over all answers by the paths that are asked for them, in an order that is
// always the same: lists whole, records without their stored bytes, and below /cell how a
// cell stood whenever that changed, in the form of cellMoment.
func (c *Copy) Each(ctx context.Context, add func(path string, answer []byte) error) error {
	lists, err := c.lists(ctx, add)
	if err != nil {
		return err
	}
	if err := c.items(ctx, lists, add); err != nil {
		return err
	}
	cells, err := c.records(ctx, add)
	if err != nil {
		return err
	}
	if err := c.columns(ctx, add); err != nil {
		return err
	}
	return c.cells(ctx, cells, add)
}

// listed is what has a path of its own of the items of lists.
type listed struct {
	Intents []struct {
		Key string `json:"key"`
	} `json:"intents"`
	Proposals []struct {
		Proposal string `json:"proposal"`
	} `json:"proposals"`
}

// lists adds what is asked for by a path alone: of lists all items, which are a page here.
func (c *Copy) lists(ctx context.Context, add func(string, []byte) error) (found listed, err error) {
	of := c.path("")
	for _, path := range []string{"/api/worlds", of, of + "/manifest", of + "/verify", of + "/series?buckets=200"} {
		if _, err := c.addAnswer(ctx, path, path, add); err != nil {
			return found, err
		}
	}
	for _, path := range []string{
		"/api/inbox?", of + "/cells?", of + "/intents?", of + "/receipts?", of + "/budgets?", of + "/decisions?", of + "/checkpoints?", of + "/snapshots?",
		of + "/proposals?all=true&",
	} {
		answer, err := c.addAnswer(ctx, path[:len(path)-1], path+"limit="+strconv.Itoa(MaxCopyRecords), add)
		if err == nil {
			err = json.Unmarshal(answer, &found)
		}
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// addAnswer adds under a path what is answered to another.
func (c *Copy) addAnswer(ctx context.Context, path, asked string, add func(string, []byte) error) ([]byte, error) {
	answer, err := c.askAPI(ctx, asked)
	if err == nil {
		err = add(path, answer)
	}
	return answer, err
}

// items adds each intent, each proposal, and the schemas of events.
func (c *Copy) items(ctx context.Context, lists listed, add func(string, []byte) error) error {
	paths, err := c.schemas(ctx)
	if err != nil {
		return err
	}
	for _, x := range lists.Intents {
		paths = append(paths, c.path("/intents/"+x.Key))
	}
	for _, x := range lists.Proposals {
		paths = append(paths, c.path("/proposals/"+x.Proposal))
	}
	for _, path := range paths {
		if _, err := c.addAnswer(ctx, path, path, add); err != nil {
			return err
		}
	}
	return nil
}

// schemas returns the paths of the schemas that events have: how they are shown is in them.
func (c *Copy) schemas(ctx context.Context) (paths []string, err error) {
	text, err := c.askAPI(ctx, c.path("/manifest"))
	if err != nil {
		return nil, err
	}
	var is struct {
		Manifest struct {
			Events map[string]struct{ Schema string }
		}
	}
	if err := json.Unmarshal(text, &is); err != nil {
		return nil, err
	}
	for _, event := range is.Manifest.Events { // order cannot show: sorted below
		if event.Schema != "" {
			paths = append(paths, c.path("/contents/"+event.Schema))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// records adds each record, and returns which of them name a cell: one that is gone, too.
func (c *Copy) records(ctx context.Context, add func(string, []byte) error) (cells map[string][]journal.Seq, err error) {
	cells = make(map[string][]journal.Seq)
	for next := c.path("/records?raw=false&limit=1000"); next != ""; {
		text, err := c.askAPI(ctx, next)
		if err != nil {
			return nil, err
		}
		var page struct {
			Records []json.RawMessage `json:"records"`
			Next    string            `json:"next"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return nil, err
		}
		for _, r := range page.Records {
			var is struct {
				ID    journal.Seq `json:"id"`
				Cells []string    `json:"cells"`
			}
			if err := json.Unmarshal(r, &is); err != nil {
				return nil, err
			}
			for _, name := range is.Cells {
				cells[name] = append(cells[name], is.ID)
			}
			if err := add(c.path("/records/"+strconv.FormatUint(uint64(is.ID), 10)), r); err != nil {
				return nil, err
			}
		}
		next = page.Next
	}
	return cells, nil
}

// columns adds the pages of the journal as columns, the empty one behind the last, too.
func (c *Copy) columns(ctx context.Context, add func(string, []byte) error) error {
	for after, end := journal.Seq(0), c.world.End(); ; {
		page, last, err := c.world.page(ctx, after, false)
		if err != nil {
			return err
		}
		text, err := json.Marshal(page)
		if err == nil {
			err = add(c.path("/columns?after="+strconv.FormatUint(uint64(after), 10)), text)
		}
		if err != nil || after >= end {
			return err
		}
		after = last
	}
}

// path returns the path of something of the world.
func (c *Copy) path(of string) string { return "/api/worlds/" + url.PathEscape(c.world.id) + of }

// askAPI returns what the API answers.
func (c *Copy) askAPI(ctx context.Context, path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.RemoteAddr = "127.0.0.1:0"
	r.Header.Set("Authorization", "Bearer "+c.secret)
	to := new(heard)
	c.server.Handler().ServeHTTP(to, r)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if to.status != http.StatusOK {
		var p Problem
		_ = json.Unmarshal(to.body.Bytes(), &p) // what is no problem has no words
		return nil, fmt.Errorf("api: %s: %d %s", path, to.status, cmp.Or(p.Detail, p.Title))
	}
	return bytes.TrimSpace(to.body.Bytes()), nil
}
