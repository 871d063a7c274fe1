package worldctl

import (
	"bytes"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/world/worldtest"
)

// depth is how far a forger goes.
type depth byte

const (
	bare    depth = iota // nothing is computed again
	chained              // numbers, chain and links are: anybody can
	signed               // and the checkpoints: the owner can
)

func (r depth) String() string { return [...]string{"bare", "chained", "signed by the owner"}[r] }

// edit changes the items of a bundle and reports whether there was something to
// change. due is of those that the owner has signed; all others are refused.
type edit struct {
	name    string
	do      func(f *counterfeit) bool
	due     due
	doubted bool // a payload that is gone may have said what makes it right
	past    bool // it is found out by what is before a range
}

// editsOfRecords are those after which records have numbers, links and checkpoints
// as far as the forger reaches.
var editsOfRecords = []edit{
	{name: "an end without a start", do: endWithoutStart, doubted: true, past: true},
	{name: "a second start", do: secondStart, doubted: true, past: true},
	{name: "the end of another", do: endOfAnother, doubted: true, past: true},
	{name: "a start without a decision", do: startWithoutDecision, doubted: true, past: true},
	{name: "an end that was removed", do: drop(journal.KindFinished), due: agreement},
	{name: "a decision that was removed", do: drop(journal.KindIntent, journal.KindAwaitingApproval, journal.KindResolved, journal.KindInDoubt), due: agreement},
	{name: "a manifest that nobody approved", do: withoutApprovals, past: true},
	{name: "approved by a stranger", do: approvedByAStranger, past: true},
	{name: "approved on other terms", do: approvedOnOtherTerms, past: true},
	{name: "another manifest than the approved one", do: appliedAnother, past: true},
	{name: "a candidate that was edited", do: editedCandidate, past: true},
	{name: "a receipt that was edited", do: receiptEdited},
	{name: "a receipt of another world", do: receiptSigned("elsewhere")},
	{name: "a receipt signed with another key", do: receiptSigned(""), due: agreement},
	{name: "an approval bound to something else", do: boundToOther, doubted: true, past: true},
	{name: "a state hash", do: stateHash, due: kernelsRefusal},
	{name: "a bit of a record", do: flipAny(aRecord), due: agreement},
	{name: "a bit of a payload", do: bitOfPayload, due: agreement},
	{name: "a bit of a manifest", do: bitOfManifest, due: agreement},
	{name: "a record less", do: dropAny(aRecord), due: agreement},
	{name: "a record twice", do: repeatAny(aRecord), due: agreement},
	{name: "two records changed places", do: swapAny, due: agreement},
	{name: "a record cut short", do: cutRecord},
	{name: "a bit of a blob", do: flipAny(aBlob)},
}

// boundToOther has an approval be bound to another effect, capability or rule than the manifest has.
func boundToOther(f *counterfeit) bool {
	at := f.pick(journal.KindAwaitingApproval)
	if at < 0 {
		return false
	}
	b := f.body(at).(*journal.IntentAwaitingApproval)
	hashes := []*journal.Hash{&b.Seen.Effect, &b.Seen.Cap, &b.Seen.Rules}
	hashes[f.rng.IntN(len(hashes))][f.rng.IntN(32)] ^= 1
	f.say(at, b)
	return true
}

// remove takes an item out, and with a record the blobs that only it needs.
func (f *counterfeit) remove(at int) {
	f.items = slices.Delete(f.items, at, at+1)
}

func endWithoutStart(f *counterfeit) bool {
	at := f.pick(journal.KindFinished)
	if at < 0 {
		return false
	}
	start := f.startOf(at)
	if start < 0 {
		return false
	}
	f.remove(start)
	return true
}

// receiptOf returns the receipt in a record, nil where it has none.
func (f *counterfeit) receiptOf(at int) *receipt.Receipt {
	b, ok := f.body(at).(*journal.Finished)
	if !ok {
		return nil
	}
	r, err := receipt.Decode(b.Receipt)
	require.NoError(f.t, err)
	return r
}

// startOf returns the start that an end answers, -1 where it is not there.
func (f *counterfeit) startOf(end int) int {
	r := f.receiptOf(end)
	if r == nil {
		return -1
	}
	return f.last(end, func(b journal.Body) bool {
		s, ok := b.(*journal.Started)
		return ok && s.Key == r.Key && s.Attempt == r.Attempt
	})
}

// last returns the last record before another one that says something.
func (f *counterfeit) last(before int, says func(journal.Body) bool) int {
	for at := before - 1; at >= 0; at-- {
		if f.items[at].sort == aRecord && says(f.body(at)) {
			return at
		}
	}
	return -1
}

func secondStart(f *counterfeit) bool {
	at := f.pick(journal.KindStarted)
	if at < 0 {
		return false
	}
	f.items = slices.Insert(f.items, at+1, f.items[at])
	return true
}

