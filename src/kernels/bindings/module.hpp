// The contents of the module, a function for each package.
#pragma once

#include <nanobind/nanobind.h>

namespace polysparse {

void bind_thread_pool(nanobind::module_& m);
void bind_basis(nanobind::module_& m);
void bind_matrix(nanobind::module_& m);
void bind_expand(nanobind::module_& m);
void bind_select(nanobind::module_& m);
void bind_apply(nanobind::module_& m);
void bind_losses(nanobind::module_& m);
void bind_observe(nanobind::module_& m);
void bind_search(nanobind::module_& m);
void bind_gram(nanobind::module_& m);
void bind_active(nanobind::module_& m);
void bind_online(nanobind::module_& m);
void bind_text(nanobind::module_& m);

}  // namespace polysparse
