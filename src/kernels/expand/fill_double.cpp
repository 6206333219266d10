#include "expand/fill_tasks.hpp"

namespace polysparse {

template bool fill(const Basis&, const CsrView<double>&, const int32_t*, Slots<int32_t, double>,
                   int64_t, int64_t, const StopRequest&);
template bool fill(const Basis&, const CsrView<double>&, const int64_t*, Slots<int64_t, double>,
                   int64_t, int64_t, const StopRequest&);

}  // namespace polysparse
