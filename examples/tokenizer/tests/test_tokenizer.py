import numpy as np
import pytest
import tokenizer

VOCABULARY = ["[PAD]", "[UNK]", "the", "ferry", "leaves", "at", "12.30", ".", "Zürich"]


def test_words_are_those_of_unicode():
    words = tokenizer.words("The quick (\u201cbrown\u201d) fox can\u2019t jump 32.3 feet, right?")  # the example of the annex
    assert words == "The quick ( \u201c brown \u201d ) fox can\u2019t jump 32.3 feet , right ?".split()
    assert tokenizer.words("") == tokenizer.words(" \t\n") == []


@pytest.mark.parametrize(("text", "count"), [("", 0), ("naïve", 5), ("nai\u0308ve", 5), ("👍🏽👨‍👩‍👧🇨🇭", 3), ("a\r\nb", 3)])
def test_graphemes_are_what_a_reader_counts(text, count):
    assert tokenizer.graphemes(text) == count


def test_a_batch_is_padded_to_its_longest():
    batch = np.from_dlpack(tokenizer.encode(["the ferry leaves at 12.30.", "", "the boat", "Zürich"], VOCABULARY))
    assert batch.dtype == np.int32
    assert batch.tolist() == [[2, 3, 4, 5, 6, 7], [0] * 6, [2, 1, 0, 0, 0, 0], [8, 0, 0, 0, 0, 0]]


def test_a_length_pads_and_cuts():
    batch = np.from_dlpack(tokenizer.encode(["the ferry leaves", "at"], VOCABULARY, length=2, padding=-1, unknown=-2))
    assert batch.tolist() == [[2, 3], [5, -1]]
    assert np.from_dlpack(tokenizer.encode(["boat"], [], 1)).tolist() == [[1]]


@pytest.mark.parametrize(("texts", "shape"), [([], (0, 0)), (["", ""], (2, 0))])
def test_nothing_is_a_tensor_too(texts, shape):
    assert np.from_dlpack(tokenizer.encode(texts, VOCABULARY)).shape == shape


def test_the_tensor_outlives_what_it_was_made_of():
    rows = [np.from_dlpack(tokenizer.encode(["the ferry"] * n, VOCABULARY)) for n in range(1, 200)]
    assert all((row == [2, 3]).all() for row in rows)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="length is -1"):
        tokenizer.encode([], [], -1)
    with pytest.raises(ValueError, match="too large"):
        tokenizer.encode(["a"], [], 2**40)
    with pytest.raises(ValueError, match='"the" twice'):
        tokenizer.encode([], ["the", "the"])
    with pytest.raises(TypeError, match="texts"):
        tokenizer.encode("the ferry", VOCABULARY)
    with pytest.raises(ValueError, match="padding"):
        tokenizer.encode([], [], padding=2**31)


def test_torch_takes_the_batch():
    torch = pytest.importorskip("torch")
    batch = torch.from_dlpack(tokenizer.encode(["the ferry", "at"], VOCABULARY))
    assert torch.equal(batch, torch.tensor([[2, 3], [5, 0]], dtype=torch.int32))
    assert torch.nn.functional.embedding(batch, torch.eye(9)).shape == (2, 2, 9)
