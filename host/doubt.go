package host

import (
	"fmt"
	"time"

	"github.com/worldkernel/worldkernel/receipt"
)

// A verifier that looks before an attempt has arrived sees nothing of it, and a next
// attempt would be a second payment. So its word that nothing happened counts only
// when it is asked so long after the attempt that this cannot arrive any more, or
// when the outside refuses it from now on. What has happened counts at once.

// doubt is an attempt that a verifier is asked about.
type doubt struct {
	since time.Time // when this process learned of it: the attempt was begun before
	asked int       // how often the verifier said that nothing happened yet
}

// firstPause is how long a verifier is left alone before it is asked again; then
// twice as long each time.
const firstPause = time.Second

// beginDoubt notes when a verifier is to be asked about an attempt. It is called with
// mu held.
func (h *Host) beginDoubt(t receipt.Task) {
	if at := (attempt{t.Key, t.Attempt}); t.Work == receipt.Verify && h.doubts[at] == nil {
		h.doubts[at] = &doubt{since: time.Now()}
	}
}

// endDoubt notes that a verifier has answered. It is called with mu held.
func (h *Host) endDoubt(j *job) { delete(h.doubts, attempt{j.Key, j.Attempt}) }

// askLater has a verifier asked again whose answer does not count yet, and reports
// whether that is so. asked is when it was asked.
func (h *Host) askLater(j *job, found *receipt.Found, asked time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.doubts[attempt{j.Key, j.Attempt}]
	if d == nil || found.Verdict != receipt.NotHappened || found.Final {
		h.endDoubt(j)
		return false
	}
	settled := d.since.Add(j.effect.settles())
	if !asked.Before(settled) {
		h.endDoubt(j)
		found.Reason += fmt.Sprintf(", after %s", j.effect.settles())
		return false
	}
	wait := min(firstPause<<min(d.asked, 16), time.Until(settled))
	d.asked++
	time.AfterFunc(wait, func() { h.askAgain(j.Task) })
	return true
}

// overtaken answers for a verifier that was to be asked again, and the intent has had
// another attempt meanwhile: somebody else has decided. It is called with mu held.
func (h *Host) overtaken(j *job) receipt.Answer {
	h.endDoubt(j)
	return receipt.Answer{
		Key: j.Key, Attempt: j.Attempt, Work: j.Work,
		Found: &receipt.Found{Verdict: receipt.Unknown, Reason: "a later attempt of it is asked about"},
	}
}

// yield answers for a verifier whose lease is another's now: where that ran out, it
// has been answered for, and else a later attempt has it.
func (h *Host) yield(j *job) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if j.Work == receipt.Verify && !j.lost {
		h.addAnswer(h.overtaken(j))
	}
}

func (h *Host) askAgain(t receipt.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.crewOf(t).add(t)
	h.hire()
}
