"""StringIndexer, OneHotEncoder and VectorAssembler before our stages: groups and names."""

import pytest
from scipy import sparse

import polysparse
from spark_frames import assert_same_bits, matrix_of

pytest.importorskip("pyspark")

from pyspark.errors import IllegalArgumentException
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.feature import (
    Binarizer,
    Bucketizer,
    OneHotEncoder,
    StringIndexer,
    VectorAssembler,
    VectorSlicer,
)

from polysparse.spark import (
    ObservedPolynomialFeatures,
    PolynomialFeatures,
    PolynomialLogisticRegression,
    PolynomialRidge,
)
from polysparse.spark.attributes import feature_names, groups_by_variable

ROWS = [("Berlin", "a_b", 1.5), ("Rome", "c", 2.5), ("Oslo", "a_b", 0.5), ("Rome", "a_b", 4.0)]
EXPAND = {"inputCol": "x", "outputCol": "out", "includeBias": False}


@pytest.fixture(scope="module")
def frame(spark):
    numbered = [(i, *row, float(i % 2)) for i, row in enumerate(ROWS)]
    return spark.createDataFrame(numbered, ["id", "city", "city_kind", "age", "label"])


def encoders(ending="_vec", index="_index", others=("age",), **more):
    """Stages that encode two variables and assemble them after other columns, as x."""
    names = ["city", "city_kind"]
    numbers, vectors = ([f"{name}{end}" for name in names] for end in (index, ending))
    return [
        StringIndexer(inputCols=names, outputCols=numbers),
        OneHotEncoder(inputCols=numbers, outputCols=vectors, **more),
        VectorAssembler(inputCols=[*others, *vectors], outputCol="x"),
    ]


def encoded(frame, *args, **more):
    return Pipeline(stages=encoders(*args, **more)).fit(frame).transform(frame)


def names_of(frame, column="x"):
    field = frame.schema[column]
    return feature_names(frame.schema, field, field.metadata["ml_attr"]["num_attrs"])


def groups_of(frame, column="x"):
    field = frame.schema[column]
    return groups_by_variable(frame.schema, field, field.metadata["ml_attr"]["num_attrs"])


def rows_of(frame):
    """The column x, some of whose vectors are dense."""
    return sparse.csr_array([row.x.toArray() for row in frame.orderBy("id").collect()])


def output_names(frame):
    return [each["name"] for each in frame.schema["out"].metadata["ml_attr"]["attrs"]["numeric"]]


# --------------------------------------------------------------------------------------- pipelines


def test_levels_are_grouped_and_named_by_variable(frame):
    stages = [*encoders(dropLast=False), PolynomialFeatures(**EXPAND, groups="metadata")]
    out = Pipeline(stages=stages).fit(frame).transform(frame)
    labels = [None, *["city"] * 3, *["city_kind"] * 2]
    wanted = polysparse.expand(rows_of(out), groups=labels, include_bias=False)
    assert_same_bits(matrix_of(out, "out"), wanted)
    levels = ["city=Rome", "city=Berlin", "city=Oslo", "city_kind=a_b", "city_kind=c"]
    assert output_names(out)[:7] == ["age", *levels, "age^2"]
    assert output_names(out)[-6:] == [f"{a} {b}" for a in levels[:3] for b in levels[3:]]


def test_the_last_level_is_left_out_by_default(frame):
    out = encoded(frame)
    assert names_of(out) == ["age", "city=Rome", "city=Berlin", "city_kind=a_b"]
    assert groups_of(out) == [None, "city", "city", "city_kind"]
    out = PolynomialFeatures(**EXPAND, groups="metadata", interactionOnly=True).transform(out)
    assert output_names(out)[-2:] == ["city=Rome city_kind=a_b", "city=Berlin city_kind=a_b"]


def test_observed_features_have_the_names(frame):
    observed = ObservedPolynomialFeatures(**EXPAND, groups="metadata", minCount=2)
    out = Pipeline(stages=[*encoders(dropLast=False), observed]).fit(frame).transform(frame)
    assert output_names(out) == [
        *("age", "city=Rome", "city_kind=a_b"),
        *("age^2", "age city=Rome", "age city_kind=a_b"),
    ]


