package edge

import (
	"context"
	"errors"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// The entries of a page of a list: without ?limit=, and at most.
const (
	DefaultLimit = 50
	MaxLimit     = 200
)

// JSONType is the content type of JSON answers.
const JSONType = "application/json; charset=utf-8"

// JobID returns the job id in the path. A text that is not a UUID names no job.
func JobID(c *gin.Context) (uuid.UUID, error) { return PathID(c, "jobId", apidb.ErrNoJob) }

// PathID returns a UUID in the path. It returns unknown if the text is not a UUID: then it names nothing.
func PathID(c *gin.Context, name string, unknown error) (uuid.UUID, error) {
	id, ok := ParseID(c.Param(name))
	if ok {
		return id, nil
	}
	if refused := (*apierror.Error)(nil); errors.As(unknown, &refused) {
		return id, apierror.New(refused.Code, "%s: %.50q is not an id", refused.Message, c.Param(name))
	}
	return id, unknown
}

// NextCursor returns the nextCursor of a page: nil if no page follows.
func NextCursor(more bool, cursor func() string) *string {
	if !more {
		return nil
	}
	next := cursor()
	return &next
}

// Within calls do with a context that ends after the duration patience.
func Within(ctx context.Context, patience time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return do(ctx)
}
