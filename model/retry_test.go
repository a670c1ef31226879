package model_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pawl-agents/pawl/model"
)

func TestRetryContextOf(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want model.RetryContext
	}{
		"busy": {&model.Error{Status: 503, Code: "slow_down", Message: "busy", RequestID: "req_1", RetryAfter: time.Second, Retryable: true},
			model.RetryContext{Status: 503, Code: "slow_down", Message: "busy", RequestID: "req_1", RetryAfter: time.Second, Suggested: true}},
		"told not to":       {&model.Error{Status: 500, Final: true}, model.RetryContext{Status: 500, Final: true}},
		"no answer":         {&model.Error{Err: io.EOF, Retryable: true}, model.RetryContext{Suggested: true, Network: true}},
		"half an answer":    {&model.Error{Status: 200, Err: model.ErrStreamCut, RequestID: "req_1"}, model.RetryContext{Status: 200, RequestID: "req_1", Network: true}},
		"not in time":       {fmt.Errorf("call: %w", &model.Error{Err: context.DeadlineExceeded, Retryable: true}), model.RetryContext{Suggested: true, Timeout: true}},
		"failed":            {&model.Error{Status: 200, Err: model.ErrFailed, Retryable: true}, model.RetryContext{Status: 200, Suggested: true}},
		"an error event":    {&model.Error{Code: "server_error", Retryable: true}, model.RetryContext{Code: "server_error", Suggested: true}},
		"not readable":      {&model.Error{Status: 200, Err: model.ErrMalformed}, model.RetryContext{Status: 200}},
		"wrong, never sent": {&model.Error{Delivery: model.DeliveryRefused, Err: errors.New("no model name")}, model.RetryContext{}},
		"somebody else's":   {errors.New("bug"), model.RetryContext{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := model.RetryContextOf(tt.err)
			if got.Err != tt.err {
				t.Errorf("error %v", got.Err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(model.RetryContext{}, "Err")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRetryPolicies(t *testing.T) {
	yes := func(delay time.Duration, reason string) model.RetryPolicy {
		return func(model.RetryContext) model.RetryDecision {
			return model.RetryDecision{Retry: true, Delay: delay, Reason: reason}
		}
	}
	approving := func(model.RetryContext) model.RetryDecision {
		return model.RetryDecision{Retry: true, ApproveReplay: true, Reason: "approved"}
	}
	busy := model.RetryContext{Status: 503, Suggested: true}
	asked := model.RetryContext{Status: 429, Suggested: true, RetryAfter: time.Minute}
	lost := model.RetryContext{Network: true, Suggested: true}
	unsafe := model.RetryContext{Network: true, Suggested: true, Unsafe: true}
	final := model.RetryContext{Status: 500, Final: true}
	for name, tt := range map[string]struct {
		policy model.RetryPolicy
		of     model.RetryContext
		want   model.RetryDecision
	}{
		"never":                          {model.RetryNever, busy, model.RetryDecision{Reason: "never"}},
		"suggested":                      {model.RetrySuggested, asked, model.RetryDecision{Retry: true, Delay: time.Minute, Reason: "it may succeed later"}},
		"not suggested":                  {model.RetrySuggested, model.RetryContext{Status: 400}, model.RetryDecision{Reason: "it would not succeed later"}},
		"suggested, unsafe":              {model.RetrySuggested, unsafe, model.RetryDecision{Reason: "the server may have processed it", Veto: model.VetoUnsafe}},
		"suggested, final":               {model.RetrySuggested, final, model.RetryDecision{Reason: "the server asked not to be sent it again", Veto: model.VetoFinal}},
		"network":                        {model.RetryNetwork, lost, model.RetryDecision{Retry: true, Reason: "no answer"}},
		"network, too late":              {model.RetryNetwork, model.RetryContext{Timeout: true}, model.RetryDecision{Retry: true, Reason: "no answer"}},
		"network, answered":              {model.RetryNetwork, busy, model.RetryDecision{Reason: "no answer"}},
		"after":                          {model.RetryAfter, asked, model.RetryDecision{Retry: true, Delay: time.Minute, Reason: "the server said when"}},
		"after, not asked":               {model.RetryAfter, busy, model.RetryDecision{Reason: "the server said when"}},
		"status":                         {model.RetryStatus(500, 503), busy, model.RetryDecision{Retry: true, Reason: "the status"}},
		"other status":                   {model.RetryStatus(500), busy, model.RetryDecision{Reason: "the status"}},
		"any of none":                    {model.RetryAny(), busy, model.RetryDecision{}},
		"any":                            {model.RetryAny(model.RetryNever, yes(0, "first")), busy, model.RetryDecision{Retry: true, Reason: "first"}},
		"any, a later one adds":          {model.RetryAny(yes(time.Second, "first"), yes(0, ""), yes(time.Hour, "last")), busy, model.RetryDecision{Retry: true, Delay: time.Hour, Reason: "last"}},
		"any, a later one has nothing":   {model.RetryAny(yes(time.Second, "first"), yes(0, "")), busy, model.RetryDecision{Retry: true, Delay: time.Second, Reason: "first"}},
		"any, final":                     {model.RetryAny(yes(0, "yes"), approving, model.RetrySuggested), final, model.RetryDecision{Reason: "the server asked not to be sent it again", Veto: model.VetoFinal}},
		"any, unsafe":                    {model.RetryAny(model.RetryNetwork, model.RetrySuggested), unsafe, model.RetryDecision{Reason: "the server may have processed it", Veto: model.VetoUnsafe}},
		"any, unsafe, approved":          {model.RetryAny(model.RetrySuggested, approving), unsafe, model.RetryDecision{Retry: true, ApproveReplay: true, Reason: "approved"}},
		"any, approved, unsafe":          {model.RetryAny(approving, model.RetrySuggested), unsafe, model.RetryDecision{Retry: true, ApproveReplay: true, Reason: "approved"}},
		"any in any":                     {model.RetryAny(model.RetryAny(model.RetrySuggested), approving), unsafe, model.RetryDecision{Retry: true, ApproveReplay: true, Reason: "approved"}},
		"all of none":                    {model.RetryAll(), busy, model.RetryDecision{}},
		"all":                            {model.RetryAll(model.RetrySuggested, model.RetryStatus(429)), asked, model.RetryDecision{Retry: true, Delay: time.Minute, Reason: "the status"}},
		"all but one":                    {model.RetryAll(yes(0, "yes"), model.RetryNever), busy, model.RetryDecision{Reason: "never"}},
		"all, final":                     {model.RetryAll(approving, model.RetrySuggested), final, model.RetryDecision{Reason: "the server asked not to be sent it again", Veto: model.VetoFinal}},
		"all, unsafe":                    {model.RetryAll(model.RetryNetwork, model.RetrySuggested), unsafe, model.RetryDecision{Reason: "the server may have processed it", Veto: model.VetoUnsafe}},
		"all, unsafe, approved":          {model.RetryAll(model.RetrySuggested, approving), unsafe, model.RetryDecision{Retry: true, ApproveReplay: true, Reason: "approved"}},
		"all, approved, but not by each": {model.RetryAll(model.RetrySuggested, approving, model.RetryNever), unsafe, model.RetryDecision{Reason: "never"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.policy(tt.of)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The policy is not asked about the last attempt. Its delay wins over the server's.
func TestRetryDecide(t *testing.T) {
	var asked []model.RetryContext
	r := &model.Retry{MaxRetries: 1, Policy: func(c model.RetryContext) model.RetryDecision {
		asked = append(asked, c)
		return model.RetryDecision{Retry: true, Delay: time.Duration(c.Status)}
	}}
	for _, tt := range []struct {
		of   model.RetryContext
		want model.RetryDecision
	}{
		{model.RetryContext{Attempt: 1, Status: 5, RetryAfter: 7}, model.RetryDecision{Retry: true, Delay: 5}},
		{model.RetryContext{Attempt: 1, RetryAfter: 7}, model.RetryDecision{Retry: true, Delay: 7}},
		{model.RetryContext{Attempt: 2}, model.RetryDecision{Reason: "the retries are used up"}},
	} {
		if diff := cmp.Diff(tt.want, r.Decide(tt.of)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.of, diff)
		}
	}
	if len(asked) != 2 || asked[0].MaxRetries != 1 {
		t.Errorf("asked about %+v", asked)
	}
	if d := (&model.Retry{MaxRetries: 1}).Decide(model.RetryContext{Attempt: 1, Suggested: true}); !d.Retry {
		t.Errorf("without a policy %+v", d)
	}
}

// Of two settings each field of the retries is that of the upper one, if it says anything.
func TestRetryIsMerged(t *testing.T) {
	no := func(model.RetryContext) model.RetryDecision { return model.RetryDecision{Reason: "upper"} }
	full := &model.Retry{MaxRetries: 3, InitialDelay: 1, MaxDelay: 2, Policy: model.RetryNever}
	for name, tt := range map[string]struct{ under, over, want *model.Retry }{
		"none":      {nil, nil, nil},
		"under":     {full, nil, full},
		"over":      {nil, full, full},
		"nothing":   {full, &model.Retry{}, full},
		"no more":   {full, &model.Retry{MaxRetries: -1}, &model.Retry{MaxRetries: -1, InitialDelay: 1, MaxDelay: 2, Policy: model.RetryNever}},
		"a policy":  {&model.Retry{MaxRetries: 3}, &model.Retry{Policy: no}, &model.Retry{MaxRetries: 3, Policy: no}},
		"a delay":   {full, &model.Retry{MaxDelay: 9}, &model.Retry{MaxRetries: 3, InitialDelay: 1, MaxDelay: 9, Policy: model.RetryNever}},
		"all of it": {&model.Retry{MaxRetries: 7, InitialDelay: 8, MaxDelay: 9, Policy: no}, full, full},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&model.Settings{Retry: tt.under}).Merge(&model.Settings{Retry: tt.over}).Retry
			said := cmp.Transformer("policy", func(p model.RetryPolicy) string {
				if p == nil {
					return "none"
				}
				return p(model.RetryContext{}).Reason
			})
			if diff := cmp.Diff(tt.want, got, said); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
