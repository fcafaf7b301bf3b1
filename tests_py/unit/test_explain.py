"""What explain says about tensors whose every field is known, and that looking changes nothing."""

import gc
import json
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from support import KEEP, N0, N1, Fake, Table, alone, capsule_name, exchange_type, requires

import dlferry as g


def found(x):
    e = g.explain(x)
    d = e.as_dict()
    json.dumps(d)
    assert isinstance(str(e), str) and repr(e) == str(e)
    return d


def consumer(d, name):
    return next(c for c in d["consumers"] if c["name"] == name)


def test_a_plain_tensor():
    t = g.zeros((2, 3))
    d = found(t)
    assert d["is_producer"] and d["type"] == "dlferry.Tensor"
    assert (d["shape"], d["strides"], d["size"], d["nbytes"], d["byte_offset"]) == ([2, 3], [3, 1], 6, 24, 0)
    assert d["dtype"]["name"] == "float32" and d["device"] == {"said": [1, 0], "sent": [1, 0]}
    assert d["layout"]["kind"] == "row-major" and d["layout"]["contiguous"] and d["readonly"] is False
    assert d["data"] == t.data_ptr() and d["alignment"] >= 64
    assert d["capsules"]["versioned"]["version"] == [1, 3] and d["capsules"]["legacy"]["version"] is None
    assert d["exchange_table"]["version"] == [1, 3] and len(d["exchange_table"]["attributes"]) == 2
    assert d["keywords"] == ["stream", "max_version", "dl_device", "copy"] and d["findings"] == []
    assert consumer(d, "dlferry")["verdict"] == "zero-copy" and consumer(d, "numpy")["verdict"] == "zero-copy"
    assert consumer(d, "numpy")["basis"] == "tried"


@pytest.mark.parametrize(
    ("shape", "strides", "kind", "negative", "broadcast", "overlapping"),
    [
        ((2, 3), (3, 1), "row-major", [], [], False),
        ((3, 2), (1, 3), "column-major", [], [], False),
        ((2, 3, 4), (4, 8, 1), "permuted", [], [], False),
        ((2, 2), (6, 2), "strided", [], [], False),
        ((2, 3), (3, -1), "strided", [1], [], False),
        ((3, 4), (0, 1), "strided", [], [0], True),
        ((4, 3), (1, 1), "strided", [], [], True),
        ((2, 2, 2), (3, 2, 1), "strided", [], [], True),
        ((2, 2, 2), (5, 3, 2), "strided", [], [], True),  # 3 + 2 = 5
        ((2, 2), (3, 2), "strided", [], [], False),  # steps closer than the reach of the axis below, and yet apart
        ((0, 3), (7, 7), "empty", [], [], False),
        ((), (), "row-major", [], [], False),
    ],
)
def test_layouts(shape, strides, kind, negative, broadcast, overlapping):
    memory = g._core and bytearray(400)
    x = Fake(bytes(memory), shape=shape, strides=strides, off=40 if negative else 0, ty=(1, 8, 1))
    layout = found(x)["layout"]
    assert (layout["kind"], layout["negative_axes"], layout["broadcast_axes"], layout["overlapping"]) == (kind, negative, broadcast, overlapping)


def test_read_only_byte_offset_flags_and_alignment():
    x = Fake(bytes(512), shape=(4,), off=8, flags=1 | 2 | 1 << 40)
    d = found(x)
    assert d["readonly"] is True and d["byte_offset"] == 8
    assert d["capsules"]["versioned"]["flag_names"] == ["READ_ONLY", "IS_COPIED", f"{1 << 40:#x}"]
    address = x.pointer + 8
    assert d["alignment"] == min(256, address & -address)
    assert any("byte offset of 8" in f for f in d["findings"])
    assert "read-only" in str(g.explain(x))


def test_strides_of_null_and_a_legacy_capsule():
    d = found(Fake(shape=(2, 2), strides=None, ver=None))
    assert d["strides"] is None and d["layout"]["kind"] == "row-major" and d["readonly"] is None
    assert d["capsules"]["versioned"] is None and d["capsules"]["legacy"] is not None
    assert any("NULL" in f for f in d["findings"])


