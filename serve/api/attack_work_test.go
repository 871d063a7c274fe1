package api_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/attack"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
	"github.com/worldkernel/worldkernel/serve/api"
)

// stolen is an offer that a worker holds, and somebody else who has seen it.
type stolen struct {
	*attack.Attempt
	*served
	offer, before api.Offer // the last one, and one that is answered
	said          string    // what the worker was answered with
}

// result is the receipt that is right, or one that is not.
func (x *stolen) result(t *testing.T, right bool) []byte {
	return result(t, x.offer, func(r *receipt.Receipt) {
		r.Payload = canon.AppendText(nil, x.said)
		if right {
			return
		}
		switch x.IntN(9) {
		case 0:
			r.Nonce[x.IntN(len(r.Nonce))] ^= 1 << x.IntN(8)
		case 1:
			r.Attempt += uint64(1 + x.IntN(3))
		case 2:
			r.World = attack.Pick(x.Attempt, "v", "", "w\x00")
		case 3:
			r.ParamsHash[x.IntN(32)] ^= 1
		case 4:
			r.Kind = attack.Pick(x.Attempt, "tool.b", "", "TOOL.A")
		case 5:
			r.Cap += "x"
		case 6:
			r.Key = x.before.Key
		case 7:
			r.Key.Hash[x.IntN(32)] ^= 1
		default:
			r.Status = attack.Pick(x.Attempt, receipt.StatusDenied, receipt.StatusRejected, "perhaps")
		}
	})
}

// answer answers an offer in a way that is not the worker's. The receipt of another
// worker is as good as can be.
func (x *stolen) answer(t *testing.T) *answer {
	worker := attack.Pick(x.Attempt, "hand", "hand", "other", "Hand", "hand ", "")
	data := x.result(t, worker != "hand" && x.Chance(2))
	switch x.IntN(6) {
	case 0: // bytes
		data = bytes.Clone(data)
		for range 1 + x.IntN(3) {
			data[x.IntN(len(data))] ^= 1 << x.IntN(8)
		}
		if worker == "hand" {
			worker = "other" // nobody signs what a worker says but the world
		}
	case 1:
		data = data[:x.IntN(len(data))]
	case 2: // under a signature that is not the world's, as if it was
		return x.post("/api/worlds/w/receipts", api.ReceiveRequest{Receipt: x.result(t, x.Chance(2))})
	case 3:
		return x.post("/api/worlds/w/effects/renew", api.RenewRequest{
			Worker: attack.Pick(x.Attempt, "other", "", "HAND"), Key: x.offer.Key, Attempt: x.offer.Attempt, Nonce: x.offer.Nonce,
		})
	}
	return x.post("/api/worlds/w/effects/commit", api.CommitRequest{Worker: worker, Receipt: data})
}

// TestAttackAPIWork answers what a worker holds: in its place, for another attempt, with
// other bytes, before it and after. What it was answered with is what the world has,
// once.
func TestAttackAPIWork(t *testing.T) {
	s, w := remote(t)
	first := s.acquire().Offers[0]
	ok[struct{}](s.post("/api/worlds/w/effects/commit", api.CommitRequest{Worker: "hand", Receipt: result(t, first, nil)}))
	s.run(w)
	attack.Run(t, "api work", func(a *attack.Attempt) {
		n := w.Status().Intents[receipt.StateCommitted]
		ok[api.Submitted](s.post("/api/worlds/w/events", map[string]any{"event": "go", "data": map[string]any{"to": fmt.Sprint("c", n), "n": n}}))
		s.run(w)
		offers := s.acquire().Offers
		require.Len(t, offers, 1)
		x := &stolen{Attempt: a, served: s, offer: offers[0], before: first, said: fmt.Sprint("answer ", a.Seed)}
		hostile := func(times int) {
			for range times {
				if told := x.answer(t); told.Status < 400 || told.Status >= 500 {
					a.Through("it is taken: %d %s", told.Status, told.Body)
				}
			}
		}
		hostile(a.IntN(4))
		commit := api.CommitRequest{Worker: "hand", Receipt: x.result(t, true)}
		for range 1 + a.IntN(2) {
			if told := s.post("/api/worlds/w/effects/commit", commit); told.Status >= 300 {
				a.Through("the worker's own is refused: %d %s", told.Status, told.Body)
			}
		}
		hostile(a.IntN(3))
		s.run(w)
		hostile(a.IntN(3))
		s.run(w)
		if have := w.Status().Intents[receipt.StateCommitted]; have != n+1 {
			a.Through("%d effects are committed after %d", have, n)
		}
		told := s.get("/api/worlds/w/receipts/" + x.offer.Key.String())
		if !strings.Contains(string(told.Body), x.said) {
			a.Through("the world has %s, and the worker said %q", told.Body, x.said)
		}
	})
}
