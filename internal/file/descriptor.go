package file

import (
	"errors"
	"syscall"
	"time"
)

// descriptorWait is how long Patiently waits between two tries.
const descriptorWait = 20 * time.Millisecond

// NoDescriptor reports whether an error says that the process, or the machine, has no
// file descriptor left: not that anything is wrong with a file or a disk. They come
// back as connections end.
func NoDescriptor(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Patiently tries to open something until there is a descriptor, or for so long; 0:
// without end.
func Patiently[T any](limit time.Duration, try func() (T, error)) (T, error) {
	for waited := time.Duration(0); ; waited += descriptorWait {
		got, err := try()
		if !NoDescriptor(err) || limit > 0 && waited >= limit {
			return got, err
		}
		time.Sleep(descriptorWait) //nolint:forbidigo // nobody tells when a descriptor is free
	}
}
