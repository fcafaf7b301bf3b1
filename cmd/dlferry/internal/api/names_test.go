package api

import "testing"

func TestGoNamesBecomeSnakeCase(t *testing.T) {
	for name, want := range map[string]string{
		"Blur": "blur", "TopK": "top_k", "HTTPGet": "http_get", "ParseURL": "parse_url", "Conv2D": "conv2d", "Conv2DTranspose": "conv2d_transpose", "SHA256Sum": "sha256_sum", "L2Norm": "l2_norm", "X": "x", "kernelSize": "kernel_size",
		"ID": "id", "Lambda": "lambda_", "Import": "import_", "None": "none", "A_B": "a_b", "Top_K": "top_k", "ÄndernX": "ändern_x", "": "",
	} {
		if got := Snake(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestIdentifiersAreASCII(t *testing.T) {
	for name, want := range map[string]bool{"a": true, "_a1": true, "A": true, "1a": false, "": false, "a-b": false, "ä": false, "a b": false} {
		if got := IsIdentifier(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}
