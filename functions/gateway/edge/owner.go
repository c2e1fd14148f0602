package edge

import (
	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// IsInstallation reports whether the request may act for the whole installation: it is from an admin without an owner,
// or authentication is off.
func IsInstallation(c *gin.Context) bool {
	return access.Of(c.Request.Context()).May(access.Installation)
}

// OwnerOf returns the owner whose jobs, schedules and settings the request reaches: for the installation, all owners.
func OwnerOf(c *gin.Context) apidb.Owner {
	return apidb.OwnerWith(access.Of(c.Request.Context()).Owner, IsInstallation(c))
}

// MakerOf returns the owner of what the request makes, which is that of its key. Without authentication it is Everyone,
// and the request names the owner, unless it acts for one.
func MakerOf(c *gin.Context) apidb.Owner {
	p := access.Of(c.Request.Context())
	return apidb.OwnerWith(p.Owner, p.Anonymous && p.Owner == "")
}

// CheckFairnessKey refuses a fairness key that an owner may not name for its jobs. With keys of its choice, an owner
// would get as many shares as it likes.
func CheckFairnessKey(owner apidb.Owner, key string) error {
	if id := owner.ID(); id == "" || key == "" || key == id {
		return nil
	}
	return apierror.New(apierror.Forbidden, "only a key of the installation names a fairnessKey other than its ownerId")
}
