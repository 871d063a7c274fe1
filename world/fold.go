package world

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/reducer"
)

// folding is a fold under way.
type folding struct {
	*kernel

	h       journal.History
	cfg     ReplayConfig
	base    *journal.Image  // the image that it began with; nil: it began with record 1, or the image was put aside
	images  *journal.Images // of the snapshots passed so far, for rollbacks; nil: none yet, or they were put aside
	left    journal.Seq     // head of the last image given to leave; 0: none yet
	weighed uint64          // volume below which spill need not weigh the kernel
}

// fold applies the inputs after a head and compares all records. The kernel's output is compared and dropped.
func (k *folding) fold(from journal.Head) error {
	h, cfg := k.h, k.cfg
	k.replaying, k.late = true, true
	defer func() {
		k.root()
		k.replaying, k.late = false, false
	}()
	compared := 0 // number of k.records compared so far
	for s, err := range scan(h, from) {
		if err != nil {
			return err
		}
		if cfg.To != 0 && s.ID > cfg.To && compared == len(k.records) {
			break
		}
		if compared == len(k.records) {
			if cfg.stops != nil {
				if err := cfg.stops.stop(k.kernel, s.ID); err != nil {
					return err
				}
			}
			k.forget()
			compared = 0
			if err := k.unit(s); err != nil {
				return err
			}
		}
		if got := &k.records[compared]; got.ID != s.ID || !bytes.Equal(got.Bytes, s.Bytes) {
			return diverged(h, s, got.Bytes, nil)
		}
		if root := k.rootOf(compared, s.Root); [journal.LinkBytes]byte(root[:journal.LinkBytes]) != s.Link {
			return fmt.Errorf("world: record #%d: the chain root that was stored with it is another", s.ID)
		}
		compared++
		if cfg.Visit != nil {
			if err := cfg.Visit(s); err != nil {
				return err
			}
		}
	}
	if compared < len(k.records) {
		missing := k.records[compared]
		return &Divergence{Record: missing.ID, Journal: "nothing", Computed: describe(h, missing.Bytes)}
	}
	k.takeReady(ready{})
	return k.deliverRecalled(h)
}

// unit has the kernel write the unit of records that begins with s. All records before were compared.
func (k *folding) unit(s journal.Scanned) error {
	err := k.leaveImage()
	if err == nil {
		err = k.spill()
	}
	if err == nil {
		err = k.follow(s)
	}
	if k.over() {
		return k.rules.guard.ended()
	}
	return err
}

// scan yields the records after a head, with their roots if the history computes them.
func scan(h journal.History, from journal.Head) iter.Seq2[journal.Scanned, error] {
	if c, ok := h.(journal.Chainer); ok {
		return c.ScanChain(from)
	}
	return h.Scan(from.ID)
}

// follow has the kernel write the unit of records that begins with s: it applies s if that is an input, else it does
// the kernel's next unit.
func (k *folding) follow(s journal.Scanned) error {
	h := k.h
	if s.Err != nil {
		return s.Err
	}
	if err := k.deliverRecalled(h); err != nil {
		return err
	}
	rec := s.Record
	if !rec.Kind.Input() {
		if k.lacksNext() {
			return k.rules.lacks
		}
		if !k.next() && !k.over() {
			return diverged(h, s, nil, errors.New("nothing: the tick has nothing more to do"))
		}
		return nil
	}
	if !rec.Blob.IsZero() {
		if err := rec.Load(h); err != nil {
			return err
		}
		if err := canon.Valid(rec.Payload); err != nil {
			return fmt.Errorf("world: record #%d: payload of %s: %w", s.ID, rec.Kind, err)
		}
	}
	if err := k.apply(&rec); errors.Is(err, journal.ErrNotFound) || isMissing(err) { // without the payload no difference can be told
		return fmt.Errorf("world: record #%d: %w", s.ID, err)
	} else if err != nil {
		return diverged(h, s, nil, err)
	}
	if len(k.records) == 0 {
		return diverged(h, s, nil, errors.New("nothing"))
	}
	return nil
}

// apply gives a recorded input to the kernel. The frequent kinds are read
// straight from the payload, which is known to be canonical.
func (k *folding) apply(rec *journal.Record) error {
	switch rec.Kind {
	case journal.KindFinished, journal.KindLate, journal.KindExpired, journal.KindDue, journal.KindConfirmed: // they come at barriers
	default:
		if k.tickOpen() {
			return errTickOpen
		}
	}
	r := canon.NewReader(rec.Payload)
	switch rec.Kind {
	case journal.KindSubmitted:
		return k.applySubmitted(r, true)
	case journal.KindFinished, journal.KindLate: // the ledger says which of the two it is
		r.ArrayOf(2)
		r.Uint() // the version
		data := r.Raw()
		if err := r.Close(); err != nil {
			return err
		}
		_, err := k.receive(data)
		return err
	default:
		return k.applyBody(rec)
	}
}

func (k *folding) applyBody(rec *journal.Record) error {
	body, err := rec.Body()
	if err != nil {
		return err
	}
	switch b := body.(type) {
	case *journal.Created:
		if rec.ID != 1 {
			return fmt.Errorf("%s is only ever record #1", journal.KindCreated)
		}
		k.create(*b)
		return nil
	case *journal.Advanced:
		return k.advance(b.To, b.Still)
	case *journal.Resumed:
		cell, err := reducer.ParseCell(b.Cell)
		if err != nil {
			return err
		}
		return k.resume(cell, *b)
	case *journal.OperatorEffect:
		_, err := k.submitEffect(*b)
		return err
	case *journal.Expired:
		return k.expire(b.Key, b.Attempt, b.Reason)
	case *journal.Due:
		return k.due(b.Key, b.Attempt)
	case *journal.Resolved:
		return k.resolve(*b)
	case *journal.Confirmed:
		return k.confirm(*b)
	case *journal.KeysRotated:
		return k.rotated(*b)
	}
	return k.applyHistory(rec.Kind, body)
}

