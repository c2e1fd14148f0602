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

// identity is the user as whom PostgreSQL's processes run: PostgreSQL refuses root, the user of most containers.
type identity struct {
	attr     *syscall.SysProcAttr // nil: this process's user
	uid, gid int                  // owner of the files, as seen from outside
}

// chooseIdentity chooses the user: initdb needs one that has a name and is not root. For any other user it prefers a
// user namespace, in which the files belong to "nobody": that works below any folder. If namespaces are refused, root
// becomes "nobody", and that user must be able to enter the folder.
func chooseIdentity() identity {
	_, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	if os.Geteuid() != 0 && err == nil {
		return identity{}
	}
	uid, gid := unprivileged()
	if ns := (identity{attr: namespace(uid, gid), uid: os.Geteuid(), gid: os.Getegid()}); ns.attr != nil {
		try := exec.Command("/bin/sh", "-c", ":")
		ns.apply(try)
		if try.Run() == nil {
			return ns
		}
	}
	if os.Geteuid() != 0 {
		return identity{}
	}
	return otherUser()
}

func otherUser() identity {
	uid, gid := unprivileged()
	as := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return identity{attr: &syscall.SysProcAttr{Credential: as}, uid: uid, gid: gid}
}

func unprivileged() (uid, gid int) {
	if u, err := user.Lookup("nobody"); err == nil {
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if uidErr == nil && gidErr == nil {
			return uid, gid
		}
	}
	return 65534, 65534
}

// apply makes cmd run as this user, without environment variables that PostgreSQL would read.
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
