package reportstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"gocloud.dev/blob"
)

// file is one in a folder, under another name until it is whole.
type file struct {
	to     *blob.Writer
	cancel context.CancelFunc
	temp   *os.File
	folder string
}

func (s *Store) beginFile(ctx context.Context, folder, key, contentType string) (*file, error) {
	removeTemporary(folder)
	f := &file{folder: folder}
	ctx, f.cancel = context.WithCancel(ctx)
	var err error
	f.to, err = s.bucket.NewWriter(ctx, key, &blob.WriterOptions{
		ContentType: contentType,
		BeforeWrite: func(as func(any) bool) error { as(&f.temp); return nil },
	})
	if err != nil {
		f.cancel()
		f.forget()
		return nil, err
	}
	return f, nil
}

// removeTemporary removes files that were never finished.
func removeTemporary(folder string) {
	left, _ := filepath.Glob(filepath.Join(folder, "*.tmp")) // the pattern is a good one
	for _, name := range left {
		_ = os.Remove(name)
	}
}

func (f *file) Write(p []byte) (int, error) { return f.to.Write(p) }

// commit makes the file be there also after a loss of power.
func (f *file) commit() error {
	if err := f.temp.Sync(); err != nil {
		f.abort()
		return err
	}
	err := f.to.Close()
	f.cancel()
	if err == nil {
		err = syncFolder(f.folder)
	}
	if err != nil {
		f.forget()
	}
	return err
}

func syncFolder(folder string) error {
	dir, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (f *file) abort() {
	f.cancel()
	_ = f.to.Close() // it says that it was cancelled
	f.forget()
}

// forget removes what is left of a writer that could not end, and the folder where it was the only file.
func (f *file) forget() {
	if f.temp != nil {
		_ = os.Remove(f.temp.Name())
	}
	_ = os.Remove(f.folder)
}
