package pawltest

import (
	"context"
	"slices"

	"github.com/pawl-agents/pawl"
)

// heardSource is a source of tools whose classes the far side gets to know when they are listed.
type heardSource struct {
	pawl.ToolSource
	far *far
}

// Tools lists the tools.
func (s heardSource) Tools(ctx context.Context, rc *pawl.RunContext) ([]pawl.Tool, error) {
	tools, err := s.ToolSource.Tools(ctx, rc)
	s.far.mu.Lock()
	defer s.far.mu.Unlock()
	for _, t := range tools {
		s.far.classes[t.Name()] = t.Effect()
	}
	return tools, err
}

// hear makes the sources of an agent ones that are heard.
func (f *far) hear(a *pawl.Agent) {
	unheard := func(s pawl.ToolSource) bool {
		h, ok := s.(heardSource)
		return !ok || h.far != f
	}
	if !slices.ContainsFunc(a.ToolSources, unheard) {
		return
	}
	a.ToolSources = slices.Clone(a.ToolSources)
	for i, s := range a.ToolSources {
		if h, ok := s.(heardSource); ok {
			s = h.ToolSource
		}
		a.ToolSources[i] = heardSource{s, f}
	}
}
