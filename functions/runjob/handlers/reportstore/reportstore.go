// Package reportstore stores the files of reports in a folder or in an S3 bucket. A file appears only when it is
// complete.
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

// folderRights let only the worker's user read reports.
const folderRights = 0o700

// Store is a folder or a bucket with files.
type Store struct {
	base   *url.URL // of the files' locations
	bucket *bucket  // nil: in the folder
	folder string
}

// Open takes the address of a folder, file:///var/reports, which it creates if it does not exist, or of a bucket,
// s3://name?region=…; docs/job-types.md lists the parameters. Open does not check whether the bucket exists.
func Open(address string) (*Store, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("it is not a URL") // err quotes the whole URL
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

// Close closes the store.
func (s *Store) Close() {
	if s.bucket != nil {
		s.bucket.close()
	}
}

// File is a file that is being written. It ends with Commit or Abort.
type File struct {
	Location string // of the committed file
	Size     int64

	to   target
	hash hash.Hash
}

// target is a file in a folder or in a bucket.
type target interface {
	Write(p []byte) (int, error)
	commit() error // after an error the file does not exist
	abort()
}

// Create begins the file <folder>/<name>. Writing fails once ctx has ended. In a folder, Create first removes the files
// that killed writers of the same folder have left.
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

// SHA256 returns the hash of everything that was written, in hexadecimal digits.
func (f *File) SHA256() string { return hex.EncodeToString(f.hash.Sum(nil)) }

// Commit stores the file. If it fails, the file does not exist.
func (f *File) Commit() error {
	if err := f.to.commit(); err != nil {
		return fmt.Errorf("store %s: %w", f.Location, err)
	}
	return nil
}

// Abort removes what was written.
func (f *File) Abort() { f.to.abort() }
