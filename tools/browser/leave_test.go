package browser

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// Whose token is taken no more is told so, and sees nothing any more.
func TestWhoIsOustedIsTold(t *testing.T) {
	s := look(t, made(t, t.TempDir(), "town", "town"), "--manual")
	s.await("millbrook")
	s.script("void fetch('/api/sessions', { method: 'DELETE', headers: { Authorization: 'Bearer ' + JSON.parse(sessionStorage.getItem('worldkernel.session')).token } })")
	s.await("your token is not taken any more")
	require.NotContains(t, s.text(), "millbrook")
}

// Who leaves takes the token with them: nobody who has it is let in afterwards.
func TestWhoLeavesEndsTheSession(t *testing.T) {
	s := look(t, made(t, t.TempDir(), "town", "town"), "--manual")
	ctx, end := s.within()
	defer end()
	token, err := chromedp.Run(ctx, chromedp.Evaluate[string]("JSON.parse(sessionStorage.getItem('worldkernel.session')).token"))
	require.NoError(t, err)
	status := func() int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(s.url, "/ui/")+"/api/worlds", http.NoBody)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.StatusCode
	}
	require.Equal(t, http.StatusOK, status())
	s.until("[...document.querySelectorAll('aside button')].find((b) => b.innerText === 'leave')?.click() ?? true")
	s.await("Code or token")
	require.NotContains(t, s.text(), "not taken any more")
	require.Eventually(t, func() bool { return status() == http.StatusUnauthorized }, patience, 50*time.Millisecond)
}