def test_capsules_that_were_read_are_given_back_once():
    x = Fake(shape=(4,))
    before = g.ledger()
    found(x)
    assert g.ledger() == before
    # A fake's capsules have no destructor: explain says so, and has dlferry take those it read. tvm-ffi and JAX before 0.12 leave one each that they refuse.
    assert x.balanced() and x.freed >= len(x.caps) - sum(name in sys.modules for name in ("tvm_ffi", "jax"))
    assert x.balanced() and any("no destructor" in f for f in found(x)["findings"])


def test_a_raw_capsule_stays_as_it_is():
    t = g.zeros((3,))
    for keywords, name in (({}, N0), ({"max_version": (1, 3)}, N1)):
        capsule = t.__dlpack__(**keywords)
        d = found(capsule)
        assert capsule_name(capsule) == name and d["shape"] == [3] and d["capsule_name"] == name.decode()
        u = g.from_dlpack(capsule)
        assert u.data_ptr() == t.data_ptr()
        assert any("taken already" in f for f in found(capsule)["findings"])


def test_memory_is_not_written_and_nothing_is_kept():
    a = np.arange(6.0)
    count = sys.getrefcount(a)
    found(a)
    now = sys.getrefcount(a)
    assert now == count
    assert a.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("fake", [{}, None, {"ver": (2, 0)}, {"ndim": -1}, {"old_api": True}])
def test_the_object_goes_when_its_owner_lets_go(fake):
    class Mine(Fake):
        def __dlpack__(self, **kw):
            if fake is None:
                raise ValueError("no")
            return super().__dlpack__(**kw)

    x = Mine(**(fake or {}))
    KEEP.remove(x)  # which would hold it for memory's sake: nothing below reads it later
    count = sys.getrefcount(x)
    gc.disable()
    try:
        e = g.explain(x)
        now = sys.getrefcount(x)
    finally:
        gc.enable()
    assert now == count, str(e)
    KEEP.append(x)


def test_errors_of_the_producer_are_findings():
    d = found(Fake(raises=RuntimeError("the device is on fire")))
    assert d["capsules"]["versioned"]["error"] == "RuntimeError: the device is on fire"
    assert "shape" not in d and "on fire" in str(g.explain(Fake(raises=RuntimeError("the device is on fire"))))
    assert all(c["verdict"] in ("refuses", "unknown") for c in d["consumers"])
    assert consumer(d, "numpy")["error"] == "RuntimeError"


@pytest.mark.parametrize(
    ("fake", "words"),
    [
        ({"ver": (2, 0)}, "DLPack 2.0"),
        ({"ndim": -1}, "-1 axes"),
        ({"ndim": 1000}, "1000 axes"),
        ({"shape_null": True}, "no shape"),
        ({"shape": (-3,)}, "negative"),
        ({"cap": b"something"}, "something"),
        ({"null": True}, "NULL and there are elements"),
        ({"ty": (2, 0, 1)}, "no bits"),
        ({"ty": (2, 32, 1), "off": 1, "buf": bytes(200)}, "not aligned"),
    ],
)
def test_broken_structs_are_findings(fake, words):
    d = found(Fake(**fake))
    assert any(words in f for f in d["findings"]), d["findings"]


def test_a_capsule_that_is_none():
    class Strange:
        def __dlpack__(self, **kw):
            return "capsule"

        def __dlpack_device__(self):
            return "cpu"

    d = found(Strange())
    assert any("gave a str" in f for f in d["findings"]) and any("want a pair" in f for f in d["findings"])


def test_devices_that_disagree():
    x = Fake(dev=(1, 0))
    x.dev = (2, 0)
    d = found(x)
    assert d["device"] == {"said": [2, 0], "sent": [1, 0]}
    assert any("__dlpack_device__ says (2, 0)" in f for f in d["findings"])
    assert consumer(d, "dlferry")["verdict"] == "refuses"


def test_a_producer_of_the_first_days_takes_no_version():
    x = Fake(ver=None, old_api=True)
    d = found(x)
    assert consumer(d, "dlferry")["verdict"] == "zero-copy" and d["readonly"] is None
    assert d["capsules"] == {"versioned": None, "legacy": {"version": None, "flags": None, "flag_names": []}}


