package pawl_test

import (
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The names of Pawl that the tables of names and of features have are names that there are.
func TestNamesInTablesExist(t *testing.T) {
	names := exportedNames(t)
	quoted := regexp.MustCompile("`\\*?([^`]+)`")
	for doc, column := range map[string]int{"docs/coming-from-python.md": 2, "docs/features.md": 3} {
		found := 0
		for line := range strings.SplitSeq(readFile(t, doc), "\n") {
			cells := strings.Split(line, "|")
			if len(cells) <= column {
				continue
			}
			for _, m := range quoted.FindAllStringSubmatch(cells[column], -1) {
				name, _, _ := strings.Cut(m[1], "(")
				if found++; !names[name] && name != "break" {
					t.Errorf("%s: there is no %s", doc, name)
				}
			}
		}
		if found < 100 {
			t.Errorf("%s: %d names", doc, found)
		}
	}
}

// exportedNames are the names of the module's packages as documents write them: Name and
// Type.Member of the root package, package.Name and package.Type.Member of the others.
func exportedNames(t *testing.T) map[string]bool {
	names := map[string]bool{}
	within := map[string][]string{} // the types whose members a type has, too
	for dir, p := range parseModule(t) {
		if strings.HasPrefix(dir, "internal") || strings.HasPrefix(dir, "cmd") {
			continue
		}
		prefix := path.Base(dir) + "."
		if dir == "." {
			prefix = ""
		}
		for _, f := range p.files {
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					name := d.Name.Name
					if d.Recv != nil {
						name = typeName("", d.Recv.List[0].Type) + "." + name
					}
					names[prefix+name] = true
				case *ast.GenDecl:
					for _, s := range d.Specs {
						switch s := s.(type) {
						case *ast.ValueSpec:
							for _, n := range s.Names {
								names[prefix+n.Name] = true
							}
						case *ast.TypeSpec:
							names[prefix+s.Name.Name] = true
							within[prefix+s.Name.Name] = members(prefix, prefix+s.Name.Name, s.Type, names)
						}
					}
				}
			}
		}
	}
	for range 3 { // types in types in types
		for name := range maps.Clone(names) {
			i := strings.LastIndex(name, ".")
			for outer, inner := range within {
				if i > 0 && slices.Contains(inner, name[:i]) {
					names[outer+name[i:]] = true
				}
			}
		}
	}
	return names
}

// members notes the members of a type, and returns the types whose members it has, too.
func members(prefix, of string, e ast.Expr, names map[string]bool) (inner []string) {
	var list *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		list = e.Fields
	case *ast.InterfaceType:
		list = e.Methods
	default:
		return []string{typeName(prefix, e)}
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			names[of+"."+n.Name] = true
		}
		if len(f.Names) == 0 {
			inner = append(inner, typeName(prefix, f.Type))
		}
	}
	return inner
}

// typeName returns the name of a type, without its parameters.
func typeName(prefix string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return prefix + e.Name
	case *ast.StarExpr:
		return typeName(prefix, e.X)
	case *ast.IndexExpr:
		return typeName(prefix, e.X)
	case *ast.IndexListExpr:
		return typeName(prefix, e.X)
	case *ast.SelectorExpr:
		return typeName("", e.X) + "." + e.Sel.Name
	}
	return ""
}
