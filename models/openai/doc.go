// Package openai calls models through OpenAI's Responses API
// (https://platform.openai.com/docs/api-reference/responses) or a server that speaks it.
//
//	client := openai.New(openai.Options{APIKey: key})
//	agent.Model = client.Responses("gpt-5.2")
//
// A [Client] reads nothing from the environment; [FromEnv] and the short form [Responses] do, and say so.
//
// Authentication, base URL, headers and middleware are those of the official client library
// (https://github.com/openai/openai-go). Its types for requests and responses are not used: input items are sent as the
// bytes they are and output items are returned as the bytes they came in, so nothing that this package does not know is
// lost or rewritten. Its retries are off: one call is one attempt.
//
// # Errors
//
// Every error of a call is a [*model.Error], except [model.ErrAbandoned]. Its Delivery is [model.DeliveryRefused] if the
// request was wrong before it was sent, if no connection to the server came about, or if the server answered with a 4xx
// status other than 408 (https://www.rfc-editor.org/rfc/rfc9110#section-15.5); everything else may have been processed.
// Retryable follows the header x-should-retry, then the status and error code
// (https://platform.openai.com/docs/guides/error-codes).
//
// # Settings
//
// FrequencyPenalty and PresencePenalty are ignored, since only Chat Completions knows them. Usage is always reported, so
// IncludeUsage false is refused. Retry and Timeout belong to the run. Numbers are not checked against the server's ranges.
//
// # Bounds
//
// A response body, and one event of a stream, may be up to [MaxResponseSize] bytes. A larger one is [model.ErrMalformed].
package openai
