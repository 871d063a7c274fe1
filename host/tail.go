package host

import (
	"strings"
	"sync"
)

// maxFormBytes is more than any form of a secret has that is found: eight times
// escaped.
const maxFormBytes = 8 * maxSecretBytes

// Tail is an io.Writer that keeps the end of what is written to it, such as what a
// program complains of. It is safe for concurrent use.
type Tail struct {
	secrets *secrets // nil: none
	size    int      // bytes

	mu   sync.Mutex
	kept []byte
}

// Tail returns a buffer of the last size bytes. Cut with it what came from outside: a part of a
// secret is not found any more.
func (s Setup) Tail(size int) *Tail { return &Tail{secrets: s.secrets, size: size} }

// Head returns the beginning of what came from outside, size bytes at most. It ends before a secret that would be cut.
func (s Setup) Head(text []byte, size int) string {
	end := min(len(text), size)
	if s.secrets != nil {
		for _, m := range s.secrets.find(string(text[:min(len(text), size+maxFormBytes)])) {
			if m.from < end && end < m.to {
				end = m.from
			}
		}
	}
	return strings.ToValidUTF8(string(text[:end]), "")
}

// Write keeps enough before the end that a secret is there as a whole.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	room := t.size + maxFormBytes
	t.kept = append(t.kept, p[max(0, len(p)-room):]...)
	if len(t.kept) > 2*room { // not for every write
		t.kept = append(t.kept[:0], t.kept[len(t.kept)-room:]...)
	}
	return len(p), nil
}

// String returns the end as text, without blanks around it and with references in
// the place of secrets.
func (t *Tail) String() string {
	t.mu.Lock()
	text := string(t.kept)
	t.mu.Unlock()
	var found []match
	if t.secrets != nil {
		found = t.secrets.find(text)
	}
	end := replace(text, found, max(0, len(text)-t.size))
	return strings.TrimSpace(strings.ToValidUTF8(end, "\uFFFD"))
}
