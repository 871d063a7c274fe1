package host

import (
	"errors"
	"io"
	"os"
	"time"
)

// drainTime is how long what a program has written is read for at least, whenever this process comes to it.
const drainTime = 100 * time.Millisecond

// outputs are what a program writes to. os/exec would let go of what is there and not read within
// its delay: of a process that is starved, or stopped, that was all.
type outputs struct {
	pipes []*outlet
}

// outlet is one of them.
type outlet struct {
	ours, its *os.File
	to        io.Writer
	ended     chan struct{} // closed when nobody has the other end, or the time is over
}

// open returns the end of a program of one more.
func (o *outputs) open(to io.Writer) (*os.File, error) {
	ours, its, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o.pipes = append(o.pipes, &outlet{ours, its, to, make(chan struct{})})
	return its, nil
}

// startReading begins to read, once the program has started.
func (o *outputs) startReading() {
	for _, p := range o.pipes {
		_ = p.its.Close()
		go func() {
			defer close(p.ended)
			_, _ = io.Copy(p.to, p.ours)
		}()
	}
}

// await gives whoever still writes until then.
func (o *outputs) await(until time.Time) {
	for _, p := range o.pipes {
		_ = p.ours.SetReadDeadline(until)
	}
	for _, p := range o.pipes {
		<-p.ended
	}
}

// drain reads what is there.
func (o *outputs) drain() {
	for _, p := range o.pipes {
		_ = p.ours.SetReadDeadline(time.Now().Add(drainTime))
		_, _ = io.Copy(p.to, p.ours)
	}
}

// Close lets go of all.
func (o *outputs) Close() error {
	var faults []error
	for _, p := range o.pipes {
		faults = append(faults, p.ours.Close(), p.its.Close())
	}
	return errors.Join(faults...)
}
