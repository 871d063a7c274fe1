package world

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/reducer/star"
)

// ReplayConfig is what a replay works with. The zero value replays worlds
// without Go reducers and takes receipts at their word.
type ReplayConfig struct {
	Keys     *receipt.Keyring  // verifies receipts; nil: they are not verified
	Registry *reducer.Registry // Go reducers; nil: none
	Paranoid bool              // run every reduction twice and compare
	To       Seq               // the last record to replay, and what was written at once with it; 0: all
	// Visit, if set, is called for every record after it has been replayed.
	Visit func(s Scanned) error
}

// Replayed is what a replay came to.
type Replayed struct {
	Head      Head
	StateRoot Hash
}

// Divergence says where a journal holds something other than what follows from
// its inputs.
//
//nolint:errname // a divergence is the field's noun, and first of all a finding
type Divergence struct {
	Record   Seq    `json:"record"`
	Cell     string `json:"cell,omitempty"`
	Journal  string `json:"journal"`  // what the journal holds, as JSON
	Computed string `json:"computed"` // what follows from the inputs, as JSON or in words
}

func (d *Divergence) Error() string {
	at := ""
	if d.Cell != "" {
		at = " (cell " + d.Cell + ")"
	}
	return fmt.Sprintf("replay diverged at record #%d%s: the journal holds %s, the inputs give %s", d.Record, at, d.Journal, d.Computed)
}

// ErrEngine says that a journal was made by other engines than this program's.
var ErrEngine = errors.New("world: made by other engine versions")

// Replay recomputes a world from record 1 without I/O, except reading h, and
// compares every record. The error is a *Divergence where they differ.
func Replay(h History, cfg ReplayConfig) (*Replayed, error) {
	k, err := load(h, nil, cfg)
	if err != nil {
		return nil, err
	}
	return &Replayed{Head: k.head(), StateRoot: k.stateRoot()}, nil
}

// load folds a journal into a kernel, from an image (nil: from record 1).
func load(h History, img *Image, cfg ReplayConfig) (*kernel, error) {
	k := newKernel(cfg.Keys, cfg.Paranoid)
	created, err := firstRecord(h)
	if err != nil {
		return nil, err
	}
	if err := checkEngines(created); err != nil {
		return nil, err
	}
	inForce := created.Manifest
	var from Head
	if img != nil {
		if inForce, err = k.restore(img); err != nil {
			return nil, err
		}
		from = img.Head
	}
	encoded, err := h.Blob(inForce)
	if err != nil {
		return nil, fmt.Errorf("world: manifest %s: %w", inForce, err)
	}
	m, err := manifest.Decode(encoded)
	if err != nil {
		return nil, fmt.Errorf("world: manifest %s: %w", inForce, err)
	}
	if k.rules, err = compile(m, inForce, h, cfg.Registry); err != nil {
		return nil, err
	}
	return k, k.fold(h, from, cfg)
}

func firstRecord(h History) (*Created, error) {
	data, err := h.Record(1)
	if err != nil {
		return nil, fmt.Errorf("world: record #1: %w", err)
	}
	rec, err := DecodeRecord(data)
	if err != nil {
		return nil, err
	}
	if err := rec.Load(h); err != nil {
		return nil, err
	}
	body, err := rec.Body()
	if err != nil {
		return nil, err
	}
	created, ok := body.(*Created)
	if !ok {
		return nil, fmt.Errorf("world: record #1 is %s, not %s", rec.Kind, KindCreated)
	}
	return created, nil
}

func checkEngines(c *Created) error {
	for _, e := range []struct{ need, have string }{
		{c.Kernel, KernelVersion}, {c.Starlark, star.Version}, {c.CEL, governance.Version},
	} {
		if e.need != e.have {
			return fmt.Errorf("%w: it needs %s, this program has %s", ErrEngine, e.need, e.have)
		}
	}
	return nil
}

