package localpostgres

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// identity is whom PostgreSQL's processes run as: it refuses root, which is what we are in most
// containers.
type identity struct {
	attr     *syscall.SysProcAttr // nil: as we are
	uid, gid int                  // owner of the files, as seen from outside
}

// chooseIdentity prefers a user namespace in which root's files belong to an ordinary user: that
// works below any folder. Where namespaces are refused, another user must do, who has to be able to
// enter the folder.
func chooseIdentity() identity {
	if os.Geteuid() != 0 {
		return identity{}
	}
	if ns := (identity{attr: namespace()}); ns.attr != nil {
		try := exec.Command("/bin/sh", "-c", ":")
		ns.apply(try)
		if try.Run() == nil {
			return ns
		}
	}
	return otherUser()
}

func otherUser() identity {
	who := identity{uid: 65534, gid: 65534}
	if u, err := user.Lookup("nobody"); err == nil {
		// Both are numbers wherever this runs; the usual ones stay if not.
		if uid, err := strconv.Atoi(u.Uid); err == nil {
			who.uid = uid
		}
		if gid, err := strconv.Atoi(u.Gid); err == nil {
			who.gid = gid
		}
	}
	who.attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(who.uid), Gid: uint32(who.gid)}}
	return who
}

// apply makes cmd run as this user, with nothing of our environment that PostgreSQL would read.
func (i identity) apply(cmd *exec.Cmd) {
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.Dir = "/"
	if i.attr != nil {
		attr := *i.attr
		cmd.SysProcAttr = &attr
	}
}

// own gives all of dir to this user.
func (i identity) own(dir string) error {
	if i.attr == nil {
		return nil
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == i.uid && int(st.Gid) == i.gid {
			return nil
		}
		return os.Lchown(path, i.uid, i.gid)
	})
	if err != nil {
		return fmt.Errorf("give %s to user %d: %w", dir, i.uid, err)
	}
	return nil
}
