package diskq

import (
	"fmt"
	"testing"
)

func benchConfig(b *testing.B) *Config {
	c, _ := testConfig(b.TempDir())
	c.MaxBytesPerFile, c.SyncEvery = 100<<20, 2500
	return c
}

func BenchmarkPut(b *testing.B) {
	for _, batch := range []int{1, 100} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			q := open(b, benchConfig(b), "a")
			all := records(0, batch)
			b.ReportAllocs()
			b.SetBytes(80)
			for n := 0; b.Loop(); n++ {
				if n%batch == 0 {
					put(b, q, all...)
				}
			}
		})
	}
}

func BenchmarkTake(b *testing.B) {
	for _, batch := range []int{1, 100} {
		b.Run(fmt.Sprint(batch), func(b *testing.B) {
			q := open(b, benchConfig(b), "a")
			b.ReportAllocs()
			b.SetBytes(80)
			all := records(0, 10000)
			var dst [][]byte
			left := 0
			for b.Loop() {
				if left > 0 {
					left--
					continue
				}
				if q.Depth() == 0 {
					b.StopTimer()
					put(b, q, all...)
					b.StartTimer()
				}
				var err error
				if dst, err = q.Take(dst[:0], batch); err != nil {
					b.Fatal(err)
				}
				left = len(dst) - 1
			}
		})
	}
}

func BenchmarkOpenIdle(b *testing.B) {
	c := benchConfig(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Open("a"); err != nil {
			b.Fatal(err)
		}
	}
}
