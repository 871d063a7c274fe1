package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// What a catalog answers to a name.
var (
	ErrBadName      = errors.New("snapshot: bad name")
	ErrNameTaken    = errors.New("snapshot: the name is taken")
	ErrNoSnapshot   = errors.New("snapshot: no such snapshot")
	ErrAmbiguous    = errors.New("snapshot: several snapshots have this hash prefix")
	ErrPinned       = errors.New("snapshot: it is pinned")
	ErrLastSnapshot = errors.New("snapshot: the last one stays")
)

const (
	maxNameBytes   = 64
	minPrefix      = 6 // hex digits of a hash that stand for a snapshot
	catalogVersion = 1
)

// Snapshot is what a world's journal says of one of its snapshots.
type Snapshot struct {
	_      struct{} `cbor:",toarray"`
	Name   string   `json:"name"`
	Record uint64   `json:"record"` // snapshot.created, which names it uniquely
	At     uint64   `json:"at"`     // the last record before it
	Time   uint64   `json:"time"`   // the tick
	Root   Hash     `json:"chain_root"`
	State  Hash     `json:"state_root"`
	Cells  uint64   `json:"cells"`
	Label  string   `json:"label"`
	Pinned bool     `json:"pinned"`
	Hash   Hash     `json:"hash"` // of what Record says of it
}

// Catalog is the snapshots of a world that are kept, from the oldest, and the
// rule by which they go: while there are more than Max, the oldest that is
// neither pinned nor the last. The zero value is empty and keeps all. It is not
// safe for concurrent use, and its copy is no second catalog.
type Catalog struct {
	Made uint64 // snapshots that were ever added
	Max  uint64 // 0: no limit; SetMax changes it

	list []Snapshot // by Record
}

// All returns a copy of the snapshots, from the oldest.
func (c *Catalog) All() []Snapshot { return slices.Clone(c.list) }

// Len returns the number of snapshots.
func (c *Catalog) Len() int { return len(c.list) }

// Last returns the newest snapshot; its Record is 0 where there is none.
func (c *Catalog) Last() Snapshot {
	if len(c.list) == 0 {
		return Snapshot{}
	}
	return c.list[len(c.list)-1]
}

// Records returns the Record of each snapshot, ascending.
func (c *Catalog) Records() []uint64 {
	records := make([]uint64, len(c.list))
	for i := range c.list {
		records[i] = c.list[i].Record
	}
	return records
}

// Find returns the snapshot of that name, or whose hash begins with it: six
// lower-case hex digits or more. Its errors are ErrNoSnapshot and ErrAmbiguous.
func (c *Catalog) Find(name string) (Snapshot, error) {
	if i := c.index(name); i >= 0 {
		return c.list[i], nil
	}
	found := -1
	for i := range c.list {
		if !isPrefix(name) || !strings.HasPrefix(c.list[i].Hash.String(), name) {
			continue
		}
		if found >= 0 {
			return Snapshot{}, fmt.Errorf("%w: %q", ErrAmbiguous, name)
		}
		found = i
	}
	if found < 0 {
		return Snapshot{}, fmt.Errorf("%w: %q", ErrNoSnapshot, name)
	}
	return c.list[found], nil
}

// Check reports, as ErrBadName or ErrNameTaken, whether a snapshot of that name
// cannot be added. A name has 1 to 64 ASCII letters, digits, '-', '_' and '.',
// begins with neither '-' nor '.', and must not read as a record (digits only)
// or as a hash prefix (six lower-case hex digits or more).
func (c *Catalog) Check(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if c.index(name) >= 0 {
		return fmt.Errorf("%w: %s", ErrNameTaken, name)
	}
	return nil
}

// NextName returns the name for a snapshot that is given none: s1 for the first,
// s2 for the second, or the next that is free.
func (c *Catalog) NextName() string {
	for n := c.Made + 1; ; n++ {
		if name := "s" + strconv.FormatUint(n, 10); c.index(name) < 0 {
			return name
		}
	}
}

// Add makes s the last snapshot and returns the names of those that go for it,
// from the oldest. Check must have passed its name, and its Record must be
// after At and after all in the catalog: Add panics otherwise.
func (c *Catalog) Add(s Snapshot) (pruned []string) {
	if err := c.Check(s.Name); err != nil {
		panic(err)
	}
	last := c.Last()
	if s.Record <= last.Record || s.Record <= s.At {
		panic(fmt.Sprintf("snapshot: record #%d added after #%d, at #%d", s.Record, last.Record, s.At))
	}
	c.list = append(c.list, s)
	c.Made++
	return c.retain()
}

// SetMax changes how many snapshots are kept and returns the names of those
// that go for it, from the oldest. 0 is no limit.
func (c *Catalog) SetMax(n uint64) (pruned []string) {
	c.Max = n
	return c.retain()
}

