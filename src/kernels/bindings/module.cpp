#include "bindings/module.hpp"

NB_MODULE(_kernels, m) {
    m.doc() = "Native kernels of polysparse; see src/kernels. Not a public interface.";
    // A daemon thread that Python ends, or a fork leaves behind, keeps what it holds.
    nanobind::set_leak_warnings(false);
    polysparse::bind_thread_pool(m);
    polysparse::bind_basis(m);
    polysparse::bind_matrix(m);
    polysparse::bind_expand(m);
    polysparse::bind_select(m);
    polysparse::bind_apply(m);
    polysparse::bind_losses(m);
    polysparse::bind_observe(m);
    polysparse::bind_search(m);
    polysparse::bind_gram(m);
    polysparse::bind_active(m);
    polysparse::bind_online(m);
    polysparse::bind_text(m);
}
