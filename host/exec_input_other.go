//go:build !linux

package host

import (
	"errors"
	"os"
)

func sealed([]byte) (*os.File, error) { return nil, errors.ErrUnsupported }
