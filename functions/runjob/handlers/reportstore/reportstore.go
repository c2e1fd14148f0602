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
	"path"
	"path/filepath"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	_ "gocloud.dev/blob/s3blob" // s3://
)

// folderRights: reports are nobody else's business.
const folderRights = 0o700

// Store is where the files are kept.
type Store struct {
	bucket *blob.Bucket
	base   *url.URL // of locations
	folder string   // empty: in a bucket
}

// Open takes the address of a folder, file:///var/reports, which is made where there is none, or of a bucket,
// s3://name?region=…, with the parameters of gocloud.dev/blob/s3blob. Nobody asks yet whether the bucket is there.
func Open(ctx context.Context, address string) (*Store, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("it is not a URL") // err has all of it
	}
	switch {
	case u.Scheme == "file" && u.Host == "" && u.RawQuery == "" && path.IsAbs(u.Path):
		return openFolder(filepath.Clean(u.Path))
	case u.Scheme == "s3" && u.Host != "" && u.User == nil && (u.Path == "" || u.Path == "/"):
		prefix := u.Query().Get("prefix")
		if prefix != "" && !strings.HasSuffix(prefix, "/") {
			return nil, errors.New("its prefix must end with a slash")
		}
		bucket, err := blob.OpenBucket(ctx, address)
		if err != nil {
			return nil, err
		}
		return &Store{bucket: bucket, base: &url.URL{Scheme: "s3", Host: u.Host, Path: "/" + prefix}}, nil
	default:
		return nil, errors.New("it must be file:///… or s3://…")
	}
}

func openFolder(folder string) (*Store, error) {
	bucket, err := fileblob.OpenBucket(folder, &fileblob.Options{
		CreateDir: true, DirFileMode: folderRights,
		NoTempDir: true, // or the file could not be renamed to its name
		Metadata:  fileblob.MetadataDontWrite,
	})
	if err != nil {
		return nil, err
	}
	return &Store{bucket: bucket, base: &url.URL{Scheme: "file", Path: folder + "/"}, folder: folder}, nil
}

// Close lets go of the store.
func (s *Store) Close() { _ = s.bucket.Close() } // nothing of it is open by then

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
	if s.folder != "" {
		f.to, err = s.beginFile(ctx, filepath.Join(s.folder, folder), folder+"/"+name, contentType)
	} else {
		f.to = s.beginUpload(ctx, folder+"/"+name, contentType)
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
