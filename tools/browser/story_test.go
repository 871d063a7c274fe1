package browser

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// proposed makes a world of the support desk in which two refunds wait for a person and one
// is in doubt, and ann has proposed that smaller ones are read, too.
func proposed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	desk := filepath.Join(dir, "desk")
	worldctl(t, dir, "init", "desk", "--template", "support")
	for name, line := range map[string]string{ // order cannot show: each is a file
		"shop/orders.jsonl": `{"order": "E-5", "customer": "eve", "cents": 90000}`,
		"events.jsonl":      `{"event": "refund.asked", "data": {"order": "E-5", "why": "it is too loud"}}`,
	} {
		text, err := os.ReadFile(filepath.Join(desk, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(desk, name), append(text, line+"\n"...), 0o600))
	}
	feed(t, desk)
	worldctl(t, desk, "run", "-q")
	rules, err := os.ReadFile(filepath.Join(desk, "world.yaml"))
	require.NoError(t, err)
	stricter := strings.NewReplacer("cents > 50000", "cents > 1000", "version: 1", "version: 2").Replace(string(rules))
	require.NoError(t, os.WriteFile(filepath.Join(desk, "world.yaml"), []byte(stricter), 0o600))
	worldctl(t, desk, "propose", "-m", "small refunds are read, too", "--as", "ann")
	worldctl(t, desk, "shadow", "p1")
	return desk
}

// The story of the support desk, from first look to approval, denial, doubt resolved and rule
// change signed, by keyboard alone: the journal says the same.
func TestStoryOfTheDesk(t *testing.T) {
	desk := proposed(t)
	key := filepath.Join(t.TempDir(), "ann")
	worldctl(t, desk, "keys", "new", "--approver", key)
	s := look(t, desk, "--manual")
	s.await("2 awaiting approval, 1 in doubt")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("3 wait for a person")
	s.await("wants refund.pay")
	second := "desk/E-5 wants refund.pay"
	if strings.Contains(s.text(), second) { // they are in the order in which their lookups were answered
		second = "desk/B-2 wants refund.pay"
	}
	s.keys("a")
	s.decide("the piano is on its way")
	s.await("2 wait for a person")
	s.keys("j")
	s.await(second)
	s.keys("d")
	s.decide("it is loud for everybody")
	s.await("1 waits for a person")
	s.keys("j")
	s.await("desk/D-4 wants refund.pay")
	s.keys("y")
	s.decide("it is in the book")
	s.await("nothing waits")
	s.view("r", "Rules")
	s.await("allows less")
	s.await("0 of 1")
	s.picture("rules")
	text := s.text()
	require.Less(t, strings.Index(text, "4,500"), strings.Index(text, "1,200"), "most money comes first")
	require.Contains(t, text, "Unknown beyond here")
	require.Contains(t, text, "worldkernel approval v1")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("By p1")
	s.await("require_approval")
	s.picture("rules-beside")
	s.view("r", "Rules")
	s.await("It would not be applied: approvals are missing: 0 of 1")
	worldctl(t, desk, "approve", "p1", "--key", key, "-m", "both would have been read", "--as", "ann") // where the key is
	s.await("It would be applied")
	s.await("both would have been read")
	s.keys("x")
	s.do(chromedp.WaitVisible(chromedp.CSS(".form button:focus")), chromedp.KeyEvent(kb.Enter))
	s.until("document.querySelector('main .stage.applied') !== null")
	s.await("in force: v2")
	said := worldctl(t, desk, "tail")
	for _, want := range []string{"approves", "the piano is on its way", "denies", "it is loud for everybody", "it is in the book", "both would have been read", "p1 is applied"} {
		require.Contains(t, said, want)
	}
}

// What worldctl tells of a proposal the page tells, and a signature that was made elsewhere
// approves it.
func TestSignatureIsPasted(t *testing.T) {
	desk := proposed(t)
	var p struct {
		Statement string
		Loses     []struct{ Text string }
		Missing   []string
		Report    struct {
			Decisions []struct{ Cell, Params string } `json:"decisions_changed"`
			Unknown   []struct{ Why string }
			Cells     []struct{ Cell string } `json:"cells_changed"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(worldctl(t, desk, "proposal", "show", "p1", "-o", "json")), &p))
	s := look(t, desk, "--manual", "--scope", "read,approve")
	s.do(chromedp.Focus(chromedp.CSS("main table a")), chromedp.KeyEvent(kb.Enter))
	s.await("wait for a person")
	s.view("r", "Rules")
	s.await("allows less")
	text := s.text()
	wanted := []string{p.Loses[0].Text, p.Missing[0], p.Report.Unknown[0].Why}
	wanted = append(wanted, strings.Split(strings.TrimSpace(p.Statement), "\n")...)
	for _, d := range p.Report.Decisions {
		wanted = append(wanted, d.Cell, d.Params)
	}
	for _, c := range p.Report.Cells {
		wanted = append(wanted, c.Cell)
	}
	for _, want := range wanted {
		require.Contains(t, text, want)
	}
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(p.Statement)))
	s.do(chromedp.Focus(chromedp.CSS(".form summary")), chromedp.KeyEvent(kb.Enter),
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(hex.EncodeToString(public)), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(signature),
		chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("read on the train"), chromedp.KeyEvent(kb.Enter))
	s.until("document.querySelector('main .stage.approved') !== null")
	s.await("read on the train")
	require.NotContains(t, s.text(), "Apply", "which takes the scope admin")
	require.Contains(t, worldctl(t, desk, "proposal", "show", "p1"), "read on the train")
}
