package pawl_test

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/pawl-agents/pawl"

// mayImport says what each package may import besides the standard library: packages of
// this module by their folder, others by their path. A new package needs a line here.
var mayImport = map[string][]string{
	// The user's API. It knows no database, no provider and no tracing library.
	".": {"item", "model", "session", "journal", "internal/machine", "internal/owner", "internal/schema", "internal/jsonscan"},

	"item":    {"internal/jsonscan"},
	"journal": {"item", "internal/jsonscan"},
	"model":   {"item"},
	"session": {"item"},

	"internal/jsonscan": {},
	"internal/machine":  {"item", "journal"},
	"internal/steps":    {"internal/machine", "journal"},
	"internal/group":    {},
	"internal/lent":     {},
	"internal/listing":  {"journal"},
	"internal/owner":    {"journal"},
	"internal/schema":   {"internal/jsonscan", "github.com/google/jsonschema-go/jsonschema"},

	// It makes tools, so it knows the user's API, which does not know it.
	"sqlstore": {".", "item", "journal", "session", "internal/group", "internal/lent", "internal/listing", "modernc.org/sqlite", "modernc.org/sqlite/lib"},
	"sqlstore/pgstore": {".", "item", "journal", "session", "internal/group", "internal/lent", "internal/listing",
		"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/pgconn", "github.com/jackc/pgx/v5/pgxpool", "github.com/jackc/pgx/v5/stdlib"},
	"models/openai": {"item", "model", "internal/jsonscan", "github.com/openai/openai-go/v3", "github.com/openai/openai-go/v3/option",
		"github.com/openai/openai-go/v3/packages/ssestream"},

	"mcp": {".", "item", "github.com/modelcontextprotocol/go-sdk/jsonrpc", "github.com/modelcontextprotocol/go-sdk/mcp"},

	"journal/merkle": {},
	"journal/audit":  {"item", "journal", "journal/merkle", "internal/jsonscan", "internal/machine"},

	"pawltest":            {".", "item", "journal", "model", "session", "internal/jsonscan"},
	"journal/journaltest": {"item", "journal"},
	"session/sessiontest": {"item", "session"},
	"enginetest":          {"journal", "scenarios"},
	"scenarios": {".", "item", "journal", "journal/journaltest", "model", "models/openai", "pawltest", "session", "sqlstore",
		"github.com/google/go-cmp/cmp"},
	"scenarios/sweep": {},

	// Programs. The command knows no more of a run than any other program could, and the
	// verifier shares no code with what it verifies.
	"cmd/pawl-verify":             {},
	"cmd/pawl":                    {"cmd/pawl/internal/cli"},
	"cmd/pawl/internal/agentfile": {".", "item", "model", "models/openai", "go.yaml.in/yaml/v4"},
	"cmd/pawl/internal/cli": {".", "cmd/pawl/internal/agentfile", "cmd/pawl/internal/demo", "cmd/pawl/internal/timeline", "item", "journal", "journal/audit", "model",
		"models/openai", "session", "sqlstore", "sqlstore/pgstore", "internal/owner", "github.com/mattn/go-isatty", "github.com/spf13/cobra", "golang.org/x/sys/unix"},
	"cmd/pawl/internal/demo":     {".", "item", "journal", "model", "models/openai", "pawltest", "session", "sqlstore", "modernc.org/sqlite"},
	"cmd/pawl/internal/timeline": {"item", "journal"},
	"internal/duel":              {},
	"internal/chaos/cmd":         {"internal/chaos"},
	"internal/chaos":             {".", "internal/pgtest", "item", "journal", "model", "models/openai", "pawltest", "session", "sqlstore", "sqlstore/pgstore", "modernc.org/sqlite"},
	"internal/explore":           {"item", "journal", "internal/machine"},
	"internal/refmodel":          {},
	"internal/pgtest":            {},
	"internal/bench":             {".", "item", "journal", "model", "models/openai", "session", "sqlstore", "modernc.org/sqlite"},
	"internal/waiting":           {".", "internal/pgtest", "item", "journal", "model", "sqlstore", "sqlstore/pgstore", "github.com/jackc/pgx/v5"},

	// Examples know what any program may know; the script of their models, what tests may know.
	"examples/internal/example": {"model", "models/openai", "pawltest"},
	"examples/approvals":        {".", "examples/internal/example", "item", "model", "pawltest", "sqlstore"},
	"examples/deterministic":    {".", "examples/internal/example", "model", "pawltest"},
	"examples/guardrails":       {".", "examples/internal/example", "model", "pawltest", "session"},
	"examples/judge":            {".", "examples/internal/example", "item", "model", "pawltest"},
	"examples/manager":          {".", "examples/internal/example", "item", "model", "pawltest"},
	"examples/research":         {".", "examples/internal/example", "item", "model", "pawltest"},
	"examples/routing":          {".", "examples/internal/example", "model", "pawltest"},
	"examples/triage":           {".", "examples/internal/example", "item", "model", "pawltest", "session"},
}

