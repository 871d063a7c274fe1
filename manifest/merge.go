package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Conflict is a place at which two patches of a base differ. What is to stand there is for a person
// to say: no patch wins by coming last.
type Conflict struct {
	Path     string `json:"path"`     // where they meet; of two paths the shorter one
	Kind     string `json:"kind"`     // ConflictSamePath or ConflictPrefixOverlap
	Patches  []int  `json:"patches"`  // the two patches, by their index, the lower one first
	Ops      []Op   `json:"ops"`      // what each asks for, in that order; of several ops at one place the last
	Severity string `json:"severity"` // SeverityError or SeverityWarning; either way nothing is merged
}

// Kinds of Conflict.
const (
	ConflictSamePath      = "same_path"      // both change what is at Path
	ConflictPrefixOverlap = "prefix_overlap" // one changes what is at Path, the other something below it
)

// Severities of Conflict.
const (
	// SeverityError says that the two exclude each other.
	SeverityError = "error"
	// SeverityWarning says that both could be had, or one makes the other
	// needless: both append to a list, or move its items, or one removes or sets
	// as a whole what the other only changes, and has the same there.
	SeverityWarning = "warning"
)

// MaxMergePatches is the greatest number of patches that are merged at once.
const MaxMergePatches = 100

// PatchError says which of several patches cannot be merged, and why.
type PatchError struct {
	Patch int // its index
	Err   error
}

func (e *PatchError) Error() string { return fmt.Sprintf("patch %d: %s", e.Patch, e.Err) }

// Unwrap returns why.
func (e *PatchError) Unwrap() error { return e.Err }

// Merge returns what several patches of base make of it together, whatever their
// order, or all their conflicts, sorted by path, and no manifest. base stays as
// it is.
//
// Two patches conflict where one has an op at or above the path of an op of the
// other, unless they ask for the same there: equal ops are done once. Ops of one
// patch never conflict: the later ones count. A new version is an op on /version.
// What is appended to a list is at one path, "-" below the list. A patch that
// removes an item of a list moves others, so that all that it does to this list
// is an op on the whole list.
//
// The error is a *PatchError where a patch alone leads nowhere, with ErrOtherBase,
// ErrNoPath or ErrBadPatch, or is about what they make: ErrBadValue, or a
// *FaultsError.
func Merge(base *Manifest, patches []Patch) (*Manifest, []Conflict, error) {
	if len(patches) > MaxMergePatches {
		return nil, nil, fmt.Errorf("manifest: there are %d patches, at most %d are merged at once", len(patches), MaxMergePatches)
	}
	encoded, err := base.Encode()
	if err != nil {
		return nil, nil, err
	}
	claims := make([][]claim, len(patches))
	for i := range patches {
		if claims[i], err = claimsOf(encoded, &patches[i], i); err != nil {
			return nil, nil, &PatchError{Patch: i, Err: err}
		}
	}
	var conflicts []Conflict
	for j := range claims {
		for i := range j {
			conflicts = append(conflicts, meet(claims[i], claims[j])...)
		}
	}
	if len(conflicts) > 0 {
		slices.SortFunc(conflicts, func(a, b Conflict) int {
			return cmp.Or(strings.Compare(a.Path, b.Path), slices.Compare(a.Patches, b.Patches),
				strings.Compare(a.Ops[0].Path, b.Ops[0].Path), strings.Compare(a.Ops[1].Path, b.Ops[1].Path))
		})
		return nil, conflicts, nil
	}
	m, err := applyClaims(encoded, claims)
	return m, nil, err
}

// applyClaims returns what claims that do not conflict make of a manifest.
func applyClaims(base []byte, claims [][]claim) (*Manifest, error) {
	tree, err := canon.Decode(base)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	for i, all := range claims {
		slices.SortFunc(all, byOrder)
		for _, c := range all {
			if c.repeated {
				continue
			}
			if tree, err = c.op.apply(tree); err != nil {
				return nil, &PatchError{Patch: i, Err: c.wrap(err)}
			}
		}
	}
	return fromTree(tree, nil)
}
