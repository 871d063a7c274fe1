package host

import (
	"errors"
	"fmt"
	"os"
)

// errInput says that a program was not started for want of its input. It hides
// why from unsentFault: a missing directory for temporary files is no missing
// program.
var errInput = errors.New("what it is to read could not be put into a file")

// newInput returns a file that holds all that a program is to read, open at its
// beginning. The caller closes it. A pipe would end where this process is
// killed, and the program would act on a part of its params, or on none.
func newInput(data []byte) (*os.File, error) {
	f, err := sealed(data)
	if err != nil { // there are systems, and containers, without files in memory
		f, err = unlinked(data)
	}
	if err != nil {
		if Short(err) {
			return nil, cause(err)
		}
		return nil, fmt.Errorf("%w: %s", errInput, cause(err).Error())
	}
	return f, nil
}

// unlinked returns a temporary file without a name. The name goes before the
// data comes, so that who is killed between leaves an empty file.
func unlinked(data []byte) (*os.File, error) {
	f, err := os.CreateTemp("", temporaryPrefix+"*"+temporarySuffix)
	if err != nil {
		return nil, err
	}
	if err = os.Remove(f.Name()); err == nil {
		_, err = f.WriteAt(data, 0) // the offset, which the program inherits, stays at 0
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
