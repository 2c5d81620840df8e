package wire_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const codec = "cmppgateway/gateway/cmpp"

// builders is all of gateway/cmpp that the simulator may name: what builds
// frames and login digests. Nothing that reads octets is among it.
var builders = map[string]bool{
	"Version": true, "MsgID": true, "Timestamp": true,
	"AuthSource": true, "AuthISMG": true, "CheckAuthSource": true,
	"Connect": true, "ConnectResp": true, "Submit": true, "SubmitResp": true, "Deliver": true,
	"DeliverResp": true, "ActiveTest": true, "Report": true,
}

// TestIndependentReading fails when a package of the simulator could decode
// with the gateway's codec: what it records must be a second reading.
func TestIndependentReading(t *testing.T) {
	t.Parallel()
	for dir, mayBuild := range map[string]bool{".": false, "../../ismg": true, "../../sp": true, "../serve": false, "../profile": false} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			files, err := filepath.Glob(filepath.Join(dir, "*.go"))
			if err != nil || len(files) == 0 {
				t.Fatalf("no files in %s: %v", dir, err)
			}
			for _, file := range files {
				if !strings.HasSuffix(file, "_test.go") {
					inspect(t, file, mayBuild)
				}
			}
		})
	}
}

func inspect(t *testing.T, file string, mayBuild bool) {
	t.Helper()
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range tree.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case !strings.HasPrefix(path, "cmppgateway/gateway/"):
		case path != codec || !mayBuild || spec.Name != nil:
			t.Errorf("%s imports %s", fset.Position(spec.Pos()), path)
		}
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := sel.X.(*ast.Ident); ok && pkg.Name == "cmpp" && !builders[sel.Sel.Name] {
			t.Errorf("%s names cmpp.%s", fset.Position(sel.Pos()), sel.Sel.Name)
		}
		if mayBuild && sel.Sel.Name == "Decode" { // where the codec may be imported
			t.Errorf("%s calls a method named Decode", fset.Position(sel.Pos()))
		}
		return true
	})
}
