package chaos

import (
	"slices"
	"time"

	"github.com/pawl-agents/pawl"
)

// What a worker can be told to do.
const (
	doRun             = "run"
	doResume          = "resume"
	doDecide          = "decide"
	doDecideAndResume = "decide-and-resume"
	doCancel          = "cancel"
	doDeliver         = "deliver"   // a result that comes later
	doLook            = "look"      // at a run that others drive
	doSupervise       = "supervise" // is reported, never told
	doIdle            = "idle"
	doQuit            = "quit"
)

// task is something to do.
type task struct {
	ID   int    `json:"id"`
	Do   string `json:"do"`
	Plan plan   `json:"plan"`
	// Taste is how a person decides; two of one taste agree.
	Taste int `json:"taste"`
	// Letter is what a courier is to deliver.
	Letter letter `json:"letter"`

	parcel *parcel
}

// letter is the result of a call that comes later.
type letter struct {
	Call         string `json:"call"`
	Interruption string `json:"interruption"` // empty as long as nobody knows it
	Text         string `json:"text"`
	Forged       bool   `json:"forged"`
}

// report is what became of a task. A supervisor reports without one.
type report struct {
	ID     int    `json:"id"`
	Worker int    `json:"worker"`
	Run    string `json:"run"`
	// Deadline says that the run waits for no longer than that.
	Deadline time.Time `json:"deadline,omitzero"`
	// Mark tells where the run stands: how many turns it has had, and what it waits for.
	Mark string `json:"mark"`
	// Interruption is what a courier found.
	Interruption string `json:"interruption"`
	// Status is the run's, or statusDecided if the task left something for its driver.
	Status string `json:"status"`
	// Problem is the word for an error, Text its text.
	Problem string `json:"problem"`
	Text    string `json:"text"`
}

const (
	statusWaiting   = string(pawl.StatusWaiting)
	statusFinished  = string(pawl.StatusFinished)
	statusCancelled = string(pawl.StatusCancelled)
	statusFailed    = string(pawl.StatusFailed)
	statusDecided   = "decided"
)

// expected are the errors that a task may well end with.
var expected = map[string][]string{
	doRun:             {problemClaimed, problemFenced, problemExpired},
	doResume:          {problemClaimed, problemFenced, problemExpired},
	doDecide:          {problemDecided, problemNotOpen, problemInFlight},
	doDecideAndResume: {problemClaimed, problemFenced, problemDecided, problemNotOpen, problemInFlight, problemConflict, problemExpired},
	doDeliver:         {problemDecided, problemNotOpen, problemInFlight},
	doSupervise:       {problemFenced, problemExpired},
}

// next is what a worker is to do next: a new run, an open one that nobody has, or now and then one that somebody has.
func (p *parent) next(worker int) task {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.delivery()
	j := t.jobOf()
	if !ok {
		if j = p.choose(); j == nil {
			if p.draining && !slices.ContainsFunc(p.open, func(j *job) bool { return !j.left() }) {
				return task{Do: doQuit}
			}
			return task{Do: doIdle}
		}
		t = task{Do: p.whatToDo(j), Plan: j.plan}
		if p.rnd.IntN(6) == 0 {
			t.Taste = p.rnd.IntN(3)
		}
	}
	p.tasks++
	t.ID = p.tasks
	p.assigned[t.ID] = assignment{task: t, job: j, worker: worker, since: time.Now()}
	j.holders++
	return t
}

// jobOf is the run of a task that has a parcel.
func (t task) jobOf() *job {
	if t.parcel == nil {
		return nil
	}
	return t.parcel.job
}

// choose returns a run to work on, nil if there is none now.
func (p *parent) choose() *job {
	most := 3 * p.o.workers * p.o.parallel
	if !p.draining && len(p.open) < most && p.rnd.IntN(3) == 0 {
		if j, err := p.newJob(); err == nil {
			return j
		}
	}
	twice := p.rnd.IntN(8) == 0
	now := time.Now()
	var able []*job
	for _, j := range p.open {
		if !j.left() && j.later.Before(now) && (twice || j.holders == 0) {
			able = append(able, j)
		}
	}
	if len(able) > 0 {
		return able[p.rnd.IntN(len(able))]
	}
	if !p.draining && p.leftOver() < len(p.open)-most {
		return nil
	}
	if !p.draining {
		if j, err := p.newJob(); err == nil {
			return j
		}
	}
	return nil
}

// leftOver counts the open runs that stay open.
func (p *parent) leftOver() (n int) {
	for _, j := range p.open {
		if j.left() {
			n++
		}
	}
	return n
}

