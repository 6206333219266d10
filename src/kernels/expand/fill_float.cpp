#include "expand/fill_tasks.hpp"

namespace polysparse {

template bool fill(const Basis&, const CsrView<float>&, const int32_t*, Slots<int32_t, float>,
                   int64_t, int64_t, const StopRequest&);
template bool fill(const Basis&, const CsrView<float>&, const int64_t*, Slots<int64_t, float>,
                   int64_t, int64_t, const StopRequest&);

}  // namespace polysparse
