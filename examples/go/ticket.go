package main

import "github.com/worldkernel/worldkernel/reducer"

// ticket is the state of a cell; its zero value is that of a new one.
type ticket struct {
	Text   string `cbor:"text"`
	Letter string `cbor:"letter"` // what became of it
}

type opened struct {
	ID   string `cbor:"id"`
	Text string `cbor:"text"`
}

type letter struct {
	Text string `cbor:"text"`
}

// handle is the reducer: it must depend on nothing but what it is given.
func handle(ctx *reducer.Context, t ticket, e reducer.Event) (ticket, error) {
	if e.Name == reducer.ReceiptEvent {
		r, err := reducer.Decode[reducer.Receipt](e.Data)
		t.Letter = r.Status
		return t, err
	}
	o, err := reducer.Decode[opened](e.Data)
	ctx.Effect("letter.send", letter{Text: "We have got it: " + o.Text}, "")
	return ticket{Text: o.Text, Letter: "on its way"}, err
}
