package world

// IntentsInMemory returns how many entries of the ledger are in memory.
func (w *World) IntentsInMemory() int { return w.k.ledger.Len() - w.k.ledger.Away() }
