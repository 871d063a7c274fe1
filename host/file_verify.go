package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// fileVerifier compares files with what file effects wrote. It has no config:
// the effect's says where the files are.
type fileVerifier struct {
	setup Setup  // with the effect's config
	root  string // cleaned
}

func newFileVerifier(s Setup) (Verifier, error) {
	if err := s.Decode(&struct{}{}); err != nil {
		return nil, err
	}
	s.Config = s.Effect.Config
	if _, err := newFile(s); err != nil {
		return nil, fmt.Errorf("the file verifier is for effects of the file adapter: %w", err)
	}
	var config struct {
		Root     string `cbor:"root"`
		Op       string `cbor:"op"`
		MaxBytes uint64 `cbor:"max_bytes"`
	}
	if err := s.Decode(&config); err != nil {
		return nil, err
	}
	return &fileVerifier{s, path.Clean(config.Root)}, nil
}

func (v *fileVerifier) Verify(ctx context.Context, call Call) (receipt.Found, error) {
	if err := ctx.Err(); err != nil {
		return receipt.Found{}, err
	}
	t, err := governance.ParseFile(v.setup.Config, call.Permit.Params)
	if err != nil {
		return receipt.Found{Verdict: receipt.NotHappened, Final: true, Reason: err.Error()}, nil // as Perform said, too
	}
	switch t.Op {
	case governance.FileWrite:
		return v.verifyWrite(t)
	case governance.FileAppend:
		return v.verifyAppend(t, call.Permit.Occurrence)
	default:
		return receipt.Found{Verdict: receipt.NotHappened, Final: true, Reason: "op " + t.Op + " changes nothing and can be done again"}, nil
	}
}

// verifyWrite says that a write happened where the file has its data: had it
// not happened, doing it again would change nothing.
func (v *fileVerifier) verifyWrite(t *governance.FileTarget) (receipt.Found, error) {
	data, err := readFile(v.setup.Dir, t, uint64(len(t.Data)))
	var fault *governance.CapError // too large to be the same
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return receipt.Found{Verdict: receipt.NotHappened, Reason: t.Resource() + " does not exist"}, nil
	case errors.As(err, &fault), err == nil && !bytes.Equal(data, t.Data):
		return receipt.Found{Verdict: receipt.NotHappened, Reason: t.Resource() + " has another content"}, nil
	case err != nil:
		return unknown(t.Resource(), err), nil
	}
	return happened(t, "has the content that was to be written")
}

// verifyAppend says that an append happened where its data are the end of the
// file and nowhere else in it. Anything else could have several reasons: equal
// data appended before, other data appended since, a file that was cut.
func (v *fileVerifier) verifyAppend(t *governance.FileTarget, occurrence uint64) (receipt.Found, error) {
	data, err := readFile(v.setup.Dir, t, max(t.MaxBytes, maxVerifiedBytes))
	switch {
	case err != nil:
		return unknown(t.Resource(), err), nil
	case len(t.Data) == 0 || occurrence > 0:
		return unknown(t.Resource(), errors.New("the same was appended before")), nil
	case !bytes.HasSuffix(data, t.Data) || bytes.Index(data, t.Data) != len(data)-len(t.Data):
		return unknown(t.Resource(), errors.New("the data are not at its end, or elsewhere as well")), nil
	}
	return happened(t, "ends with the data")
}

// maxVerifiedBytes is the size of files that are looked through for appended
// data, where max_bytes is less.
const maxVerifiedBytes = 64 << 20

func happened(t *governance.FileTarget, what string) (receipt.Found, error) {
	payload, err := writtenPayload(t)
	return receipt.Found{Verdict: receipt.Happened, Payload: payload, Reason: t.Resource() + " " + what}, err
}

func unknown(resource string, err error) receipt.Found {
	return receipt.Found{Verdict: receipt.Unknown, Reason: fmt.Sprintf("%s: %v", resource, cause(err))}
}

func (v *fileVerifier) Confirm(ctx context.Context, _ Call, r *receipt.Receipt) (receipt.Found, error) {
	if err := ctx.Err(); err != nil {
		return receipt.Found{}, err
	}
	change := r.StateChange
	if change == nil {
		return receipt.Found{Verdict: receipt.Happened, Reason: "it changed nothing"}, nil
	}
	t, err := v.target(change.Resource)
	if err != nil {
		return unknown(change.Resource, err), nil
	}
	now, err := hashFile(v.setup.Dir, t, change.Version)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return receipt.Found{Verdict: receipt.NotHappened, Reason: change.Resource + " does not exist"}, nil
	case err != nil:
		return unknown(change.Resource, err), nil
	case now != change.ContentHash:
		reason := fmt.Sprintf("%s has content hash %s, the receipt says %s", change.Resource, now, change.ContentHash)
		return receipt.Found{Verdict: receipt.NotHappened, Reason: reason}, nil
	}
	return receipt.Found{Verdict: receipt.Happened, Reason: change.Resource + " has the receipt's content hash"}, nil
}

// target returns the file that a receipt names, by the rules for the path of a
// file effect.
func (v *fileVerifier) target(resource string) (*governance.FileTarget, error) {
	below := resource
	if v.root != "." {
		var found bool
		if below, found = strings.CutPrefix(resource, strings.TrimSuffix(v.root, "/")+"/"); !found {
			return nil, fmt.Errorf("it is not below %s, which is config.root now", v.root)
		}
	}
	config, err := canon.Marshal(map[string]any{"root": v.root})
	if err != nil {
		return nil, err
	}
	params, err := canon.Marshal(map[string]any{"op": governance.FileRead, "path": below})
	if err != nil {
		return nil, err
	}
	return governance.ParseFile(config, params)
}

// hashFile hashes a regular file, or the part of it that an append's version
// names.
func hashFile(dir string, t *governance.FileTarget, version string) (h canon.Hash, err error) {
	f, info, err := openTarget(dir, t)
	if err != nil {
		return h, err
	}
	defer f.Close() //nolint:errcheck // only read
	from, to := int64(0), info.Size()
	if version != "" {
		if _, err := fmt.Sscanf(version, appendedAt, &from, &to); err != nil {
			return h, fmt.Errorf("version %q is not one of an append", version)
		}
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, from, to-from)); err != nil {
		return h, cause(err)
	}
	return canon.Hash(sum.Sum(nil)), nil
}
