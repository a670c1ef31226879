package machine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestFunctionsFitAScreen pins the length of the machine's functions, tests included, and of
// its files.
func TestFunctionsFitAScreen(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	functions := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if lines := set.File(parsed.Pos()).LineCount(); lines > 400 && !strings.HasSuffix(f.Name(), "_test.go") {
			t.Errorf("%s has %d lines, want at most 400", f.Name(), lines)
		}
		for _, d := range parsed.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			functions++
			if lines := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1; lines > 80 {
				t.Errorf("%s: %s has %d lines, want at most 80", f.Name(), fn.Name.Name, lines)
			}
		}
	}
	if functions < 100 {
		t.Errorf("only %d functions were read", functions)
	}
}

// TestNothingIsConcurrent pins that the machine starts nothing and waits for nothing.
func TestNothingIsConcurrent(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.GoStmt, *ast.SelectStmt, *ast.ChanType, *ast.SendStmt:
				t.Errorf("%s is concurrent", f.Name())
			}
			return true
		})
	}
}
