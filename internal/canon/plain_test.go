package canon_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
)

func TestWhatDoesNotFitIsSaidWithoutTheLibrarysWords(t *testing.T) {
	var config struct {
		Name  string            `cbor:"name"`
		Bytes uint64            `cbor:"bytes"`
		Codes []uint64          `cbor:"codes"`
		Heads map[string]string `cbor:"heads"`
		On    bool              `cbor:"on"`
	}
	for text, want := range map[string]string{
		`{"name": 7}`: "config: name has to be a text", `{"bytes": "7"}`: "config: bytes has to be a whole number",
		`{"codes": 7}`: "config: codes has to be a list", `{"heads": [7]}`: "config: heads has to be a mapping",
		`{"on": 7}`: "config: on has to be true or false", `[]`: "config: it has to be something else",
	} {
		data, err := canon.FromJSON([]byte(text))
		require.NoError(t, err)
		err = fmt.Errorf("config: %w", canon.UnmarshalTrusted(data, &config))
		require.ErrorContains(t, err, "cbor:", "what journals hold stays as it is")
		require.EqualError(t, canon.Plain(err), want)
		require.ErrorIs(t, canon.Plain(err), err)
	}
	other := errors.New("another")
	require.Equal(t, other, canon.Plain(other))
}

func TestBrokenJSONIsSaidWithoutTheLibrarysWords(t *testing.T) {
	for text, want := range map[string]string{
		``: "canon: $: not JSON: it ends in the middle", `{"a": [1,`: "canon: $.a[1]: not JSON: it ends in the middle",
		`{"a": x}`: "canon: $.a: not JSON near byte 4", `x`: "canon: $: not JSON near byte 1",
	} {
		_, err := canon.FromJSON([]byte(text))
		require.EqualError(t, err, want)
	}
	_, err := canon.FromPrintedJSON([]byte(`x`))
	require.EqualError(t, err, "canon: $: not JSON: invalid character 'x' looking for beginning of value", "failed steps hold these words")
	var line struct{ Raw []byte }
	require.EqualError(t, canon.PlainJSON(json.Unmarshal([]byte(`{"raw": 7}`), &line)), "Raw cannot be a JSON number")
	require.EqualError(t, canon.PlainJSON(json.Unmarshal([]byte(`{"raw": "?"}`), &line)), "not base64 from byte 1 on")
	require.NoError(t, canon.PlainJSON(nil))
}
