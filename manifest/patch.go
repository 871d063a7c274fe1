package manifest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/worldkernel/worldkernel/internal/canon"
)

// Patch is a change of one manifest into another: what a person proposes. Its
// bytes are its canonical CBOR, a map with the keys of the struct tags. A patch
// may name new contents, by their hash; it does not carry them.
type Patch struct {
	Base       Hash    `cbor:"base_manifest_hash" json:"base_manifest_hash"` // of the manifest that is changed
	Ops        []Op    `cbor:"ops" json:"ops"`                               // in this order
	NewVersion *uint64 `cbor:"new_version,omitempty" json:"new_version,omitempty"`
}

// Op is one step of a patch.
type Op struct {
	Op    string `cbor:"op" json:"op"`                         // OpSet or OpRemove
	Path  string `cbor:"path" json:"path"`                     // JSON pointer (RFC 6901) into the JSON form of the manifest
	Value Data   `cbor:"value,omitzero" json:"value,omitzero"` // set: what stands at Path afterwards; hashes and public keys are byte strings, as in a manifest's bytes
}

// Kinds of Op.
const (
	OpSet    = "set"    // puts Value at Path, whose parent is there; below a list, "-" is one after the last
	OpRemove = "remove" // takes away what is at Path; later items of a list move up
)

// MaxPatchOps is the greatest number of ops in a patch.
const MaxPatchOps = 100_000

// Reasons to refuse a patch. FaultsError is one more.
var (
	// ErrOtherBase says that a patch is for another manifest.
	ErrOtherBase = errors.New("manifest: the patch is for another manifest")
	// ErrNoPath says that an op's path leads nowhere.
	ErrNoPath = errors.New("manifest: no such path")
	// ErrBadValue says that what a patch makes has not the form of a manifest.
	ErrBadValue = errors.New("manifest: not the form of a manifest")
	// ErrBadPatch says that something is not a patch, whatever its base.
	ErrBadPatch = errors.New("manifest: not a patch")
)

// FaultsError is what Validate says about the manifest that a patch makes.
type FaultsError struct{ Faults []Fault }

func (e *FaultsError) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = f.Path + ": " + f.Msg
	}
	return "manifest: " + strings.Join(lines, "; ")
}

// Encode returns the canonical bytes of p, which DecodePatch takes. The error
// wraps ErrBadPatch where it would not.
func (p *Patch) Encode() ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	b, err := canon.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPatch, err)
	}
	return b, nil
}

// DecodePatch parses the canonical bytes of a patch. What it accepts encodes to
// the same bytes. The error wraps ErrBadPatch, and a *canon.SyntaxError with the
// offset where bytes are not what Encode would have written.
func DecodePatch(data []byte) (*Patch, error) {
	p := new(Patch)
	if err := canon.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPatch, err)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

// check reports what is wrong with p whatever its base.
func (p *Patch) check() error {
	if len(p.Ops) > MaxPatchOps {
		return fmt.Errorf("%w: it has %d ops, at most %d are allowed", ErrBadPatch, len(p.Ops), MaxPatchOps)
	}
	for i, op := range p.Ops {
		if err := op.check(); err != nil {
			return fmt.Errorf("%w: /ops/%d: %w", ErrBadPatch, i, err)
		}
	}
	return nil
}

func (o Op) check() error {
	path, err := parsePointer(o.Path)
	switch {
	case err != nil:
		return err
	case o.Op == OpSet && len(o.Value) == 0:
		return errors.New("set needs a value")
	case o.Op == OpRemove && o.Value != nil:
		return errors.New("remove has no value")
	case o.Op == OpRemove && len(path) == 0:
		return errors.New("the whole manifest cannot be removed")
	case o.Op != OpSet && o.Op != OpRemove:
		return fmt.Errorf("want %s or %s, not %q", OpSet, OpRemove, o.Op)
	}
	return nil
}

// Apply returns what p makes of base, which stays as it is. Nothing is filled
// in: the result has what the ops say, but for fields that may be absent and are
// empty, which are. Its version is NewVersion, whatever the ops say. The error
// wraps ErrBadPatch, ErrOtherBase, ErrNoPath or ErrBadValue, with the path, or is
// a *FaultsError.
func (p *Patch) Apply(base *Manifest) (*Manifest, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	hash, tree, err := base.tree()
	if err != nil {
		return nil, err
	}
	if hash != p.Base {
		return nil, fmt.Errorf("%w: its base is %s, not %s", ErrOtherBase, p.Base, hash)
	}
	for i, op := range p.Ops {
		if tree, err = op.apply(tree); err != nil {
			return nil, fmt.Errorf("%w: /ops/%d: %s %q", err, i, op.Op, op.Path)
		}
	}
	return fromTree(tree, p.NewVersion)
}

// apply returns tree, which it changes, after the op.
func (o Op) apply(tree any) (any, error) {
	path, err := parsePointer(o.Path)
	if err != nil {
		return nil, err
	}
	last := remove
	if o.Op == OpSet {
		value, err := canon.Decode(o.Value)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBadPatch, err)
		}
		if len(path) == 0 {
			return value, nil
		}
		last = set(value)
	}
	tree, ok := edit(tree, path, last)
	if !ok {
		return nil, ErrNoPath
	}
	return tree, nil
}

// tree returns m's hash, and m as what canon.Decode makes of its bytes.
func (m *Manifest) tree() (Hash, any, error) {
	encoded, err := m.Encode()
	if err != nil {
		return Hash{}, nil, err
	}
	tree, err := canon.Decode(encoded)
	if err != nil {
		return Hash{}, nil, fmt.Errorf("manifest: %w", err)
	}
	return canon.Sum(encoded), tree, nil
}

// fromTree returns the valid manifest that a tree, which it changes, stands for; its
// version is another where one is given. The error wraps ErrBadValue, or is a *FaultsError.
func fromTree(tree any, version *uint64) (*Manifest, error) {
	var encoded []byte
	m := new(Manifest)
	tree, err := fit(reflect.TypeFor[Manifest](), tree, "")
	if err == nil {
		encoded, err = canon.Marshal(tree)
	}
	if err == nil {
		m, err = Decode(encoded)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadValue, err)
	}
	if version != nil {
		m.Version = *version
	}
	if faults := m.Validate(); len(faults) > 0 {
		return nil, &FaultsError{faults}
	}
	return m, nil
}
