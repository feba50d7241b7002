package diskq

// Discard returns the queue of an ephemeral topic or channel: it accepts everything and keeps
// nothing, also after Close.
func Discard() Queue { return discard{} }

type discard struct{}

func (discard) Put(records [][]byte) (int, error)          { return len(records), nil }
func (discard) Take(dst [][]byte, _ int) ([][]byte, error) { return dst, nil }
func (discard) Depth() int64                               { return 0 }
func (discard) Empty() error                               { return nil }
func (discard) Close() error                               { return nil }
func (discard) Delete() error                              { return nil }