def test_exchange_tables():
    table = Table(give=lambda x: 0, version=(1, 2))
    kind = exchange_type(table.capsule(), __dlpack__=lambda self, **kw: g.zeros((2,)).__dlpack__(**kw), __dlpack_device__=lambda self: (1, 0))
    d = found(kind())
    assert d["exchange_table"]["version"] == [1, 2]
    assert d["exchange_table"]["functions"] == ["managed_tensor_from_py_object_no_sync"]
    for attribute in (5, table.capsule(b"other")):
        kind = exchange_type(attribute, __dlpack__=lambda self, **kw: g.zeros((2,)).__dlpack__(**kw))
        d = found(kind())
        assert d["exchange_table"] is None and any("passed over" in f for f in d["findings"])


def test_what_is_no_tensor_is_told_what_is_missing_and_which_way_is_open():
    for x, way in (
        (b"abc", "from_buffer"),
        ([1, 2], "asarray"),
        (3, "asarray"),
        ({"a": g.zeros((1,))}, "convert"),
    ):
        d = found(x)
        assert not d["is_producer"] and "no __dlpack__" in d["findings"][0] and any(way in w for w in d["ways"]), d
    assert any("None" in f for f in found(None)["findings"])
    assert "the type ndarray" in str(g.explain(np.ndarray))
    assert found(object())["ways"] == []


def test_libraries_that_are_imported_are_asked_and_no_other_is_imported():
    alone("""
        import sys, dlferry
        before = set(sys.modules)
        d = dlferry.explain(dlferry.zeros((2, 2))).as_dict()
        new = {m.partition(".")[0] for m in set(sys.modules) - before}
        assert not new & {"numpy", "torch", "jax", "tvm_ffi"}, new
        numpy = next(c for c in d["consumers"] if c["name"] == "numpy")
        assert (numpy["basis"], numpy["verdict"]) == ("by rule", "zero-copy"), numpy
        import numpy
        d = dlferry.explain(dlferry.zeros((2, 2))).as_dict()
        assert next(c for c in d["consumers"] if c["name"] == "numpy")["basis"] == "tried"
    """)


SAMPLES = {
    "plain": lambda: g.zeros((2, 3)),
    "negative": lambda: g.zeros((2, 3))[:, ::-1],
    "strided": lambda: g.zeros((2, 4))[:, ::2],
    "transposed": lambda: g.zeros((2, 3)).T,
    "zero-size": lambda: g.zeros((0, 3)),
    "0-d": lambda: g.zeros(()),
    "read-only": lambda: g._core._readonly(g.zeros((2, 3))),
    "unaligned to 64": lambda: g.zeros((8,))[1:],
    **{
        name: (lambda name=name: g.zeros((4,), dtype=name))
        for name in ("bool", "int64", "float16", "bfloat16", "complex64", "float8_e4m3fn", "float8_e3m4")
    },
}


def numpy_takes_what_ml_dtypes_registers(dtype):
    alone(f"""
    import dlferry, numpy
    x = dlferry.zeros((4,), dtype="{dtype}")
    row = next(c for c in dlferry.explain(x).as_dict()["consumers"] if c["name"] == "numpy")
    assert row["basis"] == "tried" and row["verdict"] == "refuses", row
    try:
        import ml_dtypes
    except ImportError:
        raise SystemExit
    row = next(c for c in dlferry.explain(x).as_dict()["consumers"] if c["name"] == "numpy")
    new = numpy.lib.NumpyVersion
    registers = new(ml_dtypes.__version__) >= "0.7.0" and new(numpy.__version__) >= "2.5.0"
    assert row["verdict"] == ("zero-copy" if registers else "refuses"), row
    """)


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("name", ["numpy", "torch", "jax", "tvm_ffi"])
def test_the_rule_says_what_happens_when_it_is_tried(name, sample):
    """The rules are for libraries that are not imported; here both are to be had."""
    from dlferry import _capsule, _peers

    pytest.importorskip(name, reason=f"needs {name}, not installed for this Python")
    x = SAMPLES[sample]()
    peer = next(p for p in _peers.PEERS if p.name == name)
    if x.dtype in peer.registers:
        numpy_takes_what_ml_dtypes_registers(sample)
        return
    reading = _capsule.read(x.__dlpack__(max_version=(1, 3)))
    rule = peer.judge(reading, versioned=True, legacy=not x.readonly, keyword=True, readonly=x.readonly, table=True)
    row = consumer(found(x), name)
    assert row["basis"] == "tried" and rule.kind == row["verdict"], (rule.kind, rule.why, row)


