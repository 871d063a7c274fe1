package worldctl

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/world/source"
)

// sources are a world file and the files that it names, there or not, as they were when
// they were read.
//
// They are looked at again and again. They are a handful, so that costs next to nothing,
// and it works wherever files do: over network mounts, and with editors that put another
// file in the place of one. Being told of changes by the system needs a dependency, a way
// for each system, and an eye on all their directories.
type sources struct {
	file  string            // the world file
	known map[string]string // by path: what is there, see stamp
}

// readSources lets load read them, and notes which they are.
func (s *sources) readSources(load func(opened source.Option)) {
	before := s.now()
	names := []string{s.file}
	load(source.WithOpened(func(name string) {
		names = append(names, filepath.Join(filepath.Dir(s.file), filepath.FromSlash(name)))
	}))
	s.known = make(map[string]string)
	for _, name := range names {
		was, ok := before[name] // what changes from here on may not have been read
		if !ok {
			was = stamp(name)
		}
		s.known[name] = was
	}
}

// now returns what there is at the paths that are known.
func (s *sources) now() map[string]string {
	now := map[string]string{s.file: stamp(s.file)}
	for name := range s.known {
		now[name] = stamp(name)
	}
	return now
}

// changed waits until something is there that was not read, and has stayed for one look:
// editors save in steps. It returns the paths that have changed, in order, or the error of
// ctx.
func (s *sources) changed(ctx context.Context, looks <-chan time.Time) ([]string, error) {
	last := s.known
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-looks:
		}
		now := s.now()
		if maps.Equal(now, last) && !maps.Equal(now, s.known) {
			var changed []string
			for _, name := range slices.Sorted(maps.Keys(now)) {
				if now[name] != s.known[name] {
					changed = append(changed, relative(name))
				}
			}
			return changed, nil
		}
		last = now
	}
}

// stampedBytes is up to where a file's content is looked at each time. A larger one is
// known by its size and the time of its change.
const stampedBytes = 1 << 20

// stamp says what is at a path, so that it can be compared: empty for nothing.
func stamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if info.Size() <= stampedBytes && info.Mode().IsRegular() {
		if data, err := os.ReadFile(path); err == nil { //nolint:gosec // the person's own
			return canon.Sum(data).String()
		}
	}
	return strconv.FormatInt(info.Size(), 10) + " " + info.ModTime().UTC().Format(time.RFC3339Nano)
}
