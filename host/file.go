package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/receipt"
)

// maxFileEntries is how many entries a directory may have that is listed.
const maxFileEntries = 10_000

// openNonblock keeps the opening of a pipe or a device from waiting.
const openNonblock = syscall.O_NONBLOCK

// Why a file is not touched.
var (
	errNotRegular = errors.New("not a regular file")
	errNotDir     = errors.New("not a directory")
	errLink       = errors.New("a symbolic link, and none is followed")
	errSwapped    = errors.New("replaced while it was opened")
	errWorld      = errors.New("the world's own directory")
)

// file reads, writes, appends to and lists files below one directory. It
// follows no symbolic link there, touches nothing but regular files and
// directories, makes no directory and never gets to the world's own one.
type file struct{ setup Setup }

// newFile is the factory of file adapters; see governance.ParseFile for their
// config and params.
func newFile(s Setup) (Adapter, error) {
	_, err := governance.ParseFile(s.Config, nil)
	if fault, ok := errors.AsType[*governance.CapError](err); ok && fault.Code == governance.CodeBadConfig { // the params come with each call
		return nil, err
	}
	return &file{s}, nil
}

func (a *file) Perform(ctx context.Context, call Call) (Result, error) {
	t, err := governance.ParseFile(a.setup.Config, call.Permit.Params)
	if err != nil {
		return unsentFault(err), nil
	}
	if err := ctx.Err(); err != nil {
		return unsentFault(err), nil
	}
	if call.Cap.Type == manifest.CapFile && call.Cap.Params.MaxBytes > 0 {
		t.MaxBytes = min(t.MaxBytes, call.Cap.Params.MaxBytes) // of what is read as well
	}
	var result Result
	switch t.Op {
	case governance.FileRead:
		result, err = a.readTarget(t)
	case governance.FileList:
		result, err = a.list(t)
	case governance.FileWrite:
		result, err = a.write(ctx, t, call.Permit)
	default:
		result, err = a.append(t)
	}
	switch {
	case errors.As(err, new(*doubtError)):
		return Result{}, fmt.Errorf("file %s: %w", t.Resource(), err)
	case err != nil:
		return unsentFault(fmt.Errorf("%s %s: %w", t.Op, t.Resource(), err)), nil
	}
	return result, nil
}

func (a *file) readTarget(t *governance.FileTarget) (Result, error) {
	data, err := readFile(a.setup.Dir, t, t.MaxBytes)
	if err != nil {
		return Result{}, err
	}
	var content any = data
	if utf8.Valid(data) {
		content = string(data)
	}
	payload, err := canon.Marshal(map[string]any{
		"data": content, "size": len(data), "content_hash": canon.Sum(data).String(),
	})
	return Result{Status: receipt.StatusOK, Payload: payload, Cost: receipt.Cost{Bytes: uint64(len(data))}}, err
}

// readFile returns the content of a regular file of at most limit bytes.
func readFile(dir string, t *governance.FileTarget, limit uint64) ([]byte, error) {
	f, info, err := openTarget(dir, t)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	if uint64(info.Size()) > limit {
		return nil, fileTooLarge(overMaxBytes, limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, info.Size()+1))
	if err == nil && uint64(len(data)) > limit { // it has grown
		err = fileTooLarge(overMaxBytes, limit)
	}
	return data, err
}

const overMaxBytes = "more than %d bytes; max_bytes of the config, or of the capability, allows no more"

func fileTooLarge(format string, limit uint64) error {
	return &governance.CapError{Code: governance.CodeTooLarge, Reason: fmt.Sprintf(format, limit)}
}

func (a *file) list(t *governance.FileTarget) (Result, error) {
	d, err := openDir(a.setup.Dir, t.Root, t.Path)
	if err != nil {
		return Result{}, err
	}
	defer d.Close() //nolint:errcheck // a directory
	names, err := entryNames(d.Root)
	if err != nil {
		return Result{}, err
	}
	entries := make([]any, 0, len(names))
	for _, name := range names {
		info, err := d.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.hidden(info) {
			continue
		}
		if err != nil {
			return Result{}, err
		}
		entry := map[string]any{"name": strings.ToValidUTF8(name, "\uFFFD"), "type": entryType(info.Mode())}
		if info.Mode().IsRegular() {
			entry["size"] = info.Size()
		}
		entries = append(entries, entry)
	}
	payload, err := canon.Marshal(map[string]any{"entries": entries})
	return Result{Status: receipt.StatusOK, Payload: payload, Cost: receipt.Cost{Bytes: uint64(len(payload))}}, err
}

// entryNames returns the names in a directory, sorted, without those that a
// write under way has.
func entryNames(d *os.Root) ([]string, error) {
	f, err := d.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	names, err := f.Readdirnames(maxFileEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > maxFileEntries {
		return nil, fileTooLarge("more than %d entries", maxFileEntries)
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, temporary), nil
}

func entryType(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "dir"
	case mode&fs.ModeSymlink != 0:
		return "link"
	default:
		return "other"
	}
}

// unsentFault is the result of an effect that changed nothing or, where something of a request may
// have left, that can be done again.
func unsentFault(err error) Result {
	if secret := (*SecretError)(nil); errors.As(err, &secret) {
		return Refused(err)
	}
	r := Result{Status: receipt.StatusError, Unsent: true, Short: Short(err)}
	code := "failed"
	var denied *governance.CapError
	var fault *noAnswerError
	switch {
	case errors.As(err, &denied):
		code = string(denied.Code)
	case errors.As(err, new(*addressError)):
		code = "address_not_allowed"
	case errors.As(err, &fault):
		code, r.Class, r.Unsent = "unreachable", receipt.OutcomeRetryableFailure, !fault.left
		if timed, ok := errors.AsType[net.Error](err); ok && timed.Timeout() {
			code, r.Status = "timeout", receipt.StatusTimeout
		}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		r.Status, r.Class, code = receipt.StatusTimeout, receipt.OutcomeRetryableFailure, "timeout"
	case errors.Is(err, fs.ErrNotExist):
		code = "not_found"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, errNotRegular), errors.Is(err, errNotDir), errors.Is(err, errLink), errors.Is(err, errWorld):
		code = "refused"
	case transient(err):
		r.Class, code = receipt.OutcomeRetryableFailure, "busy"
	}
	r.Payload = failure(code, strings.ToValidUTF8(err.Error(), "\uFFFD"))
	return r
}

// transient reports failures that may be over when it is tried again.
func transient(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.EBUSY, syscall.EDQUOT, syscall.EINTR, syscall.EIO, syscall.ENOSPC, syscall.ESTALE, syscall.ETXTBSY,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return Short(err) || errors.Is(err, errSwapped) || errors.Is(err, errInput)
}

// cause returns what went wrong without the path of this machine that it went
// wrong with.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return link.Err
	}
	return err
}
