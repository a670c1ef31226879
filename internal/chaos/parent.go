package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pawl-agents/pawl/pawltest"
)

// parent is the campaign: the model, the far side, and who hands out work.
type parent struct {
	o     options
	out   io.Writer
	log   effectLog
	model *pawltest.ResponsesServer
	brain *brain
	url   string
	http  *http.Server

	mu         sync.Mutex
	rnd        *rand.Rand
	runs       []*job
	open       []*job // not ended
	assigned   map[int]assignment
	tasks      int
	sessions   map[string][]string // session -> its runs, in order
	free       map[mode][]string   // sessions without an open run
	processes  map[int]*os.Process // worker -> its process
	byRun      map[string]*job
	parcels    map[string]*parcel // key -> what was ordered with it
	transit    []*parcel          // not delivered
	far        map[string]int     // key -> how often it was asked for
	booked     map[string]int     // call -> how often it is in the table, at the end
	draining   bool
	stops      time.Time // until then processes are stopped
	progress   time.Time
	kills      int
	looks      int // of the parent, one a second
	seen       sights
	violations []violation
	outages    outages
}

// assignment is a task in somebody's hands.
type assignment struct {
	task   task
	job    *job
	worker int
	since  time.Time
	frozen bool // its worker was stopped: others may have the run
}

// job is a run as the parent sees it.
type job struct {
	plan      plan
	mark      string    // where it was last seen
	begun     bool      // somebody reported that it is in the store
	waiting   bool      // for decisions
	deadline  time.Time // of what it waits for
	undecided bool      // somebody looked, and would not or could not decide
	cancelled bool      // or to be cancelled by whoever drives it next
	ambiguous bool      // it refused to go on
	ended     bool
	failed    bool
	later     time.Time // hand it out again then
	holders   int
	history   []string // what was reported
}

// note adds to what is told of a run when something is wrong with it.
func (j *job) note(format string, args ...any) {
	j.history = append(j.history, time.Now().Format(time.StampMilli)+" "+fmt.Sprintf(format, args...))
}

func (p *parent) blame(j *job, format string, args ...any) {
	p.violations = append(p.violations, violation{j.plan.Run, fmt.Sprintf(format, args...)})
}

// violation is something that must not happen.
type violation struct{ run, problem string }

// Where the parent listens beside the model's API.
const (
	farPath    = "/far"
	shipPath   = "/ship"
	freezePath = "/freeze"
	taskPath   = "/task"
	reportPath = "/report"
)

// open starts the servers of a campaign.
func open(o options, out io.Writer) (*parent, error) {
	p := &parent{o: o, out: out, log: effectLog(filepath.Join(o.dir, effectsDir)), rnd: drawn(o.seed, "parent"),
		brain: &brain{seed: o.seed, seen: map[int]shown{}, asked: map[string][]int{}}, assigned: map[int]assignment{},
		sessions: map[string][]string{}, free: map[mode][]string{}, processes: map[int]*os.Process{}, byRun: map[string]*job{},
		parcels: map[string]*parcel{}, far: map[string]int{}, progress: time.Now()}
	if err := os.MkdirAll(string(p.log), 0o755); err != nil {
		return nil, err
	}
	var err error
	p.model, err = pawltest.OpenResponses(&pawltest.ResponsesOptions{Respond: p.brain.respond, Fault: p.brain.delay, Retain: 20000})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p.url = "http://" + listener.Addr().String()
	mux := http.NewServeMux()
	mux.Handle("/v1/", p.model)
	mux.HandleFunc(farPath, p.serveFar)
	mux.HandleFunc(shipPath, p.serveShip)
	mux.HandleFunc(freezePath, p.serveFreeze)
	mux.HandleFunc(taskPath, p.serveTask)
	mux.HandleFunc(reportPath, p.serveReport)
	p.http = &http.Server{Handler: mux}
	go p.http.Serve(listener)
	return p, nil
}

// serveFar is a far side that honours keys: it does a thing once for a key, however often it is asked.
func (p *parent) serveFar(_ http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.far[r.URL.Query().Get("key")]++
}

