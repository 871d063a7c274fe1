package view_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/reducer"
	"github.com/worldkernel/worldkernel/show/view"
)

func TestPrintedTextCannotLookLikeAnything(t *testing.T) {
	e := view.Entry{Printed: []reducer.Print{
		{Place: "a\u202e.star:1:2", Text: "one\ntwo\x1b[2J"},
		{Place: "a.star:3:4"},
	}}
	require.Equal(t, []string{"a<U+202E>.star:1:2  one", "a<U+202E>.star:1:2  two<U+001B>[2J", "a.star:3:4  "}, e.PrintedLines())
}