// impure is what the machine may not even see: clocks, files, networks, chance, other
// goroutines.
var impure = []string{"context", "crypto/rand", "io", "log", "math/rand", "math/rand/v2", "net", "net/http", "os", "runtime", "sync", "sync/atomic", "time"}

func TestImports(t *testing.T) {
	packages := parseModule(t)
	for dir, p := range packages {
		allowed, ok := mayImport[dir]
		if !ok {
			t.Errorf("%s: mayImport does not know this package", dir)
		}
		for _, imp := range p.imports() {
			if !slices.Contains(allowed, imp) && !isStandard(imp) {
				t.Errorf("%s imports %s", dir, imp)
			}
		}
	}
	for dir := range mayImport {
		if packages[dir] == nil {
			t.Errorf("%s: there is no such package", dir)
		}
	}
	for _, imp := range packages["internal/machine"].imports() {
		if slices.Contains(impure, imp) {
			t.Errorf("internal/machine imports %s", imp)
		}
	}
}

// A program that uses the root package, its memory driver and its memory session gets
// one module besides this one.
func TestDependenciesOfRoot(t *testing.T) {
	packages := parseModule(t)
	var outside []string
	seen := map[string]bool{}
	var visit func(dir string)
	visit = func(dir string) {
		if seen[dir] {
			return
		}
		seen[dir] = true
		for _, imp := range packages[dir].imports() {
			switch {
			case packages[imp] != nil:
				visit(imp)
			case !isStandard(imp):
				outside = append(outside, imp)
			}
		}
	}
	visit(".")
	if diff := cmp.Diff([]string{"github.com/google/jsonschema-go/jsonschema"}, outside); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The machine starts nothing: no goroutine, no channel.
func TestMachineIsSequential(t *testing.T) {
	p := parseModule(t)["internal/machine"]
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
				t.Errorf("%s: a goroutine or a channel", p.fset.Position(n.Pos()))
			}
			return true
		})
	}
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	for dir, p := range parseModule(t) {
		if !slices.ContainsFunc(p.files, func(f *ast.File) bool { return f.Doc != nil }) {
			t.Errorf("%s: the package has no doc comment", dir)
		}
		for _, f := range p.files {
			explained := 0 // the line of a function of one line that a comment explains
			for _, d := range f.Decls {
				first, last := p.fset.Position(d.Pos()).Line, p.fset.Position(d.End()).Line
				names := undocumented(d)
				if _, ok := d.(*ast.FuncDecl); ok && first == last && (len(names) == 0 || first == explained+1) {
					explained, names = last, nil
				}
				for _, n := range names {
					t.Errorf("%s: %s has no doc comment", p.fset.Position(n.Pos()), n.Name)
				}
			}
		}
	}
}

