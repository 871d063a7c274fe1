package worker

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/worldkernel/worldkernel/internal/file"
)

const ownDir = ".worker"

// claim keeps other processes from working with a directory.
func claim(own string) (io.Closer, error) {
	if err := makeOwn(own); err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	path := filepath.Join(own, "lock")
	if info, err := os.Lstat(path); err == nil { // a lock is emptied
		if err := file.CheckWritable(path, info); err != nil {
			return nil, fmt.Errorf("worker: %w", err)
		}
	}
	lock, err := vfs.Default.Lock(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInUse, filepath.Dir(own), err)
	}
	return lock, nil
}

// nameOf returns the name of the worker whose directory it is: the server takes
// what is left there from nobody else. A new one gets the name that is wanted, or
// one that no other has.
func nameOf(own, want string) (string, error) {
	at := filepath.Join(own, "name")
	data, err := os.ReadFile(at)
	is := strings.TrimSuffix(string(data), "\n")
	switch {
	case err == nil && is != "" && want != "" && want != is:
		return "", fmt.Errorf("%w: it is %q, not %q", ErrOtherName, is, want)
	case err == nil && is != "":
		return is, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("worker: %w", err)
	}
	if want == "" {
		want = newName()
	}
	if err := file.Put(at, []byte(want+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("worker: %w", err)
	}
	return want, nil
}

func newName() string {
	const most = 64 // bytes of a machine's name
	machine, err := os.Hostname()
	if err != nil || machine == "" {
		machine = "worker"
	}
	random := make([]byte, 4)
	_, _ = rand.Read(random) // it never errs
	return machine[:min(len(machine), most)] + "-" + hex.EncodeToString(random)
}

// worldDir returns the directory for what is kept of a world, whose id a server may
// have named.
func worldDir(own, id string) (string, error) {
	const most = 64
	ok := id != "" && len(id) <= most && strings.Trim(id, ".") != ""
	for _, c := range id {
		ok = ok && (c == '-' || c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
	}
	if !ok {
		return "", fmt.Errorf("worker: %q is not an id of a world", id)
	}
	dir := filepath.Join(own, "worlds", id)
	if err := makeOwn(dir); err != nil {
		return "", fmt.Errorf("worker: %w", err)
	}
	return dir, nil
}
