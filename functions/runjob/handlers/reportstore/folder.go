package reportstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// file is a file in a folder, with another name until it is complete.
type file struct {
	ctx    context.Context // the writer's
	temp   *os.File
	folder string
	name   string
}

func beginFile(ctx context.Context, folder, name string) (*file, error) {
	removeTemporary(folder)
	if err := os.MkdirAll(folder, folderRights); err != nil {
		return nil, err
	}
	temp, err := os.CreateTemp(folder, name+".*.tmp")
	if err != nil {
		_ = os.Remove(folder) // if it would have been the only file
		return nil, err
	}
	return &file{ctx: ctx, temp: temp, folder: folder, name: name}, nil
}

// removeTemporary removes files that were never finished.
func removeTemporary(folder string) {
	left, _ := filepath.Glob(filepath.Join(folder, "*.tmp")) // the pattern is valid
	for _, name := range left {
		_ = os.Remove(name)
	}
}

func (f *file) Write(p []byte) (int, error) {
	if f.ctx.Err() != nil {
		return 0, context.Cause(f.ctx)
	}
	return f.temp.Write(p)
}

// commit stores the file so that it survives a loss of power.
func (f *file) commit() error {
	if f.ctx.Err() != nil {
		f.abort()
		return context.Cause(f.ctx)
	}
	err := errors.Join(f.temp.Sync(), f.temp.Close())
	if err == nil {
		err = os.Rename(f.temp.Name(), filepath.Join(f.folder, f.name))
	}
	if err == nil {
		return syncFolder(f.folder)
	}
	f.forget()
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
	_ = f.temp.Close()
	f.forget()
}

// forget removes an incomplete file, and its folder if it was the only file there.
func (f *file) forget() {
	_ = os.Remove(f.temp.Name())
	_ = os.Remove(f.folder)
}
