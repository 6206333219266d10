#include "apply/apply_tasks.hpp"

namespace polysparse {

template bool apply(const Basis&, const CsrView<double>&, VectorTable<const double>,
                    VectorTable<double>, Effort, const StopRequest&);
template bool apply_transposed(const Basis&, const CsrView<double>&, VectorTable<const double>,
                               VectorTable<double>, Effort, const StopRequest&);

}  // namespace polysparse
