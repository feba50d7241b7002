package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxFile is the most that is read of a file, in bytes: the certificates of all the world's
// authorities are a quarter of a mebibyte.
const maxFile = 8 << 20

// files are the paths of PEM files.
type files struct{ cert, key, roots string }

// paths are those that are set.
func (f files) paths() (paths []string) {
	for _, path := range []string{f.cert, f.key, f.roots} {
		if path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// certificate is the certificate with its key.
func (f files) certificate() (tls.Certificate, error) {
	cert, err := read(f.cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := read(f.key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// pool holds the roots; it is nil, which stands for those of the system, where there is no file.
func (f files) pool() (*x509.CertPool, error) {
	if f.roots == "" {
		return nil, nil
	}
	roots, err := read(f.roots)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(roots) {
		return nil, errors.New("failed to append certificate to pool")
	}
	return pool, nil
}

// read returns the content of a file. A pipe is refused: it can be read only once, and opening it
// may take forever.
func read(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxFile {
		return nil, fmt.Errorf("%s is longer than %d bytes", path, maxFile)
	}
	return content, nil
}
