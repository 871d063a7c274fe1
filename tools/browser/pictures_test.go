package browser

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// maxPicture is how many bytes a picture of the documentation has at most.
const maxPicture = 80 << 10

// TestPictures makes the pictures of docs/ui.md in the directory that DOCS names: make
// pictures has them made. They are of worlds that the program comes with.
func TestPictures(t *testing.T) {
	dir := os.Getenv("DOCS")
	if dir == "" {
		t.Skip("skipped: DOCS names no directory for pictures")
	}
	at := filepath.Join(os.TempDir(), "worlds") // which is seen
	require.NoError(t, os.Mkdir(at, 0o700))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(at)) })
	desk := wide(look(t, made(t, at, "desk", "support"), "--manual", "--scope", "read,approve"))
	desk.do(chromedp.Click(chromedp.CSS("main table a")))
	desk.await("desk/B-2 wants refund.pay")
	desk.await("event.submitted")
	desk.keep(filepath.Join(dir, "inbox.png"))
	town := wide(look(t, made(t, at, "town", "town"), "--manual"))
	town.do(chromedp.Click(chromedp.CSS("main table a")))
	town.await("Inbox")
	world := "#/" + town.world()
	town.at(world + "/timeline?of=93&filter=person")
	town.await("It answered")
	town.until("document.querySelector('main .list [aria-current=true]') !== null")
	town.keep(filepath.Join(dir, "timeline.png"))
	town.at(world + "/cells?of=person%2Fada&at=93")
	town.await("What its last step changed")
	town.await("Its way")
	town.keep(filepath.Join(dir, "cell.png"))
}

// TestPicturesOfModels makes the plots in the README.md of each example that has an experiment,
// in the directory that EXAMPLES names: one figure of the page that sweep report writes.
func TestPicturesOfModels(t *testing.T) {
	dir := os.Getenv("EXAMPLES")
	if dir == "" {
		t.Skip("skipped: EXAMPLES names no directory for pictures")
	}
	for name, figure := range map[string]struct{ section, measure string }{
		"commons":   {"Over time", "gave"},
		"elfarol":   {"Over time", "came"},
		"schelling": {"Over city.wanted", "alike"},
		"sir":       {"Over time", "infectious"},
		"wealth":    {"Over time", "coins.gini"},
	} {
		t.Run(name, func(t *testing.T) {
			at := filepath.Join(t.TempDir(), name)
			worldctl(t, ".", "init", at, "--template", name)
			worldctl(t, at, "sweep", name+".yaml")
			worldctl(t, at, "sweep", "report")
			s := open(t, "file://"+filepath.Join(at, "results", "report.html"))
			s.do(chromedp.EmulateViewport(600, 400), chromedp.Navigate(s.url))
			s.until("document.querySelector('#plots figure svg') !== null")
			s.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => {
				const title = (of, name) => of.querySelector(name).textContent;
				const section = [...document.querySelectorAll('#plots section')].find((s) => title(s, 'h2') === %q);
				const figure = [...section.querySelectorAll('figure')].find((f) => title(f, 'h3') === %q);
				document.body.replaceChildren(section.querySelector('.legend'), figure);
			})()`, figure.section, figure.measure)))
			s.keep(filepath.Join(dir, name, name+".png"))
		})
	}
}

// wide gives a page the window that pictures have.
func wide(s *sight) *sight {
	s.do(chromedp.EmulateViewport(1280, 800))
	return s
}

// keep writes what is seen to a file, in so few colors that it is small.
func (s *sight) keep(name string) {
	s.t.Helper()
	ctx, end := s.within()
	defer end()
	s.do(chromedp.Evaluate[chromedp.Void]("document.documentElement.dataset.theme = 'light'"))
	s.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	require.NoError(s.t, err)
	seen, err := png.Decode(bytes.NewReader(shot))
	require.NoError(s.t, err)
	few := image.NewPaletted(seen.Bounds(), palette(seen))
	draw.Draw(few, few.Bounds(), seen, seen.Bounds().Min, draw.Src)
	var out bytes.Buffer
	require.NoError(s.t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few))
	require.LessOrEqual(s.t, out.Len(), maxPicture, name)
	require.NoError(s.t, os.WriteFile(name, out.Bytes(), 0o600))
}

// palette returns the 256 colors that a picture has most of.
func palette(of image.Image) (colors color.Palette) {
	counts := make(map[color.RGBA]int)
	for y := of.Bounds().Min.Y; y < of.Bounds().Max.Y; y++ {
		for x := of.Bounds().Min.X; x < of.Bounds().Max.X; x++ {
			r, g, b, _ := of.At(x, y).RGBA()
			counts[color.RGBA{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8), 0xff}]++
		}
	}
	all := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	for _, c := range all[:min(len(all), 256)] {
		colors = append(colors, c)
	}
	return colors
}