// undocumented returns the exported names of a declaration that no comment explains. A
// comment on a group of constants or variables explains each of them, and so does one on
// the first of functions of one line that follow each other.
func undocumented(d ast.Decl) (names []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d))) {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if d.Doc == nil && s.Doc == nil && s.Name.IsExported() {
					names = append(names, s.Name)
				}
				names = append(names, undocumentedMethods(s, d.Doc.Text()+s.Doc.Text())...)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if d.Doc == nil && s.Doc == nil && s.Comment == nil && n.IsExported() {
						names = append(names, n)
					}
				}
			}
		}
	}
	return names
}

// undocumentedMethods is undocumented for an interface, whose comment may explain a method
// by its name.
func undocumentedMethods(s *ast.TypeSpec, doc string) (names []*ast.Ident) {
	i, ok := s.Type.(*ast.InterfaceType)
	if !ok || !s.Name.IsExported() {
		return nil
	}
	for _, m := range i.Methods.List {
		for _, n := range m.Names {
			if m.Doc == nil && m.Comment == nil && n.IsExported() && !strings.Contains(doc, n.Name) {
				names = append(names, n)
			}
		}
	}
	return names
}

func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func TestFunctionsFitAScreen(t *testing.T) {
	const most = 80
	for _, p := range parseModule(t) {
		for _, f := range p.files {
			for _, d := range f.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				if n := p.fset.Position(fn.End()).Line - p.fset.Position(fn.Pos()).Line + 1; n > most {
					t.Errorf("%s: %s has %d lines, more than %d", p.fset.Position(fn.Pos()), fn.Name.Name, n, most)
				}
			}
		}
	}
}

// A test is read case by case, so a file of tests may be longer.
func TestFilesAreShort(t *testing.T) {
	for _, name := range moduleFiles(t, ".go") {
		most := 500
		if strings.HasSuffix(name, "_test.go") {
			most = 800
		}
		if n := strings.Count(readFile(t, name), "\n"); n > most {
			t.Errorf("%s has %d lines, more than %d", name, n, most)
		}
	}
}

// No package does anything before it is used.
func TestNothingHappensOnImport(t *testing.T) {
	for dir, p := range parseModule(t) {
		for _, f := range p.files {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s: package %s has an init function", p.fset.Position(fn.Pos()), dir)
				}
			}
		}
	}
}

// The environment is read by programs, and where a function says so by its name.
func TestEnvironmentIsNotRead(t *testing.T) {
	for dir, p := range parseModule(t) {
		if strings.HasPrefix(dir, "cmd/") || strings.HasPrefix(dir, "examples/") || dir == "internal/bench" {
			continue
		}
		for _, f := range p.files {
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "FromEnv" {
					continue
				}
				ast.Inspect(d, func(n ast.Node) bool {
					s, ok := n.(*ast.SelectorExpr)
					if x, isName := selected(s); ok && isName && x == "os" && slices.Contains([]string{"Getenv", "LookupEnv", "Environ"}, s.Sel.Name) {
						t.Errorf("%s: reads the environment", p.fset.Position(n.Pos()))
					}
					return true
				})
			}
		}
	}
}

func selected(s *ast.SelectorExpr) (string, bool) {
	if s == nil {
		return "", false
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return "", false
	}
	return x.Name, true
}

// go.mod has what docs/decisions.md gives a reason for, and nothing is replaced.
func TestDependenciesAreExplained(t *testing.T) {
	var direct []string
	lines := bufio.NewScanner(strings.NewReader(readFile(t, "go.mod")))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case slices.Contains(fields, "replace"):
			t.Errorf("go.mod replaces: %s", lines.Text())
		case len(fields) == 2 && fields[0] == "tool":
			direct = append(direct, fields[1])
		case len(fields) == 2 && strings.HasPrefix(fields[1], "v"):
			direct = append(direct, fields[0])
		}
	}
	var explained []string
	_, section, _ := strings.Cut(readFile(t, "docs/decisions.md"), "## Dependencies")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section, -1) {
		explained = append(explained, row[1])
	}
	slices.Sort(direct)
	slices.Sort(explained)
	if diff := cmp.Diff(direct, explained); diff != "" {
		t.Errorf("-go.mod +docs/decisions.md:\n%s", diff)
	}
}

