package explore

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutant is a machine that is broken on purpose, in one place. It exists only while TestMutants runs: the go
// command is given other text for some files (go help build, -overlay).
type mutant struct {
	name string
	// file of the machine has old once; in the new text, MUTANT is whether this mutant is asked for.
	file, old, new string
	// scenario must find it, and caught is what it says.
	scenario, caught string
}

var mutants = []mutant{
	{"an expired approval that lets the call run", "fold_calls.go", "Verdict: journal.Reject, Text: ExpiredText",
		"Verdict: map[bool]journal.Verdict{false: journal.Reject, true: journal.Approve}[MUTANT], Text: ExpiredText",
		"an approval with a deadline", "t1.0.1 is intended, and its call is expired"},
	{"an approval that expires again", "fold_calls.go", "	c.deadline = 0\n", "	if !MUTANT {\n\t\tc.deadline = 0\n\t}\n",
		"an approval whose deadline fails the run", "*journal.Expired {"},
	{"a question of a tool that nobody answers", "fold_calls.go", "		f.move(c, callAsked)\n\t\treturn\n\tcase b.Outcome == journal.Unknown",
		"		f.move(c, callAsked)\n\t\tif MUTANT {\n\t\t\tf.move(c, callReady)\n\t\t}\n\t\treturn\n\tcase b.Outcome == journal.Unknown",
		"a call that asks by itself", "t1.0.2 is intended, and its call is asked"},
	{"a rejection that hides an earlier attempt", "outputs.go", "	return c.exposed && c.spec.Class", "	return !MUTANT && c.exposed && c.spec.Class",
		"an idempotent call that asks by itself", `call t1.0.0 happened, and is settled as "rejected"`},
	{"a pending call that a claim starts again", "fold_calls.go", "	if c.state != callDoubt {\n\t\treturn\n\t}\n\tc.query",
		"	if c.state == callPending && MUTANT {\n\t\tf.move(c, callReady)\n\t}\n\tif c.state != callDoubt {\n\t\treturn\n\t}\n\tc.query",
		"a result that comes later", "call t1.0.0 happened 2 times"},
	{"a result from outside that is taken twice", "decide.go", "	if err := c.answered(b); err != nil {",
		"	if MUTANT && b.Verdict == journal.Settle {\n\t\treturn nil\n\t}\n\tif err := c.answered(b); err != nil {",
		"a result that comes later", `"verdict":"settle","text":"did","by":"p"} could be recorded again`},
	{"a late result that settles the call again", "fold_calls.go", "		f.evidence(c, b)\n\t\treturn\n",
		"		f.evidence(c, b)\n\t\tif !MUTANT {\n\t\t\treturn\n\t\t}\n\t\tf.history[c.out].item = b.Output\n\t\treturn\n",
		"a late result of a call that the model was told of", "the history was"},
	{"a late result that is no evidence", "unsettled.go", "	if b.Outcome == journal.Done || b.Outcome == journal.ToolFailed {",
		"	if (b.Outcome == journal.Done || b.Outcome == journal.ToolFailed) && !MUTANT {",
		"a late result of a call that the model was told of", "is listed as one of which nobody knows"},
	{"a far side that cannot tell, taken for no", "fold_calls.go", "		f.answer(c)\n\t\treturn true\n",
		"		f.answer(c)\n\t\tif MUTANT {\n\t\t\tf.move(c, callReady)\n\t\t}\n\t\treturn true\n",
		"a call that the far side is asked about", "call t1.0.0 happened 2 times"},
	{"a far side that is asked too soon", "fold_calls.go", "later(c.notAfter, Margin) // [M12.4]\n",
		"later(c.notAfter, Margin) // [M12.4]\n\t\tif MUTANT {\n\t\t\tc.blocked = 0\n\t\t}\n",
		"a call that the far side is asked about", "call t1.0.0 happened 2 times"},
	{"a question whose id comes again", "fold.go", "		c.absent++\n", "		if !MUTANT {\n\t\t\tc.absent++\n\t\t}\n",
		"a call that asks by itself, and the far side is asked about", "1.0#1 is approval at attempt 2, and was in-doubt at attempt 1"},
	{"a transactional call that is called in doubt", "fold_calls.go", "if c.harmless() || c.transactional() {", "if c.harmless() || c.transactional() && !MUTANT {",
		"a call in the store's transaction", "call t1.0.0 is in doubt, and its class is transactional"},
	{"a cancelled run that drops what may have happened", "outputs.go", "	if f.exposed(c) {\n", "	if f.exposed(c) && !MUTANT {\n",
		"a result that comes later", `t1.0.0 cannot end as "dropped"`},
}

// An explorer that nothing can fail proves nothing: each of these machines is broken in one place, and is caught.
func TestMutants(t *testing.T) {
	dir, err := filepath.Abs("../machine")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := writeMutants(t.TempDir(), dir)
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "explore.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), bin, "-test.run", "^TestExplore$", "-only", m.scenario)
			cmd.Env = append(os.Environ(), mutantVariable+"="+m.name)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), m.caught) {
				t.Errorf("the explorer does not say %q: %v\n%s", m.caught, err, out)
			}
		})
	}
}

// mutantVariable is the environment variable that names the mutant in force.
const mutantVariable = "PAWL_MUTANT"

// writeMutants writes the machine's files with all mutants, and the overlay that names them.
func writeMutants(dir, from string) (overlay string, err error) {
	texts := map[string]string{}
	for _, m := range mutants {
		text := texts[m.file]
		if text == "" {
			b, err := os.ReadFile(filepath.Join(from, m.file))
			if err != nil {
				return "", err
			}
			text = strings.Replace(string(b), "\nimport (\n", "\nimport (\n\t\"os\"\n", 1)
		}
		if n := strings.Count(text, m.old); n != 1 {
			return "", fmt.Errorf("mutant %q: %s has %q %d times: break it in another way", m.name, m.file, m.old, n)
		}
		inForce := fmt.Sprintf("(os.Getenv(%q) == %q)", mutantVariable, m.name)
		texts[m.file] = strings.Replace(text, m.old, strings.ReplaceAll(m.new, "MUTANT", inForce), 1)
	}
	replace := map[string]string{}
	for file, text := range texts {
		to := filepath.Join(dir, file)
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(from, file)] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}