func endOfAnother(f *counterfeit) bool {
	one := f.pick(journal.KindFinished)
	if one < 0 {
		return false
	}
	for range 20 {
		other := f.pick(journal.KindFinished)
		if a, b := f.receiptOf(one), f.receiptOf(other); a != nil && b != nil && a.Key != b.Key {
			f.say(one, f.body(other))
			return true
		}
	}
	return false
}

func startWithoutDecision(f *counterfeit) bool {
	at := f.pick(journal.KindStarted)
	start, ok := journal.Body(nil), at >= 0
	if ok {
		start = f.body(at)
	}
	s, ok := start.(*journal.Started)
	if !ok || s.Attempt > 1 {
		return false
	}
	decision := f.last(at, func(b journal.Body) bool {
		x, ok := b.(*journal.IntentEmitted)
		return ok && x.Key == s.Key && (x.Decision == "allow" || x.Decision == "approved")
	})
	if decision < 0 {
		return false
	}
	f.remove(decision)
	return true
}

func drop(kinds ...journal.Kind) func(*counterfeit) bool {
	return func(f *counterfeit) bool {
		at := f.pick(kinds...)
		if at >= 0 {
			f.remove(at)
		}
		return at >= 0
	}
}

// applied returns an applied change of the rules, and the approvals of it.
func (f *counterfeit) applied() (at int, b *journal.Applied, approvals []int) {
	if at = f.pick(journal.KindApplied); at < 0 || f.header.First > 1 {
		return -1, nil, nil
	}
	b = f.body(at).(*journal.Applied)
	for _, i := range f.records() {
		if a, ok := f.body(i).(*journal.ManifestApproved); ok && a.Proposal == b.Proposal {
			approvals = append(approvals, i)
		}
	}
	return at, b, approvals
}

func withoutApprovals(f *counterfeit) bool {
	_, _, approvals := f.applied()
	for _, at := range slices.Backward(approvals) {
		f.remove(at)
	}
	return len(approvals) > 0
}

// council reports whether the rules say who may approve.
func (f *counterfeit) council(m journal.Hash) bool {
	encoded, err := f.Blob(m)
	require.NoError(f.t, err)
	rules, err := manifest.Decode(encoded)
	require.NoError(f.t, err)
	return len(rules.Governance.Approvers) > 0
}

func approvedByAStranger(f *counterfeit) bool {
	_, b, approvals := f.applied()
	if len(approvals) == 0 || !f.council(b.Base) {
		return false
	}
	at := approvals[f.rng.IntN(len(approvals))]
	a := f.body(at).(*journal.ManifestApproved)
	a.Signature = manifest.Sign(worldtest.Key(stranger), termsIn(a))
	f.say(at, a)
	return true
}

func termsIn(a *journal.ManifestApproved) manifest.Terms {
	return manifest.Terms{World: a.World, Base: a.Base, Candidate: a.Candidate, Report: a.Report}
}

func approvedOnOtherTerms(f *counterfeit) bool {
	_, _, approvals := f.applied()
	if len(approvals) == 0 {
		return false
	}
	at := approvals[f.rng.IntN(len(approvals))]
	a := f.body(at).(*journal.ManifestApproved)
	terms := termsIn(a)
	terms.Report[f.rng.IntN(len(terms.Report))] ^= 1
	for who := range byte(approvers) { // the same person
		if s := manifest.Sign(worldtest.Key(who+1), terms); s.Key == a.Signature.Key {
			a.Signature = s
		}
	}
	f.say(at, a)
	return true
}

// editedManifest returns a manifest with other limits.
func (f *counterfeit) editedManifest(name journal.Hash) []byte {
	encoded, err := f.Blob(name)
	require.NoError(f.t, err)
	m, err := manifest.Decode(encoded)
	require.NoError(f.t, err)
	m.Limits.InFlight += 1 + uint64(f.rng.IntN(100))
	encoded, err = m.Encode()
	require.NoError(f.t, err)
	return encoded
}

func appliedAnother(f *counterfeit) bool {
	at, b, _ := f.applied()
	if at < 0 {
		return false
	}
	m := f.editedManifest(b.Manifest)
	b.Manifest = canon.Sum(m)
	f.say(at, b)
	f.bring(at, m)
	return true
}

func editedCandidate(f *counterfeit) bool {
	at, b, approvals := f.applied()
	if len(approvals) == 0 {
		return false
	}
	number := uint64(0)
	for _, i := range f.records() {
		p, ok := f.body(i).(*journal.ManifestProposed)
		if !ok {
			continue
		}
		if number++; number != b.Proposal {
			continue
		}
		m := f.editedManifest(p.Candidate)
		p.Candidate, b.Manifest = canon.Sum(m), canon.Sum(m)
		f.say(at, b)
		f.say(i, p)
		f.bring(i, m)
		return true
	}
	return false
}