@requires("torch")
def test_what_torch_keeps_outside_of_its_memory():
    torch = pytest.importorskip("torch")
    d = found(torch.ones(3, requires_grad=True))
    assert any("x.detach()" in f for f in d["findings"]) and consumer(d, "dlferry")["way_out"] == "x.detach()"
    z = torch.full((2, 3), 1 + 2j)
    assert any("resolve_conj" in f for f in found(z.conj())["findings"])
    d = found(z.conj().imag)
    assert consumer(d, "numpy")["verdict"] == "changes" and consumer(d, "numpy")["way_out"] == "x.resolve_neg()"
    assert consumer(d, "dlferry")["verdict"] == "refuses"


def test_a_read_only_tensor_that_comes_out_writable_is_noted():
    pytest.importorskip("torch", reason="needs torch, not installed for this Python")
    row = consumer(found(g._core._readonly(g.zeros((2,)))), "torch")
    assert row["verdict"] == "zero-copy" and "writable" in row["why"] and "convert" in row["way_out"]


SVG = "{http://www.w3.org/2000/svg}"


def cells(x):
    root = ET.fromstring(g.explain(x).svg)
    filled = [c for c in root.iter(f"{SVG}g") if c.find(f"{SVG}title") is not None]
    return {c.find(f"{SVG}title").text: c.find(f"{SVG}rect").attrib for c in filled}, [
        r for r in root.iter(f"{SVG}rect") if "stroke-dasharray" in r.attrib
    ]


def test_the_picture_has_a_cell_for_each_place():
    filled, gaps = cells(g.zeros((2, 3)))
    assert list(filled) == [f"[{i},{j}]" for i in range(2) for j in range(3)] and gaps == []
    assert len({c["fill"] for c in filled.values()}) == 6
    filled, gaps = cells(g.zeros((2, 4))[:, ::2])
    assert len(filled) == 4 and len(gaps) == 3
    filled, _ = cells(g.zeros((5,))[::-1])
    assert list(filled) == ["[4]", "[3]", "[2]", "[1]", "[0]"]  # in the order of addresses
    filled, _ = cells(np.broadcast_to(np.arange(3.0), (2, 3)))
    assert list(filled) == ["[0,0; 1,0]", "[0,1; 1,1]", "[0,2; 1,2]"] and all(c["stroke"] == "#c00" for c in filled.values())


def test_pictures_of_many_elements_stay_small_and_odd_ones_are_drawn():
    for x in (g.zeros((1000, 1000)), g.zeros((1000, 1000)).T, g.zeros((3,) * 10), np.lib.stride_tricks.as_strided(np.zeros(1), (10**9,), (0,))):
        svg = g.explain(x).svg
        ET.fromstring(svg)
        assert 0 < len(svg) < 80_000
    ET.fromstring(g.explain(g.zeros(())).svg)
    assert g.explain(g.zeros((0, 3))).svg == "" and g.explain(3).svg == ""


def test_notebooks_get_text_and_picture_with_nothing_unescaped():
    class Evil:
        def __dlpack__(self, **kw):
            raise ValueError("<script>alert(1)</script>")

        def __dlpack_device__(self):
            return (1, 0)

    html = g.explain(Evil())._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html
    html = g.explain(g.zeros((2, 3)))._repr_html_()
    ET.fromstring(html)
    assert "<svg" in html and "float32" in html


def test_what_dlferry_refuses_is_given_to_no_other_library():
    """NumPy reads through a NULL shape; the process must live."""
    for fake in ({"shape_null": True}, {"null": True}, {"ndim": 1000}):
        d = found(Fake(**fake))
        assert consumer(d, "dlferry")["verdict"] == "refuses"
        assert {(c["verdict"], c["basis"]) for c in d["consumers"][1:]} <= {("unknown", "by rule"), ("refuses", "by rule")}, d["consumers"]
