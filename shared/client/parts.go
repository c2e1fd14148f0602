package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// place returns the path of a resource: its parts are escaped.
func place(parts ...string) string {
	var path strings.Builder
	path.WriteString("/api")
	for _, part := range parts {
		path.WriteString("/" + url.PathEscape(part))
	}
	return path.String()
}

// fetch returns the resource at a path.
func fetch[T any](ctx context.Context, c *Client, path string) (*T, error) {
	return answer[T](ctx, c, request{method: http.MethodGet, path: path}, nil)
}

// fetchHeld is fetch; with wait above zero the answer is held until the resource ends, at most for that time and at
// most for a minute.
func fetchHeld[T any](ctx context.Context, c *Client, path string, wait time.Duration) (*T, error) {
	return fetch[T](ctx, c, held(path, wait))
}

// held asks for an answer that is held.
func held(path string, wait time.Duration) string {
	if wait > 0 {
		path += fmt.Sprintf("?wait=%dms", min(max(wait, time.Millisecond), time.Minute).Milliseconds())
	}
	return path
}

// again sends a POST without a body, which may be repeated.
func again[T any](ctx context.Context, c *Client, path string) (*T, error) {
	return answer[T](ctx, c, request{method: http.MethodPost, path: path, repeatable: true}, nil)
}

// answer sends a request with a body, nil for none, and returns what the gateway answers.
func answer[T any](ctx context.Context, c *Client, r request, in any) (*T, error) {
	var out T
	if _, err := c.json(ctx, r, in, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// list reads all pages of a list, whose entries are in the member.
func list[T any](ctx context.Context, c *Client, path, member string, values url.Values) iter.Seq2[*T, error] {
	return each(func(cursor string) ([]T, string, error) {
		asked := url.Values{"limit": {"200"}}
		for name := range values {
			asked[name] = values[name]
		}
		if cursor != "" {
			asked.Set("cursor", cursor)
		}
		page, err := fetch[map[string]json.RawMessage](ctx, c, path+query(asked))
		if err != nil {
			return nil, "", err
		}
		var entries []T
		var next string
		for name, into := range map[string]any{member: &entries, "nextCursor": &next} {
			if err := json.Unmarshal((*page)[name], into); err != nil {
				return nil, "", fmt.Errorf("decode %s of %s: %w", name, path, err)
			}
		}
		return entries, next, nil
	})
}

// all reads a list that has no pages, whose entries are in the member.
func all[T any](ctx context.Context, c *Client, path, member string) ([]T, error) {
	whole, err := fetch[map[string]json.RawMessage](ctx, c, path)
	if err != nil {
		return nil, err
	}
	var entries []T
	if err := json.Unmarshal((*whole)[member], &entries); err != nil {
		return nil, fmt.Errorf("decode %s of %s: %w", member, path, err)
	}
	return entries, nil
}

// given returns the values of a query: pairs of names and values, without the empty ones.
func given(pairs ...string) url.Values {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return values
}

// instant returns an instant as a query has it; the zero instant is none.
func instant(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// waitFor reads until something has ended. It keeps waiting during a restart of the gateway.
func waitFor[T any](
	ctx context.Context, c *Client, path string, ended func(*T) bool,
) (now *T, err error) {
	for {
		err := c.Through(ctx, func(error) {}, func() (err error) {
			return Held(maxWait, func(wait time.Duration) error {
				now, err = fetchHeld[T](ctx, c, path, wait)
				return err
			})
		})
		if err != nil || ended(now) {
			return now, err
		}
		if err := pauseFor(ctx, lookEvery); err != nil { // a busy gateway does not hold its answers
			return nil, err
		}
	}
}
