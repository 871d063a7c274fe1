package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// doubtError says that nobody can tell what became of a file.
type doubtError struct{ err error }

func (e *doubtError) Error() string { return "in doubt: " + e.err.Error() }
func (e *doubtError) Unwrap() error { return e.err }

// Names of files that are being written: they become others, or vanish.
const (
	temporaryPrefix = ".worldkernel-"
	temporarySuffix = ".tmp"
)

func temporary(name string) bool {
	return strings.HasPrefix(name, temporaryPrefix) && strings.HasSuffix(name, temporarySuffix)
}

// write replaces a file as a whole: until the rename nothing has changed, and
// after it all has.
func (a *file) write(ctx context.Context, t *governance.FileTarget, p receipt.Permit) (Result, error) {
	d, name, err := openParent(a.setup.Dir, t)
	if err != nil {
		return Result{}, err
	}
	defer d.Close() //nolint:errcheck // a directory
	old, err := d.lstatRegular(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Result{}, err
	}
	// No other attempt has this name, also none of a process that has ended.
	temp := temporaryPrefix + p.Key.String()[:32] + "-" + strconv.FormatUint(p.Attempt, 10) + temporarySuffix
	err = writeTemp(d, temp, t.Data, old)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = d.Rename(temp, name)
	}
	if err != nil {
		err = cause(err)
		if left := d.Remove(temp); left != nil && !errors.Is(left, fs.ErrNotExist) {
			return Result{}, &doubtError{errors.Join(err, left)}
		}
		return Result{}, err
	}
	if err := d.sync(); err != nil {
		return Result{}, &doubtError{fmt.Errorf("it is written but may not survive a crash: %w", cause(err))}
	}
	return written(t, "")
}

// writeTemp makes a file that takes the place of old, if there is one.
func writeTemp(d *fileDir, name string, data []byte, old fs.FileInfo) error {
	f, err := d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil && old != nil {
		err = f.Chmod(old.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// append adds to the end of a file, which it makes if there is none. What went
// wrong half-way is not cut off again: others may have appended since.
func (a *file) append(t *governance.FileTarget) (Result, error) {
	d, name, err := openParent(a.setup.Dir, t)
	if err != nil {
		return Result{}, err
	}
	defer d.Close() //nolint:errcheck // a directory
	const flag = os.O_WRONLY | os.O_APPEND
	f, _, err := openRegular(d, name, flag)
	made := errors.Is(err, fs.ErrNotExist)
	if made {
		f, err = d.OpenFile(name, flag|os.O_CREATE|os.O_EXCL, 0o644)
	}
	if err != nil {
		return Result{}, cause(err)
	}
	n, err := f.Write(t.Data)
	if err != nil && n == 0 && !made {
		return Result{}, errors.Join(cause(err), f.Close())
	}
	var end int64
	if err == nil {
		end, err = f.Seek(0, io.SeekCurrent)
	}
	err = errors.Join(err, f.Sync(), f.Close())
	if made {
		err = errors.Join(err, d.sync())
	}
	if err != nil {
		return Result{}, &doubtError{fmt.Errorf("%d of %d bytes are appended: %w", n, len(t.Data), cause(err))}
	}
	return written(t, fmt.Sprintf(appendedAt, end-int64(n), end))
}

// appendedAt is the form of the version after an append: their hash is compared
// where the data are, so that later appends do no harm.
const appendedAt = "bytes %d-%d"

// written is the result of a write or an append.
func written(t *governance.FileTarget, version string) (Result, error) {
	payload, err := writtenPayload(t)
	return Result{
		Status: receipt.StatusOK, Payload: payload, Cost: receipt.Cost{Bytes: uint64(len(t.Data))},
		StateChange: &receipt.StateChange{Resource: t.Resource(), Version: version, ContentHash: canon.Sum(t.Data)},
	}, err
}

func writtenPayload(t *governance.FileTarget) (receipt.Data, error) {
	return canon.Marshal(map[string]any{"bytes": len(t.Data), "content_hash": canon.Sum(t.Data).String()})
}
