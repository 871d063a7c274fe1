//go:build unix

package file

import (
	"io/fs"
	"syscall"
)

// facts returns how many names a file has, and how many bytes of it are on the disk.
func facts(info fs.FileInfo) (links uint64, onDisk int64, known bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return uint64(s.Nlink), s.Blocks * 512, true //nolint:unconvert // of other types on other systems
}

// OwnerOf returns the user whose file it is.
func OwnerOf(info fs.FileInfo) (uid int, known bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(s.Uid), true
}
