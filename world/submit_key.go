package world

import (
	"crypto/sha256"
	"errors"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
)

// MaxSubmitKey is the greatest length of a submit key, in bytes.
const MaxSubmitKey = 255

// Why events under a key are refused; see Keyed.
var (
	ErrBadSubmitKey = errors.New("this cannot be the key of what is submitted")
	ErrKeyReused    = errors.New("something else was submitted under this key")
	ErrKeyUnderWay  = errors.New("the same is being submitted under this key at this moment, or what was begun under it is not remembered any more")
)

// SubmitKey makes an event idempotent: the world takes it once, however often it is submitted.
type SubmitKey struct {
	Name string       // 1 to MaxSubmitKey bytes of printable ASCII
	Of   journal.Hash // of all that is submitted together under it: Digest
	Nth  uint64       // its number among them, from 1
}

// Check returns why the key cannot be one.
func (k *SubmitKey) Check() error {
	strange := func(r rune) bool { return r < ' ' || r > '~' }
	if k.Name == "" || len(k.Name) > MaxSubmitKey || strings.ContainsFunc(k.Name, strange) {
		return refuse(ErrBadSubmitKey, "key", "want 1 to %d printable characters of ASCII", MaxSubmitKey)
	}
	return nil
}

// Digest is the hash of events that are submitted together, as the caller states them: a due time counts as
// written, not as the tick that the world makes of it.
type Digest struct {
	so  journal.Hash
	buf []byte
}

// Add adds an event.
func (d *Digest) Add(s *Submission) {
	to := ""
	if s.To != nil {
		to = s.To.String()
	}
	b := append(d.buf[:0], d.so[:]...)
	b = canon.AppendText(canon.AppendText(b, s.Name), to)
	b = canon.AppendUint(canon.AppendUint(b, uint64(s.At)), uint64(s.In))
	b = canon.AppendBool(b, s.Time != nil)
	if s.Time != nil {
		b = canon.AppendUint(b, uint64(*s.Time))
	}
	if len(s.Data) == 0 {
		b = append(b, canon.Null...)
	}
	b = append(b, s.Data...)
	d.so, d.buf = sha256.Sum256(b), b
}

// Sum returns the hash of what was added.
func (d *Digest) Sum() journal.Hash { return d.so }

// Keyed returns an event that is submitted once under a key, however often it is submitted.
func Keyed(s Submission, key string) Submission {
	var d Digest
	d.Add(&s)
	s.Key = &SubmitKey{Name: key, Of: d.Sum(), Nth: 1}
	return s
}

// keyBytes is the number of bytes of a hash that identify a key, or the events under it.
const keyBytes = 16

type keyHash [keyBytes]byte

// underKey is what was submitted under a key.
type underKey struct {
	_           struct{} `cbor:",toarray"`
	Key, Of     []byte   // the beginnings of hashes
	Count       uint64
	First, Last journal.Seq // records
}

// submits are the most recent keys, in the order of their first events.
type submits struct {
	list []*underKey
	by   map[keyHash]*underKey
}

func hashOfKey(name string) keyHash {
	sum := sha256.Sum256([]byte(name))
	return keyHash(sum[:keyBytes])
}

// get returns what was submitted under the name of a key; nil: nothing that is remembered.
func (s *submits) get(name string) *underKey { return s.by[hashOfKey(name)] }

// next returns why an event cannot be the next under its key.
func (s *submits) next(key *SubmitKey) error {
	was := s.get(key.Name)
	switch {
	case was != nil && !was.is(key):
		return refuse(ErrKeyReused, "key", "%q", key.Name)
	case was == nil && key.Nth != 1, was != nil && key.Nth != was.Count+1:
		return refuse(ErrKeyUnderWay, "key", "%q", key.Name)
	}
	return nil
}

func (u *underKey) is(key *SubmitKey) bool { return string(u.Of) == string(key.Of[:keyBytes]) }

// noteKey notes an event under its key, and forgets the oldest keys if there are more than most.
func (s *submits) noteKey(key *SubmitKey, id journal.Seq, most uint64) {
	hash := hashOfKey(key.Name)
	was := s.by[hash]
	if was == nil {
		was = &underKey{Key: hash[:], Of: append([]byte(nil), key.Of[:keyBytes]...), First: id}
		s.add(was)
	}
	was.Count, was.Last = key.Nth, id
	for uint64(len(s.list)) > most {
		delete(s.by, keyHash(s.list[0].Key))
		s.list[0] = nil
		s.list = s.list[1:]
	}
}

func (s *submits) add(u *underKey) {
	if s.by == nil {
		s.by = make(map[keyHash]*underKey)
	}
	s.list = append(s.list, u)
	s.by[keyHash(u.Key)] = u
}

// restore fills empty submits from those of an image.
func (s *submits) restore(saved []*underKey) {
	for _, u := range saved {
		s.add(u)
	}
}

// checkUnderKeys returns why the keys of an image are invalid.
func checkUnderKeys(saved []*underKey) error {
	for _, u := range saved {
		if u == nil || len(u.Key) != keyBytes || len(u.Of) != keyBytes {
			return errors.New("it has a key that is none")
		}
	}
	return nil
}

// Before says what was submitted under a key before.
type Before struct {
	Count       uint64      // events; 0: none
	First, Last journal.Seq // their records
}

// Submitted returns what was submitted before under a key, durable. The error is ErrKeyReused if that was
// something else.
func (w *World) Submitted(key *SubmitKey) (Before, error) {
	if err := key.Check(); err != nil {
		return Before{}, err
	}
	was := w.k.submits.get(key.Name)
	switch {
	case was == nil:
		return Before{}, w.readable()
	case !was.is(key):
		return Before{}, refuse(ErrKeyReused, "key", "%q has %d events, records #%d to #%d, which stay", key.Name, was.Count, was.First, was.Last)
	}
	return Before{was.Count, was.First, was.Last}, w.sync()
}

// sentBefore returns what came of an event that was submitted under its key before; false: it was not.
func (w *World) sentBefore(key *SubmitKey) (sent Sent, was bool, err error) {
	before, err := w.Submitted(key)
	if err != nil || before.Count < key.Nth {
		return sent, false, err
	}
	data, err := w.cfg.History.Record(before.First)
	if err != nil {
		return sent, false, err
	}
	rec, err := journal.DecodeRecord(data)
	if err != nil {
		return sent, false, err
	}
	body, err := rec.LoadBody(w.cfg.History)
	if errors.Is(err, journal.ErrRedacted) {
		return Sent{ID: before.First, To: []string{}}, true, nil
	}
	if err != nil {
		return sent, false, err
	}
	b, ok := body.(*journal.Submitted)
	if !ok {
		return sent, false, errors.New("world: a key is of a record that is none of an event")
	}
	return Sent{ID: before.First, Due: b.Due, To: b.To}, true, nil
}
