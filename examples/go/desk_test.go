package main

import (
	"testing"

	"github.com/worldkernel/worldkernel/world/worldtest"
)

func TestATicketIsAnswered(t *testing.T) {
	o := options()
	w := worldtest.Load(t, ".", worldtest.Options{Reducers: o.Reducers, Adapters: o.Adapters})
	w.Submit("ticket.opened", opened{ID: "7", Text: "no tea"})
	w.Run()
	if got := w.State("ticket/7"); got != `{"text":"no tea","letter":"ok"}` {
		t.Error(got)
	}
	w.RequireReplay()
}
