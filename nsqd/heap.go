package nsqd

import "runtime"

// heapFloor is how much of the heap is never used. The collector runs when the heap has doubled, so a
// nsqd through which messages only pass, with next to nothing to keep, would collect every few
// milliseconds. The memory is never touched: it takes address space, and no memory.
const heapFloor = 16 << 20 // bytes

// holdHeapFloor keeps the floor until release is called.
func holdHeapFloor() (release func()) {
	floor := make([]byte, heapFloor)
	return func() { runtime.KeepAlive(floor) }
}
