package owner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"kind":"out","data":"eA=="}` + "\n" + `{"kind":"exit","data":"AA=="}` + "\n"))
	f.Add([]byte(`{"kind":"want"}`))
	f.Add([]byte("{}\n\n{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		from := linesOf(bytes.NewReader(data))
		for {
			var got, again message
			if err := from.next(&got); err != nil {
				return
			}
			var out bytes.Buffer
			require.NoError(t, json.NewEncoder(&out).Encode(got))
			require.NoError(t, linesOf(&out).next(&again))
			require.Equal(t, got.Kind, again.Kind)
			require.True(t, bytes.Equal(got.Data, again.Data))
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"args":["status"],"origin":{"width":80,"console":true,"plain":false,"dir":"/","login":"ada","passphrase":null}}` + "\n"))
	f.Add([]byte("{}\n{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, again request
		if err := linesOf(bytes.NewReader(data)).next(&got); err != nil {
			return
		}
		var out bytes.Buffer
		require.NoError(t, json.NewEncoder(&out).Encode(got))
		require.NoError(t, linesOf(&out).next(&again))
		require.Equal(t, got, again)
	})
}

func TestMessagesCarryWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "data"), rapid.IntRange(0, 20_000).Draw(t, "times"))
		var wire bytes.Buffer
		for _, m := range messages(kindOut, data) {
			require.LessOrEqual(t, len(m.Data), maxDataBytes)
			require.NoError(t, json.NewEncoder(&wire).Encode(m))
		}
		var got []byte
		for from := linesOf(&wire); ; {
			var m message
			if err := from.next(&m); err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
			got = append(got, m.Data...)
		}
		require.True(t, bytes.Equal(data, got))
	})
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	require.ErrorIs(t, linesOf(strings.NewReader(`{"kind":"out","da`)).next(new(message)), errMessage)
	require.ErrorIs(t, linesOf(strings.NewReader("o\x00\x00\x00\x00\n")).next(new(message)), errMessage)
	for _, sent := range []string{`{"kind":"?"}`, `{"kind":"exit"}`, `{"kind":"in","data":"eA=="}`} {
		_, err := new(remote).follow(t.Context(), linesOf(strings.NewReader(sent+"\n")))
		require.ErrorIs(t, err, errMessage)
	}
}

func TestLinesHaveALimit(t *testing.T) {
	_, err := post(t.Context(), t.TempDir(), request{Args: []string{strings.Repeat("x", maxLineBytes)}}, nil) //nolint:bodyclose // there is none
	require.ErrorContains(t, err, "longer than")
	require.ErrorIs(t, linesOf(strings.NewReader(strings.Repeat(" ", maxLineBytes+1))).next(new(request)), bufio.ErrTooLong)
	require.ErrorIs(t, linesOf(strings.NewReader("")).next(new(request)), io.EOF)
}