func (p *parent) serveTask(w http.ResponseWriter, r *http.Request) {
	var worker int
	if json.NewDecoder(r.Body).Decode(&worker) != nil {
		return
	}
	json.NewEncoder(w).Encode(p.next(worker))
}

func (p *parent) serveReport(_ http.ResponseWriter, r *http.Request) {
	var rep report
	if json.NewDecoder(r.Body).Decode(&rep) == nil {
		p.take(rep)
	}
}

// campaign kills for as long as it is to, and then lets every run come to its end.
func (p *parent) campaign(ctx context.Context) error {
	defer p.http.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	failures := make(chan error, p.o.workers+1)
	end := time.Now().Add(p.o.duration)
	p.mu.Lock()
	p.stops = time.Now().Add(p.o.duration / 2)
	p.mu.Unlock()
	for slot := range p.o.workers {
		group.Go(func() { failures <- p.keepAlive(ctx, slot, end) })
	}
	group.Go(func() { failures <- p.torment(ctx, end) })
	if p.o.pawl != "" {
		clerk, stop := context.WithCancel(ctx)
		var office sync.WaitGroup
		defer office.Wait()
		defer stop()
		office.Go(func() { p.clerk(clerk) })
	}
	look := time.NewTicker(time.Second)
	defer look.Stop()
	over := time.After(time.Until(end))
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	for {
		select {
		case <-done:
			var err error
			for range p.o.workers + 1 {
				err = errors.Join(err, <-failures)
			}
			if err = errors.Join(err, ctx.Err()); err == nil && p.o.lie != lieAlone {
				err = p.lastWorker(ctx)
			}
			return err
		case <-over:
			p.drain()
		case now := <-look.C:
			if p.tell(now) {
				cancel()
				<-done
				return nil
			}
		}
	}
}

// drain has the runs come to their ends.
func (p *parent) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.draining, p.progress = true, time.Now()
}

// tell prints now and then how far the campaign is, and reports whether nothing has moved for too long.
func (p *parent) tell(now time.Time) (stuck bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.looks++; p.looks%10 == 0 {
		fmt.Fprintf(p.out, "chaos: so far %d kills, %d runs, %d of them open, %d violations\n", p.kills, len(p.runs), len(p.open), len(p.violations))
	}
	if !p.draining || now.Sub(p.progress) < p.o.patience {
		return false
	}
	for _, j := range p.open {
		if !j.left() {
			p.blame(j, "it does not come to its end")
		}
	}
	return true
}

// left says that the run waits for decisions that nobody takes.
func (j *job) left() bool { return j.plan.Leave && j.waiting && j.deadline.IsZero() && !j.plan.Cancel }

// newJob begins a run. Its conversation has no other open run.
func (p *parent) newJob() (*job, error) {
	plan := newPlan(p.rnd, len(p.runs)+1)
	if plan.Mode == modePlain && time.Now().Before(p.stops.Add(longest)) {
		plan.Mode = modeOwn // what a process was stopped in may still arrive there when others have read the session back
	}
	switch m := plan.Mode; {
	case m.holdsSession() && len(p.free[m]) > 0 && p.rnd.IntN(4) > 0:
		last := len(p.free[m]) - 1
		plan.Session = p.free[m][last]
		p.free[m] = p.free[m][:last]
	case m.holdsSession():
		plan.Session = fmt.Sprintf("%s/%s", m, plan.Run)
	case m == modeConversation:
		var err error
		if plan.Session, err = p.newConversation(); err != nil {
			return nil, err
		}
	}
	if plan.Session != "" {
		p.sessions[plan.Session] = append(p.sessions[plan.Session], plan.Run)
	}
	j := &job{plan: plan}
	p.byRun[plan.Run] = j
	p.runs, p.open = append(p.runs, j), append(p.open, j)
	return j, nil
}

func (p *parent) newConversation() (id string, err error) {
	res, err := http.Post(p.url+"/v1/conversations", "application/json", strings.NewReader("{}"))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var made struct{ ID string }
	err = json.NewDecoder(res.Body).Decode(&made)
	return made.ID, err
}
