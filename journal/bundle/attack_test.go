package bundle_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/internal/attack"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/journal/bundle"
	"github.com/worldkernel/worldkernel/world/verify"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// maxAttackBytes is what reading and verifying a small bundle may allocate in all, the
// garbage included.
const maxAttackBytes = 256 << 20

// loot is what an attacker has: bundles of one world, and of another of the same name,
// which nobody but the attacker has signed.
type loot struct {
	bundles [][]byte
	theirs  []byte
	records map[journal.Seq][]byte // as the owner signed them
	root    journal.Hash
}

func newLoot(t *testing.T) *loot {
	w := shop(t, "a", "b", "c")
	adopt(t, w)
	w.Submit("order.placed", map[string]any{"customer": "d", "cents": 7})
	w.Run()
	end := w.Journal.Head().ID
	l := &loot{records: map[journal.Seq][]byte{}, root: w.Journal.Records()[end-1].Root}
	for _, s := range w.Journal.Records() {
		l.records[s.ID] = s.Bytes
	}
	for _, c := range []cut{{signed: []journal.Seq{1, 4, end / 2}}, {first: end / 2}, {withheld: payloads(t, w.Journal)[:1]}} {
		l.bundles = append(l.bundles, write(t, w.Journal, c))
	}
	theirs := split(t, unpack(t, write(t, shop(t, "x", "b", "c").Journal, cut{})))
	l.theirs = pack(t, bytes.Join(resigned(t, theirs, false), nil))
	require.Empty(t, judge(t, open(t, l.theirs)).Faults, "it is consistent, whoever has signed it")
	return l
}

// bandit changes a bundle.
type bandit struct {
	*attack.Attempt
	t     *testing.T
	loot  *loot
	items [][]byte
}

// bytesOf changes some bytes.
func (b *bandit) bytesOf(data []byte) []byte {
	data = bytes.Clone(data)
	for range 1 + b.IntN(3) {
		i := b.IntN(len(data))
		switch b.IntN(5) {
		case 0, 1:
			data[i] ^= 1 << b.IntN(8)
		case 2:
			data = slices.Delete(data, i, min(i+1+b.IntN(20), len(data)))
		case 3:
			data = slices.Insert(data, i, attack.Pick(b.Attempt, byte(0), 0x40, 0x80, 0x9b, 0xbb, 0x5b, 0x7f, 0xff, 0xc2, 0xf9, byte(b.Uint32())))
		default:
			j := b.IntN(len(data))
			data[i], data[j] = data[j], data[i]
		}
		if len(data) == 0 {
			return data
		}
	}
	return data
}

// item changes the items, one or two times.
func (b *bandit) item() {
	other := split(b.t, unpack(b.t, attack.Pick(b.Attempt, append(b.loot.bundles, b.loot.theirs)...)))
	for range 1 + b.IntN(2) {
		i, j := b.IntN(len(b.items)), b.IntN(len(b.items))
		switch b.IntN(9) {
		case 0:
			b.items = slices.Delete(b.items, i, i+1)
		case 1:
			b.items = slices.Insert(b.items, j, b.items[i])
		case 2:
			b.items[i], b.items[j] = b.items[j], b.items[i]
		case 3:
			b.items[i] = other[b.IntN(len(other))]
		case 4:
			b.items = slices.Insert(b.items, j, other[b.IntN(len(other))])
		case 5:
			b.items = b.items[:max(j, 1)]
		case 6:
			b.items = slices.Insert(b.items, i, attack.Pick(b.Attempt, []byte("\xf6"), []byte("\x00"), canon.AppendText(nil, "no note"), canon.AppendBytes(nil, []byte("a blob that nobody needs")), bytes.Repeat([]byte{0x81}, 5000), []byte("\x9a\xff\xff\xff\xff\x00")))
		default:
			if changed := b.bytesOf(b.items[i]); len(changed) > 0 {
				b.items[i] = changed
			}
		}
		if len(b.items) == 0 {
			b.items = other[:1]
		}
	}
}

