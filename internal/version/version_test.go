package version

import (
	"regexp"
	"runtime"
	"testing"
)

func TestVersionIsReadableAsSemver(t *testing.T) {
	if !regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`).MatchString(Version) {
		t.Errorf("version %q", Version)
	}
}

func TestLine(t *testing.T) {
	if got, want := Line("nsqd"), "nsqd v"+Version+" (built w/"+runtime.Version()+")"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
