package owner

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func FuzzFrame(f *testing.F) {
	for _, kind := range []frameKind{frameOut, frameErr, frameWant, framePrompt, frameExit, frameIn, frameAnswer, frameNobody, frameCancel} {
		f.Add([]byte{byte(kind), 0, 0, 0, 0})
		f.Add([]byte{byte(kind), 0, 0, 0, 1, 'x'})
	}
	f.Add([]byte{'o', 0xff, 0xff, 0xff, 0xff, 'x'})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := readFrame(bytes.NewReader(data))
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(got.data), maxFrameBytes)
		var again bytes.Buffer
		require.NoError(t, writeFrame(&again, got))
		require.Equal(t, data[:again.Len()], again.Bytes())
	})
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"version":1,"args":["status"],"origin":{"width":80,"console":true,"plain":false,"dir":"/","login":"ada","passphrase":null}}` + "\n"))
	f.Add([]byte("{}\n{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, again request
		if err := readHeader(bufio.NewReader(bytes.NewReader(data)), &got); err != nil {
			return
		}
		var out bytes.Buffer
		require.NoError(t, writeHeader(&out, got))
		require.NoError(t, readHeader(bufio.NewReader(&out), &again))
		require.Equal(t, got, again)
	})
}

func TestFramesCarryWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "data"), rapid.IntRange(0, 20_000).Draw(t, "times"))
		var wire bytes.Buffer
		for _, f := range frames(frameOut, data) {
			require.NoError(t, writeFrame(&wire, f))
		}
		var got []byte
		for {
			f, err := readFrame(&wire)
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
			got = append(got, f.data...)
		}
		require.True(t, bytes.Equal(data, got))
	})
}

func TestFramesThatAreNoneAreRefusedOnBothSides(t *testing.T) {
	for name, f := range map[string]frame{
		"a kind that is none":       {'?', nil},
		"an exit without its code":  {frameExit, nil},
		"a question with an answer": {frameWant, []byte("x")},
		"too many bytes":            {frameOut, make([]byte, maxFrameBytes+1)},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, writeFrame(io.Discard, f), errFrame)
			wire := append([]byte{byte(f.kind), 0, byte(len(f.data) >> 16), byte(len(f.data) >> 8), byte(len(f.data))}, f.data...)
			_, err := readFrame(bytes.NewReader(wire))
			require.ErrorIs(t, err, errFrame)
		})
	}
	_, err := readFrame(strings.NewReader("o\x00\x00\x00\x05torn"))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestHeadersHaveALimit(t *testing.T) {
	long := request{Args: []string{strings.Repeat("x", maxHeaderBytes)}}
	require.Error(t, writeHeader(io.Discard, long))
	var got request
	require.ErrorIs(t, readHeader(bufio.NewReader(strings.NewReader(strings.Repeat(" ", maxHeaderBytes+1))), &got), errFrame)
	require.ErrorIs(t, readHeader(bufio.NewReader(strings.NewReader(`{"version":1}`)), &got), io.EOF)
}
