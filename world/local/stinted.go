package local

import (
	"bufio"
	"fmt"
	"io"

	"github.com/worldkernel/worldkernel/world"
)

// itemShare is what part of Bounds.Memory one item of an export may have in bytes: read,
// it takes many times as much.
const itemShare = 16

// stinted reads an export of which nobody knows how long it is.
type stinted struct {
	*bufio.Reader
	bounds Bounds
	read   uint64 // in all
	item   uint64 // since the last item
}

func newStinted(r io.Reader, b Bounds) *stinted {
	return &stinted{Reader: bufio.NewReaderSize(r, 1<<20), bounds: b}
}

// nextItem says that what is read from here on is another item. What decodes reads ahead
// of it a little.
func (r *stinted) nextItem() { r.item = 0 }

// Read implements io.Reader.
func (r *stinted) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.read += uint64(n)
	r.item += uint64(n)
	if r.read > r.bounds.Size {
		return 0, &SizeError{r.bounds.Size}
	}
	if most := r.bounds.Memory / itemShare; r.item > most {
		return 0, fmt.Errorf("an item of the file: %w", &world.BoundError{
			Name: "memory", Bound: r.bounds.Memory, What: fmt.Sprintf("more than %d bytes", most),
		})
	}
	return n, err
}
