package verify

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"fmt"
	"iter"
	"slices"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/journal"
)

// head is a signed checkpoint that is still to be compared with the journal.
type head struct {
	place string
	checkpoint.Signed
}

// heads are the signed checkpoints. Of those that came with the journal only the
// next one is held.
type heads struct {
	keys  []ed25519.PublicKey
	pull  func() ([]byte, error, bool)
	stop  func()
	read  int    // of those that came with the journal
	size  uint64 // of the last of them
	with  *head  // the next of them; nil: there is none
	kept  []head // those that somebody kept elsewhere, ascending by size
	blind string // why no more can be compared; "": they can
}

// openHeads gets the first checkpoints ready. The errors are checkpoint.ErrBadKey.
func (v *verifier) openHeads() error {
	x := &v.heads
	// Those who are trusted first: among keys with the same short id the first one
	// counts, and whoever made the journal may have looked for such a key.
	x.keys = slices.Concat(v.cfg.Trust, v.cfg.Signers)
	if err := checkKeys(x.keys); err != nil {
		return err
	}
	with := v.cfg.Checkpoints
	if with == nil {
		with = func(func([]byte, error) bool) {}
	}
	x.pull, x.stop = iter.Pull2(with)
	for i, data := range v.cfg.Kept {
		if h := v.openHead("kept checkpoint", i+1, data); h != nil {
			x.kept = append(x.kept, *h)
		}
	}
	slices.SortStableFunc(x.kept, func(a, b head) int { return cmp.Compare(a.Size, b.Size) })
	v.nextHead()
	return nil
}

func checkKeys(keys []ed25519.PublicKey) error {
	for _, key := range keys {
		if len(key) != ed25519.PublicKeySize {
			return fmt.Errorf("verify: %w: it has %d bytes", checkpoint.ErrBadKey, len(key))
		}
	}
	return nil
}

// nextHead gets the next checkpoint that came with the journal ready.
func (v *verifier) nextHead() {
	x := &v.heads
	for x.with = nil; x.with == nil; {
		data, err, more := x.pull()
		if !more {
			return
		}
		if err != nil {
			v.badHead("checkpoints", "%v", err)
			continue
		}
		x.read++
		x.with = v.openHead("checkpoint", x.read, data)
	}
}

// openHead reads a checkpoint, the nth of its sort, and finds out who has signed it;
// nil where it does not count.
func (v *verifier) openHead(sort string, n int, data []byte) *head {
	c, err := checkpoint.Parse(data)
	if err != nil {
		v.badHead(fmt.Sprintf("%s no. %d", sort, n), "%v", err)
		return nil
	}
	kept := sort != "checkpoint"
	if !kept {
		v.heads.size = c.Size
	}
	place := fmt.Sprintf("%s #%d", sort, c.Size)
	s, err := checkpoint.Open(data, v.heads.keys...)
	switch {
	case err != nil:
		v.badHead(place, "%v", err)
		return nil
	case len(s.By) == 0 && (kept || v.cfg.Sealed || len(v.heads.keys) > 0):
		v.badHead(place, "none of the keys that are known has signed it")
		return nil
	}
	return &head{place, s}
}

func (v *verifier) badHead(place, format string, args ...any) {
	v.report.Checkpoints.Bad++
	v.fault(place, format, args...)
}

// compareHeads holds the checkpoints that are of the records so far against them.
func (v *verifier) compareHeads() {
	x := &v.heads
	if x.blind != "" {
		return
	}
	for len(x.kept) > 0 && x.kept[0].Size <= v.tree.Size() {
		v.compareHead(&x.kept[0])
		x.kept = x.kept[1:]
	}
	for x.with != nil && x.with.Size <= v.tree.Size() {
		v.compareHead(x.with)
		v.nextHead()
	}
}

func (v *verifier) compareHead(h *head) {
	r := &v.report.Checkpoints
	id := v.report.WorldID
	switch root := v.tree.Root(); {
	case v.part() && h.Size < uint64(v.cfg.Begin.First-1):
		v.badHead(h.place, "it cannot be compared: the journal begins with record #%d", v.cfg.Begin.First)
	case h.Size < v.tree.Size():
		v.badHead(h.place, "it comes after one of more records")
	case id != "" && h.World != id:
		v.badHead(h.place, "it is a checkpoint of world %s, and this is world %s", h.World, id)
	case h.Root != root:
		v.badHead(h.place, "it is a checkpoint of another history: its root is %s, and that of these records is %s", h.Root, root)
	case len(h.By) == 0:
		r.Unverifiable++
	default:
		r.Checked++
		r.Last, r.Signers = journal.Seq(h.Size), keyTexts(h.World, h.By)
		if slices.ContainsFunc(h.By, v.trusts) {
			r.Trusted = r.Last
		}
	}
}

func (v *verifier) trusts(key ed25519.PublicKey) bool { return trusts(v.cfg.Trust, key) }

func trusts(trust []ed25519.PublicKey, key ed25519.PublicKey) bool {
	return slices.ContainsFunc(trust, func(t ed25519.PublicKey) bool { return bytes.Equal(t, key) })
}

// keyTexts returns keys that have opened a checkpoint of a world as text.
func keyTexts(id string, keys []ed25519.PublicKey) []string {
	out := make([]string, 0, len(keys))
	for _, key := range keys {
		if text, err := checkpoint.FormatKey(id, key); err == nil { // or it would not have opened it
			out = append(out, text)
		}
	}
	return out
}

// closeHeads reports the checkpoints that the journal does not reach, and who has
// signed all of it.
func (v *verifier) closeHeads() {
	x, r := &v.heads, &v.report.Checkpoints
	why := x.blind
	if why == "" {
		why = fmt.Sprintf("the journal ends with record #%d: it has lost records that were signed", v.report.Records)
	}
	for _, h := range x.kept {
		v.badHead(h.place, "it cannot be compared: %s", why)
	}
	for ; x.with != nil; v.nextHead() {
		v.badHead(x.with.place, "it cannot be compared: %s", why)
	}
	if v.cfg.Sealed && x.size != v.report.Records && x.blind == "" {
		v.fault("checkpoints", "the journal does not end with a checkpoint of its last record #%d", v.report.Records)
	}
	v.report.Trusted = len(v.cfg.Trust) > 0 && r.Bad == 0 && r.Trusted > 0 && uint64(r.Trusted) == v.report.Records
}
