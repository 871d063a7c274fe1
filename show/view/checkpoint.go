package view

import (
	"github.com/worldkernel/worldkernel/checkpoint"
	"github.com/worldkernel/worldkernel/journal/store"
)

// Checkpoint is a signed checkpoint, as `worldctl checkpoint --list -o json` prints it.
type Checkpoint struct {
	checkpoint.Checkpoint
	Note string `json:"note"` // as it is signed
}

// CheckpointOf returns a signed checkpoint as it is shown.
func CheckpointOf(s *store.Signed) Checkpoint { return Checkpoint{s.Checkpoint, string(s.Note)} }
