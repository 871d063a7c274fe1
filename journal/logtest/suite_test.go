package logtest

import (
	"testing"
	"time"

	"github.com/worldkernel/worldkernel/journal"
)

func TestMemoryIsALog(t *testing.T) {
	Run(t, func(*testing.T) func() journal.Log { return new(Server).Log })
}

func TestMemoryKeepsAttempts(t *testing.T) {
	RunAttempts(t, func(*testing.T) func() journal.Log { return (&Server{Lease: time.Minute}).Log })
}

func TestMemoryIsMovable(t *testing.T) {
	RunMovable(t, func(*testing.T) func() journal.Log { return new(Server).Log })
}
