package reportstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/minio/minio-go/v7"
)

const (
	partSize    = 5 << 20
	partsAtOnce = 2
	patience    = 3 * time.Second // for a store to end an upload that is not wanted any more
)

var errAborted = errors.New("the upload is not wanted any more")

// upload is a file in a bucket. What is written goes through a pipe to the uploader.
type upload struct {
	ctx    context.Context // of who writes
	pipe   *io.PipeWriter
	unhook func() bool
	cancel context.CancelFunc // of the uploader's own context
	done   chan struct{}      // closed: the uploader has ended, with err
	err    error
}

// beginUpload starts the uploader. It has a context of its own, since it must hear of the end of ctx by its pipe, and
// call its parts off, rather than be cut off.
func (b *bucket) beginUpload(ctx context.Context, key, contentType string) *upload {
	from, pipe := io.Pipe()
	u := &upload{ctx: ctx, pipe: pipe, done: make(chan struct{})}
	var own context.Context
	own, u.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(u.done)
		u.err = b.put(own, key, contentType, from)
		_ = from.CloseWithError(errors.Join(u.err, io.ErrClosedPipe)) // who writes hears of it
	}()
	u.unhook = context.AfterFunc(ctx, func() { _ = pipe.CloseWithError(context.Cause(ctx)) })
	return u
}

// put sends what fits into one part at once, and else part by part.
func (b *bucket) put(ctx context.Context, key, contentType string, from io.Reader) error {
	first, err := io.ReadAll(io.LimitReader(from, partSize))
	if err != nil {
		return err
	}
	// Not every store understands bodies that are signed piece by piece; a checksum goes along all the same.
	options := minio.PutObjectOptions{ContentType: contentType, ServerSideEncryption: b.sealed, DisableContentSha256: true}
	body, size := io.Reader(bytes.NewReader(first)), int64(len(first))
	if size == partSize {
		body, size = io.MultiReader(body, from), -1
		options.PartSize, options.NumThreads, options.ConcurrentStreamParts = partSize, partsAtOnce, true
	}
	_, err = b.client.PutObject(ctx, b.name, b.prefix+key, body, size, options)
	if code := minio.ToErrorResponse(err).Code; code != "" { // the error itself has only the store's sentence
		return fmt.Errorf("%s: %w", code, err)
	}
	return err
}

// Refusal is the code of a bucket's answer, as NoSuchBucket; empty: err is no such answer.
func Refusal(err error) string {
	var answer minio.ErrorResponse
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

func (u *upload) Write(p []byte) (int, error) { return u.pipe.Write(p) }

func (u *upload) commit() error {
	if !u.unhook() { // or half a file would pass for a whole one
		u.abort()
		return context.Cause(u.ctx)
	}
	_ = u.pipe.Close()
	select {
	case <-u.done:
	case <-u.ctx.Done():
		u.await()
	}
	u.cancel()
	return u.err
}

func (u *upload) abort() {
	u.unhook()
	_ = u.pipe.CloseWithError(errAborted)
	u.await()
}

// await gives the uploader some time to end by itself, and call its parts off.
func (u *upload) await() {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-u.done:
	case <-timer.C:
	}
	u.cancel()
	<-u.done
}