// resigned computes links and a checkpoint at the end anew, as anybody can: under a
// key of the attacker, beside what the owner has signed or without it.
func resigned(t *testing.T, items [][]byte, keep bool) [][]byte {
	var chain canon.Chain
	var tree checkpoint.Tree
	var out [][]byte
	keys := []ed25519.PublicKey{worldtest.Public(2)}
	if keep {
		keys = append(keys, worldtest.Public(1))
		slices.SortFunc(keys, func(x, y ed25519.PublicKey) int { return bytes.Compare(x, y) })
	}
	last := journal.Seq(0)
	for i, item := range items {
		r := canon.NewReader(item)
		switch kind := r.Kind(); {
		case i == 0: // the header comes when the last record is known
		case kind == canon.KindText && !keep:
		case kind == canon.KindArray && r.Array() == 2:
			record := r.Raw()
			e, err := canon.DecodeEnvelope(record)
			if err != nil {
				out = append(out, item)
				continue
			}
			last = journal.Seq(e.ID)
			root := chain.Add(e.ID, e.Kind, record)
			tree.Add(record)
			out = append(out, canon.AppendBytes(slices.Concat([]byte{0x82}, record), root[:8]))
		default:
			out = append(out, item)
		}
	}
	note, err := checkpoint.Checkpoint{World: "test", Size: uint64(last), Root: tree.Root()}.Sign(worldtest.Key(2))
	if err != nil || last == 0 {
		return items
	}
	h := bundle.Header{World: "test", First: 1, Last: last, Keys: keys}
	return slices.Concat([][]byte{headerItem(t, h)}, out, [][]byte{canon.AppendText(nil, string(note))})
}

// headerItem returns the first item of a bundle.
func headerItem(t *testing.T, h bundle.Header) []byte {
	var keys []any
	for _, k := range h.Keys {
		keys = append(keys, []byte(k))
	}
	item, err := canon.Marshal([]any{"worldkernel/bundle", 1, h.World, uint64(h.First), uint64(h.Last), []byte{}, []any{}, []any{}, keys})
	require.NoError(t, err)
	return item
}

// TestAttackBundles changes bundles, as far as somebody can who has not the owner's
// key. What is called consistent without another signature is what it was, and what
// is trusted is what the owner has signed.
func TestAttackBundles(t *testing.T) {
	l := newLoot(t)
	attack.Run(t, "bundles", func(a *attack.Attempt) {
		b := &bandit{Attempt: a, t: t, loot: l}
		data := attack.Pick(a, l.bundles...)
		b.items = split(t, unpack(t, data))
		signed := false
		switch a.IntN(8) {
		case 0:
			data = b.bytesOf(data)
		case 1:
			data = pack(t, b.bytesOf(unpack(t, data)))
		case 2, 3, 4:
			b.item()
			data = pack(t, bytes.Join(b.items, nil))
		default:
			if a.Chance(4) {
				b.items = split(t, unpack(t, l.theirs))
			}
			b.item()
			b.items = resigned(t, b.items, a.Chance(2))
			signed = true
			data = pack(t, bytes.Join(b.items, nil))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l.judge(a, data, signed)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > maxAttackBytes {
			a.Through("%d bytes for a file of %d", n, len(data))
		}
	})
}

// judge reads and verifies a bundle as somebody who believes the owner.
func (l *loot) judge(a *attack.Attempt, data []byte, signed bool) {
	r, err := bundle.Open(bytes.NewReader(data), bundle.Options{})
	if err != nil {
		return
	}
	defer r.Close() //nolint:errcheck // in memory
	h := r.Header()
	report, err := verify.Verify(context.Background(), r, verify.Config{
		Damage: r.Damage(), Checkpoints: r.Checkpoints(), Signers: h.Keys, Sealed: true, Withheld: h.Withheld,
		Begin: verify.Begin{First: h.First, Root: h.Root, Nodes: h.Nodes, World: h.World}, Trust: []ed25519.PublicKey{worldtest.Public(1)},
	})
	if err != nil || !report.OK && !report.Trusted {
		return
	}
	same, n := true, journal.Seq(0)
	for s, err := range r.Scan(h.First - 1) {
		if err != nil {
			a.Through("it is consistent, and cannot be read: %v", err)
			return
		}
		same, n = same && bytes.Equal(s.Bytes, l.records[s.ID]), s.ID
	}
	if report.Trusted && (!same || report.Records != uint64(n)) {
		a.Through("it is trusted, and other records (%t, #%d): %s", same, n, fmt.Sprint(report))
	}
	if report.OK && !signed && (!same || report.EventChainRootHash != l.root) {
		a.Through("it is consistent, and something else: %s", fmt.Sprint(report))
	}
}