@pytest.mark.parametrize("kind", [PolynomialLogisticRegression, PolynomialRidge])
def test_models_name_terms_and_variables(frame, kind, tmp_path):
    stage = kind(featuresCol="x", groups="metadata", terms=["city*city_kind", "age"])
    fitted = Pipeline(stages=[*encoders(dropLast=False), stage]).fit(frame)
    fitted.write().save(str(tmp_path / "model"))
    for each in (fitted, PipelineModel.load(str(tmp_path / "model"))):
        model = each.stages[-1].model
        assert {"age", "city=Rome", "city=Rome city_kind=a_b"} <= set(model.top_terms(20)["name"])
        assert set(model.importance()["name"]) == {"age", "city", "city_kind", "city:city_kind"}


@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("invalid", ["keep", "error"])
def test_levels_that_are_unknown(spark, frame, drop_last, invalid):
    """They have a feature only if StringIndexer keeps them, and OneHotEncoder leaves none out."""
    indexer, *others = encoders(dropLast=drop_last)
    stage = PolynomialLogisticRegression(featuresCol="x", groups="metadata")
    stages = [indexer.setParams(handleInvalid=invalid), *others, stage]
    fitted = Pipeline(stages=stages).fit(frame)
    names = names_of(Pipeline(stages=stages[:3]).fit(frame).transform(frame))
    unknown = ["__unknown"] * (invalid == "keep")
    levels = [["Rome", "Berlin", "Oslo", *unknown], ["a_b", "c", *unknown]]
    wanted = [each[:-1] if drop_last else each for each in levels]
    assert names[0] == "age"
    assert names[1:] == [
        f"{variable}={level}"
        for variable, each in zip(("city", "city_kind"), wanted, strict=True)
        for level in each
    ]
    found = fitted.stages[-1].model.importance()["name"]
    assert {"age", "city", "city_kind", "age:city", "city:city_kind"} <= set(found)
    assert "city:city" not in set(found)
    if invalid == "keep":
        schema = "city string, city_kind string, age double"
        new = spark.createDataFrame([("Paris", None, 1.0)], schema)
        assert len(fitted.transform(new).select("prediction").collect()) == 1


def test_a_model_equals_that_of_the_table_in_python(frame):
    pd = pytest.importorskip("pandas")
    orders = {"stringOrderType": "alphabetAsc"}
    stages = [encoders()[0].setParams(**orders), *encoders(dropLast=False, others=())[1:]]
    stages.append(PolynomialRidge(featuresCol="x", groups="metadata", degree=2))
    ours = Pipeline(stages=stages).fit(frame).stages[-1].model.top_terms(50)
    table = pd.DataFrame(ROWS, columns=["city", "city_kind", "age"]).drop(columns="age")
    theirs = polysparse.PolynomialRidge(degree=2).fit(table, [0.0, 1.0, 0.0, 1.0]).top_terms(50)
    ours, theirs = (dict(zip(each["name"], each["weight"], strict=True)) for each in (ours, theirs))
    assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-6)


# ------------------------------------------------------------------------------------ names, groups


@pytest.mark.parametrize(
    ("ending", "index", "variable"),
    [
        ("_vec", "_index", "city"),
        ("Vec", "Index", "city"),
        ("_one_hot", "_idx", "city"),
        ("OHE", "_i", "city"),
        ("_index_encoded", "_index", "city"),
        ("IndexedVector", "Indexed", "city"),
        ("_levels", "_index", "city_levels"),
        ("_index_vec", "_number", "city_index"),
    ],
)
def test_variables_of_columns(frame, ending, index, variable):
    out = encoded(frame, ending, index)
    assert groups_of(out)[1] == variable
    assert names_of(out)[1] == f"{variable}=Rome"