// fold applies the inputs after a head and compares all records. It leaves
// nothing to be taken from the kernel.
func (k *kernel) fold(h History, from Head, cfg ReplayConfig) error {
	k.replaying = true
	defer func() { k.replaying = false }()
	compared := 0 // of k.records
	for s, err := range h.Scan(from.ID) {
		if err != nil {
			return err
		}
		if cfg.To != 0 && s.ID > cfg.To && compared == len(k.records) {
			break
		}
		if compared == len(k.records) {
			k.records, compared = k.records[:0], 0
			k.blobs, k.tasks = nil, nil
			if err := k.follow(h, s); err != nil {
				return err
			}
		}
		if got := &k.records[compared]; got.ID != s.ID || !bytes.Equal(got.Bytes, s.Bytes) {
			return diverged(h, s, got.Bytes, nil)
		} else if [LinkBytes]byte(got.Root[:LinkBytes]) != s.Link {
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
	k.take(Ready{})
	return nil
}

// follow makes the kernel write the records that begin with the one in s: by
// applying it if it is an input, by doing the next unit if not.
func (k *kernel) follow(h History, s Scanned) error {
	if s.Err != nil {
		return s.Err
	}
	rec := s.Record
	if !rec.Kind.Input() {
		if !k.next() {
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
	if err := k.apply(&rec); err != nil {
		return diverged(h, s, nil, err)
	}
	if len(k.records) == 0 {
		return diverged(h, s, nil, errors.New("nothing"))
	}
	return nil
}

// apply gives a recorded input to the kernel. The frequent kinds are read
// straight from the payload, which is known to be canonical.
func (k *kernel) apply(rec *Record) error {
	r := canon.NewReader(rec.Payload)
	switch rec.Kind {
	case KindSubmitted:
		return k.applySubmitted(r)
	case KindFinished, KindLate: // which of the two is the ledger's to say
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

func (k *kernel) applyBody(rec *Record) error {
	body, err := rec.Body()
	if err != nil {
		return err
	}
	switch b := body.(type) {
	case *Created:
		if rec.ID != 1 {
			return fmt.Errorf("%s is only ever record #1", KindCreated)
		}
		k.create(*b)
		return nil
	case *Advanced:
		return k.advance(b.To)
	case *Resumed:
		cell, err := reducer.ParseCell(b.Cell)
		if err != nil {
			return err
		}
		return k.resume(cell, b.Skip)
	case *OperatorEffect:
		_, err := k.submitEffect(*b)
		return err
	case *Expired:
		return k.expire(b.Key, b.Attempt, b.Reason)
	case *Due:
		return k.due(b.Key, b.Attempt)
	case *Resolved:
		return k.resolve(*b)
	case *Confirmed:
		return k.confirm(*b)
	case *KeysRotated:
		return k.rotated(*b)
	}
	return fmt.Errorf("%s is not an input", rec.Kind)
}

func (k *kernel) applySubmitted(r *canon.Reader) error {
	r.ArrayOf(6)
	r.Uint() // the version
	name := r.TextBytes()
	due := manifest.Tick(r.Uint())
	var direct *reducer.Cell
	named := r.Bool()
	for n := r.Array(); n > 0 && r.Err() == nil; n-- {
		to := r.TextBytes()
		if !named || direct != nil {
			continue // the routes will say the same again
		}
		cell, err := reducer.ParseCell(string(to))
		if err != nil {
			return err
		}
		direct = &cell
	}
	data := r.Rest()
	if err := r.Err(); err != nil {
		return err
	}
	rule := k.rules.events[string(name)]
	if rule == nil {
		return fmt.Errorf("the manifest declares no event %q", name)
	}
	_, err := k.submit(rule.name, data, direct, due)
	return err
}

// diverged describes a difference; got is nil where cause says why there is
// nothing to compare with.
func diverged(h History, s Scanned, got []byte, cause error) error {
	d := &Divergence{Record: s.ID, Journal: describe(h, s.Bytes)}
	if got != nil {
		d.Computed = describe(h, got)
	} else {
		d.Computed = cause.Error()
	}
	if rec := s.Record; s.Err == nil && rec.Load(h) == nil {
		_ = EachCell(rec.Kind, rec.Payload, func(cell []byte) { // what cannot be read names no cell
			if d.Cell == "" {
				d.Cell = string(cell)
			}
		})
	}
	return d
}

func describe(h History, data []byte) string {
	rec, err := DecodeRecord(data)
	if err == nil {
		err = rec.Load(h)
	}
	if err != nil {
		return err.Error()
	}
	text, err := rec.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(text)
}
