package api_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/serve/api"
)

// TestPageIsBoundedByItsBytes: a page ends where its items would have more bytes than a
// page may, and an item that has more by itself is a page of its own.
func TestPageIsBoundedByItsBytes(t *testing.T) {
	const most = 300 // bytes
	s := livedWithin(t, api.Limits{PageBytes: most})
	bytesOf := func(item map[string]any) int {
		if raw, ok := item["raw"].(string); ok {
			var data []byte
			require.NoError(t, json.Unmarshal([]byte(`"`+raw+`"`), &data))
			return len(data)
		}
		return 0
	}
	for path, key := range map[string]string{
		"records": "records", "records?cell=bot/a": "records", "timeline?cell=bot/a": "records", "receipts": "receipts", "decisions": "decisions",
	} {
		pages, items, last := 0, 0, 0.0
		for next := "/api/worlds/w/" + path; next != ""; pages++ {
			page := ok[map[string]any](s.get(next))
			held, _ := page[key].([]any)
			require.NotEmpty(t, held, path)
			bytes := 0
			for _, item := range held {
				is, _ := item.(map[string]any)
				bytes += bytesOf(is)
				if id, has := is["id"].(float64); has {
					require.Greater(t, id, last, path)
					last = id
				}
			}
			require.True(t, bytes <= most || len(held) == 1, "%s: %d bytes", path, bytes)
			items += len(held)
			next, _ = page["next"].(string)
		}
		require.Greater(t, pages, 1, path)
		whole := ok[map[string]any](lived(t).get("/api/worlds/w/" + path))
		require.Len(t, whole[key], items, path)
	}
	own := livedWithin(t, api.Limits{PageBytes: 1})
	for _, path := range []string{"records", "intents"} {
		page := ok[map[string]any](own.get("/api/worlds/w/" + path))
		require.Len(t, page[path], 1, "an item that is larger is a page of its own")
		require.NotNil(t, page["next"])
	}
}
