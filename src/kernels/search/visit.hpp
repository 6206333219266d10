// Visiting all monomials of ordered rows, with threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <iterator>
#include <new>
#include <vector>

#include "basis/basis.hpp"
#include "observe/prefix_walk.hpp"
#include "observe/transposed.hpp"
#include "platform/stretches.hpp"
#include "platform/threads.hpp"

namespace polysparse {

/// How to visit, besides what.
struct Visiting {
    int64_t least;  // rows that a column must be in
    int64_t n_threads;
    const StopRequest* should_stop;
    std::atomic<double>* done;  // the share of the work that is done, about
};

/// What a visitor has for columns in a single row, if it never gets any: all are in more.
struct OnlyManyRows {
    template <class AnySpan>
    void enter_row(int64_t, const AnySpan&) {}
    bool enters_row(int64_t, uint32_t) const { return false; }
    template <class Followers>
    void found_in_row(const Basis&, const Followers&, int64_t, uint32_t, uint32_t) {}
    int64_t n_found() const { return 0; }
};

/// Columns in stretches. `x` must outlive them.
inline auto stretches_of_columns(const Transposed<uint32_t>& x, int64_t n_threads) {
    return Stretches(x.n_columns(), n_threads,
                     [&x](int64_t number) { return int64_t{x.first[number]}; });
}

/// About how long it takes to visit what each column leads to, without pruning: for each of its
/// rows, the tuples of values that follow it, of all degrees but the highest. Throws bad_alloc and
/// Stopped.
inline std::vector<double> work_of_leads(const Transposed<uint32_t>& x, int64_t highest,
                                         int64_t n_threads, const StopRequest& should_stop) {
    std::vector<double> work(x.n_columns());
    const auto add_tail = [&](const Tail<uint32_t>& tail, double& sum) {
        const auto n = static_cast<double>(tail.end - tail.begin);
        double tuples = 1;
        for (int64_t d = 1; d < highest && static_cast<double>(d) <= n; ++d) {
            tuples *= (n - static_cast<double>(d) + 1) / static_cast<double>(d);
            sum += tuples;
        }
        sum += 1;
    };
    const auto add_columns = [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t number = begin; number < end; ++number)
            for (int64_t s = x.first[number]; s < x.first[number + 1]; ++s)
                add_tail(x.tails[s], work[number]);
    };
    stretches_of_columns(x, n_threads).run(should_stop, add_columns);
    return work;
}

/// Stretches of leads, the last first: frequent columns have few followers and large scores, which
/// raise the threshold. A stretch is about 1 / (256 n_threads) of the work, or one lead that is
/// more.
inline std::vector<int64_t> divide_leads(const std::vector<double>& work, double all,
                                         int64_t n_threads) {
    const double share = all / static_cast<double>(256 * n_threads);
    std::vector<int64_t> ends{std::ssize(work)};
    double here = 0;
    for (int64_t number = std::ssize(work) - 1; number >= 0; --number) {
        here += work[number];
        if (here < share && number > 0) continue;
        ends.push_back(number);
        here = 0;
    }
    return ends;
}

/// Visits all monomials of ordered rows, each worker with the visitor that make_visitor(worker)
/// returns. False if stopped. Throws bad_alloc.
template <class Followers, class MakeVisitor>
bool visit_all(const Basis& basis, const Transposed<uint32_t>& x, Followers followers,
               const Visiting& how, const MakeVisitor& make_visitor) try {
    using Walk = PrefixWalk<uint32_t, uint32_t, Followers, decltype(make_visitor(int64_t{}))>;
    Watch watch(INT64_MAX);
    std::vector<Walk> walks;
    for (int64_t worker = 0; worker < how.n_threads; ++worker)
        walks.emplace_back(basis, x, followers, how.least, watch,
                           worker == 0 ? how.should_stop : nullptr, make_visitor(worker));
    const std::vector<double> work =
        work_of_leads(x, basis.highest, how.n_threads, *how.should_stop);
    double all = 0;
    for (const double one : work) all += one;
    const std::vector<int64_t> ends = divide_leads(work, all, how.n_threads);
    const auto visit_task = [&](int64_t worker, int64_t task) {
        if (watch.is_over()) return;
        try {
            for (int64_t number = ends[task]; number-- > ends[task + 1];)
                walks[worker].visit_led_by(number, work[number] / all, *how.done);
            walks[worker].report();
        } catch (const typename Walk::Over&) {
        } catch (const std::bad_alloc&) {
            watch.fill_up();
        }
    };
    const bool ends_well = run_tasks(std::ssize(ends) - 1, how.n_threads, visit_task,
                                     *how.should_stop, Order::in_order);
    if (watch.is_full()) throw std::bad_alloc();
    return ends_well && !watch.is_over();
} catch (const Stopped&) {
    return false;
}

/// The same with the followers of the basis.
template <class MakeVisitor>
bool visit_by_followers(const Basis& basis, const Transposed<uint32_t>& x, const Visiting& how,
                        const MakeVisitor& make_visitor) {
    if (basis.groups)
        return visit_all(basis, x, GroupedFollowers{x.next.data()}, how, make_visitor);
    const PlainFollowers followers{static_cast<uint32_t>(basis.interaction_only)};
    return visit_all(basis, x, followers, how, make_visitor);
}

}  // namespace polysparse
