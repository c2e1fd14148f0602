package edge

import (
	"net/url"

	"github.com/gin-gonic/gin"
)

const baseKey = "base"

// Below makes Locate begin with the path below which clients reach the API.
func Below(base string) gin.HandlerFunc {
	return func(c *gin.Context) {
		if base != "" {
			c.Set(baseKey, base)
		}
	}
}

// Locate answers with the Location of what a request has made.
func Locate(c *gin.Context, path string) { c.Header("Location", c.GetString(baseKey)+path) }

// LocateNamed is Locate for what has an apidb.Key.
func LocateNamed(c *gin.Context, folder, name, owner string) {
	if owner != "" {
		name += "?ownerId=" + url.QueryEscape(owner)
	}
	Locate(c, folder+name)
}
