package web

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
)

//go:embed static
var embedded embed.FS

// maxAsset bounds, in bytes, an asset that is read from a folder.
const maxAsset = 8 << 20

// types are the content types of assets: the system's own table may lack any of them, and a module
// without the right one is refused by browsers.
var types = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	".map": "application/json; charset=utf-8", ".woff": "font/woff", ".woff2": "font/woff2",
	".ttf": "font/ttf", ".eot": "application/vnd.ms-fontobject",
}

// assets serves the files of one folder without folders in it.
type assets struct{ files fs.FS }

// ServeHTTP answers with an asset. Browsers ask again each time, since a new release may have changed
// it, and are told if theirs is still the newest.
func (a assets) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name := req.PathValue("asset")
	body, err := a.read(name)
	if err != nil {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "NOT_FOUND") // a peer that has gone needs no answer
		return
	}
	kind, known := types[path.Ext(name)]
	if !known {
		kind = mime.TypeByExtension(path.Ext(name))
	}
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	header := w.Header()
	if kind != "" {
		header.Set("Content-Type", kind)
	}
	header.Set("ETag", tag)
	header.Set("Cache-Control", "no-cache")
	if req.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(body) // a peer that has gone needs no answer
}

func (a assets) read(name string) ([]byte, error) {
	if !fs.ValidPath(name) || name == "." || path.Base(name) != name {
		return nil, fs.ErrNotExist
	}
	info, err := fs.Stat(a.files, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxAsset {
		return nil, errors.New("not an asset")
	}
	return fs.ReadFile(a.files, name)
}
