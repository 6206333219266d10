"""Names of hashed columns after a stream: a sample of its rows, in which to look for terms."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse

from polysparse import (
    HashedPolynomialFeatures,
    PolynomialFTRLClassifier,
    PolynomialFTRLRegressor,
    load_model,
)
from polysparse.files.online_file import OnlineFile
from polysparse.models.online import sampling

N_ROWS, N_FEATURES = 5000, 40
RNG = np.random.default_rng(0)
X = sparse.csr_array(RNG.random((N_ROWS, N_FEATURES)) < 0.2).astype(float)
DENSE = X.toarray()
Y = ((DENSE[:, 3] * DENSE[:, 7] > 0) ^ (RNG.random(N_ROWS) < 0.05)).astype(int)
WEIGHTS = (RNG.random(N_ROWS) < 0.7).astype(float)


def learner(**parameters):
    return PolynomialFTRLClassifier(**{"n_columns": 2**14, "interaction_only": True} | parameters)


def learned(cuts=(), *, model=None, rows=X, weights=None, **parameters):
    """A model that has learned from rows, divided into calls."""
    model = learner(**parameters) if model is None else model
    for begin, end in zip([0, *cuts], [*cuts, rows.shape[0]], strict=True):
        part = slice(begin, end)
        own = None if weights is None else weights[part]
        model.partial_fit(rows[part], Y[part], classes=[0, 1], sample_weight=own)
    return model


def sample_of(model):
    sample = model.learner_.sample
    rows = sample.rows
    arrays = rows.numbers, rows.n_terms, rows.indptr, rows.indices
    return [array.tolist() for array in arrays], sample.n_rows, sample.bound


@pytest.fixture
def few(monkeypatch):
    """Samples are small, so that rows replace others often."""
    monkeypatch.setattr(sampling, "MOST_ROWS", 50)
    monkeypatch.setattr(sampling, "MOST_VALUES", 300)


def expected_sample(lengths, n_terms, are_learned):
    """The numbers of the rows of a sample, by a loop over all rows."""
    numbers = np.flatnonzero(are_learned)
    numbers = numbers[
        (lengths[numbers] <= sampling.MOST_VALUES) & (n_terms[numbers] <= sampling.MOST_TERMS)
    ]
    order, kept, n_values, n_all = np.argsort(sampling.priorities_of(numbers)), [], 0, 0
    for number in numbers[order].tolist():
        n_values, n_all = n_values + lengths[number], n_all + n_terms[number]
        is_full = len(kept) == sampling.MOST_ROWS
        if is_full or n_values > sampling.MOST_VALUES or n_all > sampling.MOST_TERMS:
            return kept, number
        kept.append(number)
    return kept, None


# ------------------------------------------------------------------------------- the sample


@pytest.mark.parametrize("limits", [(1000, 10**5, 2**21), (50, 10**5, 2**21), (50, 200, 2**21)])
def test_a_sample_is_the_same_for_any_division(limits, monkeypatch):
    for name, limit in zip(("MOST_ROWS", "MOST_VALUES", "MOST_TERMS"), limits, strict=True):
        monkeypatch.setattr(sampling, name, limit)
    whole = learned(weights=WEIGHTS, n_jobs=1)
    n = whole.n_samples_seen_
    lengths = np.diff(X.indptr)[:n]
    n_terms = lengths * (lengths + 1) // 2
    numbers, bound = expected_sample(lengths, n_terms, WEIGHTS[:n] > 0)
    rows = whole.learner_.sample.rows
    assert rows.numbers.tolist() == numbers
    assert (whole.learner_.sample.n_rows, whole.learner_.sample.bound) == (n, bound)
    assert whole.n_sampled_rows_ == len(numbers)
    x = whole.learner_.sample.as_matrix(N_FEATURES)
    found = sparse.csr_array((x.data, x.indices, x.indptr), shape=x.shape)
    np.testing.assert_array_equal(found.toarray(), DENSE[numbers] > 0)
    np.testing.assert_array_equal(rows.n_terms, n_terms[numbers])
    for seed in range(3):
        cuts = np.sort(np.random.default_rng(seed).integers(0, N_ROWS, 10 ** (seed + 1)))
        assert sample_of(learned(cuts, weights=WEIGHTS, n_jobs=2)) == sample_of(whole)


def test_rows_are_sampled_uniformly():
    numbers = learned(rows=X).learner_.sample.rows.numbers
    in_tenths = np.bincount(numbers // (N_ROWS // 10))
    assert in_tenths.sum() == 1000
    assert np.all(np.abs(in_tenths - 100) < 40)  # four standard deviations
    assert abs(np.mean(numbers % 2) - 0.5) < 0.07


def test_no_row_is_kept_if_that_is_not_wanted(tmp_path):
    model = learner(keep_sample=False).fit(X, Y)
    model.save(tmp_path / "m.npz")
    for each in (model, load_model(tmp_path / "m.npz")):
        assert each.n_sampled_rows_ == 0
        assert each.partial_fit(X, Y).n_sampled_rows_ == 0
        assert all(name.startswith("column ") for name in each.top_terms(3)["name"])
    with pytest.raises(ValueError, match="keep_sample must be True or False; got 1"):
        learner(keep_sample=1).fit(X, Y)


def test_only_the_first_pass_is_sampled():
    once, thrice = (learner(n_passes=n).fit(X, Y) for n in (1, 3))
    assert thrice.n_samples_seen_ == 3 * N_ROWS
    assert sample_of(thrice) == sample_of(once)
    assert once.learner_.sample.n_rows == N_ROWS


def test_the_size_of_a_sample_is_bounded(monkeypatch):
    rng = np.random.default_rng(0)
    long = sparse.csr_array(rng.random((60, 6000)) < 0.5).astype(float)
    model = learner(degree=1).fit(long, np.arange(60) % 2)
    sample = model.learner_.sample
    assert 25 <= model.n_sampled_rows_ <= 40
    assert 90_000 < len(sample.rows.indices) <= sampling.MOST_VALUES
    for begin in range(0, 60, 7):
        part = slice(begin, begin + 7)
        model.partial_fit(long[part], np.arange(60)[part] % 2)
        assert sum(len(part.indices) for part in sample._parts) <= 3 * sampling.MOST_VALUES
    monkeypatch.setattr(sampling, "MOST_TERMS", 2990)  # of about 3,000 values each
    model = learner(degree=1).fit(long, np.arange(60) % 2)
    assert model.n_sampled_rows_ == 1
    monkeypatch.setattr(sampling, "MOST_TERMS", 2000)
    model = learner(degree=1).fit(long, np.arange(60) % 2)
    assert model.n_sampled_rows_ == 0
    assert model.top_terms(1)["name"][0].startswith("column ")


@pytest.mark.parametrize("columns", ["all", "observed"])
def test_columns_with_names_need_no_sample(columns, tmp_path):
    model = learner(columns=columns).fit(X, Y)
    assert model.learner_.sample is None
    assert model.n_sampled_rows_ == 0
    model.save(tmp_path / "model.npz")
    assert not [name for name in np.load(tmp_path / "model.npz").files if "sample" in name]
    assert load_model(tmp_path / "model.npz").n_sampled_rows_ == 0


# ------------------------------------------------------------------------------- names


@pytest.mark.parametrize("columns", ["hashed", HashedPolynomialFeatures(n_columns=2**12, seed=3)])
def test_names_are_found_after_a_stream(columns, tmp_path):
    how = {} if columns == "hashed" else {"columns": columns, "interaction_only": False}
    model = learned(range(100, N_ROWS, 100), **how)
    table = model.top_terms(20)
    assert table["name"][0].split(" | ")[0] == "x3 x7"
    assert table["features"][0] == ("x3", "x7")
    numbers = model.learner_.sample.rows.numbers
    assert table["rows"][0] == np.sum(DENSE[numbers, 3] * DENSE[numbers, 7] > 0)
    passed = model.top_terms(20, X[numbers])
    for name in ("name", "weight", "rows", "features"):
        assert list(table[name]) == list(passed[name])
    names = [f"feature {j}" for j in range(N_FEATURES)]
    assert model.top_terms(1, feature_names=names, sep="*")["name"][0].startswith(
        "feature 3*feature 7"
    )
    model.to_text(tmp_path / "terms.txt")
    lines = [line.split("\t") for line in (tmp_path / "terms.txt").read_text().splitlines()[1:]]
    everything = model.top_terms(10**6)
    assert [name for name, _ in lines] == list(everything["name"])
    assert [float(weight) for _, weight in lines] == list(everything["weight"])
    assert len(lines) == np.count_nonzero(model.coef_)
    assert "x3 x7" in model._repr_mimebundle_()["text/html"]


def test_a_plot_has_the_names():
    pytest.importorskip("matplotlib").use("agg")
    ax = learner().fit(X, Y).plot_top_terms(5)
    assert any("x3 x7" in label.get_text() for label in ax.get_yticklabels())


def test_names_of_several_classes_and_groups(tmp_path):
    codes = np.random.default_rng(0).integers(0, [4, 5], (3000, 2))
    rows = sparse.csr_array(np.hstack([np.eye(4)[codes[:, 0]], np.eye(5)[codes[:, 1]]]))
    y = np.where((codes == [2, 3]).all(axis=1), 2, codes[:, 0] == 1)
    how = {"groups": {"a": 4, "b": 5}, "n_columns": 2**12}
    model = PolynomialFTRLClassifier(**how).fit(rows, y)
    table = model.top_terms(50)
    names = {
        name: weight
        for each, name, weight in zip(table["class"], table["name"], table["weight"], strict=True)
        if each == 2
    }
    assert max(names, key=names.get) == "x2 x7"
    model.to_text(tmp_path / "terms.txt")
    assert "x2 x7\t" in (tmp_path / "terms.txt").read_text()


def test_terms_that_cannot_be_counted_are_looked_for_in_fewer_rows(monkeypatch):
    from polysparse.estimators import hashed_products

    model = learner().fit(X, Y)
    monkeypatch.setattr(hashed_products, "MAX_COLUMNS", 700)  # 40 features have 820 terms
    assert 0 < model._sampled_rows().shape[0] < model.n_sampled_rows_
    assert len(model.top_terms(5)["name"]) == 5


# ------------------------------------------------------------------------------- files


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("n_first", [1, 40, 333, 4000])
def test_a_saved_model_samples_on_with_the_same_bits(n_first, tmp_path):
    model = learned(rows=X[:n_first])
    model.save(tmp_path / "model.npz")
    copies = [
        load_model(tmp_path / "model.npz"),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ]
    assert len({str(sample_of(each)) for each in (model, *copies)}) == 1
    for each in (model, *copies):
        each.partial_fit(X[n_first:], Y[n_first:])
    wanted = sample_of(learned())
    assert all(sample_of(each) == wanted for each in (model, *copies))
    model.save(tmp_path / "whole.npz")
    copies[0].save(tmp_path / "loaded.npz")
    with np.load(tmp_path / "whole.npz") as a, np.load(tmp_path / "loaded.npz") as b:
        for name in ("sample_numbers", "sample_indptr", "sample_indices"):
            np.testing.assert_array_equal(a[name], b[name])


def test_a_file_without_a_sample_is_read(tmp_path):
    path = tmp_path / "model.npz"
    model = learned(rows=X[:3000])
    model.save(path)
    file = OnlineFile.read(path)
    del file.more["sample"]
    for name in ("numbers", "indptr", "indices"):
        del file.arrays[f"sample_{name}"]
    file.write(path)
    loaded = load_model(path)
    assert loaded.n_sampled_rows_ == 0
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert loaded.top_terms(1)["name"][0].startswith("column ")
    loaded.partial_fit(X[3000:], Y[3000:])
    assert loaded.top_terms(1)["name"][0].startswith("x3 x7")


DAMAGES = {
    "a number that is repeated": lambda f: f.arrays["sample_numbers"].__setitem__(1, _first(f)),
    "a number of no row": lambda f: f.arrays["sample_numbers"].__setitem__(0, 10**9),
    "a negative number": lambda f: f.arrays["sample_numbers"].__setitem__(0, -1),
    "an unknown feature": lambda f: f.arrays["sample_indices"].__setitem__(0, N_FEATURES),
    "a negative feature": lambda f: f.arrays["sample_indices"].__setitem__(0, -1),
    "features that do not increase": lambda f: f.arrays["sample_indices"].__setitem__(
        slice(0, 2), f.arrays["sample_indices"][1::-1]
    ),
    "rows of other lengths": lambda f: f.arrays["sample_indptr"].__setitem__(1, -1),
    "no rows": lambda f: f.arrays.pop("sample_indptr"),
    "one row less": lambda f: f.arrays.update(sample_numbers=f.arrays["sample_numbers"][:-1]),
    "more rows than were seen": lambda f: f.more.update(sample=[10**9, f.more["sample"][1]]),
    "a bound of no row": lambda f: f.more.update(sample=[f.more["sample"][0], 10**9]),
    "a bound that is sampled": lambda f: f.more.update(sample=[f.more["sample"][0], _first(f)]),
    "a bound that is true": lambda f: f.more.update(sample=[f.more["sample"][0], True]),
    "numbers that are texts": lambda f: f.more.update(sample=["3000", None]),
    "half of it": lambda f: f.more.update(sample=[3000]),
}


def _first(file):
    return int(file.arrays["sample_numbers"][0])


def saved(path, model):
    model.save(path)
    file = OnlineFile.read(path)
    file.arrays.update({name: array.copy() for name, array in file.arrays.items()})
    return file


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_sample_is_refused(damage, tmp_path):
    path = tmp_path / "model.npz"
    file = saved(path, learned(rows=X[:3000]))
    file.write(path)
    load_model(path)
    DAMAGES[damage](file)
    file.write(path)
    with pytest.raises(ValueError, match="damaged"):
        load_model(path)


def test_a_sample_that_is_too_large_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    saved(path, learned(rows=X[:3000]))
    monkeypatch.setattr(sampling, "MOST_VALUES", 300)
    with pytest.raises(ValueError, match="more sampled rows than a sample has"):
        load_model(path)


def test_a_sample_of_columns_with_names_is_refused(tmp_path):
    path = tmp_path / "model.npz"
    file = saved(path, PolynomialFTRLRegressor(columns="all").fit(X, Y))
    file.more["sample"] = [0, None]
    file.write(path)
    with pytest.raises(ValueError, match="its columns are not hashed"):
        load_model(path)


# ------------------------------------------------------------------------------- interrupted


class Interrupted:
    """A compiled learner that is interrupted before its next block."""

    def learn(self, *arguments):
        raise KeyboardInterrupt


@pytest.mark.usefixtures("few")
def test_an_interrupted_call_samples_what_it_learned():
    model = learned(rows=X[:1003])
    learner_, plain = model.learner_, model.learner_._native
    before = sample_of(model)
    learner_._native = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[1003:], Y[1003:])
    assert sample_of(model) == before
    learner_._native = plain
    n_seen = model.n_samples_seen_ + model.n_samples_pending_
    model.partial_fit(X[n_seen:], Y[n_seen:])
    assert sample_of(model) == sample_of(learned())