// applyHistory gives the kernel an input about the whole world.
func (k *folding) applyHistory(kind journal.Kind, body journal.Body) error {
	switch b := body.(type) {
	case *journal.SnapshotCreated:
		return k.pass(*b)
	case *journal.SnapshotPinned:
		return k.pin(*b)
	case *journal.SnapshotPruned:
		return k.prune(*b)
	case *journal.SnapshotRetention:
		_, err := k.retain(*b)
		return err
	case *journal.RolledBack:
		p, err := k.readPast(k.h, b, k.part)
		if err != nil {
			return err
		}
		_, err = k.rollback(*b, p)
		return err
	case *journal.Forked:
		next, err := k.rulesOf(b.Manifest)
		if err != nil && !isMissing(err) {
			return err
		}
		if err := k.fork(*b, next); err != nil {
			return err
		}
		return k.keepImage()
	case *journal.Redacted:
		return k.redacted(*b)
	}
	return k.followChange(kind, body)
}

// part is History.Part for a rollback in a fold. It looks first in the images that the fold has made. If the initial
// image holds only some cells, the rest are read from the image store.
func (k *folding) part(at journal.Seq, cells []string) (*journal.Image, error) {
	if k.store.spill != nil {
		part, err := k.store.spill.Part(at, cells)
		switch {
		case errors.Is(err, journal.ErrNotFound):
			return k.h.Part(at, cells)
		case err != nil:
			k.store.fail(err)
		}
		return part, err
	}
	if k.images == nil {
		return k.h.Part(at, cells)
	}
	part, err := k.images.Part(at, cells)
	if err != nil {
		return k.h.Part(at, cells)
	}
	if k.store.images == nil || k.base == nil {
		return part, nil
	}
	for _, name := range cells {
		if versionIn(part, name) != nil {
			continue
		}
		v, err := k.store.images.CellVersion(name, k.base.Head.ID)
		if err != nil {
			return nil, err
		}
		if v != nil {
			part.Cells = append(part.Cells, *v)
		}
	}
	return part, nil
}

// pass keeps the image of a snapshot that the fold passes, because a later rollback may return to it.
func (k *folding) pass(b journal.SnapshotCreated) error {
	if err := k.snapshot(b); err != nil {
		return err
	}
	return k.keepImage()
}

// keepImage keeps an image of the present.
func (k *folding) keepImage() error {
	img, err := k.addImage()
	if err == nil && k.cfg.passed != nil {
		k.cfg.passed(img)
	}
	return err
}

// leaveImage gives an image of the present to leave, if one is due.
func (k *folding) leaveImage() error {
	if k.cfg.leave == nil {
		return nil
	}
	if k.left == 0 && k.base != nil {
		k.left = k.base.Head.ID
	}
	if k.last-k.left < k.cfg.every {
		return nil
	}
	_, err := k.addImage()
	return err
}

// addImage makes an image of the present, and adds it to those for rollbacks. The next image has only later changes.
func (k *folding) addImage() (*journal.Image, error) {
	img, err := k.image()
	if err != nil {
		return nil, err
	}
	if k.store.spill != nil {
		if err := k.store.spill.Checkpoint(img); err != nil {
			k.store.fail(err)
			return nil, k.store.err
		}
		return img, nil
	}
	k.rules.guard.image(img)
	if k.images == nil {
		k.images = new(journal.Images)
		if k.base != nil {
			k.images.Add(k.base)
		}
	}
	k.images.Add(img)
	if k.cfg.leave != nil {
		k.cfg.leave(img)
		k.left = img.Head.ID
	}
	return img, nil
}

// applySubmitted submits the event of an event.submitted. An event with a key has to be the next under that key,
// unless earlier events under it may have been refused.
func (k *kernel) applySubmitted(r *canon.Reader, next bool) error {
	r.ArrayOf(7)
	r.Uint() // the version
	name := r.TextBytes()
	due := manifest.Tick(r.Uint())
	var direct *reducer.Cell
	named := r.Bool()
	for n := r.Array(); n > 0 && r.Err() == nil; n-- {
		to := r.TextBytes()
		if !named || direct != nil {
			continue // the routes give the same cells again
		}
		cell, err := reducer.ParseCell(string(to))
		if err != nil {
			return err
		}
		direct = &cell
	}
	var key *SubmitKey
	if !r.Null() {
		r.ArrayOf(3)
		key = &SubmitKey{Name: r.Text()}
		copy(key.Of[:], r.Bytes())
		key.Nth = r.Uint()
	}
	data := r.Rest()
	if err := r.Err(); err != nil {
		return err
	}
	if key != nil && next {
		if err := errors.Join(key.Check(), k.submits.next(key)); err != nil {
			return err
		}
	}
	rule := k.rules.events[string(name)]
	if rule == nil {
		rule = &eventRule{name: string(name)} // submit says what is wrong with it
	}
	_, err := k.submit(rule.name, data, direct, due, key)
	return err
}

// rulesOf returns the rules of a manifest that the history holds.
func (k *folding) rulesOf(hash journal.Hash) (*rules, error) {
	return rulesOf(hash, k.h, k.cfg.Registry, k.cfg.guard)
}