def test_a_variable_whose_name_is_that_of_a_feature_keeps_its_column(frame):
    stages = [
        Bucketizer(splits=[0, 1, 3, 9], inputCol="age", outputCol="age_index"),
        OneHotEncoder(inputCol="age_index", outputCol="age_vec", dropLast=False),
        VectorAssembler(inputCols=["age", "age_vec"], outputCol="x"),
    ]
    out = Pipeline(stages=stages).fit(frame).transform(frame)
    assert names_of(out)[:2] == ["age", "age_vec=0.0, 1.0"]
    assert groups_of(out) == [None, *["age_vec"] * 3]


def test_two_encodings_of_a_variable_keep_their_columns(frame):
    out = encoded(frame, dropLast=False)
    again = OneHotEncoder(inputCol="city_index", outputCol="city_ohe").fit(out).transform(out)
    again = VectorAssembler(inputCols=["city_vec", "city_ohe"], outputCol="y").transform(again)
    assert groups_of(again, "y") == [*["city_vec"] * 3, *["city_ohe"] * 2]


def test_levels_that_look_like_another_column(spark):
    """Both columns have a feature named "a_b_c": where it is tells which of them it is from."""
    rows = [("b_c", "c"), ("x", "y")]
    frame = spark.createDataFrame(rows, ["first", "second"])
    stages = [
        StringIndexer(inputCols=["first", "second"], outputCols=["i", "j"]),
        OneHotEncoder(inputCols=["i", "j"], outputCols=["a", "a_b"], dropLast=False),
        VectorAssembler(inputCols=["a_b", "a"], outputCol="x"),
    ]
    out = Pipeline(stages=stages).fit(frame).transform(frame)
    assert groups_of(out) == ["a_b", "a_b", "a", "a"]
    assert names_of(out) == ["a_b=c", "a_b=y", "a=b_c", "a=x"]
    chosen = VectorSlicer(inputCol="x", outputCol="chosen", indices=[0]).transform(out)
    with pytest.raises(ValueError, match="'a_b_c' of column 'chosen' is not named after a single"):
        groups_of(chosen, "chosen")
    assert names_of(chosen, "chosen") == ["a_b_c"]


def test_features_that_were_assembled_twice_or_sliced(frame):
    out = encoded(frame, others=())
    out = VectorAssembler(inputCols=["x", "age"], outputCol="twice").transform(out)
    assert groups_of(out, "twice") == ["city", "city", "city_kind", None]
    assert names_of(out, "twice") == ["city=Rome", "city=Berlin", "city_kind=a_b", "age"]
    some = VectorSlicer(inputCol="twice", outputCol="some", indices=[3, 1]).transform(out)
    assert groups_of(some, "some") == [None, "city"]


def test_a_binary_column_is_a_feature_of_its_own(frame):
    binary = Binarizer(threshold=2, inputCol="age", outputCol="is_old").transform(frame)
    out = encoded(binary, others=["is_old"])
    assert groups_of(out) == [None, "city", "city", "city_kind"]
    assert names_of(out)[0] == "is_old"


def test_terms_of_variables_and_of_numbers(frame):
    terms = ["city:city_kind", "age"]
    stages = [
        *encoders(dropLast=False),
        PolynomialFeatures(**EXPAND, groups="metadata", terms=terms),
    ]
    out = Pipeline(stages=stages).fit(frame).transform(frame)
    labels = ["age", *["city"] * 3, *["city_kind"] * 2]
    wanted = polysparse.expand(rows_of(out), groups=labels, terms=terms, include_bias=False)
    assert_same_bits(matrix_of(out, "out"), wanted)


def test_metadata_that_are_missing(frame):
    out = encoded(frame).drop("city_vec")
    assert names_of(out) == ["age", "city_vec_Rome", "city_vec_Berlin", "city_kind=a_b"]
    grouped = PolynomialFeatures(**EXPAND, groups="metadata")
    with pytest.raises(IllegalArgumentException, match=r"'city_vec_Rome'.* is not named after"):
        grouped.transform(out)
    vectors = out.select(out.x.alias("x", metadata={}))
    with pytest.raises(IllegalArgumentException, match="'x' has no metadata on its features"):
        grouped.transform(vectors)
