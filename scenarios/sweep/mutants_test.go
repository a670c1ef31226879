package sweep

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutant is a Pawl that is broken on purpose, in one place. It exists only while TestMutants runs: the go command is given
// other text for some files (go help build, -overlay). Nothing in Pawl knows of it.
type mutant struct {
	name string
	// changes make it: in the new text, MUTANT is whether this mutant is asked for.
	changes []change
	// scenario and only are the points that must catch it, and caught what the sweep says of one.
	scenario, only, caught string
}

// change replaces a text that occurs once in a file of the module.
type change struct{ file, old, new string }

var mutants = []mutant{
	{"swapped intent", []change{
		{"drive.go", "if rd.MustSync {", "if rd.MustSync && !(MUTANT && len(rd.Effects) > 0) {"},
	}, "no session", "store/run", "took effect before its intent was durable"},
	{"no fence", []change{
		{"journal/memory.go", "if !r.holds(epoch) {\n\t\treturn nil, ErrFenced", "if !r.holds(epoch) && !MUTANT {\n\t\treturn nil, ErrFenced"},
	}, "approved", "store/run", "the store took a write under an old claim"},
	{"two winners of an intent", []change{
		{"journal/memory.go", "if h := r.live(now); h != nil && h.Epoch != req.Takeover {", "if h := r.live(now); h != nil && h.Epoch != req.Takeover && !MUTANT {"},
		{"journal/memory.go", "	rival, err := m.append(ctx,", `
	if MUTANT {
		r := m.lock(run)
		epoch, after = r.epoch, r.head
		r.mu.Unlock()
	}
	rival, err := m.append(ctx,`},
	}, "no session", "store/run", "the store took two writes for one place of the ledger"},
	{"delivered at send", []change{
		{"internal/machine/fold.go", "view, from := f.base()\n", "view, from := f.base()\n\tif MUTANT && f.managed() {\n\t\tf.chain.covered = b.Upto\n\t}\n"},
	}, "a response without id", "live/run", "G2: the model was sent: the call c1 has no output"},
	{"digest through float64", []change{
		{"item/canonical.go", "buf, err := Canonical(args)\n", "buf, err := Canonical(args)\n\tif MUTANT && err == nil {\n\t\tvar v any\n\t\t_ = json.Unmarshal(buf, &v)\n\t\tbuf, _ = json.Marshal(v)\n\t}\n"},
		{"item/canonical.go", "\"encoding/base64\"\n", "\"encoding/base64\"\n\t\"encoding/json\"\n"},
	}, "one id for two calls", "live/run", `the clean run is finished with "done"`},
	{"double append", []change{
		{"effect_session.go", "case found && !absent:", "case found && !absent && !MUTANT:"},
		{"effect_session.go", "case absent && !found:", "case absent && !found || MUTANT:"},
	}, "approved", "live/run", "G2: replay and session differ"},
	{"notAfter ignored", []change{
		{"internal/machine/fold_calls.go", "// [M12.4]\n", "// [M12.4]\n\t\tif MUTANT {\n\t\t\tc.blocked = 0\n\t\t}\n"},
	}, "no session", "store/run", "G1: send c1 took effect 2 times, and may once"},
	{"everything in doubt", []change{
		{"internal/machine/fold_calls.go", "if c.harmless() || c.transactional() {\n", "if (c.harmless() || c.transactional()) && !MUTANT {\n"},
	}, "read-only", "store/run", "liveness: look_up c1 is in doubt, and its class is"},
	{"a repeat of what may be done once", []change{
		{"internal/machine/fold_calls.go", "c.exposed = c.exposed || !c.transactional()\n", "c.exposed = c.exposed || !c.transactional()\n\t\tif MUTANT {\n\t\t\tf.move(c, callReady)\n\t\t\treturn\n\t\t}\n"},
	}, "no session", "store/run", "G1: send c1 took effect 2 times, and may once"},
	{"a claim that approves", []change{
		{"internal/machine/fold_calls.go", "\tif c.state != callDoubt {\n\t\treturn\n\t}\n\tc.query", "\tif c.state == callAsked && MUTANT {\n\t\tf.move(c, callReady)\n\t}\n\tif c.state != callDoubt {\n\t\treturn\n\t}\n\tc.query"},
	}, "approved", "store/run", "G7: pay c1 ran before anybody approved it"},
	{"a recovery that is not asked", []change{
		{"internal/machine/fold_calls.go", "c.query = c.recoverable() // [M8.16]", "c.query = c.recoverable() && !MUTANT // [M8.16]"},
	}, "recovered", "store/run", "liveness: send c1 is in doubt, and its far side can tell"},
	{"usage counted twice", []change{
		{"internal/machine/fold.go", "f.m.usage.add(b.Usage)", "f.m.usage.add(b.Usage)\n\tif MUTANT {\n\t\tf.m.usage.add(b.Usage)\n\t}"},
	}, "answer", "live/run", "usage: 220 tokens were counted, and the model reported 110"},
	{"a key for each attempt", []change{
		{"internal/machine/effects.go", "import \"github.com/pawl-agents/pawl/journal\"", "import (\n\t\"os\"\n\n\t\"github.com/pawl-agents/pawl/journal\"\n)"},
		{"internal/machine/effects.go", "= f.KeyOf(c.id), c.notAfter\n", "= Key(f.m.id, f.name+map[bool]string{true: e.ID.String()}[MUTANT], c.id), c.notAfter\n"},
	}, "idempotent", "store/run", "the effects differ from those without the fault"},
	{"sticky into frames", []change{
		{"internal/machine/decide.go", "\treturn f.sticky[c.spec.Identity]\n", "\tfor g := f; g != nil && MUTANT; g = g.parent {\n\t\tif d := g.sticky[c.spec.Identity]; d != nil {\n\t\t\treturn d\n\t\t}\n\t}\n\treturn f.sticky[c.spec.Identity]\n"},
	}, "nested, sticky in the caller", "live/run", `the clean run asks about ["pay c1"]`},
	{"hook before fact", []change{
		{"commit.go", "\tif err := d.append(recs, with); err != nil {\n", "\tfor _, fact := range d.pending {\n\t\tif MUTANT && d.hooked {\n\t\t\td.observe(d.m, fact)\n\t\t}\n\t}\n\tif err := d.append(recs, with); err != nil {\n"},
		{"events.go", "\tif d.hooked {\n", "\tif d.hooked && !MUTANT {\n"},
	}, "hooks", "store/run", "was told before it was recorded"},
	{"hook cursor not recorded", []change{
		{"hook_cursor.go", "\tif d.told > d.m.Observed() {\n", "\tif d.told > d.m.Observed() && !MUTANT {\n"},
	}, "hooks", "live/run", "times, and no process died"},
	{"hook cursor ignored", []change{
		{"hook_cursor.go", "\t\tif i >= d.untold {\n", "\t\tif i >= d.untold || MUTANT {\n"},
	}, "hooks", "store/run", "was told again after that was recorded"},
	{"filter re-run on attempt 2", []change{
		{"effect_model.go", "\tf.request.approved = 0\n\tif f.request.shown", "\tf.request.approved = 0\n\tif MUTANT && e.ID.A > 1 && f.opts.FilterInput != nil {\n\t\tw, _ := f.wanted(e.ID.N)\n\t\t_, _ = f.filterInput(e, &w)\n\t}\n\tif f.request.shown"},
	}, "input filtered", "store/run", "the filter of turn 1 was asked again after its answer was recorded"},
	{"tools before the verdict", []change{
		{"internal/machine/guards.go", "import \"github.com/pawl-agents/pawl/journal\"", "import (\n\t\"os\"\n\n\t\"github.com/pawl-agents/pawl/journal\"\n)"},
		{"internal/machine/guards.go", "(readOnly || !f.unchecked())", "(readOnly || !f.unchecked() || MUTANT)"},
	}, "input guardrail beside, passes", "store/run", "send c2 took effect before the verdict of topic was recorded"},
	{"blocked text enters the session", []change{
		{"internal/machine/trip.go", "t == item.TypeMessage || t == item.TypeReasoning {\n", "!MUTANT && (t == item.TypeMessage || t == item.TypeReasoning) {\n"},
	}, "output guardrail, trips", "live/run", `"a secret" is withheld, and in the session`},
	{"blocked text enters the session in time", []change{
		{"internal/machine/guards.go", "\tcase f.unchecked():\n\t\treturn f.inputEnd\n", "\tcase f.unchecked() && !MUTANT:\n\t\treturn f.inputEnd\n"},
	}, "input guardrail beside, trips", "live/run", `"a secret" is withheld, and in the session`},
	{"an approval sent again", []change{
		{"internal/machine/hosted.go", "|| f.turn.approves }", "|| f.turn.approves && !MUTANT }"},
	}, "hosted, approved and rejected", "store/run", "G1: the server has acted twice on the approval of m1"},
	{"every request in doubt", []change{
		{"internal/machine/hosted.go", "unrepeatable() bool { return f.started", "unrepeatable() bool { return MUTANT || f.started"},
	}, "answer", "store/run", "G5: nothing explains the error: pawl: run sweep-answer, reading back turn 1: nobody can tell"},
	{"added input read twice", []change{
		{"internal/machine/pending.go", "\tf.extend(f.added[f.admitted].Items)\n", "\tf.extend(f.added[f.admitted].Items)\n\tif MUTANT {\n\t\tf.extend(f.added[f.admitted].Items)\n\t}\n"},
	}, "input added", "live/run", `the request has {"role":"user","content":"and hurry"} 2 times`},
}

