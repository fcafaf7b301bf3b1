// A peer made with nanobind: what its ndarray takes from dlferry, and arrays of memory of its own that it counts.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace nb = nanobind;

static int live = 0;

using Shown = nb::ndarray<nb::array_api>;
using ShownReadOnly = nb::ndarray<nb::ro, nb::array_api>;

static nb::object make(nb::bytes content, const std::vector<size_t> &shape, const std::vector<int64_t> &strides, size_t offset, uint8_t code,
                       uint8_t bits, uint16_t lanes, bool readonly) {
    void *memory = std::aligned_alloc(256, (content.size() / 256 + 1) * 256);
    std::memcpy(memory, content.data(), content.size());
    live++;
    nb::capsule owner(memory, [](void *p) noexcept {
        std::free(p);
        live--;
    });
    nb::dlpack::dtype dtype;
    dtype.code = code;
    dtype.bits = bits;
    dtype.lanes = lanes;
    char *data = static_cast<char *>(memory) + offset;
    if (readonly)
        return nb::cast(ShownReadOnly(data, shape.size(), shape.data(), owner, strides.data(), dtype));
    return nb::cast(Shown(data, shape.size(), shape.data(), owner, strides.data(), dtype));
}

// A new array over the memory of one that was taken, so that what comes back is what nanobind saw, not the object that it was given.
template <typename Taken> static nb::object shown(const Taken &taken) {
    std::vector<size_t> shape;
    std::vector<int64_t> strides;
    for (size_t i = 0; i < taken.ndim(); i++) {
        shape.push_back(taken.shape(i));
        strides.push_back(taken.stride(i));
    }
    live++;
    nb::capsule owner(new Taken(taken), [](void *p) noexcept {
        delete static_cast<Taken *>(p);
        live--;
    });
    return nb::cast(Taken(taken.data(), shape.size(), shape.data(), owner, strides.data(), taken.dtype(), taken.device_type(), taken.device_id()));
}

NB_MODULE(dlferry_nanobind_peer, m) {
    m.def("make", &make);
    m.def("live", [] { return live; });
    m.def("take", [](Shown a) { return shown(a); }, nb::arg().noconvert());
    m.def("take_readonly", [](ShownReadOnly a) { return shown(a); }, nb::arg().noconvert());
}
