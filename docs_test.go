package pawl_test

import (
	"errors"
	"go/ast"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The code in the documentation is code that runs: each block is taken, word for word,
// from an example. A block's main stands for the example's function.
func TestDocumentationIsTakenFromExamples(t *testing.T) {
	var examples strings.Builder
	names, err := filepath.Glob("example_*_test.go")
	more, err2 := filepath.Glob("pawltest/*_example_test.go")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	names = append(append(names, more...), "mcp/example_test.go")
	for _, name := range names {
		examples.WriteString(readFile(t, name))
	}
	source := regexp.MustCompile(`(?m)^func Example\w*\(\) \{$`).ReplaceAllString(examples.String(), "func main() {")
	source = regexp.MustCompile(`(?m)^\t// Output:\n(\t//.*\n)+`).ReplaceAllString(source, "")

	block := regexp.MustCompile("(?s)```go\n(.*?)```")
	blocks := map[string]int{}
	for _, name := range append([]string{"README.md", "CONTRIBUTING.md"}, docs(t)...) {
		for _, m := range block.FindAllStringSubmatch(readFile(t, name), -1) {
			blocks[name]++
			if !strings.Contains(source, m[1]) {
				t.Errorf("%s: no example has this:\n%s", name, m[1])
			}
		}
	}
	if blocks["README.md"] != 1 || blocks["docs/getting-started.md"] == 0 {
		t.Errorf("blocks found: %v", blocks)
	}
}

func docs(t *testing.T) []string {
	names := moduleFiles(t, ".md")
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "docs/") })
}

// The README promises something for every effect class there is, and for no other.
func TestReadmeNamesEveryClass(t *testing.T) {
	var classes []string
	for _, f := range parseModule(t)["."].files {
		for _, d := range f.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Doc.Text() != "The effect classes.\n" {
				continue
			}
			for _, s := range group.Specs {
				classes = append(classes, s.(*ast.ValueSpec).Names[0].Name)
			}
		}
	}
	_, table, _ := strings.Cut(readFile(t, "README.md"), "## What is promised")
	table, _, _ = strings.Cut(table, "\n## ")
	var promised []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)`").FindAllStringSubmatch(table, -1) {
		promised = append(promised, m[1])
	}
	slices.Sort(classes)
	slices.Sort(promised)
	promised = slices.Compact(promised) // one has two rows: a tool may have more than its class
	if len(classes) == 0 || !slices.Equal(classes, promised) {
		t.Errorf("there are the classes %q, the README promises something for %q", classes, promised)
	}
}

// Each clause about the ledger and the store is named by a test of it, or by the suite
// that drivers are tested with.
func TestEveryClauseOfTheLedgerIsTested(t *testing.T) {
	var tests strings.Builder
	for _, name := range moduleFiles(t, ".go") {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "journal/journaltest/") {
			tests.WriteString(readFile(t, name))
		}
	}
	clauses := regexp.MustCompile(`(?m)^\*\*(S\d+\.\d+)`).FindAllStringSubmatch(readFile(t, "docs/spec.md"), -1)
	if len(clauses) == 0 {
		t.Fatal("no clause was found")
	}
	for _, m := range clauses {
		if !regexp.MustCompile(regexp.QuoteMeta(m[1]) + `\b`).MatchString(tests.String()) {
			t.Errorf("no test names %s", m[1])
		}
	}
}

// Each promise of the guarantee names tests, and they exist. What is not promised needs
// none.
func TestGuaranteeNamesItsTests(t *testing.T) {
	tests := map[string]bool{}
	for _, name := range moduleFiles(t, "_test.go") {
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(readFile(t, name), -1) {
			tests[m[1]] = true
		}
	}
	promised, _, found := strings.Cut(readFile(t, "docs/guarantee.md"), "\n## What is not promised")
	if !found {
		t.Fatal("the guarantee says nothing of what is not promised")
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	for _, m := range named.FindAllStringSubmatch(promised, -1) {
		if !tests[m[1]] {
			t.Errorf("there is no %s", m[1])
		}
	}
	promises := regexp.MustCompile(`(?m)^\* (?:.+\n)(?:  .+\n)*`).FindAllString(promised, -1)
	if len(promises) < 30 {
		t.Errorf("%d promises were found", len(promises))
	}
	for _, p := range promises {
		if !named.MatchString(p) {
			t.Errorf("no test is named by:\n%s", p)
		}
	}
}
