// Package dlpack describes tensors the way DLPack 1.3 does, in plain Go: the structs of the ABI, element types, devices, versions and flags, the arithmetic of
// layouts, the validation of descriptions that come from elsewhere, and typed views for reading and writing elements.
//
// Nothing here owns memory or calls C; package exchange does. Strides count elements, everywhere.
//
// A description is believed only after Validate. The constructors of View, MutView and AnyView validate by themselves:
//
//	v, err := dlpack.ViewOf[float32](t, flags)
//	if err != nil {
//		return err // *dlpack.Error; errors.Is(err, dlpack.ErrDType) tells the kind
//	}
//	x := v.At(1, 2)
//
// Functions and values are safe for concurrent use as long as nobody writes to the tensors that they look at.
package dlpack