// Documents do not point to what is not there.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	for _, name := range moduleFiles(t, ".md") {
		text := readFile(t, name)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor := m[1], m[2]
			if strings.Contains(target, "://") {
				continue
			}
			to := name
			if target != "" {
				to = path.Join(path.Dir(name), target)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: a link to %s: %v", name, target, err)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(readFile(t, to)), anchor) {
				t.Errorf("%s: %s has no heading for #%s", name, to, anchor)
			}
		}
	}
}

// anchors returns the anchors of a document's headings as GitHub makes them.
func anchors(text string) (list []string) {
	drop := regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		list = append(list, strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return list
}

// Nothing is left for later in the code, no test is skipped, and sources are named by
// their addresses, which anybody can open.
func TestNothingIsLeftOpen(t *testing.T) {
	rules := map[string]*regexp.Regexp{
		"a note to do something later": regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`),
		"a skipped test":               regexp.MustCompile(`\b[tb]\.Skip(f|Now)?\(`),
		"a thread without its address": regexp.MustCompile(`(?i)\bissue #?\d+`),
		"a path of somebody's machine": regexp.MustCompile(`(^|[\s"'(=])/(work|home|root|Users)/`),
	}
	for _, name := range moduleFiles(t, ".go", ".md", ".sh", "Makefile", "run") {
		for i, line := range strings.Split(readFile(t, name), "\n") {
			for what, rule := range rules {
				if rule.MatchString(line) {
					t.Errorf("%s:%d: %s: %s", name, i+1, what, strings.TrimSpace(line))
				}
			}
		}
	}
}

// parsed is a package without its tests.
type parsed struct {
	fset  *token.FileSet
	files []*ast.File
}

// imports returns what the package imports, packages of this module by their folder.
func (p *parsed) imports() []string {
	set := map[string]bool{}
	for _, f := range p.files {
		for _, s := range f.Imports {
			imp, _ := strconv.Unquote(s.Path.Value)
			switch {
			case imp == module:
				imp = "."
			case strings.HasPrefix(imp, module+"/"):
				imp = strings.TrimPrefix(imp, module+"/")
			}
			set[imp] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// isStandard reports whether a path is of the standard library. Packages of this module
// are known by their folders and stand in mayImport.
func isStandard(imp string) bool {
	if _, ours := mayImport[imp]; ours {
		return false
	}
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}

// parseModule returns the packages of the module by their folders.
func parseModule(t *testing.T) map[string]*parsed {
	t.Helper()
	fset := token.NewFileSet()
	packages := map[string]*parsed{}
	for _, name := range moduleFiles(t, ".go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(name)
		if packages[dir] == nil {
			packages[dir] = &parsed{fset: fset}
		}
		packages[dir].files = append(packages[dir].files, f)
	}
	if packages["."] == nil {
		t.Fatal("the root package was not found")
	}
	// A folder with nothing but tests is no package anybody can import.
	return packages
}

// moduleFiles returns the files of the module with one of the endings, by their paths
// with slashes.
func moduleFiles(t *testing.T, endings ...string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			// What the go command passes over is passed over here, but for CI.
			base := d.Name()
			if base == "testdata" || base == "pawl-demo" || base != "." && base != ".ci" && strings.HasPrefix(base, ".") {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil && base != "." {
				return fs.SkipDir // a module of its own
			}
			return nil
		}
		if slices.ContainsFunc(endings, func(end string) bool { return strings.HasSuffix(name, end) }) {
			names = append(names, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(fmt.Errorf("policy: %w", err))
	}
	return string(b)
}
