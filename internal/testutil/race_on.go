//go:build race

package testutil

// raceFlags make the programs of a test under the race detector run under it too.
var raceFlags = []string{"-race"}