func receiptEdited(f *counterfeit) bool {
	at := f.pick(journal.KindFinished, journal.KindLate)
	if at < 0 {
		return false
	}
	r := f.receiptOf(at)
	if r == nil {
		return false
	}
	r.StartedAt++
	data, err := r.Encode()
	require.NoError(f.t, err)
	f.say(at, &journal.Finished{Version: journal.V(1), Receipt: data})
	return true
}

// receiptSigned has a receipt say another thing, signed with another secret; in the
// name of another world where that is not empty.
func receiptSigned(id string) func(*counterfeit) bool {
	return func(f *counterfeit) bool {
		at := f.pick(journal.KindFinished)
		if at < 0 {
			return false
		}
		r := f.receiptOf(at)
		if r == nil {
			return false
		}
		if f.rng.IntN(2) == 0 {
			r.Payload = receipt.Data(canon.Null)
		}
		if r.World = f.header.World; id != "" {
			r.World = id
		}
		keys, err := receipt.NewKeyring(r.World, []receipt.Epoch{{Number: 1, Secret: bytes.Repeat([]byte{byte(f.rng.IntN(256))}, receipt.SecretBytes)}})
		require.NoError(f.t, err)
		data, err := keys.Sign(r)
		require.NoError(f.t, err)
		f.say(at, &journal.Finished{Version: journal.V(1), Receipt: data})
		return true
	}
}

func stateHash(f *counterfeit) bool {
	at := f.pick(journal.KindStepped)
	if at < 0 {
		return false
	}
	b := f.body(at).(*journal.Stepped)
	b.State[f.rng.IntN(len(b.State))] ^= 1 << f.rng.IntN(8)
	f.say(at, b)
	return true
}

// flipped returns bytes with another bit.
func (f *counterfeit) flipped(b []byte) []byte {
	b = bytes.Clone(b)
	b[f.rng.IntN(len(b))] ^= 1 << f.rng.IntN(8)
	return b
}

func (f *counterfeit) anyOf(s sortOf) int {
	at := f.of(s)
	if len(at) == 0 {
		return -1
	}
	return at[f.rng.IntN(len(at))]
}

// flipAny flips a bit of any item of a sort; repeatAny has one stand there twice; dropAny
// takes one out.
func flipAny(s sortOf) func(*counterfeit) bool {
	return toAny(s, func(f *counterfeit, at int) { f.items[at].bytes = f.flipped(f.items[at].bytes) })
}

func repeatAny(s sortOf) func(*counterfeit) bool {
	return toAny(s, func(f *counterfeit, at int) { f.items = slices.Insert(f.items, at+1, f.items[at]) })
}

func dropAny(s sortOf) func(*counterfeit) bool { return toAny(s, (*counterfeit).remove) }

// toAny does something to any item of a sort, and says whether there is one.
func toAny(s sortOf, do func(*counterfeit, int)) func(*counterfeit) bool {
	return func(f *counterfeit) bool {
		at := f.anyOf(s)
		if at >= 0 {
			do(f, at)
		}
		return at >= 0
	}
}

func bitOfPayload(f *counterfeit) bool {
	at := f.anyOf(aRecord)
	e, ok := f.envelope(at)
	if !ok {
		return false
	}
	if e.Blob.IsZero() {
		e.Payload = f.flipped(e.Payload)
	} else {
		i := slices.IndexFunc(f.items, func(x item) bool { return x.sort == aBlob && canon.Sum(x.bytes) == e.Blob })
		if i < 0 {
			return false
		}
		f.items[i].bytes = f.flipped(f.items[i].bytes)
		e.Blob = canon.Sum(f.items[i].bytes)
	}
	f.items[at].bytes = canon.AppendEnvelope(nil, e)
	return true
}

func bitOfManifest(f *counterfeit) bool {
	at := f.pick(journal.KindCreated)
	if at < 0 {
		return false
	}
	b := f.body(at).(*journal.Created)
	i := slices.IndexFunc(f.items, func(x item) bool { return x.sort == aBlob && canon.Sum(x.bytes) == b.Manifest })
	f.items[i].bytes = f.flipped(f.items[i].bytes)
	_, err := manifest.Decode(f.items[i].bytes)
	f.unreadable = err != nil
	b.Manifest = canon.Sum(f.items[i].bytes)
	f.say(at, b)
	return true
}

func swapAny(f *counterfeit) bool {
	i, j := f.anyOf(aRecord), f.anyOf(aRecord)
	if f.rng.IntN(2) == 0 { // neighbours
		if j = i + 1; j >= len(f.items) || f.items[j].sort != aRecord {
			return false
		}
	}
	f.items[i], f.items[j] = f.items[j], f.items[i]
	return i != j
}

func cutRecord(f *counterfeit) bool {
	at := f.anyOf(aRecord)
	f.items[at].bytes = f.items[at].bytes[:f.rng.IntN(len(f.items[at].bytes))]
	return true
}
