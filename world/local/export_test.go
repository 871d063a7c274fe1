package local

import "github.com/worldkernel/worldkernel/journal/store"

// StoreOf returns the store of a world, for tests that put something into it.
func StoreOf(lw *World) *store.Store { return lw.store }
