#include "platform/thread_pool.hpp"

#include "bindings/gil.hpp"
#include "bindings/module.hpp"

namespace polysparse {
namespace {

namespace nb = nanobind;

nb::object call(ThreadPool& pool, nb::callable function, nb::args arguments) {
    const UsePool use(pool);
    return take_gil([&] { return nb::object(function(*arguments)); });  // which Python code does
}

}  // namespace

void bind_thread_pool(nb::module_& m) {
    nb::class_<ThreadPool>(m, "ThreadPool", "Threads that wait from one call to the next.")
        .def(nb::init<>())
        .def("call", &call,
             nb::sig("def call(self, function: collections.abc.Callable[..., object], "
                     "*arguments: object) -> object"))
        .def("shutdown", &ThreadPool::shutdown, nb::call_guard<WithoutGil>());
}

}  // namespace polysparse