// Pin keeps the snapshot of exactly that name whatever Max is, or no longer. One
// that is too many goes at the next Add or SetMax. Its error is ErrNoSnapshot.
func (c *Catalog) Pin(name string, pinned bool) error {
	i := c.index(name)
	if i < 0 {
		return fmt.Errorf("%w: %q", ErrNoSnapshot, name)
	}
	c.list[i].Pinned = pinned
	return nil
}

// Prune removes the snapshot of exactly that name. Its errors are ErrNoSnapshot,
// ErrPinned, and ErrLastSnapshot for the newest.
func (c *Catalog) Prune(name string) error {
	i := c.index(name)
	switch {
	case i < 0:
		return fmt.Errorf("%w: %q", ErrNoSnapshot, name)
	case i == len(c.list)-1:
		return fmt.Errorf("%w: %s", ErrLastSnapshot, name)
	case c.list[i].Pinned:
		return fmt.Errorf("%w: %s", ErrPinned, name)
	}
	c.list = slices.Delete(c.list, i, i+1)
	return nil
}

// retain removes what the rule of Catalog lets go.
func (c *Catalog) retain() (pruned []string) {
	kept := c.list[:0]
	for i, s := range c.list {
		excess := c.Max > 0 && uint64(len(c.list)-len(pruned)) > c.Max
		if excess && !s.Pinned && i < len(c.list)-1 {
			pruned = append(pruned, s.Name)
		} else {
			kept = append(kept, s)
		}
	}
	clear(c.list[len(kept):])
	c.list = kept
	return pruned
}

// index returns the place of the snapshot of that name, or -1.
func (c *Catalog) index(name string) int {
	return slices.IndexFunc(c.list, func(s Snapshot) bool { return s.Name == name })
}

const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

func checkName(name string) error {
	switch {
	case name == "" || len(name) > maxNameBytes:
		return fmt.Errorf("%w: it has %d bytes, not 1 to %d", ErrBadName, len(name), maxNameBytes)
	case !only(name, letters+digits+"-_."):
		return fmt.Errorf("%w: %q has more than letters, digits, '-', '_' and '.'", ErrBadName, name)
	case name[0] == '-' || name[0] == '.':
		return fmt.Errorf("%w: %q begins with %q", ErrBadName, name, name[:1])
	case only(name, digits):
		return fmt.Errorf("%w: %q reads as a record", ErrBadName, name)
	case isPrefix(name):
		return fmt.Errorf("%w: %q reads as the beginning of a hash", ErrBadName, name)
	}
	return nil
}

// isPrefix reports whether s reads as the beginning of a hash.
func isPrefix(s string) bool { return len(s) >= minPrefix && only(s, digits+"abcdef") }

func only(s, set string) bool { return strings.Trim(s, set) == "" }

// catalogForm is a catalog's canonical form.
type catalogForm struct {
	_       struct{} `cbor:",toarray"`
	Version uint64
	Made    uint64
	Max     uint64
	List    []Snapshot
}

// MarshalCBOR returns the canonical bytes of c.
func (c Catalog) MarshalCBOR() ([]byte, error) {
	return canon.Marshal(catalogForm{Version: catalogVersion, Made: c.Made, Max: c.Max, List: c.list})
}

// UnmarshalCBOR makes c the catalog whose MarshalCBOR wrote data. It refuses
// what no catalog writes; c is then as it was.
func (c *Catalog) UnmarshalCBOR(data []byte) error {
	var form catalogForm
	if err := canon.Unmarshal(data, &form); err != nil {
		return fmt.Errorf("snapshot: catalog: %w", err)
	}
	if err := form.validate(); err != nil {
		return fmt.Errorf("snapshot: catalog: %w", err)
	}
	*c = Catalog{Made: form.Made, Max: form.Max}
	c.list = append(c.list, form.List...) // nil for none, as in the zero value
	return nil
}

func (f *catalogForm) validate() error {
	if f.Version != catalogVersion {
		return fmt.Errorf("unknown version %d", f.Version)
	}
	names := make(map[string]bool, len(f.List))
	var last uint64
	for _, s := range f.List {
		if err := checkName(s.Name); err != nil {
			return err
		}
		if names[s.Name] {
			return fmt.Errorf("%w: %s", ErrNameTaken, s.Name)
		}
		if s.Record <= last || s.Record <= s.At {
			return fmt.Errorf("%s at #%d is record #%d, after record #%d", s.Name, s.At, s.Record, last)
		}
		names[s.Name], last = true, s.Record
	}
	// Each that was made has a record, and the last of them is there.
	if f.Made < uint64(len(f.List)) || f.Made > last {
		return fmt.Errorf("%d snapshots made, %d kept, the last in record #%d", f.Made, len(f.List), last)
	}
	return nil
}
