package store

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// crowdedFS has no descriptor left for the store's files while it is full.
type crowdedFS struct {
	vfs.FS

	full    atomic.Bool
	refused atomic.Int64
}

func (c *crowdedFS) refuse(op, name string) error {
	if !c.full.Load() {
		return nil
	}
	c.refused.Add(1)
	return &os.PathError{Op: op, Path: name, Err: syscall.EMFILE}
}

func (c *crowdedFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := c.refuse("create", name); err != nil {
		return nil, err
	}
	return c.FS.Create(name, category)
}

func (c *crowdedFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := c.refuse("reuse", newname); err != nil {
		return nil, err
	}
	return c.FS.ReuseForWrite(oldname, newname, category)
}

func (c *crowdedFS) OpenDir(name string) (vfs.File, error) {
	if err := c.refuse("open", name); err != nil {
		return nil, err
	}
	return c.FS.OpenDir(name)
}

func (c *crowdedFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if err := c.refuse("open", name); err != nil {
		return nil, err
	}
	return c.FS.Open(name, opts...)
}

// TestNoDescriptorEndsNoProcess appends, with changes of the log and flushes, while
// there is no descriptor: that waits, and goes on once there is one.
func TestNoDescriptorEndsNoProcess(t *testing.T) {
	files := &crowdedFS{FS: memFS(t)}
	opts := testOptions(files)
	opts.Fatal = func(err error) { panic(fmt.Sprintf("the process would end: %v", err)) }
	s, err := Create(testDir, opts)
	require.NoError(t, err)
	w := resume(s)
	big := strings.Repeat("x", 2<<10)
	appendAll(t, s, w.batch(big))
	for range 3 {
		files.full.Store(true)
		before := files.refused.Load()
		done := make(chan error, 1)
		go func() {
			for range 60 { // some memtables full
				p, err := s.Append(w.batch(big))
				if err == nil {
					err = p.Wait()
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
		require.Eventually(t, func() bool { return files.refused.Load() >= before+3 }, time.Minute, time.Millisecond)
		files.full.Store(false)
		require.NoError(t, <-done)
	}
	head := s.Head()
	require.NoError(t, s.Close())
	s, err = Open(testDir, testOptions(files))
	require.NoError(t, err)
	require.Equal(t, head, s.Head())
	require.Len(t, scanAll(t, s, 0), int(head.ID))
	require.Empty(t, damageOf(s))
	require.NoError(t, s.Close())

	files.full.Store(true)
	_, err = Open(testDir, testOptions(files))
	require.ErrorIs(t, err, syscall.EMFILE, "who opens a world is told")
}

// TestADescriptorIsNotWaitedForWithoutEnd: who closes a store does not wait for one for long, and what
// the process has waited for is told.
func TestADescriptorIsNotWaitedForWithoutEnd(t *testing.T) {
	files := &crowdedFS{FS: memFS(t)}
	said := make(chan string, 100)
	opts := testOptions(files)
	opts.Logf = func(format string, args ...any) {
		select {
		case said <- fmt.Sprintf(format, args...):
		default:
		}
	}
	s, err := Create(testDir, opts)
	require.NoError(t, err)
	w := resume(s)
	appendAll(t, s, w.batch("a"))
	acked := s.Head()
	files.full.Store(true)
	ended := make(chan error, 1)
	go func() {
		for {
			p, err := s.Append(w.batch(strings.Repeat("x", 2<<10)))
			if err == nil {
				err = p.Wait()
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	require.Regexp(t, `^store: w/\.world/store/\S+ waits for a file descriptor, of which the process has none left, for 1m0s at most: raise ulimit -n$`, <-said)
	_ = s.Close() // it cannot be flushed
	require.Error(t, <-ended)
	files.full.Store(false)
	s, err = Open(testDir, testOptions(files))
	require.NoError(t, err)
	require.GreaterOrEqual(t, s.Head().ID, acked.ID)
	require.Len(t, scanAll(t, s, 0), int(s.Head().ID))
	require.NoError(t, s.Close())
}