func (p *parent) whatToDo(j *job) string {
	drive := doResume
	switch {
	case j.plan.Alone && !(j.failed && p.o.host.engine()): // who takes up runs takes up those that failed, too; an engine does not
		drive = doLook
	case p.rnd.IntN(2) == 0:
		drive = doRun
	}
	switch {
	case !j.begun:
		return doRun
	case j.plan.Cancel && !j.cancelled && p.rnd.IntN(2) == 0:
		return doCancel
	case j.plan.Leave || !j.waiting || j.undecided && p.rnd.IntN(2) == 0:
		return drive
	case !j.plan.Alone && p.rnd.IntN(3) == 0:
		return doDecideAndResume
	case p.rnd.IntN(8) > 0:
		return doDecide
	}
	return drive
}

// take takes what became of a task.
func (p *parent) take(r report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.assigned[r.ID]
	if r.ID == 0 {
		a = assignment{task: task{Do: doSupervise}, job: p.byRun[r.Run], worker: r.Worker, frozen: true, since: time.Now()}
		p.seen.supervised++
	}
	delete(p.assigned, r.ID)
	if !ok && a.job == nil {
		if r.ID == 0 && !p.outages.wasDown(time.Now()) {
			p.violations = append(p.violations, violation{r.Run, "a supervisor: " + r.Text})
		}
		return // else its worker died in the moment it reported
	}
	j := a.job
	if !a.frozen {
		j.holders--
	}
	j.note("worker %d: %s: %s %s %s", a.worker, a.task.Do, r.Status, r.Problem, r.Text)
	if r.Problem == problemOther && p.outages.wasDown(a.since) {
		p.miss(j, a.task)
		return
	}
	if !j.allows(a.task.Do, r.Problem) {
		p.blame(j, "%s ends with %s: %s", a.task.Do, r.Problem, r.Text)
		j.later = time.Now().Add(time.Second)
	}
	if a.task.Do == doDeliver {
		p.arrive(a.task, r)
		return
	}
	j.cancelled = j.cancelled || a.task.Do == doCancel && r.Problem == ""
	j.undecided = a.task.Do == doDecide && r.Status != statusDecided
	p.follow(j, r)
}

// miss is what becomes of a task whose worker could not reach the store: somebody tries again.
func (p *parent) miss(j *job, t task) {
	if t.Do == doDeliver {
		p.lose(t)
	}
	j.later = later(j.later, time.Now().Add(100*time.Millisecond))
}

// follow draws from a report how the run is.
func (p *parent) follow(j *job, r report) {
	pause := time.Duration(0)
	j.failed = r.Status == statusFailed
	if r.Mark != "" && r.Mark != j.mark {
		j.mark, p.progress = r.Mark, time.Now()
	}
	switch {
	case r.Problem == problemAmbiguous:
		j.begun, j.ambiguous = true, true
	case r.Status == statusFinished || r.Status == statusCancelled:
		p.end(j)
	case r.Problem == problemExpired:
		j.begun = true
	case r.Status == statusWaiting:
		j.begun, j.waiting, j.deadline = true, true, r.Deadline
	case r.Status == statusDecided && r.Problem == "" || r.Problem == problemDecided:
		j.waiting = false
	case r.Problem == "":
		j.begun, j.waiting, pause = true, false, 200*time.Millisecond // others have it, or will have it
	case r.Problem == problemClaimed || r.Problem == problemInFlight:
		pause = 50 * time.Millisecond // whoever has it may not have begun it yet
	}
	if j.undecided || j.plan.Alone && j.begun {
		pause = 150 * time.Millisecond * time.Duration(p.o.host.lives())
	}
	j.later = later(j.later, time.Now().Add(pause))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// allows says that a task may end with an error. A process that died in its first request on a conversation leaves a
// question that nobody can answer: whether the server processed it. The run refuses to go on, and somebody cancels it; in the
// end it is seen that it was that request.
func (j *job) allows(do, problem string) bool {
	switch problem {
	case "":
		return true
	case problemCancelled:
		return j.plan.Cancel
	case problemAmbiguous:
		j.plan.Cancel = true
		return j.plan.Mode == modeConversation && slices.Contains([]string{doRun, doResume, doDecideAndResume, doSupervise}, do)
	}
	return slices.Contains(expected[do], problem)
}

func (p *parent) end(j *job) {
	if j.ended {
		return
	}
	j.ended, j.begun, j.waiting = true, true, false
	p.progress = time.Now()
	p.open = slices.DeleteFunc(p.open, func(o *job) bool { return o == j })
	if j.plan.Mode.holdsSession() {
		p.free[j.plan.Mode] = append(p.free[j.plan.Mode], j.plan.Session)
	}
}

// bury takes back what a dead worker had.
func (p *parent) bury(worker int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.processes, worker)
	for id, a := range p.assigned {
		if a.worker != worker {
			continue
		}
		delete(p.assigned, id)
		if !a.frozen {
			a.job.holders--
		}
		if a.task.Do == doDeliver {
			p.lose(a.task)
		}
		a.job.note("worker %d: %s: killed", worker, a.task.Do)
	}
}
