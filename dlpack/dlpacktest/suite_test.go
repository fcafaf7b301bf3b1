package dlpacktest_test

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/dlferry/dlferry/dlpack"
	"github.com/dlferry/dlferry/dlpack/dlpacktest"
)

func TestCasesAreNamedOnceAndCoverTheKinds(t *testing.T) {
	names, kinds := map[string]bool{}, map[dlpack.Kind]int{}
	for _, c := range dlpacktest.Cases() {
		if names[c.Name] {
			t.Errorf("two cases are named %q", c.Name)
		}
		names[c.Name] = true
		kinds[c.Want]++
		if a, b := c.Tensor(), c.Tensor(); a == b || *a != *b {
			t.Errorf("%s: Tensor is not a fresh copy", c.Name)
		}
	}
	for _, kind := range []dlpack.Kind{dlpack.KindOK, dlpack.KindNull, dlpack.KindShape, dlpack.KindOffset, dlpack.KindDType, dlpack.KindDevice, dlpack.KindOverflow,
		dlpack.KindAlignment} {
		if kinds[kind] < 2 {
			t.Errorf("%v: %d cases, want 2 or more", kind, kinds[kind])
		}
	}
}

// wrongs are implementations that the suites must catch. A test that has to fail cannot run in this process, so each runs in another.
var wrongs = map[string]func(t *testing.T){
	"accepts everything": func(t *testing.T) {
		dlpacktest.Suite(t, func(*dlpack.Tensor, dlpack.Flags) error { return nil })
	},
	"refuses everything": func(t *testing.T) {
		dlpacktest.Suite(t, func(*dlpack.Tensor, dlpack.Flags) error { return dlpack.ErrShape })
	},
	"refuses with other errors": func(t *testing.T) {
		dlpacktest.Suite(t, func(x *dlpack.Tensor, flags dlpack.Flags) error {
			if dlpack.Validate(x, flags) != nil {
				return errors.New("bad")
			}
			return nil
		})
	},
	"writes to the tensor": func(t *testing.T) {
		dlpacktest.Suite(t, func(x *dlpack.Tensor, flags dlpack.Flags) error {
			err := dlpack.Validate(x, flags)
			if err == nil {
				x.Strides = 0
			}
			return err
		})
	},
	"ignores the version": func(t *testing.T) {
		dlpacktest.SuiteVersioned(t, func(m *dlpack.ManagedTensorVersioned) error {
			m.Version = dlpack.CurrentVersion
			m.Tensor.NDim = -1
			return dlpack.ValidateVersioned(m)
		})
	},
}

func TestSuitesCatchWrongImplementations(t *testing.T) {
	const variable = "DLPACKTEST_WRONG"
	if name := os.Getenv(variable); name != "" {
		wrongs[name](t)
		return
	}
	for name := range wrongs {
		cmd := exec.Command(os.Args[0], "-test.run=^TestSuitesCatchWrongImplementations$")
		cmd.Env = append(os.Environ(), variable+"="+name)
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("an implementation that %s passed:\n%s", name, out)
		}
	}
}
