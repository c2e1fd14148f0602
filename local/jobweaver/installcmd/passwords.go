package installcmd

import (
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/funchost/envsettings"
	"github.com/jobweaver/jobweaver/shared/secret"
)

// rolePasswords reads the passwords of roles in the files of folders, if there are some. ROLES_PASSWORD, if it is set,
// is the password of the other roles: on a laptop a file for each role would be too much.
func rolePasswords(folders, roles []string) (map[string]string, error) {
	var common struct {
		Password secret.Text `envconfig:"ROLES_PASSWORD"`
	}
	if err := envsettings.Load(&common); err != nil {
		return nil, err
	}
	passwords := map[string]string{}
	if len(folders) > 0 {
		var err error
		if passwords, err = migrations.ReadPasswords(folders, roles); err != nil {
			return nil, err
		}
	}
	if !common.Password.IsSet() {
		return passwords, nil
	}
	for _, role := range roles {
		if _, has := passwords[role]; !has {
			passwords[role] = common.Password.Reveal()
		}
	}
	return passwords, nil
}
