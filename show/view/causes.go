package view

import (
	"container/heap"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/show/columns"
)

// Causes yields a record and what caused it, up to an input.
func (j Journal) Causes(e *Entry) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for yield(e, nil) {
			cause, err := j.CauseOf(e)
			if err == nil && cause == 0 {
				return
			}
			if err == nil && cause >= e.ID {
				err = fmt.Errorf("record #%d says that #%d caused it, which comes later", e.ID, cause)
			}
			if err == nil {
				e, err = j.Entry(cause)
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// CauseOf returns the record that caused e; 0: e is an input. An answer is an input, but someone
// asked: its cause is the permit. A decision was asked for as well.
func (j Journal) CauseOf(e *Entry) (journal.Seq, error) {
	m := journal.MentionIn(&e.Record)
	switch {
	case len(m.Kind.Answers()) == 0:
		return e.CausedBy, nil
	case m.Key.IsZero():
		return 0, nil // it was redacted
	}
	if id, known := j.indexed(m); known {
		return id, nil
	}
	of, _ := j.LedgerEntry(receipt.Key{Hash: m.Key})
	if id := journal.Seq(of.Started); 0 < id && id < e.ID { // the last permit: most answers are to one
		if asked, err := j.asked(id, m); asked || err != nil {
			return id, err
		}
	}
	return j.searched(m, of.Intent.Cell)
}

// indexed returns what the index says asked for an answer. It is read on for that unless it
// is far behind: then it is being made.
func (j Journal) indexed(answer journal.Mention) (asked journal.Seq, known bool) {
	if !j.indexedTo(context.Background(), answer.Record) {
		return 0, false
	}
	return j.Index.AskedFor(answer)
}

// indexedTo reads the index on up to a record, and reports whether it reaches there.
func (j Journal) indexedTo(ctx context.Context, to journal.Seq) bool {
	if j.Index == nil || to > j.Index.End()+columns.MaxRecords {
		return false
	}
	return j.Index.Extend(ctx, to) == nil // else who searches finds out what is wrong
}

// searched returns the last record of a cell that asked for an answer.
func (j Journal) searched(answer journal.Mention, cell string) (journal.Seq, error) {
	var before []journal.Seq
	for id, err := range j.Local.CellRecords(cell, 0) {
		if err != nil {
			return 0, err
		}
		if id >= answer.Record {
			break
		}
		before = append(before, id)
	}
	for _, id := range slices.Backward(before) { // what was asked for is seldom far
		if asked, err := j.asked(id, answer); asked || err != nil {
			return id, err
		}
	}
	return 0, nil
}

// asked reports whether a record asked for an answer.
func (j Journal) asked(id journal.Seq, answer journal.Mention) (bool, error) {
	e, err := j.Entry(id)
	return err == nil && answer.AnswersTo(journal.MentionIn(&e.Record)), err
}

// Consequence is a record caused by another record.
type Consequence struct {
	*Entry
	Cause journal.Seq // what brought it about directly
}

// Consequences yields, in order, what a record brought about, up to so many
// links away; 0 is no bound. With an index that costs as much as there are of them. Else:
// such records stand right behind their causes, or concern a cell that those concern, so
// the indexes of these cells are read, each once, from the cause on; and all records, where
// that went to each cell of a reducer. The error is that of ctx, too.
func (j Journal) Consequences(ctx context.Context, of *Entry, links uint64) iter.Seq2[Consequence, error] {
	if j.indexedTo(ctx, j.End()) {
		return j.indexedConsequences(ctx, of, links)
	}
	return func(yield func(Consequence, error) bool) {
		s := spread{
			Journal: j, most: links,
			found: make(map[journal.Seq]uint64), mentions: make(map[journal.Hash][]journal.Mention), reads: make(map[string]bool),
		}
		defer s.stop()
		s.mention(of)
		err := s.add(of, 0)
		for err == nil && len(s.cursors) > 0 {
			if err = ctx.Err(); err != nil {
				break
			}
			var e *Entry
			if e, err = s.next(); err != nil {
				break
			}
			cause := s.causeOf(e)
			s.mention(e)
			away, ok := s.found[cause]
			if !ok {
				continue
			}
			if !yield(Consequence{e, cause}, nil) {
				return
			}
			err = s.add(e, away+1)
		}
		if err != nil {
			yield(Consequence{}, err)
		}
	}
}

// indexedConsequences is Consequences with an index that reaches to the end.
func (j Journal) indexedConsequences(ctx context.Context, of *Entry, links uint64) iter.Seq2[Consequence, error] {
	return func(yield func(Consequence, error) bool) {
		var waiting generations
		waiting.follow(j.Index, of.ID, 0, links)
		for len(waiting) > 0 {
			next := heap.Pop(&waiting).(generation) //nolint:forcetypeassert // there is nothing else in it
			e, err := j.Entry(next.id)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(Consequence{}, err)
				return
			}
			if !yield(Consequence{e, next.cause}, nil) {
				return
			}
			waiting.follow(j.Index, next.id, next.away, links)
		}
	}
}

// generation is a record that follows from another, so many links away from the first.
type generation struct {
	id, cause journal.Seq
	away      uint64
}

// generations are a heap: the first record on top.
type generations []generation

// follow adds what a record brought about directly, unless that is too far.
func (g *generations) follow(x *columns.Index, cause journal.Seq, away, links uint64) {
	if links != 0 && away == links {
		return
	}
	for _, id := range x.Caused(cause) {
		heap.Push(g, generation{id, cause, away + 1})
	}
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (g generations) Len() int           { return len(g) }
func (g generations) Less(i, j int) bool { return g[i].id < g[j].id }
func (g generations) Swap(i, j int)      { g[i], g[j] = g[j], g[i] }
func (g *generations) Push(x any)        { *g = append(*g, x.(generation)) } //nolint:forcetypeassert // see follow

func (g *generations) Pop() any {
	last := (*g)[len(*g)-1]
	*g = (*g)[:len(*g)-1]
	return last
}

// spread reads the indexes of several cells at once, in the order of the journal,
// and knows which of the records that it came by follow from the first.
type spread struct {
	Journal
	most     uint64
	found    map[journal.Seq]uint64 // whose consequences are wanted: links to the first record
	mentions map[journal.Hash][]journal.Mention
	reads    map[string]bool // cells
	cursors  []cursor
}

// cursor is a sequence of records, and where it has come to.
type cursor struct {
	at   *Entry
	next func() (*Entry, error, bool)
	stop func()
}

// add makes it read on where the consequences of a record that it found
// can be.
func (s *spread) add(e *Entry, away uint64) error {
	if s.most != 0 && away == s.most {
		return nil
	}
	s.found[e.ID] = away
	if err := s.readRecords(s.Following(e.ID, e.ID)); err != nil {
		return err
	}
	for _, cell := range s.Cells(e) {
		if s.reads[cell] {
			continue
		}
		s.reads[cell] = true
		records := s.Concerning(cell, e.ID)
		if strings.HasSuffix(cell, "/") { // each cell of a reducer: no index has whom it reached
			records = s.Scan(e.ID)
		}
		if err := s.readRecords(records); err != nil {
			return err
		}
	}
	return nil
}

func (s *spread) readRecords(records iter.Seq2[*Entry, error]) error {
	next, stop := iter.Pull2(records)
	e, err, ok := next()
	if !ok || err != nil {
		stop()
		return err
	}
	s.cursors = append(s.cursors, cursor{e, next, stop})
	return nil
}

// next returns the first record that a cursor has come to, and moves the cursors
// on.
func (s *spread) next() (*Entry, error) {
	first := slices.MinFunc(s.cursors, func(a, b cursor) int { return int(a.at.ID) - int(b.at.ID) }).at
	for i := len(s.cursors) - 1; i >= 0; i-- {
		c := &s.cursors[i]
		if c.at.ID != first.ID {
			continue
		}
		e, err, ok := c.next()
		if err != nil {
			return nil, err
		}
		if c.at = e; !ok {
			c.stop()
			s.cursors = slices.Delete(s.cursors, i, i+1)
		}
	}
	return first, nil
}

func (s *spread) stop() {
	for _, c := range s.cursors {
		c.stop()
	}
}

func (s *spread) mention(e *Entry) {
	if m := journal.MentionIn(&e.Record); m.Key != (journal.Hash{}) {
		s.mentions[m.Key] = append(s.mentions[m.Key], m)
	}
}

// causeOf is Journal.CauseOf without a search; 0 also where the cause is none of
// what it came by, and so does not follow from the first.
func (s *spread) causeOf(e *Entry) journal.Seq {
	m := journal.MentionIn(&e.Record)
	if len(m.Kind.Answers()) == 0 {
		return e.CausedBy
	}
	for _, asked := range slices.Backward(s.mentions[m.Key]) {
		if m.AnswersTo(asked) {
			return asked.Record
		}
	}
	return 0
}
