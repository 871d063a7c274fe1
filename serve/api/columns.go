package api

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/show/columns"
	"github.com/worldkernel/worldkernel/show/view"
)

// index reads the columns of the journal until ctx ends: all there is, and from then on
// a page at a time. Whoever asks for the newest ones has them read.
func (h *hosted) index(ctx context.Context) {
	err := ctx.Err()
	for err == nil {
		for end := h.End(); err == nil && h.Index.End() < end; {
			err = h.Index.Extend(ctx, min(end, h.Index.End()+columns.MaxRecords)) // others come in between
		}
		if err == nil {
			err = h.Local.Await(ctx, h.Index.End()+columns.MaxRecords-1)
		}
	}
}

// page returns a page of what comes after a record, and its last record.
func (h *hosted) page(ctx context.Context, after journal.Seq, zipped bool) ([]byte, journal.Seq, error) {
	if err := h.Index.Extend(ctx, min(h.End(), after+columns.MaxRecords)); err != nil {
		return nil, 0, err
	}
	return h.Index.Page(after, zipped)
}

// showColumns answers with a page of the journal as columns, or to who asks for that with
// a stream of such pages.
func showColumns(c *call) error {
	after := journal.Seq(min(c.number("after"), uint64(c.world.Local.Head().ID)))
	if c.follows() {
		return c.stream(after, sendColumns)
	}
	zipped := c.takesGzip()
	page, _, err := c.world.page(c.Context(), after, zipped)
	if err != nil {
		return err
	}
	c.out.Header().Set("Vary", "Accept-Encoding")
	if zipped {
		c.out.Header().Set("Content-Encoding", "gzip")
	}
	return c.send(http.StatusOK, binaryType, page)
}

// takesGzip reports whether the caller takes an answer in gzip.
func (c *call) takesGzip() bool {
	for part := range strings.SplitSeq(strings.Join(c.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			q, err := strconv.ParseFloat(strings.TrimPrefix(weight, "q="), 64)
			return err != nil || q > 0
		}
	}
	return false
}

// columnsPause is how long a follower of columns is sent nothing more: what happens
// meanwhile is one page, which costs far less than each record by itself.
const columnsPause = 50 * time.Millisecond

// sendColumns sends a follower the pages that there are.
func sendColumns(ctx context.Context, s *stream) (over bool, err error) {
	for end := s.world.End(); s.at < end; {
		if !s.server.keeps(s.call) {
			return false, errRevoked
		}
		page, last, err := s.world.page(ctx, s.at, false)
		if err != nil {
			return false, err
		}
		if _, err := fmt.Fprintf(s.out, "id: %d\nevent: columns\ndata: %s\n\n", last, base64.StdEncoding.EncodeToString(page)); err != nil {
			return false, err
		}
		s.at = last
	}
	if err := s.flush(); err != nil {
		return false, err
	}
	select {
	case <-time.After(columnsPause):
	case <-ctx.Done():
	}
	return false, ctx.Err()
}

// Density is how many records of what a journal has, from its beginning to its end.
type Density struct {
	Schema  string           `json:"schema"`
	Buckets []columns.Bucket `json:"buckets"`
}

// buckets returns how many a caller asks for; usual: who names no number.
func (c *call) buckets(usual, most uint64) (uint64, error) {
	n := c.number("buckets")
	switch {
	case c.param("buckets") == "":
		return usual, nil
	case n == 0 || n > most:
		return 0, badRequest("buckets", "it has to be from 1 to "+strconv.FormatUint(most, 10))
	}
	return n, nil
}

func showDensity(c *call) error {
	n, err := c.buckets(1000, 10_000)
	if err != nil {
		return err
	}
	if err := c.world.Index.Extend(c.Context(), c.world.End()); err != nil {
		return err
	}
	return c.ok(Density{view.SchemaOf("density"), c.world.Index.Density(int(n))})
}
