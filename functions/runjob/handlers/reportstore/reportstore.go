// Package reportstore keeps the files of reports in a folder or in a bucket of S3. A file is there when it is
// whole, and not before.
package reportstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"os"
	"path"
	"path/filepath"
)

// folderRights: reports are nobody else's business.
const folderRights = 0o700

// Store is where the files are kept.
type Store struct {
	base   *url.URL // of locations
	bucket *bucket  // nil: in folder
	folder string
}

// Open takes the address of a folder, file:///var/reports, which is made where there is none, or of a bucket,
// s3://name?region=…; docs/job-types.md lists the parameters. Nobody asks yet whether the bucket is there.
func Open(address string) (*Store, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("it is not a URL") // err has all of it
	}
	switch {
	case u.Scheme == "file" && u.Host == "" && u.RawQuery == "" && path.IsAbs(u.Path):
		folder := filepath.Clean(u.Path)
		if err := os.MkdirAll(folder, folderRights); err != nil {
			return nil, err
		}
		return &Store{base: &url.URL{Scheme: "file", Path: folder + "/"}, folder: folder}, nil
	case u.Scheme == "s3" && u.Host != "" && u.User == nil && (u.Path == "" || u.Path == "/"):
		bucket, err := openBucket(u)
		if err != nil {
			return nil, err
		}
		return &Store{bucket: bucket, base: &url.URL{Scheme: "s3", Host: u.Host, Path: "/" + bucket.prefix}}, nil
	default:
		return nil, errors.New("it must be file:///… or s3://…")
	}
}

// Close lets go of the store.
func (s *Store) Close() {
	if s.bucket != nil {
		s.bucket.close()
	}
}

// File is one that is being written. It ends with Commit or Abort.
type File struct {
	Location string // of the file once it is committed
	Size     int64

	to   target
	hash hash.Hash
}

// target is a file in a folder, or one in a bucket.
type target interface {
	Write(p []byte) (int, error)
	commit() error // after an error there is no file
	abort()
}

// Create begins the file <folder>/<name>. Writing ends with ctx. In a store that is a folder it first removes what
// writers of the same folder have left behind that were killed.
func (s *Store) Create(ctx context.Context, folder, name, contentType string) (f *File, err error) {
	f = &File{hash: sha256.New(), Location: s.base.JoinPath(folder, name).String()}
	if s.bucket == nil {
		f.to, err = beginFile(ctx, filepath.Join(s.folder, folder), name)
	} else {
		f.to = s.bucket.beginUpload(ctx, folder+"/"+name, contentType)
	}
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", f.Location, err)
	}
	return f, nil
}

// Write adds to the file.
func (f *File) Write(p []byte) (int, error) {
	n, err := f.to.Write(p)
	f.hash.Write(p[:n])
	f.Size += int64(n)
	return n, err
}

// SHA256 is that of all that was written, in hexadecimal digits.
func (f *File) SHA256() string { return hex.EncodeToString(f.hash.Sum(nil)) }

// Commit makes the file be there. When it fails there is none.
func (f *File) Commit() error {
	if err := f.to.commit(); err != nil {
		return fmt.Errorf("store %s: %w", f.Location, err)
	}
	return nil
}

// Abort leaves nothing of the file behind.
func (f *File) Abort() { f.to.abort() }
