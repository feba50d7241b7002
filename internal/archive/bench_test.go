package archive

import "testing"

// BenchmarkSync is a small batch and its sync: what a quiet topic costs.
func BenchmarkSync(b *testing.B) {
	for name, c := range map[string]Config{
		"plain": {}, "gzip": {Compression: Gzip, Level: 6}, "zstd": {Compression: Zstd, Level: 3}, "zstd9": {Compression: Zstd, Level: 9},
	} {
		b.Run(name, func(b *testing.B) {
			c.OutputDir, c.Naming.Format = b.TempDir(), "<TOPIC><REV>"
			a, err := New(c, "t", (&journal{}).logf)
			must(b, err)
			must(b, a.Next(noon))
			body := []byte(noise(200))
			b.ReportAllocs()
			for b.Loop() {
				for range 10 {
					must(b, a.Write(body))
				}
				must(b, a.Sync())
			}
			must(b, a.Close())
		})
	}
}
