package worldctl

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/worldkernel/worldkernel/host/trust"
)

// maxTrustBytes tells a trust file from a file that is none.
const maxTrustBytes = 1 << 20

const trustHint = "worldctl worker --help has an example"

// readTrust reads what a worker or a server does for worlds, from a file that nobody else may write. Without one it is
// what needs no secret, no program and no file.
func readTrust(file string) (*trust.Trust, error) {
	if file == "" {
		return &trust.Trust{}, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir(), info.Mode()&fs.ModeDevice != 0:
		return nil, hinted(fmt.Errorf("%s: it is no file", file), trustHint)
	case info.Mode().Perm()&0o022 != 0:
		return nil, hinted(fmt.Errorf("%s: others can write it", file), "chmod go-w %s", file)
	case info.Size() > maxTrustBytes:
		return nil, hinted(fmt.Errorf("%s: it is too large for a trust file: more than %d bytes", file, maxTrustBytes), trustHint)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTrustBytes))
	if err != nil {
		return nil, err
	}
	t, err := trust.Parse(data)
	if err != nil {
		return nil, hinted(fmt.Errorf("%s: %w", file, err), trustHint)
	}
	return t, nil
}
