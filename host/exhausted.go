package host

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/worldkernel/worldkernel/receipt"
)

// Short reports whether an error says that this process, or its machine, has no file
// descriptor, process or memory left: not that anything is wrong with what was to begin. A
// program for whose descriptors there are no numbers left does not start with EBADF.
func Short(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EAGAIN, syscall.EBADF, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	lookup := (*net.DNSError)(nil) // which keeps only the text of its cause
	return errors.As(err, &lookup) && strings.HasSuffix(lookup.Err, syscall.EMFILE.Error())
}

// awaitMeans waits a moment after an attempt that came to a Short result, and reports whether
// it is to be made again, with all of its time. What has waited for a lease is given back,
// with its reason: an owner elsewhere would take it for lost.
func (h *Host) awaitMeans(j *job, r *Result) bool {
	if j.short.IsZero() {
		j.short = time.Now()
	}
	awaitMoment(h.tame)
	j.context.endAttempt()
	now := time.Now()
	if h.tame.Err() == nil && now.Sub(j.short) < h.cfg.Lease && h.leases.restart(j, now) {
		j.context = attemptContext{}
		return true
	}
	*r = Result{Status: receipt.StatusCancelled, Class: receipt.OutcomeRetryableFailure, Unsent: true, Short: true, Payload: r.Payload}
	return false
}
