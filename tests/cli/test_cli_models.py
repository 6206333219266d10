"""`fit` and `predict` with every model, and exposures of tables."""

import numpy as np
import pytest

from polysparse import PolynomialPoissonRegressor, load_model
from sample_files import X, refused, run, write_svmlight

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

RNG = np.random.default_rng(0)
TABLE = pandas.DataFrame(
    {
        "age": RNG.uniform(0.2, 1, 200).round(3),
        "car": RNG.choice(["old", "new", "sport"], 200),
        "years": RNG.uniform(0.1, 3, 200).round(3),
    }
)
TABLE["claims"] = RNG.poisson(np.exp(TABLE["age"] * (TABLE["car"] == "sport")) * TABLE["years"])
FEATURES, OFFSET = TABLE[["age", "car"]], np.log(TABLE["years"])


@pytest.fixture
def table(tmp_path):
    TABLE.to_csv(tmp_path / "claims.csv", index=False)
    return tmp_path / "claims.csv"


def predictions(capsys, *arguments):
    run("predict", *arguments, "--quiet")
    return np.array(capsys.readouterr().out.split(), dtype=float)


def test_exposures(table, tmp_path, capsys):
    model = tmp_path / "model.npz"
    options = ["--target", "claims", "--model", "poisson", "--alpha", "0.01", "--quiet"]
    run("fit", table, "-o", model, *options, "--exposure", "years", "--test", table)
    scores = dict(line.split("\t")[:2] for line in capsys.readouterr().out.splitlines())
    own = PolynomialPoissonRegressor(0.01).fit(FEATURES, TABLE["claims"], offset=OFFSET)
    found = load_model(model)
    np.testing.assert_array_equal(found.coef_, own.coef_)
    assert found.feature_names_in_.tolist() == ["age", "car"]
    with_exposure = own.predict(FEATURES, OFFSET)
    error = np.sqrt(np.mean((with_exposure - TABLE["claims"]) ** 2))
    assert float(scores["RMSE"]) == pytest.approx(error, rel=1e-4)
    assert predictions(capsys, model, table).tolist() == own.predict(FEATURES).tolist()
    predicted = predictions(capsys, model, table, "--exposure", "years")
    assert predicted.tolist() == with_exposure.tolist()


@pytest.mark.parametrize("kind", ["poisson", "tweedie", "svr", "svc", "gamma"])
def test_models_of_sparse_files(kind, tmp_path):
    write_svmlight(tmp_path / "in.svm")
    lines = (tmp_path / "in.svm").read_text().splitlines()
    labels = [int(float(line.split()[0])) + 2 for line in lines if not line.startswith("#")]
    rows = [line.split(" ", 1) for line in lines if not line.startswith("#")]
    text = [f"{y} {row[1] if len(row) > 1 else ''}" for y, row in zip(labels, rows, strict=True)]
    (tmp_path / "in.svm").write_text("\n".join(text) + "\n")
    run("fit", tmp_path / "in.svm", "-o", tmp_path / "m.npz", "--model", kind, "--quiet")
    model = load_model(tmp_path / "m.npz")
    assert model._kind == kind
    assert model.predict(X).shape == (X.shape[0],)


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--model", "ridge", "--exposure", "years"], 2, "--exposure only applies with --model po"),
        (["--model", "poisson", "--power", "1.5"], 2, "--power only applies with --model tweedie"),
        (["--model", "poisson", "--exposure", "days"], 1, "there is no column 'days'"),
        (["--model", "poisson", "--exposure", "car"], 1, "car"),
        (["--model", "gamma"], 1, "needs numbers above 0"),
    ],
)
def test_what_is_refused(options, status, message, table, tmp_path, capsys):
    arguments = ["--target", "claims", "-o", tmp_path / "m.npz", "--quiet"]
    assert message in refused(capsys, status, "fit", table, *arguments, *options)


def test_an_exposure_of_0(tmp_path, capsys):
    TABLE.assign(years=0.0).to_csv(tmp_path / "in.csv", index=False)
    options = ["--target", "claims", "--model", "poisson", "--exposure", "years", "--quiet"]
    error = refused(capsys, 1, "fit", tmp_path / "in.csv", "-o", tmp_path / "m.npz", *options)
    assert "column 'years' has the value 0; an exposure must be finite and above 0" in error


def test_sparse_files_have_no_exposures(tmp_path, capsys):
    write_svmlight(tmp_path / "in.svm")
    options = ["-o", tmp_path / "m.npz", "--model", "poisson", "--exposure", "years"]
    error = refused(capsys, 2, "fit", tmp_path / "in.svm", *options)
    assert "--exposure names a column of a table" in error


def test_a_value_that_is_not_a_number_is_named_by_its_own_column(table, tmp_path, capsys):
    """Even if columns before it are dropped."""
    options = ["--target", "claims", "--drop", "age", "--numeric", "car", "--model", "ridge"]
    error = refused(capsys, 1, "fit", table, "-o", tmp_path / "m.npz", *options)
    assert "column 'car', row 2" in error
