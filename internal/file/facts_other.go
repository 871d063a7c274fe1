//go:build !unix

package file

import "io/fs"

// facts knows nothing here.
func facts(fs.FileInfo) (links uint64, onDisk int64, known bool) { return 0, 0, false }

// OwnerOf knows nothing here.
func OwnerOf(fs.FileInfo) (uid int, known bool) { return 0, false }
