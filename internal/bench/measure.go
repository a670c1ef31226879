package main

import (
	"math"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// A measure compares what Pawl needs for a piece of work with what the floor needs.
type measure struct {
	name string
	// limit is of the ratio of Pawl to the floor, or, if of is limitValue, of Pawl's value itself; if it is limitShare, the
	// ratio must reach it.
	limit  float64
	of     limitKind
	sample func() (pawl, floor float64, err error)
}

type limitKind int

const (
	limitRatio limitKind = iota
	limitValue
	limitShare
)

// result is what a measure came to.
type result struct {
	*measure
	pawl, floor, ratio float64
}

func (r *result) over() bool {
	switch r.of {
	case limitValue:
		return r.pawl > r.limit
	case limitShare:
		return r.ratio < r.limit
	}
	return r.ratio > r.limit
}

func (m *measure) limitText() string {
	text := strconv.FormatFloat(m.limit, 'f', -1, 64)
	switch m.of {
	case limitRatio:
		text += "x"
	case limitShare:
		text += "x+"
	}
	return text
}

// take asks for so many samples and returns the medians.
func (m *measure) take(rounds int) (*result, error) {
	var pawls, floors []float64
	for range rounds {
		p, f, err := m.sample()
		if err != nil {
			return nil, err
		}
		pawls, floors = append(pawls, p), append(floors, f)
	}
	r := &result{measure: m, pawl: median(pawls), floor: median(floors)}
	r.ratio = r.pawl / r.floor
	return r, nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// A meter reads a cost that only grows, of this process.
type meter func() float64

// cpu is user and system time of all threads in microseconds, garbage collection included.
func cpu() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no reason to fail
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}

var begin = time.Now()

// wall is the time that passed, in microseconds.
func wall() float64 { return float64(time.Since(begin).Nanoseconds()) / 1e3 }

// mallocs is the number of objects allocated.
func mallocs() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.Mallocs)
}

// A work does its thing once and says how many turns that was.
type work func() (turns int, err error)

// atLeast is how long a sample takes at least.
const atLeast = 150 * time.Millisecond

// per returns what a turn of the work costs, from repeating it for as long as a sample takes.
func (read meter) per(do work) (float64, error) {
	runtime.GC() // what the other side left behind is not this one's
	turns, start, before := 0, time.Now(), read()
	for turns == 0 || time.Since(start) < atLeast {
		n, err := do()
		if err != nil {
			return 0, err
		}
		turns += n
	}
	return (read() - before) / float64(turns), nil
}

// pair samples Pawl and the floor in turn, each first in every other round. With -pawl the floor is left out.
func pair(read meter, pawl, floor work) func() (float64, float64, error) {
	floorFirst := false
	return func() (p, f float64, err error) {
		if *pawlOnly {
			p, err = read.per(pawl)
			return p, math.NaN(), err
		}
		floorFirst = !floorFirst
		if floorFirst {
			if f, err = read.per(floor); err != nil {
				return 0, 0, err
			}
		}
		if p, err = read.per(pawl); err != nil {
			return 0, 0, err
		}
		if !floorFirst {
			f, err = read.per(floor)
		}
		return p, f, err
	}
}
