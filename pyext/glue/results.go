package glue

import (
	"unsafe"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/exchange"
)

// room is n bytes of C memory for result k: of the frame's own as long as that lasts. nil when there is none.
func (c *Call) room(k, n, align int) []byte {
	if n == 0 {
		return []byte{}
	}
	at := unsafe.Pointer(unsafe.SliceData(c.scratch))
	skip := int(-uintptr(at) & uintptr(align-1))
	if skip+n <= len(c.scratch) {
		room := c.scratch[skip : skip+n : skip+n]
		c.scratch = c.scratch[skip+n:]
		c.out[k].a = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(room))))
		return room
	}
	p := Alloc(n)
	if p == nil {
		c.fail(&dlpack.Error{Op: "result", Kind: dlpack.KindMemory, Axis: dlpack.NoAxis, Got: "none", Want: "room for a result"})
		return nil
	}
	c.out[k].a = uint64(uintptr(p))
	return unsafe.Slice((*byte)(p), n)
}

func isNil(h exchange.Handle) bool {
	switch h := h.(type) {
	case nil:
		return true
	case *exchange.Local:
		return h == nil
	case *exchange.Foreign:
		return h == nil
	}
	return false
}

// export gives the tensor away and releases the handle.
func (c *Call) export(h exchange.Handle) Value {
	if isNil(h) {
		return Value{}
	}
	m, err := h.Export()
	h.Release()
	if err != nil {
		c.fail(err)
	}
	return Value{a: uint64(uintptr(unsafe.Pointer(m)))}
}

// SetTensor writes a tensor as result k and releases the handle; a nil one is None.
func (c *Call) SetTensor(k int, h exchange.Handle) { c.out[k] = c.export(h) }

// SetTensors writes a list of tensors as result k and releases the handles.
func (c *Call) SetTensors(k int, list []*exchange.Local) {
	room := c.room(k, len(list)*int(unsafe.Sizeof(Value{})), 8)
	if room == nil {
		for _, l := range list {
			if l != nil {
				l.Release()
			}
		}
		return
	}
	values := unsafe.Slice((*Value)(unsafe.Pointer(unsafe.SliceData(room))), len(list))
	clear(values)
	c.out[k].b = uint64(len(list))
	for i, l := range list {
		values[i] = c.export(l)
	}
}

// SetSlice writes a tensor with a copy of the elements as result k.
func SetSlice[T dlpack.Element](c *Call, k int, s []T) {
	l, err := exchange.FromSlice(s)
	if err != nil {
		c.fail(err)
		return
	}
	c.SetTensor(k, l)
}
