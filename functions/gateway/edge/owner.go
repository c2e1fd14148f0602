package edge

import (
	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/shared/apidb"
)

// IsInstallation tells whether the request is from who looks after all of it: its admin who acts for no owner, or
// anybody, where authentication is off.
func IsInstallation(c *gin.Context) bool {
	return access.Of(c.Request.Context()).May(access.Installation)
}

// WidestOwner is whose, where the installation sees all owners' as well: numbers, controls, workers.
func WidestOwner(c *gin.Context) apidb.Owner {
	if IsInstallation(c) {
		return apidb.Everyone
	}
	return OwnerOf(c)
}

// OwnerOf is the owner whose things the request sees.
func OwnerOf(c *gin.Context) apidb.Owner {
	p := access.Of(c.Request.Context())
	if p.Everyone {
		return apidb.Everyone
	}
	return apidb.OwnerOf(p.Owner)
}
