#include "apply/apply_tasks.hpp"

namespace polysparse {

template bool apply(const Basis&, const CsrView<float>&, VectorTable<const float>,
                    VectorTable<float>, Effort, const StopRequest&);
template bool apply_transposed(const Basis&, const CsrView<float>&, VectorTable<const float>,
                               VectorTable<float>, Effort, const StopRequest&);

}  // namespace polysparse
