//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package file

import "errors"

// Lock answers errors.ErrUnsupported: here files cannot be locked so, but by files beside them.
func Lock(uintptr) error { return errors.ErrUnsupported }

// Unlock is Lock's.
func Unlock(uintptr) error { return errors.ErrUnsupported }

// Locked is Lock's.
func Locked(uintptr) (bool, error) { return false, errors.ErrUnsupported }
