package view

import (
	"fmt"
	"html"
	"io"
	"strings"
	"unicode"

	"github.com/worldkernel/worldkernel/governance"
)

// WriteMarkdown writes a report for a pull request: what is open stands first,
// all else is folded. m is what an apply would migrate now; next is the command to type then; empty: there is none.
func WriteMarkdown(w io.Writer, of string, r *governance.Report, m *Migration, most int, next string) {
	shown := m
	if m != nil {
		shown = &Migration{Cells: m.Cells, Error: codeSpan(m.Error), Open: m.Open}
	}
	fmt.Fprintf(w, "### %s\n\n", Headline(codeSpan(of), r, shown))
	sections := Sections(r, most)
	if m.any() {
		sections = append(sections, m.Section(most), m.Stops(most))
	}
	fmt.Fprint(w, "| what | how many |\n|---|--:|\n")
	for _, s := range sections {
		fmt.Fprintf(w, "| %s | %s |\n", s.Title, Thousands(s.Total))
	}
	for i, s := range sections {
		if s.Total > 0 {
			writeFolded(w, &s, i == 0) // the decisions are what most come for
		}
	}
	if d := r.Divergence; d != nil {
		record, cell, recorded, computed := FirstOther(d)
		fmt.Fprintf(w, "\n<details><summary>the first record that would be another: %s%s</summary>\n\n", code(record), code(cell))
		writeTable(w, []string{"", "record"}, [][]string{{"recorded", recorded}, {"now", computed}})
		fmt.Fprint(w, "\n</details>\n")
	}
	fmt.Fprintln(w)
	writeTable(w, []string{"", ""}, factRows(r))
	if next != "" {
		fmt.Fprintf(w, "\nNext: %s\n", codeSpan(next))
	}
}

func factRows(r *governance.Report) [][]string {
	var rows [][]string
	for _, f := range ReportFacts(r) {
		rows = append(rows, f[:])
	}
	return rows
}

func writeFolded(w io.Writer, s *Section, open bool) {
	attribute := ""
	if open {
		attribute = " open"
	}
	fmt.Fprintf(w, "\n<details%s><summary>%s: %s</summary>\n\n", attribute, s.Title, Thousands(s.Total))
	writeTable(w, s.Header, s.Rows)
	if more := s.More(); more != "" {
		fmt.Fprintf(w, "\n%s\n", more)
	}
	fmt.Fprint(w, "\n</details>\n")
}

// writeTable writes a table of data, whatever it holds.
func writeTable(w io.Writer, header []string, rows [][]string) {
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(header, " | "), strings.Repeat("---|", len(header)))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, text := range row {
			cells[i] = codeSpan(text)
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
}

// codeSpan shows text in Markdown as it stands, in a table or not: as code, which
// nothing in it can end, and in which no site looks for links and names. What a
// code span has no safe form for is written as HTML.
func codeSpan(text string) string {
	switch text = Visible(text, ""); {
	case text == "":
		return ""
	case strings.ContainsAny(text, "|`\\") || text[0] == ' ' || text[len(text)-1] == ' ':
		return code(text)
	}
	return "`" + text + "`"
}

// code shows text as code in HTML, of which Markdown sees letters and digits only.
func code(text string) string {
	if text == "" {
		return ""
	}
	var out strings.Builder
	for _, r := range Visible(text, "") {
		switch {
		case r == ' ' || unicode.IsLetter(r) || unicode.IsDigit(r):
			out.WriteRune(r)
		case strings.ContainsRune(`<>&'"`, r):
			out.WriteString(html.EscapeString(string(r)))
		default:
			fmt.Fprintf(&out, "&#%d;", r)
		}
	}
	return "<code>" + out.String() + "</code>"
}
