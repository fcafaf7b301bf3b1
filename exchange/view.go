package exchange

import "github.com/dlferry/dlferry/dlpack"

// WithView calls f with a view of the tensor's elements as T. The data stays until f returns, whatever other goroutines release; afterwards the view, and
// every slice taken from it, must not be touched.
//
// ErrClosed: after Release. The errors of dlpack.ViewOf, and those of f as they are.
func WithView[T dlpack.Element](h Handle, f func(dlpack.View[T]) error) error {
	return h.use("exchange.WithView", func(t *dlpack.Tensor, flags dlpack.Flags) error {
		v, err := dlpack.ViewOf[T](t, flags)
		if err != nil {
			return err
		}
		return f(v)
	})
}

// WithMutView is WithView for writing.
//
// ErrReadOnly: the tensor is. ErrLayout: two of its elements share memory. The other errors are those of WithView.
func WithMutView[T dlpack.Element](h Handle, f func(dlpack.MutView[T]) error) error {
	return h.use("exchange.WithMutView", func(t *dlpack.Tensor, flags dlpack.Flags) error {
		v, err := dlpack.MutViewOf[T](t, flags)
		if err != nil {
			return err
		}
		return f(v)
	})
}

// WithAnyView is WithView for element types that the caller does not know in advance.
func WithAnyView(h Handle, f func(dlpack.AnyView) error) error {
	return h.use("exchange.WithAnyView", func(t *dlpack.Tensor, flags dlpack.Flags) error {
		v, err := dlpack.AnyViewOf(t, flags)
		if err != nil {
			return err
		}
		return f(v)
	})
}
