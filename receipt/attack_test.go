package receipt_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/attack"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// forger has receipts of a world, and keys of others.
type forger struct {
	*attack.Attempt
	real, theirs *receipt.Keyring // the world's, and one of their own with its name
	known        [][]byte         // what the world has signed
	revoked      []byte           // likewise, under a key that is revoked by now
}

func newForger(t *testing.T, a *attack.Attempt) *forger {
	f := &forger{Attempt: a}
	epoch := func(n uint64) receipt.Epoch {
		s := secret(byte(n))
		binary.LittleEndian.PutUint64(s, a.Uint64())
		return receipt.Epoch{Number: n, Secret: s}
	}
	epochs := []receipt.Epoch{epoch(1), epoch(2), epoch(3)}
	before := keyring(t, "w", epochs[:2]...)
	r := f.draw()
	var err error
	f.revoked, err = before.Sign(&r)
	require.NoError(t, err)
	epochs[1].Revoked = true
	f.real, f.theirs = keyring(t, "w", epochs...), keyring(t, "w", epoch(1), epoch(2), epoch(3))
	for range 2 {
		r := f.draw()
		data, err := f.real.Sign(&r)
		require.NoError(t, err)
		f.known = append(f.known, data)
	}
	return f
}

// draw returns a receipt that says anything.
func (f *forger) draw() receipt.Receipt {
	p := receipt.Permit{Intent: modelIntent(f.Uint64N(8)), Attempt: f.Uint64N(4)}
	p.Nonce[3] = byte(f.IntN(3))
	payload := canon.AppendText(nil, fmt.Sprintf("%x", f.Uint64N(1<<uint(f.IntN(40)+1))))
	r := receipt.New("w", p, attack.Pick(f.Attempt, receipt.StatusOK, receipt.StatusError, receipt.StatusTimeout, receipt.StatusCancelled), payload)
	r.Cost = receipt.Cost{Calls: f.Uint64N(3), Micros: f.Uint64N(1 << 40)}
	r.StartedAt, r.FinishedAt, r.Unsent = f.Int64N(1<<60), f.Int64N(1<<60), f.Chance(4)
	if f.Chance(2) {
		r.ExternalRef, r.StateChange = "ref", &receipt.StateChange{Resource: "r", Version: "v"}
	}
	return r
}

// bend changes bytes of what was signed.
func (f *forger) bend(data []byte) []byte {
	data = bytes.Clone(data)
	for range 1 + f.IntN(3) {
		i, j := f.IntN(len(data)), f.IntN(len(data))
		switch f.IntN(8) {
		case 0, 1:
			data[i] ^= 1 << f.IntN(8)
		case 2:
			data[i] = byte(f.Uint32())
		case 3:
			data = append(data[:i], data[min(i+1+f.IntN(40), len(data)):]...)
		case 4:
			data = append(data[:i:i], append([]byte{byte(f.Uint32())}, data[i:]...)...)
		case 5: // a longer form of a small number or length
			head, small := data[i]&0xe0, data[i]&0x1f
			if small < 24 {
				data = append(data[:i:i], append([]byte{head | 0x18, small}, data[i+1:]...)...)
			}
		case 6: // a part of the other one
			other := f.known[1]
			k := f.IntN(len(other))
			n := min(f.IntN(80), len(other)-k, len(data)-i)
			copy(data[i:i+n], other[k:k+n])
		default:
			data[i], data[j] = data[j], data[i]
		}
		if len(data) == 0 {
			return data
		}
	}
	return data
}

// restate changes a field, and makes hash and signature as good as somebody can who
// lacks the secret.
func (f *forger) restate(t *testing.T, r *receipt.Receipt) {
	other, err := receipt.Decode(f.known[1])
	require.NoError(t, err)
	was := *r
	switch f.IntN(16) {
	case 0:
		r.Status = attack.Pick(f.Attempt, receipt.StatusOK, receipt.StatusError, receipt.StatusRejected)
	case 1:
		r.Payload = canon.AppendText(nil, "paid")
	case 2:
		r.Key = other.Key
	case 3:
		r.Attempt++
	case 4:
		r.Nonce[f.IntN(len(r.Nonce))] ^= 1
	case 5:
		r.Cost.Micros++
	case 6:
		r.ParamsHash[0] ^= 1
	case 7:
		r.Kind, r.Cap = "pay", "all"
	case 8:
		r.World = "v"
	case 9:
		r.FinishedAt = -r.FinishedAt
	case 10:
		r.StateChange = &receipt.StateChange{Resource: "elsewhere"}
	case 11:
		r.KeyID = other.KeyID + "0"
	case 12:
		r.Class, r.Status = receipt.OutcomeRetryableFailure, receipt.StatusError
	case 13:
		r.MAC = other.MAC
	case 14:
		r.Hash, r.MAC = other.Hash, other.MAC
	case 15:
		r.Unsent = !r.Unsent
	}
	switch f.IntN(4) {
	case 0: // signed with their own key, under the world's name for its
		_, err := f.theirs.Sign(r)
		require.NoError(t, err)
		r.KeyID = attack.Pick(f.Attempt, was.KeyID, r.KeyID, other.KeyID)
	case 1: // the right hash
		mac, id := r.MAC, r.KeyID
		_, err := f.theirs.Sign(r)
		require.NoError(t, err)
		r.MAC, r.KeyID = mac, id
	case 2:
		r.KeyID = attack.Pick(f.Attempt, f.real.Keys()[0].ID, f.real.Keys()[1].ID, "", "3-")
	}
}

