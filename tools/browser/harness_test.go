package browser

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// patience is how long anything may take before it is taken for a failure. No test passes
// by being fast.
const patience = time.Minute

// chromium returns where the browser is, or skips the test, which CI may not.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("skipped: no chromium here; apt-get install chromium")
	return ""
}

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "worldctl-browser-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "worldctl")
	cmd := exec.Command("go", "build", "-trimpath", "-o", program, "./cmd/worldctl")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return program, err
})

func TestMain(m *testing.M) {
	if os.Getenv(agentEnv) != "" {
		if err := beAgent(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if program, err := built(); err == nil {
		_ = os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

// worldctl runs the program in a directory. Its exit code may say that something waits, or has halted.
func worldctl(t *testing.T, dir string, args ...string) string {
	t.Helper()
	program, err := built()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil {
		require.ErrorAs(t, err, &exit, "%v: %s", args, out)
		require.Contains(t, []int{0, 1, 6}, exit.ExitCode(), "%v: %s", args, out)
	}
	return string(out)
}

// support makes a world of the support desk in which one refund waits for a person and one
// is in doubt.
func support(t *testing.T) string { return made(t, t.TempDir(), "desk", "support") }

// made makes a world of a template, sends it its events and runs it.
func made(t *testing.T, dir, name, template string) string {
	t.Helper()
	worldctl(t, dir, "init", name, "--template", template)
	world := filepath.Join(dir, name)
	feed(t, world)
	worldctl(t, world, "run", "-q")
	return world
}

// feed sends a world its events.jsonl.
func feed(t *testing.T, world string) {
	t.Helper()
	program, err := built()
	require.NoError(t, err)
	events, err := os.Open(filepath.Join(world, "events.jsonl"))
	require.NoError(t, err)
	defer func() { require.NoError(t, events.Close()) }()
	send := exec.CommandContext(t.Context(), program, "send", "-")
	send.Dir, send.Stdin = world, events
	out, err := send.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// sight is a page in a browser.
type sight struct {
	t   *testing.T
	ctx context.Context
	url string

	mu     sync.Mutex
	faults []string // exceptions, refusals of the policy, dialogs, requests to elsewhere
}

// look has worldctl ui serve worlds, and opens the page as a person would.
func look(t *testing.T, dir string, args ...string) *sight {
	t.Helper()
	program, err := built()
	require.NoError(t, err)
	serving := exec.Command(program, append([]string{"ui", "--no-browser"}, args...)...)
	serving.Dir = dir
	said, err := serving.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, serving.Start())
	t.Cleanup(func() {
		_ = serving.Process.Signal(os.Interrupt)
		_ = serving.Wait()
	})
	var url, code string
	for lines := bufio.NewScanner(said); code == "" && lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "page: "); ok {
			url = rest
		}
		if _, rest, ok := strings.Cut(lines.Text(), "for a minute: "); ok {
			code = rest
		}
	}
	require.NotEmpty(t, code)
	s := open(t, url)
	s.do(chromedp.Navigate(url+"#code="+code), chromedp.WaitVisible(chromedp.CSS("main table tbody tr")))
	return s
}

// open opens a browser for a page, which it has not been led to yet.
func open(t *testing.T, url string) *sight {
	t.Helper()
	path := chromium(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 800),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true))
	browser, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	tab, end := chromedp.NewContext(browser)
	t.Cleanup(end)
	s := &sight{t: t, ctx: tab, url: url}
	require.NoError(t, chromedp.Do(tab)) // starts the browser, for as long as the test takes
	require.NoError(t, chromedp.Listen(tab, s.hear))
	for _, begin := range []func() error{
		func() error { _, err := chromedp.Call(tab, network.Enable, network.EnableParams{}); return err },
		func() error { _, err := chromedp.Call(tab, log.Enable, cdp.Empty{}); return err },
	} {
		require.NoError(t, begin())
	}
	t.Cleanup(func() {
		if t.Failed() {
			s.picture("failed")
		}
		s.quiet()
	})
	return s
}

// hear takes note of what no page of ours does.
func (s *sight) hear(event any) {
	fault := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		fault = "exception: " + e.ExceptionDetails.Text + fmt.Sprintf(" %+v", e.ExceptionDetails.Exception)
	case *page.EventJavascriptDialogOpening:
		fault = "dialog: " + e.Message
	case *network.EventRequestWillBeSent:
		if from := e.Request.URL; from != s.url && !strings.HasPrefix(from, strings.TrimSuffix(s.url, "/ui/")+"/") && !strings.HasPrefix(from, "data:") {
			fault = "request: " + from
		}
	case *log.EventEntryAdded:
		if e.Entry.Source == "security" || strings.Contains(e.Entry.Text, "Content Security Policy") {
			fault = "policy: " + e.Entry.Text
		}
	}
	if fault != "" {
		s.fault(fault)
	}
}

func (s *sight) fault(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, text)
}

// quiet fails the test if the page has done what it must not.
func (s *sight) quiet() {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(s.t, s.faults)
}

// within bounds what is done.
func (s *sight) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.ctx, patience)
}

// do does things one after the other.
func (s *sight) do(actions ...chromedp.Action[chromedp.Void]) {
	s.t.Helper()
	ctx, end := s.within()
	defer end()
	require.NoError(s.t, chromedp.Do(ctx, actions...))
}

// keys presses them, one after the other, as a keyboard does: one that the page takes types
// nothing into the field that it leads to. chromedp types it in any case.
func (s *sight) keys(keys ...string) {
	s.t.Helper()
	for _, k := range keys {
		events := kb.Encode([]rune(k)[0])
		down, up := *events[0], *events[len(events)-1]
		if len(events) == 3 {
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		for _, event := range []input.DispatchKeyEventParams{down, up} {
			ctx, end := s.within()
			_, err := chromedp.Call(ctx, input.DispatchKeyEvent, event)
			end()
			require.NoError(s.t, err)
		}
	}
}

// view goes to a view by its keys.
func (s *sight) view(key, name string) {
	s.t.Helper()
	s.keys("g", key)
	s.until("document.querySelector('main h1')?.innerText.startsWith('" + name + "') && document.querySelector('main .command') !== null")
}

// until waits until an expression of the page is true.
func (s *sight) until(expression string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		ctx, end := s.within()
		defer end()
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		return err == nil && is
	}, patience, 20*time.Millisecond, expression)
}

// text is what a person reads.
func (s *sight) text() string {
	s.t.Helper()
	ctx, end := s.within()
	defer end()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.getElementById('app')?.innerText ?? ''"))
	require.NoError(s.t, err)
	return text
}

// await waits until a person reads something.
func (s *sight) await(want string) {
	s.t.Helper()
	last := ""
	defer func() {
		if s.t.Failed() {
			s.t.Logf("%q is not on the page:\n%s", want, last)
		}
	}()
	require.Eventually(s.t, func() bool {
		last = s.text()
		return strings.Contains(last, want)
	}, patience, 20*time.Millisecond)
}

// picture keeps how the page looks, where PICTURES names a directory.
func (s *sight) picture(name string) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		return
	}
	ctx, end := s.within()
	defer end()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600))
}
