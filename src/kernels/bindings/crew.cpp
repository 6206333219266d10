#include "platform/crew.hpp"

#include "bindings/gil.hpp"
#include "bindings/module.hpp"

namespace polysparse {
namespace {

namespace nb = nanobind;

nb::object call(Crew& crew, nb::callable function, nb::args arguments) {
    const OnDuty duty(crew);
    return take_gil([&] { return nb::object(function(*arguments)); });  // which Python code does
}

}  // namespace

void bind_crew(nb::module_& m) {
    nb::class_<Crew>(m, "Crew", "Threads that wait from one call to the next.")
        .def(nb::init<>())
        .def("call", &call,
             nb::sig("def call(self, function: collections.abc.Callable[..., object], "
                     "*arguments: object) -> object"))
        .def("end", &Crew::end, nb::call_guard<WithoutGil>());
}

}  // namespace polysparse