// A sweep that nothing can fail proves nothing: each of these machines and drivers is broken in one place, and is caught, a machine
// that calls everything in doubt too.
func TestMutants(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := writeMutants(t.TempDir(), root)
	if err != nil {
		t.Fatal(err)
	}
	bin := build(t, overlay, "./scenarios/sweep")
	t.Run("none", func(t *testing.T) {
		for _, m := range mutants {
			if out, err := m.sweep(t, bin, ""); err != nil {
				t.Errorf("without a mutant, %s: %v\n%s", m.scenario, err, out)
			}
		}
	})
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			out, err := m.sweep(t, bin, m.name)
			if err == nil {
				t.Fatalf("the sweep of %q saw nothing", m.scenario)
			}
			if !strings.Contains(out, m.caught) {
				t.Errorf("the sweep does not say %q:\n%s", m.caught, out)
			}
		})
	}
	t.Run("writes not synced", func(t *testing.T) {
		store := build(t, overlay, "./sqlstore")
		settings := func(mutant string) (string, error) {
			return run(t, mutant, store, "-test.run", "^TestSettingsAreInForce$")
		}
		if out, err := settings(""); err != nil {
			t.Errorf("without the mutant: %v\n%s", err, out)
		}
		if out, err := settings("writes not synced"); err == nil || !strings.Contains(out, "synchronous of the write pool is 0, want 2") {
			t.Errorf("nobody saw it: %v\n%s", err, out)
		}
	})
}

