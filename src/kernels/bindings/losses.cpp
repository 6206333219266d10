#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <map>
#include <optional>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/module.hpp"
#include "bindings/signals.hpp"
#include "losses/log_losses.hpp"
#include "losses/target_losses.hpp"
#include "losses/vectors.hpp"

namespace polysparse {
namespace {

using InVector = Array<const double>;
using OutVector = Array<double>;
using InRows = Table<const double>;  // a row for each row of the data, a column for each class
using OutRows = Table<double>;
using Classes = Array<const int64_t>;

/// Calls make(work) without the GIL.
template <class Make>
void run(int64_t n_threads, const Make& make) {
    require(n_threads >= 1, "n_threads must be positive");
    run_without_gil(
        false, [&](const StopRequest& should_stop) { return make(Work{n_threads, should_stop}); });
}

template <class First, class... Others>
void require_same_size(const First& first, const Others&... others) {
    require(((first.size() == others.size()) && ...), "vectors of unequal size");
}

template <class First, class... Others>
void require_same_shape(const First& first, const Others&... others) {
    require(((first.shape(0) == others.shape(0) && first.shape(1) == others.shape(1)) && ...),
            "rows of unequal shape");
}

// ---------------------------------------------------------------------------------------- vectors

double py_dot(InVector a, InVector b, int64_t n_threads) {
    require_same_size(a, b);
    double sum = 0;
    run(n_threads,
        [&](const Work& work) { return dot(size_of(a), a.data(), b.data(), &sum, work); });
    return sum;
}

double py_weighted_squares(InVector weights, InVector x, double shift, int64_t n_threads) {
    require_same_size(weights, x);
    double sum = 0;
    run(n_threads, [&](const Work& work) {
        return weighted_squares(size_of(x), weights.data(), x.data(), shift, &sum, work);
    });
    return sum;
}

void py_combine(double a, OutVector x, double b, InVector y, double shift, int64_t n_threads) {
    require_same_size(x, y);
    run(n_threads, [&](const Work& work) {
        return combine(size_of(x), a, x.data(), b, y.data(), shift, work);
    });
}

void py_dots(InRows table, InVector x, OutVector sums, int64_t n_threads) {
    require(x.size() == table.shape(1) && sums.size() == table.shape(0), "vectors of unequal size");
    run(n_threads, [&](const Work& work) {
        return dots(size_of(x), size_of(sums), table.data(), x.data(), sums.data(), work);
    });
}

void py_add_rows(InVector factors, InRows table, OutVector out, int64_t n_threads) {
    require(out.size() == table.shape(1) && factors.size() == table.shape(0),
            "vectors of unequal size");
    run(n_threads, [&](const Work& work) {
        return add_rows(size_of(out), size_of(factors), factors.data(), table.data(), out.data(),
                        work);
    });
}

void py_multiply(InVector x, InVector y, double shift, OutVector out, int64_t n_threads) {
    require_same_size(x, y, out);
    run(n_threads, [&](const Work& work) {
        return multiply(size_of(x), x.data(), y.data(), shift, out.data(), work);
    });
}

void py_clear(Vectors<> x, int64_t n_threads) {
    run(n_threads,
        [&](const Work& work) { return clear(static_cast<int64_t>(x.nbytes()), x.data(), work); });
}

void py_rescale(OutVector x, double factor, double shift, int64_t n_threads) {
    run(n_threads,
        [&](const Work& work) { return rescale(size_of(x), x.data(), factor, shift, work); });
}

void py_raise_shifted(InVector x, double shift, OutVector out, int64_t n_threads) {
    require_same_size(x, out);
    run(n_threads, [&](const Work& work) {
        return raise_shifted(size_of(x), x.data(), shift, out.data(), work);
    });
}

void py_center(OutVector squares, OutVector sums, InVector totals, int64_t n_threads) {
    require_same_size(squares, sums);
    const int64_t k = size_of(totals);
    require(k > 0 && size_of(sums) % k == 0, "totals for all sums are needed");
    run(n_threads, [&](const Work& work) {
        return center(size_of(sums) / k, k, squares.data(), sums.data(), totals.data(), work);
    });
}

double py_divide(InVector x, InVector y, OutVector out, int64_t n_threads) {
    require_same_size(x, y, out);
    double sum = 0;
    run(n_threads, [&](const Work& work) {
        return divide(size_of(x), x.data(), y.data(), out.data(), &sum, work);
    });
    return sum;
}

// ----------------------------------------------------------------------------------------- losses

ScoredRows scored_rows(const InRows& scores, const InVector& intercepts, const Classes& classes,
                       const InVector& weights) {
    require(intercepts.size() == scores.shape(1) && classes.size() == scores.shape(0) &&
                weights.size() == scores.shape(0),
            "rows of unequal shape");
    return {static_cast<int64_t>(scores.shape(0)),
            static_cast<int64_t>(scores.shape(1)),
            scores.data(),
            intercepts.data(),
            classes.data(),
            weights.data()};
}

void py_sum_log_losses(InRows scores, InVector intercepts, Classes classes, InVector weights,
                       std::optional<InRows> change, InVector shifts, double size,
                       std::optional<InRows> old_curvatures, OutVector sums, OutVector range,
                       int64_t n_threads) {
    const ScoredRows rows = scored_rows(scores, intercepts, classes, weights);
    Change along{};
    if (change) {
        require(old_curvatures.has_value(), "curvatures are missing");
        require_same_shape(scores, *change, *old_curvatures);
        along = {change->data(), shifts.data(), size, old_curvatures->data()};
    }
    require(shifts.size() == intercepts.size() && size_of(sums) == n_loss_sums(rows.k) &&
                range.size() == 2,
            "the output is not of the right size");
    run(n_threads, [&](const Work& work) {
        return (rows.k == 1 ? sum_two_classes : sum_classes)(rows, along, sums.data(), range.data(),
                                                             work);
    });
}

void py_fill_log_losses(InRows scores, InVector intercepts, Classes classes, InVector weights,
                        OutRows residuals, OutRows curvatures, std::optional<OutRows> probabilities,
                        int64_t n_threads) {
    const ScoredRows rows = scored_rows(scores, intercepts, classes, weights);
    require(probabilities.has_value() == (rows.k > 1),
            "probabilities are of more than two classes");
    require_same_shape(scores, residuals, curvatures, probabilities ? *probabilities : residuals);
    run(n_threads, [&](const Work& work) {
        return probabilities ? fill_classes(rows, residuals.data(), curvatures.data(),
                                            probabilities->data(), work)
                             : fill_two_classes(rows, residuals.data(), curvatures.data(), work);
    });
}

void py_fill_probabilities(InRows scores, OutRows out, int64_t n_threads) {
    const auto n = static_cast<int64_t>(scores.shape(0)), k = static_cast<int64_t>(scores.shape(1));
    require(out.shape(0) == scores.shape(0) && static_cast<int64_t>(out.shape(1)) == k + (k == 1),
            "rows of unequal shape");
    run(n_threads, [&](const Work& work) {
        return k == 1 ? fill_two_probabilities(n, scores.data(), out.data(), work)
                      : fill_probabilities(n, k, scores.data(), out.data(), work);
    });
}

ProbabilityRows probability_rows(const InRows& probabilities, const InVector& weights,
                                 const InRows& change, const InVector& shifts) {
    require_same_shape(probabilities, change);
    require(weights.size() == probabilities.shape(0) && shifts.size() == probabilities.shape(1),
            "rows of unequal shape");
    return {static_cast<int64_t>(probabilities.shape(0)),
            static_cast<int64_t>(probabilities.shape(1)),
            probabilities.data(),
            weights.data(),
            change.data(),
            shifts.data()};
}

void py_fill_hessian_products(InRows probabilities, InVector weights, InRows change,
                              InVector shifts, OutRows out, int64_t n_threads) {
    const ProbabilityRows rows = probability_rows(probabilities, weights, change, shifts);
    require_same_shape(probabilities, out);
    run(n_threads, [&](const Work& work) { return fill_hessian_products(rows, out.data(), work); });
}

void py_sum_hessian_products(InRows probabilities, InVector weights, InRows change, InVector shifts,
                             OutVector sums, int64_t n_threads) {
    const ProbabilityRows rows = probability_rows(probabilities, weights, change, shifts);
    require_same_size(shifts, sums);
    run(n_threads, [&](const Work& work) { return sum_hessian_products(rows, sums.data(), work); });
}

TargetRows target_rows(const std::string& loss, double parameter, const InVector& scores,
                       double intercept, const InRows& targets, const InVector& weights) {
    static const std::map<std::string, TargetLoss> losses{
        {"poisson", TargetLoss::poisson},           {"gamma", TargetLoss::gamma},
        {"tweedie", TargetLoss::tweedie},           {"squared_hinge", TargetLoss::squared_hinge},
        {"squared_tube", TargetLoss::squared_tube},
    };
    const auto found = losses.find(loss);
    require(found != losses.end(), "unknown loss");
    require(targets.shape(0) == scores.size() &&
                static_cast<int64_t>(targets.shape(1)) == target_width(found->second) &&
                weights.size() == scores.size(),
            "rows of unequal shape");
    return {found->second, parameter,      size_of(scores), scores.data(),
            intercept,     targets.data(), weights.data()};
}

void py_sum_target_losses(const std::string& loss, double parameter, InVector scores,
                          double intercept, InRows targets, InVector weights,
                          std::optional<InVector> change, double shift, double size,
                          std::optional<InVector> old_curvatures, OutVector sums, OutVector range,
                          int64_t n_threads) {
    const TargetRows rows = target_rows(loss, parameter, scores, intercept, targets, weights);
    Change along{};
    if (change) {
        require(old_curvatures.has_value(), "curvatures are missing");
        require_same_size(scores, *change, *old_curvatures);
        along = {change->data(), &shift, size, old_curvatures->data()};
    }
    require(size_of(sums) == n_loss_sums(1) && range.size() == 2,
            "the output is not of the right size");
    run(n_threads, [&](const Work& work) {
        return sum_target_losses(rows, along, sums.data(), range.data(), work);
    });
}

void py_fill_target_losses(const std::string& loss, double parameter, InVector scores,
                           double intercept, InRows targets, InVector weights, OutVector residuals,
                           OutVector curvatures, int64_t n_threads) {
    const TargetRows rows = target_rows(loss, parameter, scores, intercept, targets, weights);
    require_same_size(scores, residuals, curvatures);
    run(n_threads, [&](const Work& work) {
        return fill_target_losses(rows, residuals.data(), curvatures.data(), work);
    });
}

void py_fill_exponentials(InVector x, OutVector out, int64_t n_threads) {
    require_same_size(x, out);
    run(n_threads, [&](const Work& work) {
        return fill_exponentials(size_of(x), x.data(), out.data(), work);
    });
}

void py_fill_logarithms(InVector x, OutVector out, int64_t n_threads) {
    require_same_size(x, out);
    run(n_threads,
        [&](const Work& work) { return fill_logarithms(size_of(x), x.data(), out.data(), work); });
}

}  // namespace

void bind_losses(nb::module_& m) {
    m.def("dot", &py_dot, nb::arg("a").noconvert(), nb::arg("b").noconvert(), nb::arg("n_threads"));
    m.def("weighted_squares", &py_weighted_squares, nb::arg("weights").noconvert(),
          nb::arg("x").noconvert(), nb::arg("shift"), nb::arg("n_threads"));
    m.def("combine", &py_combine, nb::arg("a"), nb::arg("x").noconvert(), nb::arg("b"),
          nb::arg("y").noconvert(), nb::arg("shift"), nb::arg("n_threads"));
    m.def("dots", &py_dots, nb::arg("table").noconvert(), nb::arg("x").noconvert(),
          nb::arg("sums").noconvert(), nb::arg("n_threads"));
    m.def("add_rows", &py_add_rows, nb::arg("factors").noconvert(), nb::arg("table").noconvert(),
          nb::arg("out").noconvert(), nb::arg("n_threads"));
    m.def("multiply", &py_multiply, nb::arg("x").noconvert(), nb::arg("y").noconvert(),
          nb::arg("shift"), nb::arg("out").noconvert(), nb::arg("n_threads"));
    m.def("clear", &py_clear, nb::arg("x").noconvert(), nb::arg("n_threads"));
    m.def("rescale", &py_rescale, nb::arg("x").noconvert(), nb::arg("factor"), nb::arg("shift"),
          nb::arg("n_threads"));
    m.def("raise_shifted", &py_raise_shifted, nb::arg("x").noconvert(), nb::arg("shift"),
          nb::arg("out").noconvert(), nb::arg("n_threads"));
    m.def("center", &py_center, nb::arg("squares").noconvert(), nb::arg("sums").noconvert(),
          nb::arg("totals").noconvert(), nb::arg("n_threads"));
    m.def("divide", &py_divide, nb::arg("x").noconvert(), nb::arg("y").noconvert(),
          nb::arg("out").noconvert(), nb::arg("n_threads"));
    m.def("sum_log_losses", &py_sum_log_losses, nb::arg("scores").noconvert(),
          nb::arg("intercepts").noconvert(), nb::arg("classes").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("change").noconvert().none(),
          nb::arg("shifts").noconvert(), nb::arg("size"),
          nb::arg("old_curvatures").noconvert().none(), nb::arg("sums").noconvert(),
          nb::arg("range").noconvert(), nb::arg("n_threads"));
    m.def("fill_log_losses", &py_fill_log_losses, nb::arg("scores").noconvert(),
          nb::arg("intercepts").noconvert(), nb::arg("classes").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("residuals").noconvert(),
          nb::arg("curvatures").noconvert(), nb::arg("probabilities").noconvert().none(),
          nb::arg("n_threads"));
    m.def("fill_probabilities", &py_fill_probabilities, nb::arg("scores").noconvert(),
          nb::arg("out").noconvert(), nb::arg("n_threads"));
    m.def("fill_hessian_products", &py_fill_hessian_products, nb::arg("probabilities").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("change").noconvert(),
          nb::arg("shifts").noconvert(), nb::arg("out").noconvert(), nb::arg("n_threads"));
    m.def("sum_hessian_products", &py_sum_hessian_products, nb::arg("probabilities").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("change").noconvert(),
          nb::arg("shifts").noconvert(), nb::arg("sums").noconvert(), nb::arg("n_threads"));
    m.def("sum_target_losses", &py_sum_target_losses, nb::arg("loss"), nb::arg("parameter"),
          nb::arg("scores").noconvert(), nb::arg("intercept"), nb::arg("targets").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("change").noconvert().none(), nb::arg("shift"),
          nb::arg("size"), nb::arg("old_curvatures").noconvert().none(),
          nb::arg("sums").noconvert(), nb::arg("range").noconvert(), nb::arg("n_threads"));
    m.def("fill_target_losses", &py_fill_target_losses, nb::arg("loss"), nb::arg("parameter"),
          nb::arg("scores").noconvert(), nb::arg("intercept"), nb::arg("targets").noconvert(),
          nb::arg("weights").noconvert(), nb::arg("residuals").noconvert(),
          nb::arg("curvatures").noconvert(), nb::arg("n_threads"));
    m.def("fill_exponentials", &py_fill_exponentials, nb::arg("x").noconvert(),
          nb::arg("out").noconvert(), nb::arg("n_threads"));
    m.def("fill_logarithms", &py_fill_logarithms, nb::arg("x").noconvert(),
          nb::arg("out").noconvert(), nb::arg("n_threads"));
}

}  // namespace polysparse
