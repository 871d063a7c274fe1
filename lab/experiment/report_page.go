package experiment

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
)

//go:embed page
var page embed.FS

// htmlWriter holds a page. It is written by Go code: html/template makes the linker keep every method of every
// type of the program, 8 MB of worldctl.
type htmlWriter struct{ bytes.Buffer }

// put writes HTML with a value, which it escapes, for each %v.
func (h *htmlWriter) put(format string, values ...any) {
	for i, v := range values {
		values[i] = html.EscapeString(fmt.Sprint(v))
	}
	fmt.Fprintf(h, format, values...)
}

// texts writes a cell of a table for each value.
func (h *htmlWriter) texts(values ...any) {
	for _, v := range values {
		h.put("<td>%v</td>", v)
	}
}

// numbers writes a cell to the right for each value; a *float64 in four figures.
func (h *htmlWriter) numbers(values ...any) {
	for _, v := range values {
		if f, ok := v.(*float64); ok {
			v = showNumber(f)
		}
		h.put(`<td class="n">%v</td>`, v)
	}
}

// heads writes the heads of columns: of texts, of the params, of numbers.
func (h *htmlWriter) heads(texts, params, numbers []string) {
	h.put("<table>\n<thead><tr>")
	for _, s := range append(append([]string(nil), texts...), params...) {
		h.put("<th>%v</th>", s)
	}
	for _, s := range numbers {
		h.put(`<th class="n">%v</th>`, s)
	}
	h.put("</tr></thead>\n<tbody>\n")
}

// interval writes a cell with an interval, bold where it is apart from 0.
func (h *htmlWriter) interval(m *Moments, bold bool, none string) {
	text := none
	if text == "" && m.Low != nil {
		text = showNumber(m.Low) + " … " + showNumber(m.High)
	}
	class := "n"
	if bold {
		class = "n apart"
	}
	h.put(`<td class="%v">%v</td>`, class, text)
}

// write writes the page.
func (x *Report) write(w io.Writer) error {
	data, err := json.Marshal(x) // which has no < in it
	if err != nil {
		return err
	}
	read := func(name string) []byte {
		text, failed := page.ReadFile("page/" + name)
		err = errors.Join(err, failed)
		return text
	}
	script := bytes.Join([][]byte{read("vendor/d3.js"), read("vendor/plot.js"), read("report.js")}, []byte("\n"))
	style := read("report.css")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(script)
	var h htmlWriter
	h.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-%v'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%v: results</title>
<style>`, base64.StdEncoding.EncodeToString(sum[:]), x.Experiment)
	h.Write(style)
	h.put("</style>\n</head>\n<body>\n")
	x.writeHeader(&h)
	h.put("<main>\n")
	if !x.Clean() {
		x.writeFailures(&h)
	}
	h.put("<section id=\"plots\"><noscript><p>The plots are drawn by a script; the tables below are not.</p></noscript></section>\n")
	if len(x.Pairs) > 0 {
		x.writePairs(&h)
	}
	x.writeStatistics(&h)
	h.put(`</main>
<footer><p>Made by worldctl sweep report. Plots by Observable Plot and D3 (ISC licence).</p></footer>
<script type="application/json" id="data">`)
	h.Write(data)
	h.put("</script>\n<script>")
	h.Write(script)
	h.put("</script>\n</body>\n</html>\n")
	_, err = h.WriteTo(w)
	return err
}

func (x *Report) writeHeader(h *htmlWriter) {
	points := "points"
	if len(x.Points) == 1 {
		points = "point"
	}
	h.put("<header>\n<h1>%v</h1>\n<p>%v of %v runs: %v variants, %v %v of params, %v seeds",
		x.Experiment, x.Done, x.Runs, len(x.Variants), len(x.Points), points, x.Seeds)
	if x.Failed > 0 {
		h.put("; <strong>%v have failed</strong>, and are in no figure", x.Failed)
	}
	h.put(". Each began with %v.</p>\n<p class=\"hash\">hash %v</p>\n</header>\n", x.Begin, x.Hash)
}

// writeFailures writes why runs have failed, and what went wrong in which variant.
func (x *Report) writeFailures(h *htmlWriter) {
	h.put("<section tabindex=\"0\">\n<h2>What went wrong</h2>\n")
	if len(x.Failures) > 0 {
		h.put("<table>\n<thead><tr><th class=\"n\">runs that have failed</th><th class=\"n\">such as run</th><th>reason</th></tr></thead>\n<tbody>\n")
		for _, f := range x.Failures {
			h.put("<tr>")
			h.numbers(f.Runs, f.Run)
			h.texts(f.Reason)
			h.put("</tr>\n")
		}
		h.put("</tbody>\n</table>\n")
	}
	h.heads([]string{"variant"}, nil, []string{"runs", "failed", "cells halted", "events dropped", "effects in doubt", "effects failed"})
	for _, e := range x.ByVariant {
		h.put("<tr>")
		h.texts(e.Variant)
		h.numbers(e.Done, e.Failed)
		for _, c := range []Count{e.Halted, e.Skipped, e.InDoubt, e.FailedEffects} {
			h.put(`<td class="n">%v`, c.All)
			if c.Runs > 0 {
				h.put(" in %v runs", c.Runs)
			}
			h.put("</td>")
		}
		h.put("</tr>\n")
	}
	h.put("</tbody>\n</table>\n")
	if first := x.First(); first != nil {
		h.put("<p>Run %v has <code>%v</code>. <code>worldctl sweep run %v --keep DIR</code> makes it again, to look at.</p>\n",
			first.Run, first.String(), first.Run)
	}
	h.put("</section>\n")
}

func (x *Report) writePairs(h *htmlWriter) {
	params := ""
	if len(x.Params) > 0 {
		params = " and params"
	}
	h.put(`<section tabindex="0">
<h2>Differences between variants</h2>
<p>Of runs with equal seeds%v, each less %v, at the end of the runs. The interval has the mean with 95&nbsp;%% (Student's t); where it does not hold 0, it is bold.</p>
`, params, x.Pairs[0].Less)
	h.heads([]string{"measure", "variant"}, x.Params, []string{"pairs", "mean difference", "standard deviation", "95\u00a0% interval"})
	for _, p := range x.Pairs {
		h.put("<tr>")
		h.texts(p.Measure, p.Variant+" − "+p.Less)
		h.texts(p.Point...)
		h.numbers(p.N, p.Mean, p.SD)
		h.interval(&p.Moments, p.Apart(), p.None)
		h.put("</tr>\n")
	}
	h.put("</tbody>\n</table>\n</section>\n")
}

func (x *Report) writeStatistics(h *htmlWriter) {
	h.put("<section tabindex=\"0\">\n<h2>Measures at the end of the runs</h2>\n")
	h.heads([]string{"measure", "variant"}, x.Params,
		[]string{"runs", "mean", "standard deviation", "95\u00a0% interval of the mean", "median"})
	for _, s := range x.Statistics {
		h.put("<tr>")
		h.texts(s.Measure, s.Variant)
		h.texts(s.Point...)
		h.numbers(s.N, s.Mean, s.SD)
		h.interval(&s.Moments, false, "")
		h.numbers(s.Median)
		h.put("</tr>\n")
	}
	h.put("</tbody>\n</table>\n</section>\n")
}

// showNumber prints a statistic for people, and nothing where there is none.
func showNumber(f *float64) string {
	if f == nil {
		return ""
	}
	return ShowNumber(*f)
}