// TestAttackReceipts forges receipts, and changes those that were signed.
func TestAttackReceipts(t *testing.T) {
	attack.Run(t, "receipts", func(a *attack.Attempt) {
		f := newForger(t, a)
		data := f.known[0]
		if a.Chance(10) {
			data = f.revoked
		}
		switch a.IntN(3) {
		case 0:
			data = f.bend(data)
		case 1:
			r, err := receipt.Decode(data)
			require.NoError(t, err)
			f.restate(t, r)
			if data, err = r.Encode(); err != nil {
				return
			}
		case 2:
			r := f.draw()
			f.restate(t, &r)
			var err error
			if data, err = r.Encode(); err != nil {
				return
			}
		}
		r, err := receipt.Decode(data)
		if err != nil {
			return
		}
		if err := f.real.Verify(r); err != nil {
			return
		}
		if !bytes.Equal(data, f.known[0]) && !bytes.Equal(data, f.known[1]) {
			a.Through("it verifies, and was not signed: %x", data)
		}
	})
}

// TestAttackReplayedReceipts gives a ledger receipts that the world has signed, and
// that answer something else: another intent, attempt or nonce, or what is answered.
func TestAttackReplayedReceipts(t *testing.T) {
	attack.Run(t, "replayed receipts", func(a *attack.Attempt) {
		f := &forger{Attempt: a}
		var l receipt.Ledger
		awaited := map[receipt.Key]receipt.Permit{}
		record := uint64(0)
		next := func() uint64 { record++; return record }
		var permits []receipt.Permit
		for n := range 1 + a.Uint64N(4) {
			l.Emit(modelIntent(n), next())
		}
		for range 1 + a.IntN(8) { // their lives so far
			open, flying := l.Open(), l.InFlight()
			switch {
			case len(open) > 0 && a.Chance(2):
				permit := receipt.Permit{Nonce: receipt.Nonce{byte(a.IntN(3))}}
				e := l.Start(0, permit.Nonce, next())
				permit.Intent, permit.Attempt = e.Intent, e.Attempt
				permits, awaited[permit.Key] = append(permits, permit), permit
			case len(flying) > 0 && a.Chance(2): // given up
				e := flying[0]
				delete(awaited, e.Intent.Key)
				l.Doubt(e, false)
				l.Reopen(e, false)
			case len(flying) > 0:
				r := receipt.New("w", awaited[flying[0].Intent.Key], receipt.StatusOK, nil)
				l.Finish(&r, next())
				delete(awaited, r.Key)
			}
		}
		r := f.draw()
		if len(permits) > 0 && a.Chance(2) { // one that was right, or nearly
			r = receipt.New("w", permits[a.IntN(len(permits))], receipt.StatusOK, nil)
			switch a.IntN(6) {
			case 0:
				r.Attempt += a.Uint64N(3) - 1
			case 1:
				r.Nonce[0] = byte(a.IntN(3))
			case 2:
				r.ParamsHash[9] ^= 4
			case 3:
				r.Key = modelIntent(a.Uint64N(5)).Key
			case 4:
				r.Kind = "k2"
			}
		}
		want, right := awaited[r.Key]
		right = right && r.Attempt == want.Attempt && r.Nonce == want.Nonce && r.Kind == want.Kind && r.Cap == want.Cap && r.ParamsHash == canon.Sum(want.Params)
		if err := l.Check(&r); (err == nil) != right && !errors.Is(err, receipt.ErrLate) {
			a.Through("%v for %+v, and awaited is %+v", err, r, want)
		}
	})
}
