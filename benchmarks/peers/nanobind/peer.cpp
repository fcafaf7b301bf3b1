// nanobind as a peer: a function that takes three tensors, an import into an object of our own, and an object that exports.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <cstdint>

namespace nb = nanobind;
using Any = nb::ndarray<float, nb::device::cpu>;
using Out = nb::ndarray<float, nb::array_api>;

struct Taken {
    Any tensor;
};

static void take3(Any a, Any b, Any c) {
    __asm__ volatile("" : : "r"(a.data()), "r"(b.data()), "r"(c.data()));
}

static Taken take(Any tensor) { return {std::move(tensor)}; }

// Twelve numbers, 3 x 4, in memory of their own; nanobind's own object carries them to whoever asks.
static Out make() {
    auto *memory = new float[12];
    for (int i = 0; i < 12; i++)
        memory[i] = (float)i;
    nb::capsule owner(memory, [](void *p) noexcept { delete[] static_cast<float *>(p); });
    return Out(memory, {3, 4}, owner);
}

NB_MODULE(nanobind_peer, m) {
    nb::class_<Taken>(m, "Taken")
        .def("data_ptr", [](const Taken &t) { return (uintptr_t)t.tensor.data(); })
        .def("tolist", [](const Taken &t) {
            nb::list rows;
            for (size_t i = 0; i < t.tensor.shape(0); i++) {
                nb::list row;
                for (size_t k = 0; k < t.tensor.shape(1); k++)
                    row.append(t.tensor.data()[i * t.tensor.stride(0) + k * t.tensor.stride(1)]);
                rows.append(row);
            }
            return rows;
        });
    m.def("take", &take);
    m.def("take3", &take3);
    m.def("make", &make, nb::rv_policy::reference);
}
