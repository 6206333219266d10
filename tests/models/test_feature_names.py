"""The parameter `feature_names`: names for features of an X that has none."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from polysparse import PolynomialLogisticRegression, PolynomialRidge, load_model
from small_models import NAMED, TARGETS, X, fitted, named_weights

NAMES = ["age", "dose", "tall", "night", "é"]
PAIR = "age dose"  # the heaviest, as the target has it


def pandas_index(names):
    return pytest.importorskip("pandas").Index(names)


CONTAINERS = {"list": list, "tuple": tuple, "array": np.array, "index": pandas_index}


@pytest.mark.parametrize("columns", NAMED)
@pytest.mark.parametrize("target", ["ridge", "three"])
def test_terms_have_the_names(target, columns):
    unnamed, model = fitted(target, columns), fitted(target, columns, feature_names=NAMES)
    assert model.coef_.tobytes() == unnamed.coef_.tobytes()
    basis, n = model.column_space_.basis, model.top_terms(10**6)
    wanted = dict(zip(basis.names(), basis.names(input_features=NAMES), strict=True))
    assert [wanted[name] for name in unnamed.top_terms(10**6)["name"]] == list(n["name"])


def test_products_of_hashed_columns_have_the_names():
    model = fitted("ridge", "hashed", feature_names=NAMES)
    assert next(iter(model.top_terms(1, X)["name"])) == PAIR


def test_names_given_to_a_method_are_used_by_it_alone(tmp_path):
    model = fitted("ridge", feature_names=list("abcde"))
    assert PAIR in list(model.top_terms(3, feature_names=NAMES)["name"])
    model.to_text(tmp_path / "terms.txt", feature_names=NAMES)
    assert f"\n{PAIR}\t" in (tmp_path / "terms.txt").read_text()
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    model.plot_top_terms(3, feature_names=NAMES, ax=axes)
    assert PAIR in [label.get_text() for label in axes.get_yticklabels()]
    assert "a b" in list(model.top_terms(3)["name"])


def test_they_replace_the_names_of_X():
    frame = pytest.importorskip("pandas").DataFrame(X.toarray(), columns=list("abcde"))
    model = fitted("ridge", data=frame)
    assert "a b" in list(model.top_terms(3)["name"])
    assert PAIR in list(model.set_params(feature_names=NAMES).top_terms(3)["name"])
    model.predict(frame)  # whose names are still those of fit


def test_a_pipeline_of_categories_names_its_levels():
    rng = np.random.default_rng(0)
    table = rng.choice(["red", "green"], (400, 2)).astype(object)
    y = (table[:, 0] == "red") & (table[:, 1] == "red")
    model = PolynomialLogisticRegression(interaction_only=True)
    pipeline = make_pipeline(OneHotEncoder(), model).fit(table, y)
    names = pipeline[:-1].get_feature_names_out(["left", "right"])
    top = pipeline[-1].top_terms(1, feature_names=names)
    assert list(top["name"]) == ["left_red right_red"]


def test_a_search_and_a_clone_keep_them():
    search = GridSearchCV(PolynomialRidge(feature_names=np.array(NAMES)), {"alpha": [1.0]}, cv=2)
    assert PAIR in list(search.fit(X, TARGETS["ridge"]).best_estimator_.top_terms(3)["name"])
    assert clone(PolynomialRidge(feature_names=NAMES)).feature_names == NAMES


@pytest.mark.parametrize("container", CONTAINERS)
def test_they_are_saved_with_the_model(container, tmp_path):
    model = fitted("ridge", feature_names=CONTAINERS[container](NAMES))
    model.save(tmp_path / "model.npz")
    loaded = load_model(tmp_path / "model.npz")
    assert named_weights(loaded) == named_weights(model)
    assert list(loaded.feature_names) == NAMES
    assert loaded.predict(X).tobytes() == model.predict(X).tobytes()  # without a warning


def test_names_that_clash_are_all_shown():
    model = fitted("ridge", feature_names=["a", "b", "a b", "c", "c"])
    names = list(model.top_terms(10**6)["name"])
    assert names.count("a b") == 2
    assert len(names) == len(fitted("ridge").top_terms(10**6))


FAULTS = {
    "4": (NAMES[:4], ValueError, "feature_names has length 4, but X has 5 features: pass one name"),
    "0": ([], ValueError, "feature_names has length 0, but X has 5 features"),
    "text": ("abcde", TypeError, "feature_names must be a list of strings; got 'abcde'"),
    "number": (5, TypeError, "feature_names must be a list of strings; got 5"),
    "numbers": (["a", 1.5], TypeError, r"must be strings, but feature_names\[1\] is 1.5"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_names_are_refused(fault, monkeypatch):
    names, error, message = FAULTS[fault]
    model = fitted("ridge")
    with pytest.raises(error, match=message):
        model.top_terms(feature_names=names)
    monkeypatch.setattr(PolynomialRidge, "_solve", None)  # they are checked before
    with pytest.raises(error, match=message):
        PolynomialRidge(feature_names=names).fit(X, TARGETS["ridge"])


def test_wrong_names_are_not_saved(tmp_path):
    model = fitted("ridge").set_params(feature_names=NAMES[:4])
    with pytest.raises(ValueError, match="feature_names has length 4, but X has 5 features"):
        model.save(tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def test_names_may_be_longer_than_the_data_is_wide():
    wide = sparse.csr_array((np.ones(3), ([0, 1, 2], [0, 1, 2])), shape=(3, 1000))
    names = [f"feature {j}" for j in range(1000)]
    model = PolynomialRidge(columns="observed", feature_names=names).fit(wide, [1.0, 2.0, 3.0])
    assert set(model.top_terms()["name"]) <= {*names, *(f"{name}^2" for name in names)}
