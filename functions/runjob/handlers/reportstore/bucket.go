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
	patience    = 3 * time.Second // for a store to end an aborted upload
)

var errAborted = errors.New("the upload was aborted")

// upload is a file in a bucket. A pipe passes what is written on to the uploader.
type upload struct {
	ctx    context.Context // the writer's
	pipe   *io.PipeWriter
	unhook func() bool
	cancel context.CancelFunc // ends the uploader's own context
	done   chan struct{}      // closed when the uploader has ended with err
	err    error
}

// beginUpload starts the uploader. The uploader has a context of its own: when ctx ends, it must not be cut off, but
// learn of it through the pipe and abort the parts that it has uploaded.
func (b *bucket) beginUpload(ctx context.Context, key, contentType string) *upload {
	from, pipe := io.Pipe()
	u := &upload{ctx: ctx, pipe: pipe, done: make(chan struct{})}
	var own context.Context
	own, u.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(u.done)
		u.err = b.put(own, key, contentType, from)
		_ = from.CloseWithError(errors.Join(u.err, io.ErrClosedPipe)) // the writer gets this error
	}()
	u.unhook = context.AfterFunc(ctx, func() { _ = pipe.CloseWithError(context.Cause(ctx)) })
	return u
}

// put uploads a file in one request if it fits into one part, and part by part otherwise.
func (b *bucket) put(ctx context.Context, key, contentType string, from io.Reader) error {
	first, err := io.ReadAll(io.LimitReader(from, partSize))
	if err != nil {
		return err
	}
	// Some stores do not support bodies that are signed chunk by chunk. A checksum is sent all the same.
	options := minio.PutObjectOptions{ContentType: contentType, ServerSideEncryption: b.sealed, DisableContentSha256: true}
	body, size := io.Reader(bytes.NewReader(first)), int64(len(first))
	if size == partSize {
		body, size = io.MultiReader(body, from), -1
		options.PartSize, options.NumThreads, options.ConcurrentStreamParts = partSize, partsAtOnce, true
	}
	_, err = b.client.PutObject(ctx, b.name, b.prefix+key, body, size, options)
	if code := minio.ToErrorResponse(err).Code; code != "" { // the error's text has only the store's message
		return fmt.Errorf("%s: %w", code, err)
	}
	return err
}

// Refusal returns the error code of a bucket's answer, such as NoSuchBucket; empty if err is not such an answer.
func Refusal(err error) string {
	var answer minio.ErrorResponse
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

func (u *upload) Write(p []byte) (int, error) { return u.pipe.Write(p) }

func (u *upload) commit() error {
	if !u.unhook() { // otherwise half a file could be stored as a whole one
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

// await gives the uploader some time to abort its parts and end by itself.
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
