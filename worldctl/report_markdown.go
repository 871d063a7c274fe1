package worldctl

import (
	"fmt"
	"html"
	"io"
	"strings"
	"unicode"

	"github.com/worldkernel/worldkernel/governance"
)

// writeMarkdown writes a report for a pull request: what is open stands first,
// all else is folded. next is the command to type then; empty: there is none.
func writeMarkdown(w io.Writer, of string, r *governance.Report, most int, next string) {
	fmt.Fprintf(w, "### %s\n\n", headline(codeSpan(of), r))
	sections := sectionsOf(r, most)
	fmt.Fprint(w, "| what | how many |\n|---|--:|\n")
	for _, s := range sections {
		fmt.Fprintf(w, "| %s | %s |\n", s.title, thousands(s.total))
	}
	for i, s := range sections {
		if s.total > 0 {
			writeFolded(w, &s, i == 0) // the decisions are what most come for
		}
	}
	if d := r.Divergence; d != nil {
		fmt.Fprintf(w, "\n<details><summary>the first record that would be another: %s%s</summary>\n\n", code(record(d.Record)), code(ofCell(d.Cell)))
		writeTable(w, []string{"", "record"}, [][]string{{"recorded", orNothing(d.Recorded)}, {"now", orNothing(d.Computed)}})
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
	for _, f := range reportFacts(r) {
		rows = append(rows, f[:])
	}
	return rows
}

func writeFolded(w io.Writer, s *section, open bool) {
	attribute := ""
	if open {
		attribute = " open"
	}
	fmt.Fprintf(w, "\n<details%s><summary>%s: %s</summary>\n\n", attribute, s.title, thousands(s.total))
	writeTable(w, s.header, s.rows)
	if more := s.more(); more != "" {
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
	switch text = visible(text, ""); {
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
	for _, r := range visible(text, "") {
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