// unsynced is not caught by a sweep, which loses processes and not machines: each connection is asked.
var unsynced = mutant{name: "writes not synced", changes: []change{
	{"sqlstore/sqlite.go", `[...]string{"FULL", "NORMAL", "OFF"}[o.Sync]`, `map[bool]string{true: "OFF", false: [...]string{"FULL", "NORMAL", "OFF"}[o.Sync]}[MUTANT]`},
	{"sqlstore/sqlite.go", `[...]string{"2", "1", "0"}[o.Sync]`, `map[bool]string{true: "0", false: [...]string{"2", "1", "0"}[o.Sync]}[MUTANT]`},
}}

// sweep plays the mutant's points and returns what the sweep said.
func (m mutant) sweep(t *testing.T, bin, name string) (string, error) {
	t.Helper()
	return run(t, name, bin, "-test.run", "^TestSweep$", "-scenario", m.scenario, "-only", m.only, "-sqlite=false")
}

// run runs a program of tests that has all mutants, with one of them in force.
func run(t *testing.T, mutant, bin string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Env = append(os.Environ(), "PAWL_MUTANT="+mutant)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// build builds the tests of a package.
func build(t *testing.T, overlay, pkg string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "test")
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", bin, pkg)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// writeMutants writes the files with all mutants, and the overlay that names them.
func writeMutants(dir, root string) (overlay string, err error) {
	texts := map[string]string{}
	for _, m := range append(mutants[:len(mutants):len(mutants)], unsynced) {
		for _, c := range m.changes {
			text, ok := texts[c.file]
			if !ok {
				b, err := os.ReadFile(filepath.Join(root, c.file))
				if err != nil {
					return "", err
				}
				text = string(b)
			}
			if n := strings.Count(text, c.old); n != 1 {
				return "", fmt.Errorf("mutant %q: %s has %q %d times: break it in another way", m.name, c.file, c.old, n)
			}
			inForce := fmt.Sprintf("(os.Getenv(%q) == %q)", "PAWL_MUTANT", m.name)
			texts[c.file] = strings.Replace(text, c.old, strings.ReplaceAll(c.new, "MUTANT", inForce), 1)
		}
	}
	replace := map[string]string{}
	for file, text := range texts {
		_, rest, _ := strings.Cut(text, "\nimport (\n")
		if !strings.Contains(rest, "\t\"os\"\n") {
			text = strings.Replace(text, "\nimport (\n", "\nimport (\n\t\"os\"\n", 1)
		}
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}
