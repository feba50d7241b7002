package httpd

import (
	"runtime"
	"slices"

	"nsq/internal/api"
)

// ReadMemory describes the memory of the process. It stops the process for a moment.
func ReadMemory() api.Memory {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	// The runtime keeps the latest pauses in a ring that it fills from the start.
	pauses := slices.Sorted(slices.Values(m.PauseNs[:min(int(m.NumGC), len(m.PauseNs))]))
	return api.Memory{
		HeapObjects:       m.HeapObjects,
		HeapIdleBytes:     m.HeapIdle,
		HeapInUseBytes:    m.HeapInuse,
		HeapReleasedBytes: m.HeapReleased,
		GCPauseUsec100:    percentile(100, pauses) / 1000,
		GCPauseUsec99:     percentile(99, pauses) / 1000,
		GCPauseUsec95:     percentile(95, pauses) / 1000,
		NextGCBytes:       m.NextGC,
		GCTotalRuns:       m.NumGC,
	}
}

// percentile returns the value at p percent of an ascending list, 0 of an empty one.
func percentile(p int, ascending []uint64) uint64 {
	n := len(ascending)
	if n == 0 {
		return 0
	}
	return ascending[min((p*n+50)/100, n-1)] // rounded to the nearest
}
