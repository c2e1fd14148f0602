package pullworkers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/pullwire"
)

// post sends a request and decodes its response.
func (p *Instances) post(ctx context.Context, in *instance, path string, body, answer any) error {
	res, err := p.send(ctx, in, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(answer); err != nil {
		return errNoPull
	}
	return nil
}

var errNoPull = apierror.New(apierror.Unavailable, "the function pull cannot be reached; send the request again")

// send returns only responses with a 2xx.
func (p *Instances) send(ctx context.Context, in *instance, path string, body any) (*http.Response, error) {
	var data bytes.Buffer
	if err := pullwire.Write(&data, body); err != nil {
		return nil, fmt.Errorf("write request to pull: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, in.url+path, &data)
	if err != nil {
		return nil, fmt.Errorf("make request to pull: %w", err)
	}
	req.Header.Set("Content-Type", edge.JSONType)
	req.Header.Set(pullwire.SecretHeader, p.secret)
	res, err := in.client.Do(req)
	if err != nil {
		switch gone := ctx.Err(); {
		case errors.Is(gone, context.Canceled): // the pull worker disconnected: pull itself is fine
			return nil, fmt.Errorf("ask pull: %w", gone)
		case gone == nil:
			p.trouble.Note(ctx, err, "instance", in.address)
		}
		return nil, errNoPull
	}
	if res.StatusCode == http.StatusTooManyRequests {
		_ = res.Body.Close()
		return nil, edge.SlowDown("the pull workers of this owner ask for too many different job types", time.Second)
	}
	if res.StatusCode/100 != 2 {
		_ = res.Body.Close()
		if res.StatusCode != http.StatusServiceUnavailable { // a 503 means that the instance stops
			p.trouble.Note(ctx, fmt.Errorf("answered %s", res.Status), "instance", in.address)
		}
		return nil, errNoPull
	}
	p.trouble.Note(ctx, nil)
	return res, nil
}
