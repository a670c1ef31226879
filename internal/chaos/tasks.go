package main

import (
	"fmt"
	"slices"
	"time"
)

// What a worker can be told to do.
const (
	doRun             = "run"
	doResume          = "resume"
	doDecide          = "decide"
	doDecideAndResume = "decide-and-resume"
	doCancel          = "cancel"
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
}

// report is what became of a task.
type report struct {
	ID int `json:"id"`
	// Status is the run's, or statusDecided if the task left something for its driver.
	Status string `json:"status"`
	// Problem is the word for an error, Text its text.
	Problem string `json:"problem"`
	Text    string `json:"text"`
}

const (
	statusWaiting   = "waiting"
	statusDecided   = "decided"
	statusFinished  = "finished"
	statusCancelled = "cancelled"
)

// expected are the errors that a task may well end with.
var expected = map[string][]string{
	doRun:             {problemClaimed, problemFenced},
	doResume:          {problemClaimed, problemFenced},
	doDecide:          {problemDecided, problemNotOpen, problemInFlight},
	doDecideAndResume: {problemClaimed, problemFenced, problemDecided, problemNotOpen, problemInFlight, problemConflict},
}

// next is what a worker is to do next: a new run, an open one that nobody has, or now and then one that somebody has.
func (p *parent) next(worker int) task {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.choose()
	if j == nil {
		if p.draining && !slices.ContainsFunc(p.open, func(j *job) bool { return !j.left() }) {
			return task{Do: doQuit}
		}
		return task{Do: doIdle}
	}
	p.tasks++
	t := task{ID: p.tasks, Do: p.whatToDo(j), Plan: j.plan}
	if p.rnd.IntN(6) == 0 {
		t.Taste = p.rnd.IntN(3)
	}
	p.assigned[t.ID] = assignment{t, j, worker}
	j.holders++
	return t
}

// choose returns a run to work on, nil if there is none now.
func (p *parent) choose() *job {
	most := 2 * p.o.workers * p.o.parallel
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
	switch {
	case !j.begun:
		return doRun
	case j.plan.Cancel && !j.cancelled && p.rnd.IntN(2) == 0:
		return doCancel
	case j.waiting && p.rnd.IntN(3) == 0:
		return doDecideAndResume
	case j.waiting && p.rnd.IntN(8) > 0:
		return doDecide
	case p.rnd.IntN(2) == 0:
		return doRun
	}
	return doResume
}

// take takes what became of a task.
func (p *parent) take(r report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a, ok := p.assigned[r.ID]
	if !ok {
		return // its worker died in the moment it reported
	}
	delete(p.assigned, r.ID)
	j := a.job
	j.holders--
	j.history = append(j.history, fmt.Sprintf("%s worker %d: %s: %s %s %s", time.Now().Format(time.StampMilli), a.worker, a.task.Do, r.Status, r.Problem, r.Text))
	if !j.allows(a.task.Do, r.Problem) {
		p.violations = append(p.violations, violation{j.plan.Run, fmt.Sprintf("%s ends with %s: %s", a.task.Do, r.Problem, r.Text)})
		j.later = time.Now().Add(time.Second)
	}
	j.cancelled = j.cancelled || a.task.Do == doCancel && r.Problem == ""
	switch {
	case r.Problem == problemAmbiguous:
		j.begun = true
	case r.Status == statusFinished || r.Status == statusCancelled:
		p.end(j)
	case r.Status == statusWaiting:
		j.begun, j.waiting = true, true
		p.progress = time.Now()
	case r.Status == statusDecided && r.Problem == "":
		j.waiting = false
	case r.Problem == problemDecided:
		j.waiting = false
	case r.Problem == "":
		j.later = time.Now().Add(200 * time.Millisecond) // nobody could decide yet
	case r.Problem == problemClaimed || r.Problem == problemInFlight:
		j.later = time.Now().Add(50 * time.Millisecond)
	}
}

// allows says that a task may end with an error. A process that died in its first request on a conversation leaves a
// question that nobody can answer: whether the server processed it. The run refuses to go on, and somebody cancels it.
func (j *job) allows(do, problem string) bool {
	switch problem {
	case "":
		return true
	case problemCancelled:
		return j.plan.Cancel
	case problemAmbiguous:
		j.plan.Cancel = true
		return j.plan.Mode == modeConversation && do != doDecide
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
	for id, a := range p.assigned {
		if a.worker == worker {
			delete(p.assigned, id)
			a.job.holders--
			a.job.history = append(a.job.history, fmt.Sprintf("%s worker %d: %s: killed", time.Now().Format(time.StampMilli), worker, a.task.Do))
		}
	}
}
